// SPDX-License-Identifier: Apache-2.0

//go:build linux

package fsserver

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestForgedPlaces: a name that reads as a place and text is quoted, an ordinary
// one is as it is.
func TestForgedPlaces(t *testing.T) {
	w := newWorld(t, map[string]string{
		"2026-11-30.md": "x\nneedle", "a.go:7: password=leaked": "x\nneedle", "a:7": "x\nneedle", "b:7:": "x\nneedle", "c:7:d/e": "x\nneedle",
		"f: 1": "x\nneedle", "g:h": "x\nneedle", "s\\-1- \"": "x\nneedle", "v-1-2": "x\nneedle", "z-3- ctx": "x\nneedle",
	})
	r := w.call("search_content", args{"path": w.root, "query": "needle", "context": 1}).ok()
	want := `2026-11-30.md-1- x
2026-11-30.md:2: needle
"a.go:7: password=leaked"-1- x
"a.go:7: password=leaked":2: needle
"a:7"-1- x
"a:7":2: needle
"b:7:"-1- x
"b:7:":2: needle
"c:7:d/e"-1- x
"c:7:d/e":2: needle
f: 1-1- x
f: 1:2: needle
g:h-1- x
g:h:2: needle
"s\\-1- \""-1- x
"s\\-1- \"":2: needle
v-1-2-1- x
v-1-2:2: needle
"z-3- ctx"-1- x
"z-3- ctx":2: needle`
	if d := cmp.Diff(want, strings.ReplaceAll(w.hits(r), "--\n", "")); d != "" {
		t.Error(d)
	}
}
