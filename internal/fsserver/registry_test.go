// SPDX-License-Identifier: Apache-2.0

//go:build linux

package fsserver

import (
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/postern-gate/postern/core"
	"github.com/postern-gate/postern/core/policy"
	"github.com/postern-gate/postern/internal/safety"
)

// uses is what each tool does with each of its paths. A tool or a path that
// isn't here, or is here and not in the registry, fails the test: then its
// guard has not been thought about.
var uses = map[string]map[string]core.Action{
	"read_file":                 {"path": core.FSRead},
	"read_text_file":            {"path": core.FSRead},
	"read_media_file":           {"path": core.FSRead},
	"read_multiple_files":       {"paths": core.FSRead},
	"write_file":                {"path": core.FSWrite},
	"edit_file":                 {"path": core.FSWrite},
	"append_file":               {"path": core.FSWrite},
	"create_directory":          {"path": core.FSCreate},
	"list_directory":            {"path": core.FSList},
	"list_directory_with_sizes": {"path": core.FSList},
	"directory_tree":            {"path": core.FSList},
	"search_files":              {"path": core.FSList},
	"search_content":            {"path": core.FSList},
	"get_file_info":             {"path": core.FSList},
	"list_allowed_directories":  {},
	"move_file":                 {"source": core.FSRename, "destination": core.FSRename},
	"copy_file":                 {"source": core.FSRead, "destination": core.FSCreate},
	"delete_file":               {"path": core.FSDelete},
}

// TestRegistry holds the table against the one above and against the rules of
// the house.
func TestRegistry(t *testing.T) {
	seen := map[string]bool{}
	for _, tool := range registry() {
		seen[tool.name] = true
		declared := map[string]core.Action{}
		names := map[string]bool{}
		for _, p := range tool.params {
			if names[p.name] {
				t.Errorf("%s has %s twice", tool.name, p.name)
			}
			names[p.name] = true
			if p.use != core.ActionUnknown {
				declared[p.name] = p.use
			} else if looksLikePath(p.name) {
				t.Errorf("%s: %s looks like a path and isn't declared as one", tool.name, p.name)
			}
		}
		if got, want := fmt.Sprint(declared), fmt.Sprint(uses[tool.name]); got != want || uses[tool.name] == nil {
			t.Errorf("%s declares the paths %s, want %s", tool.name, got, want)
		}
		rating, rated := safety.OfTool(tool.name)
		if !rated || tool.hints.ReadOnly != (rating.Class == core.ReadOnly) {
			t.Errorf("%s: class %s and readOnlyHint %t disagree", tool.name, rating.Class, tool.hints.ReadOnly)
		}
		if changes := rating.Class != core.ReadOnly; names["dry_run"] != changes || names["confirm"] != changes {
			t.Errorf("%s: dry_run and confirm belong to what changes something, and to nothing else", tool.name)
		}
		if !strings.HasSuffix(tool.about, ".") || strings.Contains(tool.about, "must be used") {
			t.Errorf("%s: description %q", tool.name, tool.about)
		}
	}
	for name := range uses {
		if !seen[name] {
			t.Errorf("%s is not in the registry", name)
		}
	}
}

func looksLikePath(name string) bool {
	for _, word := range []string{"path", "file", "dir", "source", "dest", "target", "uri"} {
		if strings.Contains(strings.ToLower(name), word) {
			return true
		}
	}
	return false
}

// sample makes fair arguments for a tool: every path is path, or of a list its
// one entry, and every other required argument has a fair value.
func sample(t *tool, path map[string]string) args {
	a := args{}
	for _, p := range t.params {
		switch p.name {
		case "paths":
			a[p.name] = []string{path[p.name]}
		case "content":
			a[p.name] = "SAMPLE\n"
		case "pattern":
			a[p.name] = "**"
		case "query":
			a[p.name] = "on."
		case "edits":
			a[p.name] = edits("one", "two")
		case "confirm", "recursive":
			a[p.name] = true
		default:
			if p.use != core.ActionUnknown {
				a[p.name] = path[p.name]
			}
		}
	}
	return a
}

// fair is a world in which each tool succeeds with fairPaths.
func fair(t *testing.T, change ...func(*world)) *world {
	t.Helper()
	allow := func(w *world) { w.setup.Rules = map[string]string{"fs.delete": "allow"} }
	return newWorld(t, map[string]string{"f": "one\n", "d/x": "X", "gone": "G"}, append(change, allow)...)
}

func (w *world) fairPaths(tool string) map[string]string {
	paths := map[string]string{"path": w.at("f"), "paths": w.at("f"), "source": w.at("d/x"), "destination": w.at("free")}
	switch tool {
	case "create_directory":
		paths["path"] = w.at("new/deep")
	case "list_directory", "list_directory_with_sizes", "directory_tree", "search_files", "search_content":
		paths["path"] = w.root
	case "delete_file":
		paths["path"] = w.at("gone")
	}
	return paths
}

// TestEveryPathIsGuarded calls each tool with each of its paths leading outside
// in each way, the others being fair. The call is refused, tells nothing of
// what is there and touches nothing; with fair paths it succeeds.
func TestEveryPathIsGuarded(t *testing.T) {
	outside := map[string]func(w *world) string{
		"absolute": func(w *world) string { return w.outside + "/f" },
		"dotdot":   func(w *world) string { return w.root + "/../outside/f" },
		"relative": func(*world) string { return "../outside/f" },
		"link":     func(w *world) string { return w.at("out/f") },
		"new":      func(w *world) string { return w.at("out/absent") },
		"device":   func(*world) string { return "/dev/zero" },
		"nul":      func(w *world) string { return w.at("f\x00") },
		"scheme":   func(w *world) string { return "file://" + w.at("f") },
		"state":    func(w *world) string { return w.setup.State + "/version" },
	}
	for _, tool := range registry() {
		for _, p := range tool.params {
			if p.use == core.ActionUnknown {
				continue
			}
			w := fair(t)
			w.put(w.outside+"/f", secret)
			w.link(w.outside, "out")
			for way, path := range outside {
				t.Run(tool.name+"/"+p.name+"/"+way, func(t *testing.T) {
					paths := w.fairPaths(tool.name)
					paths[p.name] = path(w)
					before := w.snapshot(w.root) + w.snapshot(w.outside)
					r := w.call(tool.name, sample(&tool, paths)).lacks(secret)
					if p.name == "paths" {
						r.ok().has(": Error - denied")
					} else {
						r.refused()
					}
					if after := w.snapshot(w.root) + w.snapshot(w.outside); after != before {
						t.Fatalf("touched:\n%s\n%s", before, after)
					}
				})
			}
		}
		t.Run(tool.name+"/control", func(t *testing.T) {
			w := fair(t)
			w.call(tool.name, sample(&tool, w.fairPaths(tool.name))).ok()
		})
	}
}

// snapshot is every name beneath a directory with what it is.
func (w *world) snapshot(dir string) string {
	w.Helper()
	var b strings.Builder
	var walk func(string)
	walk = func(dir string) {
		for _, name := range w.names(dir) {
			path := dir + "/" + name
			info, err := os.Lstat(path)
			w.must(err)
			target, _ := os.Readlink(path)
			content := ""
			if info.Mode().IsRegular() {
				content = state(w.T, path)
			}
			fmt.Fprintln(&b, path, info.Mode(), target, content)
			if info.IsDir() {
				walk(path)
			}
		}
	}
	walk(dir)
	return b.String()
}

// TestPrefilterChangesNothing runs each tool with every kind of bad name, once
// with the syntactic pre-filter and once without: the verdicts are the same.
func TestPrefilterChangesNothing(t *testing.T) {
	w := fair(t, later)
	s := w.setup
	s.Roots = append(s.Roots, "strict="+w.box+"/strict=res")
	w.must(os.Mkdir(w.box+"/strict", 0o755))
	servers := map[bool]*client{}
	var prechecked func(string) error
	for _, on := range []bool{true, false} {
		o, closer, err := s.options()
		w.must(err)
		t.Cleanup(closer)
		srv, err := newServer(o)
		w.must(err)
		if on {
			prechecked = srv.precheck
		} else {
			srv.precheck = func(string) error { return nil }
		}
		m, err := srv.mcp()
		w.must(err)
		servers[on] = connect(t, m, nil)
	}
	var filtered int
	names := []string{
		"", "a\x00b", strings.Repeat("x", 256), strings.Repeat("y/", 2100), "..", "../x", "project://..", "project:///etc", "nope://x",
		"res://../x", `res://a\b`, "res://C:/x", "res:///x", "res://ok", "project://f", "/etc/passwd", "~/x", "C:\\x", "f ", "\"f\"",
	}
	for _, tool := range registry() {
		for _, p := range tool.params {
			if p.use == core.ActionUnknown {
				continue
			}
			for _, name := range names {
				paths := w.fairPaths(tool.name)
				paths[p.name] = name
				a := sample(&tool, paths)
				if a["confirm"] != nil {
					a["dry_run"] = true
				}
				with, without := servers[true].call(tool.name, a), servers[false].call(tool.name, a)
				if with.IsError != without.IsError || with.code() != without.code() {
					t.Errorf("%s %s=%.40q: %q with the pre-filter, %q without", tool.name, p.name, name, with.code(), without.code())
				}
				if prechecked(name) != nil {
					filtered++
				}
			}
		}
	}
	if filtered == 0 {
		t.Error("the pre-filter refused nothing, so this proves nothing")
	}
}

// TestZeroOfANumber: the schema's minimum of each number is what the tool
// holds: 0 is refused of those that begin at 1, and of no other.
func TestZeroOfANumber(t *testing.T) {
	w := fair(t)
	for _, tool := range registry() {
		for _, p := range tool.params {
			var a arguments
			if _, number := p.bind(&a).(*count); !number {
				continue
			}
			call := sample(&tool, w.fairPaths(tool.name))
			for _, other := range tool.params {
				if _, number := other.bind(&a).(*count); number {
					delete(call, other.name)
				}
			}
			call[p.name] = 0
			if refused := w.call(tool.name, call).code() == "request.invalid"; refused != p.positive {
				t.Errorf("%s %s=0: refused is %v, the schema's minimum says %v", tool.name, p.name, refused, p.positive)
			}
		}
	}
}

func TestOffAndReadOnly(t *testing.T) {
	w := newWorld(t, nil, func(w *world) { w.setup.ReadOnly = true; w.setup.Off = []string{"read_file"} })
	var list struct {
		Tools []struct {
			Name        string
			Annotations map[string]bool
		}
	}
	w.must(json.Unmarshal(w.request("tools/list", args{}).Result, &list))
	for _, tool := range list.Tools {
		if !tool.Annotations["readOnlyHint"] || tool.Name == "read_file" {
			t.Errorf("%s is offered", tool.Name)
		}
	}
	if len(list.Tools) != 10 {
		t.Errorf("%d tools", len(list.Tools))
	}
	for _, name := range []string{"write_file", "read_file"} {
		if f := w.request("tools/call", map[string]any{"name": name, "arguments": args{"path": "x", "content": ""}}); f.Error == nil {
			t.Errorf("%s can be called", name)
		}
	}
	s := w.setup
	s.Off = []string{"no_such_tool"}
	s.State += "2"
	o, closer, err := s.options()
	w.must(err)
	defer closer()
	if _, err := New(o); err == nil {
		t.Error("an unknown tool in Off is accepted")
	}
}

func TestNewNeedsAGate(t *testing.T) {
	if _, err := New(Options{}); err == nil {
		t.Error("a server without a gate")
	}
}

// TestArguments: exact keys, exact types, and a refusal that says what is
// known.
func TestArguments(t *testing.T) {
	w := newWorld(t, map[string]string{"f": "one\n"})
	tests := []struct {
		tool string
		args string
		says string
	}{
		{"read_text_file", `{}`, "path is missing"},
		{"read_text_file", `{"path":1}`, "path must be a string"},
		{"read_text_file", `{"path":null}`, "path must be a string"},
		{"read_text_file", `{"path":"f","foo":1}`, "foo is not a parameter of read_text_file"},
		{"read_text_file", `{"path":"f","foo":1}`, "it takes path, head, tail, max_bytes, offset, length, line, lines"},
		{"read_text_file", `{"Path":"f"}`, "Path is not a parameter"},
		{"read_text_file", `{"path":"f","head":"1"}`, "head must be an integer"},
		{"read_text_file", `{"path":"f","head":1.5}`, "integer"},
		{"read_text_file", `{"path":"f","head":1e3}`, "integer"},
		{"read_text_file", `{"path":"f","head":-1}`, "head must not be negative"},
		{"read_text_file", `{"path":"f","head":99999999999999999999}`, "integer"},
		{"read_text_file", `{"path":"f","head":1,"tail":1}`, "head and tail"},
		{"read_text_file", `{"path":"f","offset":1,"head":1}`, "head and offset or length can't be used together"},
		{"read_text_file", `{"path":"f","lines":1,"length":1}`, "offset or length and line or lines"},
		{"read_text_file", `{"path":"f","line":0}`, "lines are counted from 1"},
		{"read_media_file", `{"path":"f","line":1}`, "line is not a parameter of read_media_file"},
		{"list_directory", `{"path":"project://","limit":0}`, "limit must be at least 1"},
		{"list_directory", `{"path":"project://","cursor":"x"}`, "none of ours"},
		{"search_files", `{"path":"project://","pattern":"a","cursor":""}`, "cursor must not be empty"},
		{"search_files", `{"path":"project://","pattern":"a/b","substring":true}`, "no part of a name"},
		{"search_content", `{"path":"project://","query":"("}`, "missing closing ) at character 1"},
		{"search_content", `{"path":"project://","query":"a","context":21}`, "context must be at most 20"},
		{"search_content", `{"path":"project://","query":"a","glob":"{1..5000}"}`, "braces"},
		{"read_multiple_files", `{"paths":[]}`, "at least one entry"},
		{"read_multiple_files", `{"paths":"f"}`, "must be an array"},
		{"read_multiple_files", `{"paths":[1]}`, "paths[0] must be a string"},
		{"read_multiple_files", `{"paths":[` + strings.Repeat(`"f",`, 1000) + `"f"]}`, "too many"},
		{"list_directory_with_sizes", `{"path":"","sortBy":"name"}`, "empty"},
		{"list_directory_with_sizes", `{"path":"project://","sortBy":"date"}`, "one of name, size"},
		{"search_files", `{"path":"project://","pattern":"{1..5000}"}`, "braces"},
		{"search_files", `{"path":"project://","pattern":"a","excludePatterns":["!(x)x!(y)"]}`, "negated group"},
		{"directory_tree", `{"path":"project://","excludePatterns":["{1..5000}"]}`, "braces"},
		{"write_file", `{"path":"f"}`, "content is missing"},
		{"write_file", `{"path":"f","content":"","dry_run":1}`, "dry_run must be true or false"},
		{"write_file", `{"path":"f","content":"","confirm":"true"}`, "confirm must be true or false"},
		{"delete_file", `{"path":"f","confirm":1}`, "confirm must be true or false"},
		{"edit_file", `{"path":"f","edits":{}}`, "edits must be an array"},
		{"edit_file", `{"path":"f","edits":[1]}`, "edits[0] must be an object"},
		{"edit_file", `{"path":"f","edits":[{"oldText":"a"}]}`, "edits[0].newText is missing"},
		{"edit_file", `{"path":"f","edits":[{"newText":"a"}]}`, "edits[0].oldText is missing"},
		{"edit_file", `{"path":"f","edits":[{"oldText":"a","newText":"b","regex":true}]}`, "edits[0].regex"},
		{"edit_file", `{"path":"f","edits":[{"oldText":"a","newText":"b","replaceAll":"yes"}]}`, "replaceAll must be"},
		{"edit_file", `{"path":"f","edits":[]}`, "no edits"},
		{"list_allowed_directories", `{"path":"x"}`, "it takes no arguments"},
	}
	for _, tt := range tests {
		r := w.callRaw(tt.tool, tt.args)
		r.refused()
		if !strings.Contains(r.text(), tt.says) {
			t.Errorf("%s %.80s: %q does not say %q", tt.tool, tt.args, r.text(), tt.says)
		}
	}
	w.is(w.at("f"), "one\n")
	w.unchanged(w.root, "f")
	if w.callRaw("edit_file", `{"path":"f","dryRun":true,"dry_run":false,"edits":[{"oldText":"one","newText":"two"}]}`).ok(); !t.Failed() {
		w.is(w.at("f"), "one\n") // either spelling makes it a dry run
	}
}

// callRaw calls a tool with arguments as they are written.
func (w *world) callRaw(tool, arguments string) result {
	w.Helper()
	return w.result(w.request("tools/call", map[string]any{"name": tool, "arguments": json.RawMessage(arguments)}))
}

// The policy's own preconditions hold for tools whose schema has them.
func TestDefaultsOfPolicy(t *testing.T) {
	if d := policy.Default(); !slices.Contains(d.Confirm, core.FSDelete) {
		t.Error("the shipped default no longer asks for confirm; the description of delete_file says so")
	}
}
