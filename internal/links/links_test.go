// SPDX-License-Identifier: Apache-2.0

package links

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// made is a folder with links and folders ("to" is "") in it.
func made(t *testing.T, all ...[2]string) string {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	for _, l := range all {
		at := filepath.Join(dir, l[0])
		if err := os.MkdirAll(filepath.Dir(at), 0o700); err != nil {
			t.Fatal(err)
		}
		if l[1] == "" {
			err = os.Mkdir(at, 0o700)
		} else {
			err = os.Symlink(l[1], at)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// TestFollow: names are taken as the kernel takes them, and each step is told.
func TestFollow(t *testing.T) {
	dir := made(t, [2]string{"real/v1", ""}, [2]string{"real/rc", ""}, [2]string{"cur", "real/v1"}, [2]string{"up", "cur/../rc"}, [2]string{"two", "up/./x"}, [2]string{"self", "self"}, [2]string{"hop", "cur"}, [2]string{"out", "gone/../real"})
	for path, want := range map[string]string{
		"real/v1":            "real/v1",
		"cur/x":              "real/v1/x real/v1/x",
		"cur/../rc/bashrc":   "real/rc/bashrc real/rc/bashrc",
		"hop/f":              "cur/f real/v1/f real/v1/f",
		"up":                 "real/rc real/rc",
		"two":                "up/x real/rc/x real/rc/x",
		"real/rc/../v1/./x/": "real/v1/x real/v1/x",
		"out/gone":           "real/gone real/gone",
		"none/../cur":        "cur real/v1 real/v1",
	} {
		w := Follow(dir + "/" + path)
		var got []string
		for _, p := range w.Spelled {
			rel, err := filepath.Rel(dir, p)
			if err != nil {
				t.Fatal(err)
			}
			got = append(got, filepath.ToSlash(rel))
		}
		if diff := cmp.Diff(strings.Fields(want), got); diff != "" || w.End != w.Spelled[len(w.Spelled)-1] || w.Cut {
			t.Errorf("%s: %s, end %q", path, diff, w.End)
		}
	}
	if w := Follow(dir + "/self"); w.End != "" || len(w.Links) != most || w.Cut {
		t.Errorf("a link to itself: %q, %d links", w.End, len(w.Links))
	}
}

// TestFollowOver: what is left by a .. is told, where it really lies.
func TestFollowOver(t *testing.T) {
	dir := made(t, [2]string{"a/b", ""}, [2]string{"cur", "a/b"}, [2]string{"l", "cur/../../x"}, [2]string{"m", "a"})
	for path, want := range map[string]string{"l": "a/b a", "a/../gone/../x": "a gone", "m": "", "cur/..": "a/b", "a/b": ""} {
		var got []string
		for _, p := range Follow(dir + "/" + path).Over {
			rel, err := filepath.Rel(dir, p)
			if err != nil {
				t.Fatal(err)
			}
			got = append(got, filepath.ToSlash(rel))
		}
		if diff := cmp.Diff(strings.Fields(want), append([]string{}, got...)); diff != "" {
			t.Errorf("%s: %s", path, diff)
		}
	}
}

// TestFollowIsBounded: neither links through links nor long targets multiply, and
// as many links as the kernel takes are followed.
func TestFollowIsBounded(t *testing.T) {
	var chain, bomb [][2]string
	for i := range most {
		chain = append(chain, [2]string{fmt.Sprint("l", i), fmt.Sprint("l", i+1)})
	}
	dir := made(t, chain...)
	if w := Follow(filepath.Join(dir, "l0")); w.End != filepath.Join(dir, fmt.Sprint("l", most)) {
		t.Errorf("%d links end at %q", most, w.End)
	}
	if w := Follow(filepath.Join(made(t, append(chain, [2]string{"l", "l0"})...), "l")); w.End != "" || len(w.Spelled) > 2*most {
		t.Errorf("more end at %q, %d spellings", w.End, len(w.Spelled))
	}
	in, through := "", ""
	for _, level := range []string{"a", "b", "c", "d", "e"} {
		for i := range 30 {
			to := fmt.Sprint(through, level, i+1)
			bomb = append(bomb, [2]string{fmt.Sprint(in, level, i), strings.Repeat("../", strings.Count(in, "/")) + to})
		}
		bomb = append(bomb, [2]string{fmt.Sprint(in, level, 30), ""})
		in, through = fmt.Sprint(in, level, 30, "/"), fmt.Sprint(through, level, "0/")
	}
	if w := Follow(filepath.Join(made(t, bomb...), through)); w.End != "" || len(w.Spelled) > 2*most {
		t.Errorf("links through links end at %q, %d spellings", w.End, len(w.Spelled))
	}
	long := made(t, [2]string{"x", ""}, [2]string{"a", strings.Repeat("x/../", 800) + "x"}, [2]string{"b", "x/../a/" + strings.Repeat("../a/", 100)})
	if w := Follow(filepath.Join(long, "a")); w.Cut || w.End != filepath.Join(long, "x") {
		t.Errorf("a long target ends at %q", w.End)
	}
	if w := Follow(filepath.Join(long, "b")); !w.Cut || w.End != "" || w.Cost > 2*mostNames {
		t.Errorf("many of them: cost %d, end at %q", w.Cost, w.End)
	}
}

// TestStays: what a way leads over stays, but for folders that a link on it lies in.
func TestStays(t *testing.T) {
	dir := made(t, [2]string{"a/b", ""}, [2]string{"cur", "a/b"}, [2]string{"d/l", "../cur/../x"})
	w := Follow(dir + "/d/l")
	var got []string
	for _, p := range w.Stays() {
		rel, err := filepath.Rel(dir, p)
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, filepath.ToSlash(rel))
	}
	if diff := cmp.Diff([]string{"d/l", "cur", "a/b"}, got); diff != "" {
		t.Error(diff)
	}
}

// TestLookAsksOnce: ways that go the same way cost little more than one, and those that
// go deep cost more than their names.
func TestLookAsksOnce(t *testing.T) {
	dir := made(t, [2]string{strings.Repeat("a/", 500), ""}, [2]string{"l", "a"})
	look := NewLook(time.Hour)
	path := filepath.Join(dir, "l", strings.Repeat("a/", 499))
	first, again := look.Follow(path), look.Follow(path)
	if first.Cost < 3*500 || again.Cost > 600 || first.End != again.End || first.End != filepath.Join(dir, strings.Repeat("a/", 500)) {
		t.Errorf("it costs %d, then %d", first.Cost, again.Cost)
	}
	if err := os.Remove(filepath.Join(dir, "l")); err != nil {
		t.Fatal(err)
	}
	if now := look.Follow(path); now.End != first.End {
		t.Errorf("asked again, it ends at %q", now.End)
	}
	if now := NewLook(time.Hour).Follow(path); now.End != path {
		t.Errorf("another look ends at %q", now.End)
	}
	if late := NewLook(-time.Second).Follow(path); !late.Cut || late.Mount != "" || late.End != "" {
		t.Errorf("%+v", late)
	}
}
