// SPDX-License-Identifier: Apache-2.0

//go:build linux

package fsserver

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/postern-gate/postern/core"
	"github.com/postern-gate/postern/core/fault"
	"github.com/postern-gate/postern/internal/safety"
	"github.com/postern-gate/postern/internal/state/grant"
)

// approve says yes, once, to the one question that waits, and returns it.
func (w *world) approve(person *grant.Store) *grant.Question {
	w.Helper()
	q := person.Pending()
	if len(q) != 1 {
		w.Fatalf("%d questions wait", len(q))
	}
	_, err := person.Decide(w.Context(), q[0].ID, grant.Answer{Kind: grant.Once, Approver: "test"})
	w.must(err)
	return q[0]
}

// looks are the calls that list a folder, or search in it.
var looks = map[string]args{
	"list_directory": {"path": "d"}, "list_directory_with_sizes": {"path": "d"}, "directory_tree": {"path": "d"},
	"search_files": {"path": "d", "pattern": "**"}, "search_content": {"path": "d", "query": "4711"},
}

// TestYesToALook: what a person let be listed is shown, once, and only while it is
// the folder that was there.
func TestYesToALook(t *testing.T) {
	for tool, a := range looks {
		for _, swapped := range []bool{false, true} {
			t.Run(tool+"/"+strconv.FormatBool(swapped), func(t *testing.T) {
				w := newWorld(t, map[string]string{"d/file": "the pin is 4711\n", "e/file": "the pin is 4711\n"}, later)
				w.setup.Rules = map[string]string{"fs.list": "ask"}
				c, person := w.desk()
				c.call(tool, a).refused(fault.PolicyAsk.String()).lacks("file")
				if q := w.approve(person); q.For.Class != core.ReadOnly.String() || q.WantsCode() {
					t.Errorf("%+v", q.For)
				}
				if swapped {
					w.must(os.Rename(w.at("d"), w.at("old")))
					w.must(os.Rename(w.at("e"), w.at("d")))
					c.call(tool, a).refused(fault.GrantStale.String()).lacks("file")
					return
				}
				c.call(tool, a).ok().has("file").lacks("hidden")
				c.call(tool, a).refused(fault.PolicyAsk.String()).lacks("file")
			})
		}
	}
}

// TestYesToALookReadsNothing: a search of a folder that was let be listed doesn't
// search what reading asks about.
func TestYesToALookReadsNothing(t *testing.T) {
	for read, found := range map[string]bool{"ask": false, "allow": true} {
		w := newWorld(t, map[string]string{"d/file": "the pin is 4711\n"}, later)
		w.setup.Rules = map[string]string{"fs.list": "ask", "fs.read": read}
		c, person := w.desk()
		c.call("search_content", looks["search_content"]).refused(fault.PolicyAsk.String())
		w.approve(person)
		if r := c.call("search_content", looks["search_content"]).ok(); strings.Contains(r.text(), "the pin") != found {
			t.Errorf("%s: %s", read, r.text())
		}
	}
}

// TestSearchOfAFileAsks: a search of one file asks for what docs/policy.md says, at
// once, and for nothing that is allowed.
func TestSearchOfAFileAsks(t *testing.T) {
	for rule, asks := range map[string]string{"fs.list": "fs.list", "fs.read": "fs.read", "fs.list fs.read": "fs.list fs.read", "fs.write": ""} {
		w := newWorld(t, map[string]string{"f": "the pin is 4711\n"}, later)
		w.setup.Rules = map[string]string{}
		for r := range strings.FieldsSeq(rule) {
			w.setup.Rules[r] = "ask"
		}
		c, person := w.desk()
		search := func() result { return c.call("search_content", args{"path": "f", "query": "4711"}) }
		if asks != "" {
			search().refused(fault.PolicyAsk.String()).lacks("the pin")
			var got []string
			for _, o := range w.approve(person).For.Operations {
				got = append(got, o.Action)
			}
			if strings.Join(got, " ") != asks {
				t.Errorf("%s: asked for %q", rule, got)
			}
		}
		search().ok().has("the pin")
	}
}

// TestResourcesAreReadOnly: a method that only reads is asked about as that, without
// a code.
func TestResourcesAreReadOnly(t *testing.T) {
	for method, rules := range map[string]map[string]string{
		"resources/read": {"fs.read": "ask"}, "resources/subscribe": {"fs.watch": "ask"},
	} {
		w := newWorld(t, map[string]string{"f": "F"}, later)
		w.setup.Rules = rules
		c, person := w.desk()
		c.request(method, args{"uri": "file://" + w.at("f")})
		if q := w.approve(person); q.For.Class != core.ReadOnly.String() || q.WantsCode() || q.For.Tool != method {
			t.Errorf("%s: %+v", method, q.For)
		}
		if f := c.request(method, args{"uri": "file://" + w.at("f")}); f.Error != nil {
			t.Errorf("%s: %+v", method, f.Error)
		}
	}
}

// named are the names of all tools and methods that the package makes, as its
// sources have them: a composite literal with a name and a run.
func named(t *testing.T, src any, file string) (names []string) {
	t.Helper()
	f, err := parser.ParseFile(token.NewFileSet(), file, src, 0)
	if err != nil {
		t.Fatal(err)
	}
	ast.Inspect(f, func(n ast.Node) bool {
		lit, ok := n.(*ast.CompositeLit)
		if !ok {
			return true
		}
		fields := map[string]ast.Expr{}
		for _, e := range lit.Elts {
			if kv, ok := e.(*ast.KeyValueExpr); ok {
				if key, ok := kv.Key.(*ast.Ident); ok {
					fields[key.Name] = kv.Value
				}
			}
		}
		if name, ok := fields["name"].(*ast.BasicLit); ok && fields["run"] != nil {
			text, err := strconv.Unquote(name.Value)
			if err != nil {
				t.Error(err)
			}
			names = append(names, text)
		}
		return true
	})
	return names
}

// TestEveryCallHasAClass: whatever the server can be asked for is rated.
func TestEveryCallHasAClass(t *testing.T) {
	files, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	var all []string
	for _, file := range files {
		if !strings.HasSuffix(file, "_test.go") {
			all = append(all, named(t, nil, file)...)
		}
	}
	for _, name := range all {
		if _, rated := safety.OfCall(name); !rated {
			t.Errorf("%s has no class", name)
		}
	}
	for _, want := range append(safety.Tools(), "resources/read", "resources/subscribe") {
		if !slices.Contains(all, want) {
			t.Errorf("%s is not found in the sources", want)
		}
	}
	if got := named(t, `package p; var a = []tool{{name: "x", run: f}, {name: "y"}}; var b = tool{name: "z", run: f}`, "x.go"); !slices.Equal(got, []string{"x", "z"}) {
		t.Errorf("the sources are read as %q", got)
	}
}
