// SPDX-License-Identifier: Apache-2.0

//go:build linux

package fsserver

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

const secret = "SECRET-71c4"

// escaping are the codes of a name that leaves the roots.
var escaping = []string{"path.escape", "path.symlink"}

func prefixSibling(t *testing.T) {
	w := newWorld(t, map[string]string{"s.txt": secret})
	w.put(w.root+"-evil/s.txt", secret)
	w.call("read_text_file", args{"path": w.root + "-evil/s.txt"}).refused("path.escape").lacks(secret)
	if got := w.call("read_text_file", args{"path": w.at("s.txt")}).body(); got != secret {
		t.Errorf("control: %q", got)
	}
}

func symlinkFileRead(t *testing.T) {
	w := newWorld(t, map[string]string{"in.txt": "INSIDE"})
	w.put(w.outside+"/secret.txt", secret)
	w.link(w.outside+"/secret.txt", "l")
	w.link("in.txt", "m")
	w.call("read_text_file", args{"path": w.at("l")}).refused(escaping...).lacks(secret, w.outside, "outside")
	if got := w.call("read_text_file", args{"path": w.at("m")}).body(); got != "INSIDE" {
		t.Errorf("control: %q", got)
	}
}

func symlinkParentNewFile(t *testing.T) {
	w := newWorld(t, nil)
	w.link(w.outside, "d")
	w.call("write_file", args{"path": w.at("d/new.txt"), "content": "x"}).refused(escaping...)
	w.unchanged(w.outside)
	w.unchanged(w.root, "d")
	w.must(os.WriteFile(w.at("d/new.txt"), nil, 0o644)) // control: by name it is made outside
	w.unchanged(w.outside, "new.txt")
}

// unchanged holds the names in a directory against what they must be.
func (w *world) unchanged(dir string, names ...string) {
	w.Helper()
	if got := w.names(dir); strings.Join(got, " ") != strings.Join(names, " ") {
		w.Errorf("%s holds %q, want %q", dir, got, names)
	}
}

func danglingLinkWrite(t *testing.T) {
	w := newWorld(t, nil)
	target := w.outside + "/created.txt"
	w.link(target, "l")
	w.call("write_file", args{"path": w.at("l"), "content": "x"}).refused(escaping...)
	w.unchanged(w.outside)
	if got, _ := os.Readlink(w.at("l")); got != target {
		t.Errorf("the link leads to %q", got)
	}
	w.must(os.WriteFile(w.at("l"), nil, 0o644)) // control
	w.unchanged(w.outside, "created.txt")
}

func lexicalOnlyWrite(t *testing.T) {
	w := newWorld(t, nil)
	victim := w.outside + "/victim.txt"
	w.put(victim, "KEEP")
	before, err := os.Stat(victim)
	w.must(err)
	w.link(victim, "l")
	for _, call := range []struct {
		tool string
		args args
	}{
		{"write_file", args{"path": w.at("l"), "content": "pwned"}},
		{"append_file", args{"path": w.at("l"), "content": "pwned"}},
		{"edit_file", args{"path": w.at("l"), "edits": []args{{"oldText": "KEEP", "newText": "pwned"}}}},
	} {
		w.call(call.tool, call.args).refused(escaping...).lacks("KEEP")
	}
	w.is(victim, "KEEP")
	after, err := os.Stat(victim)
	if err != nil || !os.SameFile(before, after) {
		t.Error("another file now", err)
	}
	if got, _ := os.Readlink(w.at("l")); got != victim {
		t.Errorf("the link leads to %q", got)
	}
}

func dotdotTraversalWrite(t *testing.T) {
	w := newWorld(t, map[string]string{"a.txt": "A"})
	dir2 := filepath.Join(w.box, "dir2")
	w.must(os.Mkdir(dir2, 0o755))
	w.call("write_file", args{"path": w.root + "/../dir2/pwned.txt", "content": "x"}).refused("path.escape")
	w.call("create_directory", args{"path": w.root + "/../dir2/d"}).refused("path.escape")
	w.call("move_file", args{"source": w.at("a.txt"), "destination": w.root + "/../dir2/a.txt"}).refused("path.escape")
	w.call("copy_file", args{"source": w.at("a.txt"), "destination": w.root + "/../dir2/a.txt"}).refused("path.escape")
	w.unchanged(dir2)
	w.is(w.at("a.txt"), "A")
	w.call("move_file", args{"source": w.at("a.txt"), "destination": w.root + "/../root/b.txt"}).ok() // control
}

func caseFoldSibling(t *testing.T) {
	w := newWorld(t, map[string]string{"s.txt": "in"})
	w.put(w.box+"/ROOT/s.txt", secret)
	w.call("read_text_file", args{"path": w.box + "/ROOT/s.txt"}).refused("path.escape").lacks(secret)
}

func quoteSiblingRead(t *testing.T) {
	w := newWorld(t, map[string]string{"a": "A"})
	for _, tail := range []string{`"`, "'", " "} {
		w.put(w.root+tail, secret)
		w.call("read_text_file", args{"path": w.root + tail}).refused("path.escape").lacks(secret)
	}
	w.put(w.root+"''/n.txt", secret)
	w.call("list_directory", args{"path": w.root + "''"}).refused("path.escape").lacks("n.txt")
	for _, form := range []string{" " + w.at("a"), `"` + w.at("a") + `"`, w.at("a") + " "} {
		w.call("read_text_file", args{"path": form}).refused()
	}
}

func defaultRootsTooWide(t *testing.T) {
	w := newWorld(t, nil)
	home := filepath.Join(w.box, "home")
	w.put(home+"/other.txt", secret)
	t.Setenv("HOME", home)
	temp := filepath.Join(t.TempDir(), "t.txt")
	w.put(temp, secret)
	w.call("read_text_file", args{"path": "~/other.txt"}).refused().lacks(secret)
	for _, path := range []string{home + "/other.txt", temp} {
		w.call("read_text_file", args{"path": path}).refused("path.escape").lacks(secret)
	}
	if got := w.call("list_allowed_directories", args{}).text(); got != "Allowed directories:\n"+w.root {
		t.Errorf("allowed: %q", got)
	}
}

func dotdotInside(t *testing.T) {
	w := newWorld(t, map[string]string{"sub/t.txt": "ok"})
	if got := w.call("read_text_file", args{"path": w.root + "/sub/../sub/t.txt"}).body(); got != "ok" {
		t.Errorf("body %q", got)
	}
	strict := w.setup
	strict.Roots = []string{"project=" + w.root + "=res"}
	c := w.serve(strict, nil)
	c.call("read_text_file", args{"path": "res://sub/../sub/t.txt"}).refused("path.denied")
	if got := c.call("read_text_file", args{"path": "res://sub/t.txt"}).body(); got != "ok" {
		t.Errorf("control: %q", got)
	}
	for _, path := range []string{w.at("sub/t.txt"), "sub/t.txt", `res://sub\t.txt`, "res://C:/t", "res:///sub/t.txt"} {
		c.call("read_text_file", args{"path": path}).refused("path.denied")
	}
	c.call("search_files", args{"path": "res://", "pattern": "**/*.txt"}).has("\nres://sub/t.txt\n")
	c.call("list_allowed_directories", args{}).has("\nres://").lacks(w.root)
}

func rootIsSymlink(t *testing.T) {
	w := newWorld(t, nil, later)
	w.put(w.box+"/real/a.txt", "A")
	w.must(os.Symlink(w.box+"/real", w.box+"/link"))
	s := w.setup
	s.Roots = []string{"project=" + w.box + "/link"}
	c := w.serve(s, nil)
	for _, path := range []string{w.box + "/link/a.txt", w.box + "/real/a.txt", "a.txt"} {
		if got := c.call("read_text_file", args{"path": path}).body(); got != "A" {
			t.Errorf("%s: %q", path, got)
		}
	}
}

func rootSlash(t *testing.T) {
	w := newWorld(t, map[string]string{"a.txt": "A"}, later)
	s := w.setup
	s.Roots = []string{"project=/"}
	c := w.serve(s, nil)
	path := w.at("a.txt")
	if !sameDevice(t, "/", path) {
		path = "/postern-test-" + itoa(os.Getpid()) + ".txt"
		w.put(path, "A")
		t.Cleanup(func() { _ = os.Remove(path) })
	}
	if got := c.call("read_text_file", args{"path": path}).body(); got != "A" {
		t.Errorf("body %q", got)
	}
	c.call("read_text_file", args{"path": "/proc/self/environ"}).refused("path.mount")
	for _, name := range []string{"", "/version", "/audit", "/absent"} {
		c.call("read_text_file", args{"path": s.State + name}).refused("policy.denied")
		c.call("list_directory", args{"path": s.State + name}).refused("policy.denied")
	}
}

func nestedUnderInnerLink(t *testing.T) {
	w := newWorld(t, map[string]string{"real/src/x": "X"})
	w.link("real", "ln")
	if got := w.call("list_directory", args{"path": w.at("ln/src")}).body(); got != "[FILE] x" {
		t.Errorf("listing %q", got)
	}
	r := w.call("read_text_file", args{"path": w.at("ln/src/x")})
	if e, _ := open(r.Content[0].Text); e.body != "X" || e.attribute("source") != "project://real/src/x" {
		t.Errorf("%+v", e)
	}
}

func missingSecondRoot(t *testing.T) {
	w := newWorld(t, map[string]string{"a.txt": "A"}, later)
	absent := w.root + "-unmounted"
	s := w.setup
	s.Roots = append(s.Roots, "second="+absent)
	c := w.serve(s, nil)
	if got := c.call("read_text_file", args{"path": w.at("a.txt")}).body(); got != "A" {
		t.Errorf("body %q", got)
	}
	c.call("read_text_file", args{"path": absent + "/b.txt"}).refused("path.missing")
	c.call("list_allowed_directories", args{}).has(absent + " (absent)")
	w.put(absent+"/b.txt", "B")
	if got := c.call("read_text_file", args{"path": absent + "/b.txt"}).body(); got != "B" {
		t.Errorf("body %q", got)
	}
}

func listingSizes(t *testing.T) {
	w := newWorld(t, map[string]string{"a": "A"})
	w.put(w.outside+"/secret.txt", strings.Repeat("x", 4321))
	w.link(w.outside+"/secret.txt", "l")
	for _, sort := range []string{"name", "size"} {
		w.call("list_directory_with_sizes", args{"path": w.root, "sortBy": sort}).ok().
			has("[LINK] l", "Total: 1 files, 0 directories, 1 others", "Combined size: 1 B").lacks("4321", "4.22 KB", "[FILE] l", "secret.txt")
	}
	w.call("get_file_info", args{"path": w.at("l")}).refused(escaping...).lacks("4321", w.outside)
	w.put(w.at("copy"), strings.Repeat("x", 4321)) // control
	w.call("list_directory_with_sizes", args{"path": w.root}).has("4.22 KB")
}

func existOracle(t *testing.T) {
	w := newWorld(t, nil)
	w.put(w.outside+"/secret.txt", secret)
	w.link(w.outside, "d")
	w.link(w.outside+"/secret.txt", "to-secret")
	w.link(w.outside+"/absent.txt", "to-absent")
	for _, tool := range []string{"read_text_file", "read_media_file", "get_file_info", "list_directory", "write_file", "append_file", "create_directory", "directory_tree"} {
		for _, pair := range [][2]string{{"d/secret.txt", "d/absent.txt"}, {"to-secret", "to-absent"}} {
			var blank [2]string
			for i, name := range pair {
				a := args{"path": w.at(name)}
				if strings.HasSuffix(tool, "_file") && !strings.HasPrefix(tool, "read") {
					a["content"] = "x"
				}
				r := w.call(tool, a).refused(escaping...).lacks(secret, w.outside)
				blank[i] = strings.NewReplacer(w.at(name), "PATH", "project://"+name, "PATH", r.id(), "ID").Replace(r.raw)
			}
			if blank[0] != blank[1] {
				t.Errorf("%s tells them apart:\n%s\n%s", tool, blank[0], blank[1])
			}
		}
	}
}
