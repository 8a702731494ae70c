// SPDX-License-Identifier: Apache-2.0

package selftest

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
)

// way is a name that leads out of the guarded folder.
type way struct{ what, name string }

// ways makes the links and returns every way to a file of the folder outside.
func (l *lab) ways(file string) ([]way, error) {
	target := filepath.Join(l.outside, file)
	dir := l.at("ways-" + file)
	in := "ways-" + file + "/"
	if err := os.MkdirAll(filepath.Join(dir, "deep", "er"), 0o700); err != nil {
		return nil, err
	}
	links := map[string]string{
		"file": target, "relative": filepath.Join("..", "..", "outside", file), "folder": l.outside, "up": filepath.Join("..", ".."),
		"chain1": "chain2", "chain2": filepath.Join("deep", "chain3"), filepath.Join("deep", "chain3"): target,
		filepath.Join("deep", "er", "folder"): filepath.Join("..", "..", "folder"),
	}
	all := []way{
		{"..", "../outside/" + file},
		{".. behind a name", in + "../../outside/" + file},
		{".. behind a link", in + "folder/../outside/" + file},
		{"an absolute path", target},
		{"an absolute path with ..", l.root + "/../outside/" + file},
		{"a link to a file", in + "file"},
		{"a relative link", in + "relative"},
		{"a link to a folder", in + "folder/" + file},
		{"a link upwards", in + "up/outside/" + file},
		{"a chain of links", in + "chain1"},
		{"a link through a link", in + "deep/er/folder/" + file},
	}
	if runtime.GOOS == "linux" {
		links["proc"] = "/proc/self/root" + target
		links["procdir"] = "/proc/self/root"
		links["cwd"] = "/proc/self/cwd"
		all = append(all,
			way{"a link through /proc/self/root", in + "proc"},
			way{"a magic link as a folder", in + "procdir" + target},
			way{"/proc/self/root by name", "/proc/self/root" + target},
		)
	}
	for name, to := range links {
		if err := os.Symlink(to, filepath.Join(dir, name)); err != nil {
			return nil, err
		}
	}
	return all, nil
}

// plain is where a name leads without the guard.
func (l *lab) plain(name string) string {
	if filepath.IsAbs(name) {
		return name
	}
	return l.root + string(filepath.Separator) + name // not cleaned: what .. behind a link leads to is the system's matter
}

func outsideRead(l *lab, t *trial) {
	ways, err := l.ways("secret")
	if !t.needs("links", err) {
		return
	}
	tools := []string{"read_text_file", "read_media_file", "get_file_info"}
	t.about = fmt.Sprintf("%d names that lead outside, with %d tools that read", len(ways), len(tools))
	for _, w := range ways {
		for _, tool := range tools {
			t.against(w.what+" with "+tool,
				func() error { return holds(l.plain(w.name), l.marker) },
				func() error { return l.refused(l.main.client.call(tool, args{"path": w.name})) })
		}
	}
	t.against("a search over everything", func() error { return holds(l.at("ways-secret/file"), l.marker) }, func() error {
		a, err := l.main.client.call("search_content", args{"path": ".", "query": markerStart, "includeIgnored": true})
		if err == nil && l.leaks(a) {
			err = errors.New("the content came out")
		}
		return err
	})
}

func outsideWrite(l *lab, t *trial) {
	const before = "untouched"
	target := filepath.Join(l.outside, "target")
	if !t.needs("a file", os.WriteFile(target, []byte(before), 0o600)) {
		return
	}
	ways, err := l.ways("target")
	if !t.needs("links", err) {
		return
	}
	t.about = fmt.Sprintf("%d names that lead outside, written, appended to, moved onto and deleted", len(ways))
	calls := []struct {
		tool string
		args func(name string) args
	}{
		{"write_file", func(n string) args { return args{"path": n, "content": "changed"} }},
		{"append_file", func(n string) args { return args{"path": n, "content": "changed"} }},
		{"edit_file", func(n string) args {
			return args{"path": n, "edits": []args{{"oldText": before, "newText": "changed"}}}
		}},
	}
	for _, w := range ways {
		for _, c := range calls {
			t.against(w.what+" with "+c.tool, func() error { return l.overwrites(w.name, target, before) }, func() error {
				if err := l.refused(l.main.client.call(c.tool, c.args(w.name))); err != nil {
					return err
				}
				return holds(target, before)
			})
		}
	}
	l.outsideMoves(t, target, before)
}

// outsideMoves: what isn't beneath a root is neither source nor destination.
func (l *lab) outsideMoves(t *trial, target, before string) {
	for what, name := range map[string]string{"..": "../outside/new", "a linked folder": "ways-target/folder/new"} {
		t.against("a move to "+what, func() error {
			return errors.Join(l.put(l.plain(name), "control"), os.Remove(l.plain(name)))
		}, func() error {
			if err := l.put(l.at("mover"), "moved"); err != nil {
				return err
			}
			if err := l.refused(l.main.client.call("move_file", args{"source": "mover", "destination": name})); err != nil {
				return err
			}
			return holds(l.at("mover"), "moved")
		})
	}
	t.against("a copy from outside", func() error { return l.overwrites("ways-target/file", target, before) }, func() error {
		return l.refused(l.main.client.call("copy_file", args{"source": "../outside/target", "destination": "copied"}))
	})
}

// overwrites is the control of a write: without the guard it changes the
// target, which is put back.
func (l *lab) overwrites(name, target, before string) error {
	if err := os.WriteFile(l.plain(name), []byte("control"), 0o600); err != nil {
		return err
	}
	if err := holds(target, "control"); err != nil {
		return err
	}
	return os.WriteFile(target, []byte(before), 0o600)
}
