// SPDX-License-Identifier: Apache-2.0

//go:build linux

package fsserver

import (
	"math"
	"strings"
	"testing"
	"time"

	"github.com/postern-gate/postern/internal/fsserver/ignore"
)

const unheeded = " not heeded, being too much or too slow"

// TestIgnoreMemory: however many large lists are on the way down, they take no
// more memory than is given to all of them, and the answer counts the others.
func TestIgnoreMemory(t *testing.T) {
	for name, pattern := range map[string]string{"bytes": "*" + strings.Repeat("a", 50) + "\n", "sets": strings.Repeat("[x]", 20) + "\n", "rules": "x\n"} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, nil, later)
			list := strings.Repeat(pattern, 128<<10/len(pattern))
			dir := w.root
			for range 300 {
				w.put(dir+"/.gitignore", list)
				dir += "/d"
			}
			w.put(dir+"/f", "needle\n")
			c := w.spawn(w.setup)
			r := c.call("search_content", args{"path": w.root, "query": "needle"}).ok().has("/f:1: needle", unheeded)
			if r.outcome()["partial"] != nil {
				t.Errorf("%v", r.outcome())
			}
			if peak := w.peak(c.pid); peak > memory(40<<10) {
				t.Errorf("%d KiB at the peak", peak)
			} else {
				t.Logf("%d KiB at the peak", peak)
			}
		})
	}
}

// TestIgnoreBudget: a list within the bounds is heeded beside those beyond, and
// what is beneath another directory begins anew.
func TestIgnoreBudget(t *testing.T) {
	large := strings.Repeat("x\n", maxIgnoreRules) + "f\n"
	w := newWorld(t, map[string]string{
		".gitignore": "g\n", "f": "needle", "g": "needle",
		"a/.gitignore": strings.Repeat("x\n", maxIgnoreRules-10), "a/f": "needle", "a/g": "needle",
		"a/b/.gitignore": strings.Repeat("f\n", 10), "a/b/f": "needle", "a/b/g": "needle",
		"b/.gitignore": large, "b/f": "needle", "b/g": "needle",
		"c/.gitignore": "f\n", "c/f": "needle", "c/g": "needle",
	})
	r := w.call("search_content", args{"path": w.root, "query": "needle"}).ok().has("2 .gitignore files are" + unheeded)
	if got := w.hits(r); got != "a/b/f:1: needle\na/f:1: needle\nb/f:1: needle\nf:1: needle" {
		t.Errorf("%q", got)
	}
}

// TestIgnoreTime: lists that were made to take time end long before the call's
// time is over, and keep no other search waiting.
func TestIgnoreTime(t *testing.T) {
	w := newWorld(t, nil, later)
	pattern := "**/*" + strings.Repeat("a", 125) + "b\n"
	list := strings.Repeat(pattern, maxIgnoreFile/len(pattern))
	dir := w.root
	for range 14 {
		w.put(dir+"/.gitignore", list)
		dir += "/" + strings.Repeat("a", 250)
	}
	for _, c := range "abcdefghijklmnopqrstuvwxyz" {
		w.put(dir+"/"+strings.Repeat("a", 240)+string(c), "needle\n")
	}
	s := w.setup
	s.CallTime = 20 * time.Second
	c := w.serve(s, nil)
	for _, path := range []string{w.root, dir} {
		r := c.call("search_content", args{"path": path, "query": "needle"}).ok().has("z:1: needle", unheeded)
		if r.outcome()["partial"] != nil {
			t.Errorf("%v", r.outcome())
		}
	}
}

// TestIgnoreSteps: a list that takes too long, or whose walk has, says nothing
// from then on and is counted once.
func TestIgnoreSteps(t *testing.T) {
	parse := func(content string) *heeded {
		l, _ := (&ignore.Budget{Bytes: math.MaxInt, Rules: math.MaxInt}).Parse(content)
		return &heeded{List: l}
	}
	for _, tt := range []struct {
		list string
		took int
		want ignore.Verdict
	}{
		{"a", 0, ignore.Ignored},
		{"a", maxIgnoreSteps, ignore.Silent},
		{"a" + strings.Repeat("\nx", maxIgnoreName-2), 0, ignore.Ignored},
		{"a" + strings.Repeat("\nx", maxIgnoreName), 0, ignore.Silent},
	} {
		g, l := &ignoring{steps: tt.took}, parse(tt.list)
		for range 2 {
			if got := g.match(l, "a", false); got != tt.want {
				t.Errorf("%.3q after %d steps: %d", tt.list, tt.took, got)
			}
		}
		if silent := tt.want == ignore.Silent; silent != (g.unheeded == 1) {
			t.Errorf("%.3q after %d steps: %d are counted", tt.list, tt.took, g.unheeded)
		}
	}
}
