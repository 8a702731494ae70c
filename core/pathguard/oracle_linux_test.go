// SPDX-License-Identifier: Apache-2.0

package pathguard_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
	"pgregory.net/rapid"

	"github.com/postern-gate/postern/core/pathguard"
)

// maze is a random tree of directories, files and links that lead anywhere.
func maze(rt *rapid.T) []string {
	setup := []string{"a/", "a/b/", "a/b/c/", "d/", "f=f", "a/f=af", "a/b/f=abf", "d/f=df", "$O/s=SECRET", "$O/in -> $R", "$O/d/", "$O/d/f=SECRET"}
	targets := []string{
		"a", "b", "f", "..", ".", "../..", "a/b", "a/b/../f", "d/f", "$R", "$R/a", "$R/a/../f", "$O", "$O/s", "$O/in/f",
		"../outside/s", "../allowed/f", "/", "../../../../../..", "l0", "l1", "l2", "a/l3", "../l0", "$R/l1/f", "absent", "$R/../allowed/d/f", "//", "./f", "f/", "l4/../f",
	}
	dirs := []string{"", "a/", "a/b/", "d/"}
	for i := range rapid.IntRange(1, 6).Draw(rt, "links") {
		dir := rapid.SampledFrom(dirs).Draw(rt, "dir")
		target := rapid.SampledFrom(targets).Draw(rt, "target")
		setup = append(setup, dir+"l"+decimal(int64(i))+" -> "+target)
	}
	return setup
}

// way is a path through it.
func way(rt *rapid.T) string {
	part := rapid.SampledFrom([]string{"a", "b", "c", "d", "f", "l0", "l1", "l2", "l3", "l4", "l5", "s", "in", "absent"})
	return strings.Join(rapid.SliceOfN(part, 1, 5).Draw(rt, "way"), "/")
}

// checkMaze compares the guard with what the kernel makes of the same path
// without it: a regular file beneath the root is read, as itself; all else is
// refused; what is opened lies beneath the root under exactly its name.
func checkMaze(rt *rapid.T, t *testing.T, prepare func(*pathguard.Root)) {
	b := emptyBox(t)
	defer os.RemoveAll(b.dir)
	b.make(maze(rt)...)
	b.open()
	prepare(b.root)
	for range 5 {
		path := way(rt)
		want, outside := "", true
		real, err := filepath.EvalSymlinks(b.R() + "/" + path)
		if err == nil {
			if rel, ok := strings.CutPrefix(real, b.R()+"/"); ok {
				body, err := os.ReadFile(real)
				if err == nil {
					want, outside = rel+":"+string(body), false
				}
			}
		}
		got := ""
		refused := b.follow(path, func(n pathguard.Name) error {
			f, err := n.Open()
			if err != nil {
				return err
			}
			defer f.Close()
			if p := realPath(f.FD()); p != b.R()+"/"+n.Rel() {
				rt.Fatalf("%s opened %s under the name %s", path, p, n.Rel())
			}
			buf := make([]byte, 64)
			k, err := f.Read(buf)
			got = n.Rel() + ":" + string(buf[:k])
			return err
		})
		// A path that leaves the root and comes back is refused although it
		// ends inside, unless it leaves by name alone.
		leaves := refused != nil && codeOf(refused) == "path.escape"
		if (outside && refused == nil) || (refused == nil && got != want) || (!outside && refused != nil && !leaves) {
			rt.Fatalf("%s: got %q, %v; without the guard %q (%v)", path, got, refused, want, real)
		}
		if strings.Contains(got, "SECRET") {
			rt.Fatalf("%s: got %q", path, got)
		}
	}
}

func TestMaze(t *testing.T) {
	for name, prepare := range map[string]func(*pathguard.Root){
		"openat2": func(*pathguard.Root) {},
		"walk":    func(r *pathguard.Root) { pathguard.WithoutOpenat2(r, unix.ENOSYS) },
		"folding": func(r *pathguard.Root) { r.SetFolds(true) },
	} {
		t.Run(name, func(t *testing.T) {
			rapid.Check(t, func(rt *rapid.T) { checkMaze(rt, t, prepare) })
		})
	}
}

func FuzzOpen(f *testing.F) {
	f.Add([]byte("\x01\x02\x03\x04\x05\x06\x07\x08"))
	f.Fuzz(func(t *testing.T, data []byte) {
		rapid.MakeFuzz(func(rt *rapid.T) { checkMaze(rt, t, func(*pathguard.Root) {}) })(t, data)
	})
}
