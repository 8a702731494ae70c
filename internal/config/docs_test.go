// SPDX-License-Identifier: Apache-2.0

package config_test

import (
	"context"
	"encoding/json"
	"errors"
	"go/ast"
	"go/parser"
	"go/token"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/postern-gate/postern/core"
	"github.com/postern-gate/postern/core/pathguard"
	"github.com/postern-gate/postern/core/policy"
	"github.com/postern-gate/postern/enforce"
	"github.com/postern-gate/postern/internal/config"
	"github.com/postern-gate/postern/internal/fsserver"
	"github.com/postern-gate/postern/internal/mcpserver"
	"github.com/postern-gate/postern/internal/safety"
)

const policyPage = "../../docs/policy.md"

func policyDocs(t *testing.T) string {
	t.Helper()
	page, err := os.ReadFile(policyPage)
	if err != nil {
		t.Fatal(err)
	}
	return string(page)
}

// TestDocumentedPoliciesLoad: each policy of the page is valid and its
// examples hold; a project's too. One that is changed does not.
func TestDocumentedPoliciesLoad(t *testing.T) {
	page := policyDocs(t)
	if n := strings.Count(page, "\n"); n > 200 {
		t.Errorf("%d lines, 200 is the limit", n)
	}
	s := schema(t)
	blocks := strings.Split(page, "```yaml\n")[1:]
	if len(blocks) < 4 {
		t.Fatalf("%d policies", len(blocks))
	}
	for i, block := range blocks {
		text, _, _ := strings.Cut(block, "```")
		if !strings.Contains(text, "examples:") {
			t.Errorf("policy %d has no examples", i+1)
		}
		load := func(text string) error {
			p := newPlace(t)
			if strings.Contains(text, "roots:") {
				p.opts.Dirs = nil
				p.write(filepath.Join(p.home, "work/x"), "")
			}
			p.user(text)
			_, err := config.Load(p.opts)
			return err
		}
		if err := load(text); err != nil {
			t.Errorf("policy %d: %v", i+1, errorText(err))
		}
		if err := load(strings.Replace(text, "decision: deny", "decision: allow", 1)); strings.Contains(text, "decision: deny") && err == nil {
			t.Errorf("policy %d: its examples are not checked", i+1)
		}
		if err := s.Validate(asJSON(t, []byte(text))); err != nil {
			t.Errorf("policy %d: %v", i+1, err)
		}
	}
}

// TestBuiltinListsAreDocumented: the page's tables are made from the source of
// core/policy; -update writes them. What they say is what the policy does.
func TestBuiltinListsAreDocumented(t *testing.T) {
	page := policyDocs(t)
	for _, list := range []string{"secretEntries", "runningEntries"} {
		mark := "<!-- " + list + " -->\n"
		before, rest, ok := strings.Cut(page, mark)
		got, after, ok2 := strings.Cut(rest, "<!-- end -->")
		if !ok || !ok2 {
			t.Fatalf("no table of %s", list)
		}
		want := builtinTable(t, list)
		if *update {
			page = before + mark + want + "<!-- end -->" + after
			if err := os.WriteFile(policyPage, []byte(page), 0o644); err != nil {
				t.Fatal(err)
			}
			continue
		}
		if d := cmp.Diff(want, got); d != "" {
			t.Errorf("%s: -core +page\n%s", list, d)
		}
	}
	for _, name := range policy.Entries() {
		if !strings.Contains(page, "| `"+name+"` |") {
			t.Errorf("%s is missing", name)
		}
	}
}

// builtinTable reads the entries that a function of core/policy returns.
func builtinTable(t *testing.T, function string) string {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), "../../core/policy/builtin.go", nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	out := "| entry | patterns |\n|---|---|\n"
	rows := 0
	for _, decl := range file.Decls {
		fn, ok := decl.(*ast.FuncDecl)
		if !ok || fn.Name.Name != function {
			continue
		}
		ast.Inspect(fn, func(n ast.Node) bool {
			entry, ok := n.(*ast.CompositeLit)
			if !ok {
				return true
			}
			if row := builtinRow(t, file, entry); row != "" {
				out += row
				rows++
			}
			return true
		})
	}
	if rows < 5 {
		t.Fatalf("%d entries of %s found", rows, function)
	}
	return out
}

func builtinRow(t *testing.T, file *ast.File, entry *ast.CompositeLit) string {
	t.Helper()
	parts := map[string]string{}
	for _, e := range entry.Elts {
		kv, ok := e.(*ast.KeyValueExpr)
		if !ok {
			return ""
		}
		parts[kv.Key.(*ast.Ident).Name] = text(t, file, kv.Value)
	}
	code := func(s string) string { return "`" + strings.Join(strings.Split(s, "\n"), "` `") + "`" }
	row := "| `" + parts["name"] + "` | "
	var cells []string
	for _, part := range []struct{ key, before string }{{"anyway", ""}, {"home", "home: "}, {"except", "but not "}} {
		if s := parts[part.key]; s != "" {
			cells = append(cells, part.before+code(s))
		}
		delete(parts, part.key)
	}
	if parts["name"] == "" || len(parts) != 1 || len(cells) == 0 {
		t.Fatalf("an entry that this test can't read: %v", parts)
	}
	return row + strings.Join(cells, "; ") + " |\n"
}

// text is the value of an expression of string literals and constants.
func text(t *testing.T, file *ast.File, e ast.Expr) string {
	t.Helper()
	switch e := e.(type) {
	case *ast.BasicLit:
		s, err := strconv.Unquote(e.Value)
		if err != nil {
			t.Fatal(err)
		}
		return s
	case *ast.BinaryExpr:
		return text(t, file, e.X) + text(t, file, e.Y)
	case *ast.Ident:
		value := ""
		ast.Inspect(file, func(n ast.Node) bool {
			if v, ok := n.(*ast.ValueSpec); ok && v.Names[0].Name == e.Name && len(v.Values) == 1 {
				value = text(t, file, v.Values[0])
			}
			return true
		})
		return value
	}
	t.Fatalf("an expression that this test can't read: %T", e)
	return ""
}

type nothing struct{}

func (nothing) Record(core.Event, bool) error { return nil }
func (nothing) LockWith(context.Context, []int64, []int64) (func(), error) {
	return func() {}, nil
}

// call makes one call over a fresh folder under a policy in which the action
// on the name is denied and everything else allowed, and says whether it was
// refused. In the folder are the file a and the folder d; n is free.
func call(t *testing.T, tool string, args map[string]any, action core.Action, name string) bool {
	t.Helper()
	dir := t.TempDir()
	if err := errors.Join(os.WriteFile(filepath.Join(dir, "a"), []byte("text"), 0o600), os.Mkdir(filepath.Join(dir, "d"), 0o700)); err != nil {
		t.Fatal(err)
	}
	text := "version: 1\nrules: {"
	for _, a := range []core.Action{core.FSRead, core.FSList, core.FSWrite, core.FSCreate, core.FSRename, core.FSDelete} {
		text += " " + a.String() + ": { "
		if a == action {
			text += name + ": deny, "
		}
		text += "else: allow },"
	}
	decider, err := config.Parse("p", []byte(text+"}\n"), false)
	if err != nil {
		t.Fatal(errorText(err))
	}
	root, err := pathguard.OpenRoot(dir, pathguard.Options{Name: "project"})
	if err != nil {
		t.Fatal(err)
	}
	workspace, err := pathguard.NewWorkspace(root)
	if err != nil {
		t.Fatal(err)
	}
	server, err := fsserver.New(fsserver.Options{Gate: enforce.Options{Workspace: workspace, Decider: decider, Recorder: nothing{}, Locker: nothing{}}})
	if err != nil {
		t.Fatal(err)
	}
	return refused(t, server, tool, args)
}

func refused(t *testing.T, server *mcpserver.Server, tool string, args map[string]any) bool {
	t.Helper()
	inR, inW := io.Pipe()
	outR, outW := io.Pipe()
	served := make(chan error, 1)
	go func() { served <- server.ServeStdio(t.Context(), inR, outW) }()
	in, out := json.NewEncoder(inW), json.NewDecoder(outR)
	var answer struct {
		Error  any
		Result struct {
			IsError bool
			Content []struct{ Text string }
		}
	}
	for i, params := range []map[string]any{
		{"protocolVersion": "2025-11-25", "capabilities": map[string]any{}, "clientInfo": map[string]any{"name": "t", "version": "1"}},
		{"name": tool, "arguments": args},
	} {
		method := []string{"initialize", "tools/call"}[i]
		if err := in.Encode(map[string]any{"jsonrpc": "2.0", "id": i, "method": method, "params": params}); err != nil {
			t.Fatal(err)
		}
		if err := out.Decode(&answer); err != nil || answer.Error != nil {
			t.Fatalf("%s: %v, %v", tool, err, answer.Error)
		}
	}
	if err := errors.Join(inW.Close(), <-served); err != nil {
		t.Fatal(err)
	}
	for _, c := range answer.Result.Content { // of several files each is told by itself
		if strings.Contains(c.Text, "denied: ") {
			return true
		}
	}
	return answer.Result.IsError
}

// subject is the name that a row of the table is about.
func subject(on string) string {
	switch {
	case strings.HasPrefix(on, "nothing"):
		return ""
	case strings.HasPrefix(on, "a folder"):
		return "d"
	case strings.Contains(on, "new name"), strings.Contains(on, "that it makes"):
		return "n"
	}
	return "a"
}

func arguments(tool, name string) map[string]any {
	switch tool {
	case "copy_file", "move_file":
		return map[string]any{"source": "a", "destination": "n"}
	case "read_multiple_files":
		return map[string]any{"paths": []string{name}}
	case "write_file", "append_file":
		return map[string]any{"path": name, "content": "x"}
	case "edit_file":
		return map[string]any{"path": name, "edits": []any{map[string]any{"oldText": "text", "newText": "x"}}}
	case "search_files":
		return map[string]any{"path": name, "pattern": "**"}
	case "search_content":
		return map[string]any{"path": name, "query": "text"}
	case "delete_file":
		return map[string]any{"path": name, "confirm": true}
	}
	return map[string]any{"path": name}
}

var (
	toolRow  = regexp.MustCompile("(?m)^\\| ((?:`[a-z_]+`,? ?)+) \\| ([^|]*) \\| ?([^|]*)\\|$")
	codeWord = regexp.MustCompile("`([a-z_.]+)`")
)

func words(text string) []string {
	var out []string
	for _, m := range codeWord.FindAllStringSubmatch(text, -1) {
		out = append(out, m[1])
	}
	return out
}

// TestDocumentedActionsAreAskedFor denies each action by itself: the call is
// refused when the table says that the tool asks for it, and else succeeds.
func TestDocumentedActionsAreAskedFor(t *testing.T) {
	_, table, _ := strings.Cut(policyDocs(t), "\n## Which tool asks for what\n")
	table, _, _ = strings.Cut(table, "\n## ")
	var named []string
	for _, row := range toolRow.FindAllStringSubmatch(table, -1) {
		file, _, _ := strings.Cut(row[3], ", ") // what is said of folders comes after
		name, want := subject(row[2]), words(file)
		for _, tool := range words(row[1]) {
			named = append(named, tool)
			if name == "" {
				continue
			}
			if tool == "move_file" && name == "a" { // what it may not loosen
				want = append(want, "fs.read", "fs.list", "fs.write", "fs.delete")
			}
			if tool == "copy_file" && name == "a" {
				want = append(want, "fs.list")
			}
			for _, a := range core.Actions() {
				if !a.IsFile() || a == core.FSWatch {
					continue
				}
				if got := call(t, tool, arguments(tool, name), a, name); got != slices.Contains(want, a.String()) {
					t.Errorf("%s %s without %v: refused is %v, the page has %v", tool, name, a, got, want)
				}
			}
		}
	}
	slices.Sort(named)
	if d := cmp.Diff(safety.Tools(), slices.Compact(named)); d != "" {
		t.Errorf("-tools +page\n%s", d)
	}
}
