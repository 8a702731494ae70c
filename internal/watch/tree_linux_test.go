// SPDX-License-Identifier: Apache-2.0

package watch

import (
	"context"
	"encoding/binary"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/postern-gate/postern/core/pathguard"
	"github.com/postern-gate/postern/internal/testenv"
)

// forest is a tree that is watched, and what it told.
type forest struct {
	box
	tree *Tree
	stop func()

	mu   sync.Mutex
	seen []string
}

var whats = map[What]string{Made: "made", Written: "written", Left: "left", Arrived: "arrived", Missed: "missed", Lost: "lost", Ready: "ready"}

func (f *forest) tell(e TreeEvent) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.seen = append(f.seen, strings.TrimSpace(whats[e.What]+" "+strings.TrimPrefix(e.Dir.Rel()+"/"+e.Entry, "/")))
}

func (f *forest) told(text string) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Contains(f.seen, text)
}

func grow(b box, most int) *forest {
	b.Helper()
	f := &forest{box: b}
	var err error
	f.tree, err = OpenTree(TreeOptions{
		Roots: []pathguard.Name{b.name("")}, Most: most, Tell: f.tell,
		Skip: func(entry string) bool { return entry == ".git" },
	})
	must(b.T, err)
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() { defer close(ended); f.tree.Run(ctx) }()
	f.stop = func() { cancel(); <-ended }
	b.Cleanup(f.stop)
	f.await("ready")
	return f
}

func (f *forest) await(text string) {
	f.Helper()
	for over := time.Now().Add(20 * time.Second); !f.told(text); time.Sleep(time.Millisecond) {
		if time.Now().After(over) {
			f.mu.Lock()
			defer f.mu.Unlock()
			f.Fatalf("it doesn't tell %q: %q", text, f.seen)
		}
	}
}

func (f *forest) at(rel string) string { return filepath.Join(f.dir, rel) }

func (f *forest) mkdir(rel string) { f.Helper(); must(f.T, os.MkdirAll(f.at(rel), 0o755)) }

func (f *forest) move(from, to string) { f.Helper(); must(f.T, os.Rename(f.at(from), f.at(to))) }

// TestTree: files anywhere beneath are told of, in folders that are made, moved,
// moved in, and moved away too.
func TestTree(t *testing.T) {
	b := newBox(t)
	must(t, os.MkdirAll(filepath.Join(b.dir, "d/deep/er"), 0o755))
	b.put("d/deep/old", "x")
	f := grow(b, 0)
	if f.told("made d/deep/old") {
		t.Error("what was there is told")
	}
	f.put("d/deep/er/f", "x")
	f.await("made d/deep/er/f")
	f.put("d/deep/er/f", "more")
	f.await("written d/deep/er/f")
	must(t, os.Remove(f.at("d/deep/er/f")))
	f.await("left d/deep/er/f")

	f.mkdir("n/e/w")
	f.put("n/e/w/f", "x")
	f.await("made n/e/w/f")

	f.move("d/deep", "n/moved")
	f.await("left d/deep")
	f.await("arrived n/moved")
	f.put("n/moved/er/g", "x")
	f.await("made n/moved/er/g")
	f.put("d/after", "x")
	f.await("made d/after")

	// One that is moved into a new folder is found there before it is told of.
	f.mkdir("fresh")
	f.move("n/moved", "fresh/again")
	f.insist("fresh/again/er/h")

	before := f.tree.Extent().Folders
	outside := t.TempDir()
	f.move("fresh", "../"+mustRel(t, filepath.Dir(f.dir), outside)+"/gone")
	f.await("left fresh")
	for over := time.Now().Add(20 * time.Second); f.tree.Extent().Folders != before-3; time.Sleep(time.Millisecond) {
		if time.Now().After(over) {
			t.Fatalf("%d folders, were %d", f.tree.Extent().Folders, before)
		}
	}
	must(t, os.WriteFile(filepath.Join(outside, "gone/again/er/out"), nil, 0o644))
	must(t, os.MkdirAll(filepath.Join(outside, "in/side"), 0o755))
	must(t, os.Rename(filepath.Join(outside, "in"), f.at("in")))
	f.await("arrived in")
	f.insist("in/side/f")
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, s := range f.seen {
		if strings.Contains(s, "out") {
			t.Errorf("outside: %s", s)
		}
	}
}

// insist writes until it is told: a folder that was moved in is watched a moment
// later.
func (f *forest) insist(rel string) {
	f.Helper()
	for over := time.Now().Add(20 * time.Second); !f.told("made "+rel) && !f.told("written "+rel); time.Sleep(10 * time.Millisecond) {
		f.put(rel, "x")
		if time.Now().After(over) {
			f.Fatal(rel)
		}
	}
}

func mustRel(t *testing.T, from, to string) string {
	t.Helper()
	to, err := filepath.EvalSymlinks(to)
	must(t, err)
	rel, err := filepath.Rel(from, to)
	must(t, err)
	return rel
}

// TestTreeStaysInside: a link is not followed, neither one that was there nor
// one that comes, and what is left out is not looked into.
func TestTreeStaysInside(t *testing.T) {
	b := newBox(t)
	outside := t.TempDir()
	must(t, os.Symlink(outside, filepath.Join(b.dir, "old")))
	must(t, os.MkdirAll(filepath.Join(b.dir, ".git/objects"), 0o755))
	f := grow(b, 0)
	if n := f.tree.Extent().Folders; n != 2 {
		t.Errorf("%d folders", n)
	}
	must(t, os.Symlink(outside, f.at("new")))
	f.await("made new")
	must(t, os.Remove(f.at("d")))
	must(t, os.Symlink(outside, f.at("d")))
	f.await("made d")
	must(t, os.WriteFile(filepath.Join(outside, "secret"), nil, 0o644))
	f.put(".git/objects/x", "x")
	f.put(".git/index", "x")
	f.put("last", "x")
	f.await("made last")
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, s := range f.seen {
		if strings.Contains(s, "secret") || strings.Contains(s, ".git") {
			t.Errorf("told: %s", s)
		}
	}
}

// TestTreeBounds: beyond the bound it says so, and what is within is seen.
func TestTreeBounds(t *testing.T) {
	b := newBox(t)
	for i := range 20 {
		must(t, os.Mkdir(filepath.Join(b.dir, fmt.Sprint("s", i)), 0o755))
	}
	f := grow(b, 5)
	if e := f.tree.Extent(); e.Folders != 5 || !e.Partial {
		t.Errorf("%+v", e)
	}
	f.put("top", "x")
	f.await("made top")
	if e := grow(newBox(t), 5).tree.Extent(); e.Folders != 2 || e.Partial || e.Closed != 0 {
		t.Errorf("control: %+v", e)
	}
}

// TestTreeClosedFolder: one that can't be looked into is counted, as an ordinary
// user has it.
func TestTreeClosedFolder(t *testing.T) {
	b := newBox(t)
	must(t, os.Mkdir(filepath.Join(b.dir, "shut"), 0o700))
	must(t, os.Chmod(b.dir, 0o777))
	for up := filepath.Dir(b.dir); up != "/"; up = filepath.Dir(up) {
		if info, err := os.Stat(up); err == nil && info.Mode()&1 == 0 {
			must(t, os.Chmod(up, info.Mode()|0o011))
		}
	}
	if os.Getuid() != 0 {
		must(t, os.Chmod(filepath.Join(b.dir, "shut"), 0))
		defer func() { must(t, os.Chmod(filepath.Join(b.dir, "shut"), 0o700)) }()
	}
	look := func() {
		root, err := pathguard.OpenRoot(b.dir, pathguard.Options{Name: "r"})
		must(t, err)
		defer root.Close()
		ws, err := pathguard.NewWorkspace(root)
		must(t, err)
		names, err := ws.Parse("r://")
		must(t, err)
		tree, err := OpenTree(TreeOptions{Roots: names, Tell: func(TreeEvent) {}, Skip: func(string) bool { return false }})
		must(t, err)
		defer tree.queue.Close()
		tree.look()
		if e := tree.Extent(); e.Folders != 2 || e.Closed != 1 {
			t.Errorf("%+v", e)
		}
	}
	if os.Getuid() == 0 {
		testenv.AsNobody(t, look)
	} else {
		look()
	}
}

// TestTreeLosesRoot: a root that is removed or moved is said.
func TestTreeLosesRoot(t *testing.T) {
	for what, do := range map[string]func(string) error{
		"removed": os.RemoveAll,
		"moved":   func(dir string) error { return os.Rename(dir, dir+"-elsewhere") },
	} {
		t.Run(what, func(t *testing.T) {
			b := newBox(t)
			f := grow(b, 0)
			must(t, do(b.dir))
			f.await("lost")
		})
	}
}

// TestTreeOverflow: what the kernel could not hold is said, and folders that
// were made meanwhile are watched after.
func TestTreeOverflow(t *testing.T) {
	b := newBox(t)
	f := &forest{box: b}
	var err error
	f.tree, err = OpenTree(TreeOptions{Roots: []pathguard.Name{b.name("")}, Tell: f.tell, Skip: func(string) bool { return false }})
	must(t, err)
	defer f.tree.queue.Close()
	f.tree.look()
	f.mkdir("d/unheard/of")
	var over [unix.SizeofInotifyEvent]byte
	binary.NativeEndian.PutUint32(over[:], 0xffffffff)
	binary.NativeEndian.PutUint32(over[4:], unix.IN_Q_OVERFLOW)
	f.tree.events(over[:])
	if !f.told("missed") || f.tree.Extent().Folders != 2 {
		t.Fatalf("%q", f.seen)
	}
	for len(f.tree.todo) > 0 {
		f.tree.look()
	}
	if n := f.tree.Extent().Folders; n != 4 {
		t.Errorf("%d folders", n)
	}
}
