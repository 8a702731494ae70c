// SPDX-License-Identifier: Apache-2.0

package pathguard_test

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/postern-gate/postern/core/fault"
	"github.com/postern-gate/postern/core/pathguard"
)

// box is a folder with an allowed root, a folder outside, and what is beside
// them. In the setup language $R, $O and $BOX stand for the three.
type box struct {
	t    testing.TB
	dir  string
	root *pathguard.Root
	ws   *pathguard.Workspace
	deny []string // names that the judge of follow refuses
}

func (b *box) R() string { return b.dir + "/allowed" }
func (b *box) O() string { return b.dir + "/outside" }

func (b *box) expand(s string) string {
	return strings.NewReplacer("$R", b.R(), "$O", b.O(), "$BOX", b.dir).Replace(s)
}

// newBox makes the folders and the setup, and opens the root.
func newBox(t testing.TB, setup []string, options ...func(*pathguard.Options)) *box {
	t.Helper()
	b := emptyBox(t)
	b.make(setup...)
	b.open(options...)
	return b
}

func emptyBox(t testing.TB) *box {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	must(t, err)
	b := &box{t: t, dir: dir}
	b.make("$R/", "$O/")
	return b
}

func (b *box) open(options ...func(*pathguard.Options)) {
	b.t.Helper()
	b.root = b.openRoot("project", b.R(), options...)
	ws, err := pathguard.NewWorkspace(b.root)
	must(b.t, err)
	b.ws = ws
}

func (b *box) openRoot(name, dir string, options ...func(*pathguard.Options)) *pathguard.Root {
	b.t.Helper()
	o := pathguard.Options{Name: name}
	for _, f := range options {
		f(&o)
	}
	r, err := pathguard.OpenRoot(dir, o)
	must(b.t, err)
	b.t.Cleanup(func() { r.Close() })
	return r
}

// make builds from lines: "d/" a directory, "f=content" a file, "l -> target"
// a link, "p|" a FIFO, "f@0750" a mode. Names without $ are beneath the root.
func (b *box) make(setup ...string) {
	b.t.Helper()
	for _, line := range setup {
		must(b.t, b.makeOne(line))
	}
}

func (b *box) place(name string) string {
	if name = b.expand(name); filepath.IsAbs(name) {
		return name
	}
	return filepath.Join(b.R(), name)
}

func (b *box) makeOne(line string) error {
	if link, target, ok := strings.Cut(line, " -> "); ok {
		return os.Symlink(b.expand(target), b.place(link))
	}
	if name, content, ok := strings.Cut(line, "="); ok {
		return os.WriteFile(b.place(name), []byte(content), 0o644)
	}
	if name, mode, ok := strings.Cut(line, "@"); ok {
		var m uint32
		for _, c := range mode {
			m = m*8 + uint32(c-'0')
		}
		return unix.Chmod(b.place(name), m)
	}
	if name, ok := strings.CutSuffix(line, "|"); ok {
		return unix.Mkfifo(b.place(name), 0o644)
	}
	return os.MkdirAll(b.place(line), 0o755)
}

// tree is every name beneath dir with what it is, to compare states.
func tree(t testing.TB, dir string) string {
	t.Helper()
	var lines []string
	err := filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
		if err != nil {
			return err
		}
		line := strings.TrimPrefix(path, dir) + " " + d.Type().String()
		switch {
		case d.Type()&os.ModeSymlink != 0:
			to, err := os.Readlink(path)
			must(t, err)
			line += " " + to
		case d.Type().IsRegular():
			b, err := os.ReadFile(path)
			must(t, err)
			line += " " + string(b)
		}
		lines = append(lines, line)
		return nil
	})
	must(t, err)
	return strings.Join(lines, "\n")
}

// follow does what the crossing does: parse, judge, try, judge where a link
// leads, try again.
func (b *box) follow(spelling string, try func(pathguard.Name) error) error {
	names, err := b.ws.Parse(b.expand(spelling))
	if err != nil {
		return err
	}
	n := names[0]
	for range 41 {
		if slices.Contains(b.deny, n.Rel()) {
			return &fault.Error{Code: fault.PolicyDenied, Resource: n.String()}
		}
		err = try(n)
		var link *pathguard.LinkError
		if !errors.As(err, &link) {
			return err
		}
		n = link.To
	}
	return err
}

func (b *box) name(spelling string) pathguard.Name {
	b.t.Helper()
	names, err := b.ws.Parse(b.expand(spelling))
	must(b.t, err)
	return names[0]
}

func readName(n pathguard.Name) (string, error) {
	f, err := n.Open()
	if err != nil {
		return "", err
	}
	defer f.Close()
	all, err := io.ReadAll(f)
	return string(all), err
}

func (b *box) read(spelling string) (body string, err error) {
	err = b.follow(spelling, func(n pathguard.Name) (err error) {
		body, err = readName(n)
		return err
	})
	return body, err
}

func listName(n pathguard.Name) (string, error) {
	d, err := n.OpenDir()
	if err != nil {
		return "", err
	}
	defer d.Close()
	var lines []string
	for {
		batch, err := d.Entries(3)
		if err == io.EOF {
			slices.Sort(lines)
			return strings.Join(lines, " "), nil
		}
		if err != nil {
			return "", err
		}
		for _, e := range batch {
			lines = append(lines, e.Kind.String()+":"+e.Name)
		}
	}
}

func writeName(n pathguard.Name, content string, o pathguard.WriteOptions) (pathguard.Written, error) {
	t, err := n.Pin()
	if err != nil {
		return pathguard.Written{}, err
	}
	defer t.Close()
	if t.Exists() {
		return t.Replace(strings.NewReader(content), o)
	}
	return t.Create(strings.NewReader(content), 0o644)
}

func (b *box) write(spelling, content string) error {
	return b.follow(spelling, func(n pathguard.Name) error {
		_, err := writeName(n, content, pathguard.WriteOptions{})
		return err
	})
}

func (b *box) pinEntry(spelling string) (t *pathguard.Target, err error) {
	err = b.follow(spelling, func(n pathguard.Name) (err error) {
		t, err = n.PinEntry()
		return err
	})
	return t, err
}

func (b *box) move(from, to string) error {
	src, err := b.pinEntry(from)
	if err != nil {
		return err
	}
	defer src.Close()
	dst, err := b.pinEntry(to)
	if err != nil {
		return err
	}
	defer dst.Close()
	return pathguard.Rename(src, dst)
}

// time is one that no file has by itself.
func (b *box) time() time.Time { return time.Unix(1_600_000_000, 12345) }
