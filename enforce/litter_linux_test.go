// SPDX-License-Identifier: Apache-2.0

package enforce

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

const flooderEnv = "POSTERN_TEST_FLOODER"

// largeContent takes long enough to write that a kill finds it half done.
const largeContent = 4 << 20

// TestFlooder is not a test: it is a process that writes until it is killed.
func TestFlooder(t *testing.T) {
	root, state, ok := strings.Cut(os.Getenv(flooderEnv), "\n")
	if !ok {
		return
	}
	s, err := OpenState(state, StateOptions{})
	must(err)
	w := &world{t: t, dir: root, log: &log{}}
	g := w.open(rules{}, func(o *Options) { o.Recorder, o.Locker = s, s })
	for i := 0; ; i++ {
		_, err := g.Write(context.Background(), "f", []byte(strings.Repeat(string(rune('a'+i%26)), largeContent)), Call{})
		must(err)
	}
}

// unfinished are the unfinished files of a folder.
func unfinished(t *testing.T, dir string) []string {
	t.Helper()
	found, err := filepath.Glob(filepath.Join(dir, ".postern-tmp-*"))
	if err != nil {
		t.Fatal(err)
	}
	return found
}

// flooded kills a writer in the middle of a write, until one has left something.
func flooded(t *testing.T, root, state string) {
	t.Helper()
	before := len(unfinished(t, root))
	for range 50 {
		cmd := exec.Command(os.Args[0], "-test.run=^TestFlooder$")
		cmd.Env = append(os.Environ(), flooderEnv+"="+root+"\n"+state)
		must(cmd.Start())
		for range 5000 {
			if len(unfinished(t, root)) > before {
				break
			}
			time.Sleep(time.Millisecond)
		}
		kill(cmd)
		if len(unfinished(t, root)) > before {
			return
		}
		recoverAll(t, state)
	}
	t.Fatal("no killed writer left anything behind")
}

// TestLitter: what a killed write left is removed by the next start, and
// nothing else that only looks like it. The file itself is whole, old or new.
func TestLitter(t *testing.T) {
	tests := map[string]struct {
		beside func(root string) (end func())
		stays  int
	}{
		"alone": {func(string) func() { return func() {} }, 0},
		"files that only look alike": {func(root string) func() {
			must(os.WriteFile(filepath.Join(root, ".postern-tmp-0123456789abcdef"), []byte("somebody's"), 0o600),
				os.WriteFile(filepath.Join(root, ".postern-tmp-notes.txt"), []byte("somebody's"), 0o600),
				os.Mkdir(filepath.Join(root, ".postern-tmp-fedcba9876543210"), 0o700))
			return func() {}
		}, 3},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			box := t.TempDir()
			root, state := filepath.Join(box, "root"), filepath.Join(box, "state")
			must(os.Mkdir(root, 0o755), os.WriteFile(filepath.Join(root, "f"), []byte("old"), 0o644))
			defer tc.beside(root)()
			time.Sleep(2 * clockSlack) // what is older than a record by less is not told from it
			for try := 0; ; try++ {
				flooded(t, root, state)
				recoverAll(t, state)
				if got := unknowns(t, state); len(got) > 0 && strings.HasSuffix(got[len(got)-1], foundUnchanged) {
					break
				}
				if try == 20 { // killed after the exchange: what is left may be the former content
					t.Fatal("never killed before the effect")
				}
				clean(t, root, tc.stays)
			}
			if left := unfinished(t, root); len(left) != tc.stays {
				t.Errorf("%d are left, want %d: %v", len(left), tc.stays, left)
			}
			data, err := os.ReadFile(filepath.Join(root, "f"))
			if err != nil || len(data) != largeContent && string(data) != "old" || strings.Count(string(data), string(data[:1])) != len(data) && string(data) != "old" {
				t.Errorf("the file is neither old nor new: %d bytes, %v", len(data), err)
			}
		})
	}
}

// clean removes by hand what a person would, so that the next try begins anew.
func clean(t *testing.T, root string, stays int) {
	t.Helper()
	for _, path := range unfinished(t, root) {
		if info, err := os.Stat(path); err == nil && info.Mode().IsRegular() && info.Size() >= 1<<10 {
			must(os.Remove(path))
		}
	}
	if n := len(unfinished(t, root)); n > stays {
		t.Fatalf("%d are left", n)
	}
}

// TestLitterOfTheLiving: the unfinished file of a process that lives is never
// removed, whoever else was killed in the same folder.
func TestLitterOfTheLiving(t *testing.T) {
	root := t.TempDir()
	w := &world{t: t, dir: root, log: &log{}}
	g := w.open(rules{}, func(*Options) {})
	names, err := g.Workspace().Parse("f")
	must(err)
	since := time.Now().Add(-time.Minute)
	const entry = ".postern-tmp-0123456789abcdef"
	open, err := os.Create(filepath.Join(root, entry))
	must(err)
	dead := []casualty{{name: names[0], known: true, found: foundUnchanged}}
	dead[0].Time = since
	sweep(dead)
	if len(unfinished(t, root)) != 1 {
		t.Fatal("the file of a living process is gone")
	}
	must(open.Close())
	for what, c := range map[string]casualty{
		"a change that may have happened": {name: names[0], known: true, found: foundChanged},
		"one that nobody could look at":   {found: foundUnreadable},
	} {
		c.Time = since
		sweep(append([]casualty{c}, dead[:0]...))
		if len(unfinished(t, root)) != 1 {
			t.Fatalf("removed after %s", what)
		}
	}
	late := dead[0]
	late.Time = time.Now().Add(time.Minute)
	sweep([]casualty{late})
	if len(unfinished(t, root)) != 1 {
		t.Fatal("removed although it is older than the change")
	}
	second := filepath.Join(root, ".postern-tmp-fedcba9876543210")
	must(os.WriteFile(second, nil, 0o600))
	sweep(dead)
	if len(unfinished(t, root)) != 2 {
		t.Fatal("removed although there are more than changes")
	}
	must(os.Remove(second), os.Link(filepath.Join(root, entry), filepath.Join(root, "kept")))
	sweep(dead)
	if len(unfinished(t, root)) != 1 {
		t.Fatal("removed although it has another name")
	}
	must(os.Remove(filepath.Join(root, "kept")))
	sweep(dead) // the control: now nothing speaks against it
	if left := unfinished(t, root); len(left) != 0 {
		t.Errorf("left: %v", left)
	}
}
