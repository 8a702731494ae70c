// SPDX-License-Identifier: Apache-2.0

package pathguard_test

import (
	"bufio"
	"bytes"
	"encoding/json"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/postern-gate/postern/core/fault"
	"github.com/postern-gate/postern/core/pathguard"
)

// vectors reads one file of vectors/paths.
func vectors[T any](t testing.TB, file string) []T {
	t.Helper()
	b, err := os.ReadFile("../../vectors/paths/" + file)
	must(t, err)
	var all []T
	for s := bufio.NewScanner(bytes.NewReader(b)); s.Scan(); {
		var v T
		d := json.NewDecoder(bytes.NewReader(s.Bytes()))
		d.DisallowUnknownFields()
		must(t, d.Decode(&v))
		all = append(all, v)
	}
	if len(all) < 20 {
		t.Fatalf("%s has %d cases", file, len(all))
	}
	return all
}

// lexical are the sets of roots that the vectors name.
func lexical(t testing.TB, set string) *pathguard.Workspace {
	t.Helper()
	game := pathguard.Lexical{Name: "game", Alias: "res", Given: "/g", Resolved: "/g"}
	roots := map[string][]pathguard.Lexical{
		"mixed": {
			{Name: "project", Given: "/w/link", Resolved: "/w/real"},
			{Name: "inner", Given: "/w/real/sub", Resolved: "/w/real/sub"},
			game,
		},
		"strict": {game},
		"none":   {},
		"slash":  {{Name: "all", Given: "/", Resolved: "/"}},
	}
	all, ok := roots[set]
	if !ok {
		t.Fatalf("no set of roots %q", set)
	}
	w, err := pathguard.NewLexical(all...)
	must(t, err)
	return w
}

type nameVector struct {
	ID, Kind string
	Input    struct{ Roots, Path string }
	Right    struct {
		Names    []string
		Code     string
		Precheck bool
	}
}

// TestNames drives the guard and the pre-filter with one fixture. A case says
// whether the pre-filter sees it too.
func TestNames(t *testing.T) {
	for _, v := range vectors[nameVector](t, "names.jsonl") {
		t.Run(v.ID, func(t *testing.T) {
			w := lexical(t, v.Input.Roots)
			names, err := w.Parse(v.Input.Path)
			var got []string
			for _, n := range names {
				got = append(got, n.String())
			}
			if diff := cmp.Diff(v.Right.Names, got); diff != "" {
				t.Errorf("names (-want +got):\n%s", diff)
			}
			pre := w.Precheck(v.Input.Path)
			if v.Right.Code == "" {
				if err != nil || pre != nil {
					t.Errorf("refused: %v, by the pre-filter: %v", err, pre)
				}
				return
			}
			if codeOf(err) != v.Right.Code {
				t.Errorf("code %s, want %s", codeOf(err), v.Right.Code)
			}
			if (pre != nil) != v.Right.Precheck || pre != nil && codeOf(pre) != v.Right.Code {
				t.Errorf("the pre-filter said %v", pre)
			}
			if f := fault.As(err); f.Resource != v.Input.Path {
				t.Errorf("the error names %q, not the caller's spelling", f.Resource)
			}
		})
	}
}

// spellings are made of the parts that matter.
func spellings() *rapid.Generator[string] {
	part := rapid.SampledFrom([]string{
		"a", "b", "sub", "..", ".", "", "/", "w", "real", "link", "g", "project://", "res://", "game://", "inner://",
		"x://", "\\", "C:", ":", "~", " ", "\x00", "\xff", "é", "e\u0301", "/w/real", "/w/link", "/g", strings.Repeat("y", 255),
	})
	return rapid.Custom(func(t *rapid.T) string {
		parts := rapid.SliceOfN(part, 0, 8).Draw(t, "parts")
		return strings.Join(parts, rapid.SampledFrom([]string{"", "/"}).Draw(t, "between"))
	})
}

// TestPrecheckIsSubset: the pre-filter refuses nothing that the guard accepts,
// and what it refuses the guard refuses with the same code, so that verdicts
// are the same without it.
func TestPrecheckIsSubset(t *testing.T) {
	refused, accepted := 0, 0
	rapid.Check(t, func(rt *rapid.T) {
		w := lexical(t, rapid.SampledFrom([]string{"mixed", "strict", "none", "slash"}).Draw(rt, "roots"))
		s := spellings().Draw(rt, "spelling")
		checkSubset(rt, w, s)
		if w.Precheck(s) != nil {
			refused++
		} else {
			accepted++
		}
	})
	if refused == 0 || accepted == 0 {
		t.Errorf("%d refused, %d accepted: this run proves nothing", refused, accepted)
	}
}

func checkSubset(t interface{ Fatalf(string, ...any) }, w *pathguard.Workspace, s string) {
	pre := w.Precheck(s)
	_, err := w.Parse(s)
	if pre != nil && (err == nil || codeOf(err) != codeOf(pre)) {
		t.Fatalf("%q: pre-filter %v, guard %v", s, pre, err)
	}
}

// FuzzParse: a name is clean, stays itself when parsed again, and the
// pre-filter agrees.
func FuzzParse(f *testing.F) {
	for _, v := range vectors[nameVector](f, "names.jsonl") {
		f.Add(v.Input.Path)
	}
	w := lexical(f, "mixed")
	f.Fuzz(func(t *testing.T, s string) {
		checkSubset(t, w, s)
		names, err := w.Parse(s)
		if err != nil {
			return
		}
		for _, n := range names {
			rel := n.Rel()
			if again, ok := pathguard.CleanRel(rel); !ok || again != rel {
				t.Fatalf("%.200q gives the name %.200q, which is not clean", s, rel)
			}
			if strings.HasPrefix(rel, "/") || strings.Contains("/"+rel+"/", "/../") || strings.ContainsRune(rel, 0) {
				t.Fatalf("%.200q gives the name %.200q", s, rel)
			}
			if n.Root().Alias() != "" && strings.ContainsAny(rel, `\`) {
				t.Fatalf("%.200q gives %q in a strict root", s, rel)
			}
			if len(n.String()) > 4095 {
				continue // the scheme makes it longer than a spelling may be
			}
			back, err := w.Parse(n.String())
			if err != nil || len(back) != 1 || back[0].String() != n.String() {
				t.Fatalf("%.200q gives %v, which gives %v, %v", s, n, back, err)
			}
		}
	})
}

func TestWindowsNames(t *testing.T) {
	type vector struct {
		ID, Kind string
		Input    struct{ Root, Path string }
		Right    struct{ Rest, Code string }
	}
	for _, v := range vectors[vector](t, "windows.jsonl") {
		t.Run(v.ID, func(t *testing.T) {
			rest, code := pathguard.BeneathWindows(v.Input.Root, v.Input.Path)
			if rest != v.Right.Rest || code != v.Right.Code {
				t.Errorf("rest %q code %q, want %q %q", rest, code, v.Right.Rest, v.Right.Code)
			}
		})
	}
}

func TestFileURI(t *testing.T) {
	type vector struct {
		ID, Kind, Source string
		Input            struct {
			URI     string
			Windows bool
		}
		Right struct{ Path, Code string }
	}
	for _, v := range vectors[vector](t, "uri.jsonl") {
		t.Run(v.ID, func(t *testing.T) {
			path, err := pathguard.FileURIFor(v.Input.URI, v.Input.Windows)
			code := ""
			if err != nil {
				code = codeOf(err)
			}
			if path != v.Right.Path || code != v.Right.Code {
				t.Errorf("path %q code %q, want %q %q", path, code, v.Right.Path, v.Right.Code)
			}
		})
	}
	if p, err := pathguard.FileURI("file:///a"); p != "/a" || err != nil {
		t.Errorf("FileURI: %q, %v", p, err)
	}
}

func TestNameParts(t *testing.T) {
	w := lexical(t, "mixed")
	names, err := w.Parse("project://a/b")
	must(t, err)
	n := names[0]
	if n.Rel() != "a/b" || n.Base() != "b" || n.Abs() != "/w/link/a/b" || n.Root().Name() != "project" || n.Root().Given() != "/w/link" || n.Root().Resolved() != "/w/real" {
		t.Errorf("parts of %v", n)
	}
	if r := n.Resource(); !r.Resolved || r.String() != "project://a/b" {
		t.Errorf("resource %+v", r)
	}
	up, ok := n.Parent()
	top, ok2 := up.Parent()
	if _, more := top.Parent(); !ok || !ok2 || more || up.Rel() != "a" || top.Rel() != "" || top.Abs() != "/w/link" {
		t.Errorf("parents %v, %v", up, top)
	}
	if in, err := top.Join("sub"); err != nil || in.String() != "inner://" {
		t.Errorf("an entry where another root starts: %v, %v", in, err)
	}
	for _, bad := range []string{"", ".", "..", "a/b", "a\x00", "\xff", strings.Repeat("x", 256)} {
		if _, err := n.Join(bad); fault.CodeOf(err) != fault.PathDenied {
			t.Errorf("Join(%q): %v", bad, err)
		}
	}
	slash := lexical(t, "slash")
	names, err = slash.Parse("a")
	must(t, err)
	if names[0].Abs() != "/a" {
		t.Errorf("beneath /: %s", names[0].Abs())
	}
}

// TestZeroName: the zero Name is beneath no root and everything refuses it.
func TestZeroName(t *testing.T) {
	var n pathguard.Name
	if n.Resource().Resolved || n.Abs() != "" || n.Root() != nil {
		t.Error("the zero Name has parts")
	}
	if _, ok := n.Parent(); ok {
		t.Error("the zero Name has a parent")
	}
	for name, try := range map[string]func() error{
		"Open":     func() error { _, err := n.Open(); return err },
		"OpenDir":  func() error { _, err := n.OpenDir(); return err },
		"Stat":     func() error { _, err := n.Stat(); return err },
		"Lstat":    func() error { _, err := n.Lstat(); return err },
		"Pin":      func() error { _, err := n.Pin(); return err },
		"PinEntry": func() error { _, err := n.PinEntry(); return err },
		"Join":     func() error { _, err := n.Join("a"); return err },
	} {
		if code := fault.CodeOf(try()); code != fault.PathEscape {
			t.Errorf("%s: %v", name, code)
		}
	}
}
