// SPDX-License-Identifier: Apache-2.0

package undo

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/postern-gate/postern/core/pathguard"
)

func oneChange(id string) []byte {
	step := Step{Place: Place{"project", "/nowhere", "f"}, Do: Create}
	return appendLine(nil, line{Kind: kindBegin, ID: id, Time: time.Now(), Steps: []Step{step}})
}

// TestOverlongLine: a line that is longer than any of ours is left out alone,
// when it is read and when the journal is made smaller.
func TestOverlongLine(t *testing.T) {
	// Nothing is kept of what does not begin like a line; of the other its part.
	for name, long := range map[string][]byte{
		"zeros": make([]byte, maxLine+10), "a line": append([]byte("00000000 "), bytes.Repeat([]byte("x"), maxLine)...),
	} {
		l := openLog(t, t.TempDir(), Options{Total: 1, Keep: time.Hour})
		_, err := l.images()
		must(t, err)
		path := l.join("0000000000000001-1" + journalSuffix)
		must(t, os.WriteFile(path, slices.Concat(oneChange("p-1"), long, []byte("\n"), oneChange("p-2")), 0o600))
		x, err := l.Read()
		must(t, err)
		if len(x.Txns) != 2 || x.Damaged != 1 {
			t.Errorf("%s: %d changes, %d damaged", name, len(x.Txns), x.Damaged)
		}
		must(t, l.compact())
		info, err := os.Stat(path)
		must(t, err)
		if x, err = l.Read(); err != nil || len(x.Txns) != 2 || x.Damaged != 0 || info.Size() > 1<<20 {
			t.Errorf("%s: %d changes, %d damaged in %d bytes: %v", name, len(x.Txns), x.Damaged, info.Size(), err)
		}
		if exists(l.join(compactName)) {
			t.Error("the unfinished journal is still there")
		}
	}
}

func TestEachLine(t *testing.T) {
	part := strings.Repeat("y", 70<<10)
	for text, want := range map[string][]string{
		"": nil, "\n": {""}, "a\nb": {"a", "b"}, "a\n\nb\n": {"a", "", "b"},
		"00000000 " + part + "\nb\n": {"00000000 " + part, "b"},
		part + "\nb\n" + part:        {"", "b", ""},
	} {
		var got []string
		must(t, eachLine(strings.NewReader(text), func(b []byte) { got = append(got, string(b)) }))
		if !slices.Equal(got, want) {
			t.Errorf("%.20q: %d lines", text, len(got))
		}
	}
}

// TestOddJournals: what has a journal's name and is none is left out, counted
// and named, and the others are read, kept and followed.
func TestOddJournals(t *testing.T) {
	l := openLog(t, t.TempDir(), Options{Total: 1, Keep: time.Hour, Journals: 1})
	_, err := l.write(oneChange("p-1"))
	must(t, err)
	var want []string
	odd := func(i int) string {
		name := fmt.Sprintf("000000000000000%d-1%s", i, journalSuffix)
		want = append(want, name)
		return l.join(name)
	}
	must(t, os.Mkdir(odd(1), 0o700))
	must(t, os.Symlink(filepath.Join(l.dir, "absent"), odd(2)))
	large, err := os.Create(odd(3))
	must(t, err)
	must(t, large.Truncate(20<<30)) // sparse: nobody reads so much
	must(t, large.Close())
	makeFIFO(t, odd(4))
	x, err := l.Read()
	must(t, err)
	got, err := l.Odd()
	must(t, err)
	if len(x.Txns) != 1 || x.Damaged != len(want) || !slices.Equal(got, want) {
		t.Errorf("%d changes, %d damaged, %q", len(x.Txns), x.Damaged, got)
	}
	must(t, l.compact())
	must(t, Follow(l.dir).Poll())
	must(t, l.Recover(t.Context(), func(string, string, []string) (pathguard.Name, bool) { return pathguard.Name{}, false }))
	if _, err := l.write(oneChange("p-2")); err != nil {
		t.Error(err)
	}
	for _, name := range want {
		if _, err := os.Lstat(l.join(name)); err != nil {
			t.Error(err)
		}
	}
}

// TestValidMounts: a line with mount points that don't lead to its names is none
// of ours, and one without them is read.
func TestValidMounts(t *testing.T) {
	to := &Place{"other", "/o", "n/to"}
	for _, tc := range []struct {
		mounts []string
		do     Do
		want   bool
	}{
		{nil, Remove, true},
		{[]string{"m", "m/d"}, Remove, true},
		{[]string{"m/d/f"}, Remove, true},
		{[]string{"m", "n"}, Rename, true},
		{[]string{"n"}, Remove, false},
		{[]string{"m", "m"}, Remove, false},
		{[]string{""}, Remove, false},
		{[]string{"."}, Remove, false},
		{[]string{"../m"}, Remove, false},
		{[]string{"/m"}, Remove, false},
		{[]string{"m/"}, Remove, false},
		{[]string{"m/../m"}, Remove, false},
		{[]string{"m\x00"}, Remove, false},
		{[]string{"m/d/f/g"}, Remove, false},
	} {
		s := Step{Place: Place{"project", "/p", "m/d/f"}, Do: tc.do, Mounts: tc.mounts}
		if tc.do == Rename {
			s.To = to
		}
		text := appendLine(nil, line{Kind: kindBegin, ID: "a-1", Steps: []Step{s}})
		if _, ok := parseLine(text[:len(text)-1]); ok != tc.want {
			t.Errorf("%q: %t", tc.mounts, ok)
		}
	}
}

// TestTooLarge: what could not be read again is not written.
func TestTooLarge(t *testing.T) {
	l := openLog(t, t.TempDir(), Options{})
	if _, err := l.write(make([]byte, maxLine+1)); err == nil {
		t.Error("it is written")
	}
}
