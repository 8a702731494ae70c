// SPDX-License-Identifier: Apache-2.0

//go:build linux

package fsserver

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/postern-gate/postern/internal/safety"
)

func itoa(n int) string { return strconv.Itoa(n) }

func agentEditsOwnLimits(t *testing.T) {
	w := newWorld(t, nil)
	before := w.call("list_allowed_directories", args{}).raw
	f := w.request("tools/call", map[string]any{"name": "set_config_value", "arguments": args{"key": "allowedDirectories", "value": []string{"/"}}})
	if f.Error == nil || f.Error.Code != -32602 {
		t.Errorf("an unknown tool gives %+v", f)
	}
	for _, tool := range registry() {
		for _, p := range tool.params {
			if name := strings.ToLower(p.name); strings.Contains(name, "root") || strings.Contains(name, "policy") || strings.Contains(name, "allow") {
				t.Errorf("%s takes %s", tool.name, p.name)
			}
		}
	}
	w.call("write_file", args{"path": w.at(".postern/policy.yaml"), "content": "allow: ['**']"}).refused("policy.denied").has("built-in: postern")
	w.call("create_directory", args{"path": w.at(".postern")}).refused("policy.denied")
	w.absent(w.at(".postern"))
	if after := w.call("list_allowed_directories", args{}).raw; after != before {
		t.Error(after)
	}
}

func dotDirs(t *testing.T) {
	w := newWorld(t, map[string]string{".env": "TOKEN=1", ".git/config": "C"})
	const token = "TOKEN"
	r := w.call("directory_tree", args{"path": w.root}).ok().has("1 name is hidden by policy", `"name": ".git"`, `"name": "config"`)
	r.lacks(token, `.env`)
	w.call("read_text_file", args{"path": w.at(".env")}).refused("policy.denied").has("built-in: dotenv").lacks(token)
	w.call("move_file", args{"source": w.at(".env"), "destination": w.at("env.txt")}).refused("policy.denied").has("built-in: dotenv").lacks(token)
	w.call("copy_file", args{"source": w.at(".env"), "destination": w.at("env.txt")}).refused("policy.denied").lacks(token)
	if body := w.call("search_files", args{"path": w.root, "pattern": "**/.env"}).body(); body != "No matches found" {
		t.Error(body)
	}
	for _, tool := range []string{"list_directory", "list_directory_with_sizes"} {
		w.call(tool, args{"path": w.root}).ok().has("1 name is hidden by policy").lacks(".env")
	}
	if got := w.call("read_text_file", args{"path": w.at(".git/config")}).body(); got != "C" {
		t.Error(got)
	}
	w.call("write_file", args{"path": w.at(".git/config"), "content": "x"}).refused("policy.denied").has("built-in: git")
	w.call("edit_file", args{"path": w.at(".git/config"), "edits": edits("C", "x")}).refused("policy.denied").has("built-in: git")
	w.call("move_file", args{"source": w.at(".git/config"), "destination": w.at("c")}).refused("policy.denied").has("built-in: git")
	w.call("move_file", args{"source": w.at(".git"), "destination": w.at("g")}).refused("policy.denied")
	w.is(w.at(".git/config"), "C")
	w.is(w.at(".env"), "TOKEN=1")
}

func rootsReplace(t *testing.T) {
	w := newWorld(t, nil, later)
	a, b := w.box+"/A", w.box+"/B"
	w.put(a+"/f", "A")
	w.put(b+"/f", "B")
	s := w.setup
	s.Roots = []string{"a=" + a, "b=" + b}
	c := w.serve(s, []string{"file://" + a})
	c.call("list_allowed_directories", args{}).has("Allowed directories:\n"+a+"\n", "left out by the client's roots:\n"+b)
	if got := c.call("read_text_file", args{"path": a + "/f"}).body(); got != "A" {
		t.Error(got)
	}
	for tool, args := range map[string]args{
		"read_text_file": {"path": b + "/f"}, "list_directory": {"path": b}, "write_file": {"path": b + "/g", "content": ""},
		"move_file": {"source": a + "/f", "destination": b + "/g"}, "copy_file": {"source": b + "/f", "destination": a + "/g"},
	} {
		c.call(tool, args).refused().has("the client's roots").lacks(secret)
	}
	w.unchanged(b, "f")
	w.unchanged(a, "f")
	c.setRoots("file://"+a, "file://"+b)
	if got := c.call("read_text_file", args{"path": b + "/f"}).body(); got != "B" {
		t.Error(got)
	}
	c.setRoots("file:///") // wider than the operator's list: it stays the ceiling
	c.call("read_text_file", args{"path": "/etc/passwd"}).refused("path.escape")
	c.call("read_text_file", args{"path": b + "/f"}).ok()
	c.setRoots()
	c.call("read_text_file", args{"path": b + "/f"}).ok()
}

func rootsURIEscapes(t *testing.T) {
	w := newWorld(t, nil, later)
	vault := w.box + "/My Vault (é)"
	w.put(vault+"/f", "V")
	w.put(w.box+"/other.txt", "X")
	s := w.setup
	s.Roots, s.State = []string{"project=" + w.box}, filepath.Join(t.TempDir(), "state")
	escaped := "file://" + w.box + "/My%20Vault%20%28%C3%A9%29"
	c := w.serve(s, []string{escaped})
	if got := c.call("read_text_file", args{"path": vault + "/f"}).body(); got != "V" {
		t.Error(got)
	}
	c.call("read_text_file", args{"path": w.box + "/other.txt"}).refused().has("the client's roots")
	c.call("list_allowed_directories", args{}).has("\n" + vault + "\n")
	for _, uri := range []string{"https://host/x", "file://otherhost" + w.box, "file://" + w.box + "/%zz", "file://" + w.outside + "x/../../../../nowhere"} {
		c.setRoots(uri)
		c.call("list_allowed_directories", args{}).has("Unusable roots of the client:\n" + uri + ": ")
		c.call("read_text_file", args{"path": vault + "/f"}).refused().has("the client's roots")
	}
}

// A client's root may be a link beneath the operator's; it opens what it leads
// to, and can't be made to lead elsewhere by the agent.
func TestRootsThroughLink(t *testing.T) {
	w := newWorld(t, map[string]string{"v1/f": "1", "v2/f": "2"}, later)
	w.link("v1", "cur")
	w.setup.Rules = map[string]string{"fs.delete": "allow"}
	c := w.serve(w.setup, []string{"file://" + w.at("cur")})
	if got := c.call("read_text_file", args{"path": w.at("cur/f")}).body(); got != "1" {
		t.Error(got)
	}
	c.call("read_text_file", args{"path": w.at("v1/f")}).ok()
	c.call("read_text_file", args{"path": w.at("v2/f")}).refused()
	c.call("list_directory", args{"path": w.root}).refused()
	c.call("delete_file", args{"path": w.at("cur"), "confirm": true}).refused()
	c.call("move_file", args{"source": w.at("v1"), "destination": w.at("cur/x")}).refused()
}

// A client that reports roots but doesn't answer opens nothing.
func TestRootsUnanswered(t *testing.T) {
	w := newWorld(t, map[string]string{"f": "F"}, later)
	c := w.serve(w.setup, []string{})
	c.call("read_text_file", args{"path": "f"}).ok() // an empty list narrows nothing
	many := make([]string, 300)
	for i := range many {
		many[i] = "file://" + w.root
	}
	c.setRoots(many...)
	c.call("read_text_file", args{"path": "f"}).refused().has("the client's roots")
	c.call("list_allowed_directories", args{}).has("more roots than the limit")
}

func excludePlainName(t *testing.T) {
	w := newWorld(t, map[string]string{"p/node_modules/x.ts": "", "p/y.ts": ""})
	exclude := []string{"node_modules"}
	if got := w.call("search_files", args{"path": w.root, "pattern": "**/x.ts", "excludePatterns": exclude}).body(); got != "No matches found" {
		t.Error(got)
	}
	w.call("directory_tree", args{"path": w.root, "excludePatterns": exclude}).ok().has("y.ts").lacks("node_modules", "x.ts")
	w.call("search_files", args{"path": w.root, "pattern": "**/x.ts"}).has(w.at("p/node_modules/x.ts")) // control
}

func structuredMismatch(t *testing.T) {
	w := newWorld(t, map[string]string{"d/a": "A", "b": "B"})
	var list struct{ Tools []map[string]json.RawMessage }
	w.must(json.Unmarshal(w.request("tools/list", args{}).Result, &list))
	for _, tool := range list.Tools {
		if _, declared := tool["outputSchema"]; declared {
			t.Errorf("%s declares an outputSchema", tool["name"])
		}
	}
	calls := map[string]args{
		"list_directory": {"path": w.root}, "list_directory_with_sizes": {"path": w.root}, "directory_tree": {"path": w.root},
		"search_files": {"path": w.root, "pattern": "**"}, "get_file_info": {"path": w.root}, "list_allowed_directories": {},
		"read_text_file": {"path": w.at("b")},
	}
	for tool, a := range calls {
		if r := w.call(tool, a).ok(); r.Structured != nil {
			t.Errorf("%s has structuredContent inside an envelope", tool)
		}
	}
	bare := w.setup
	bare.Bare = true
	c := w.serve(bare, nil)
	for tool, a := range calls {
		r := c.call(tool, a).ok()
		if tool == "read_text_file" {
			if r.Structured != nil {
				t.Error("a content travels twice")
			}
			continue
		}
		var o map[string]any
		if err := json.Unmarshal(r.Structured, &o); err != nil {
			t.Errorf("%s: %v in %s", tool, err, r.Structured)
		}
	}
	r := c.call("directory_tree", args{"path": w.root})
	var text []any
	var object struct{ Tree []any }
	w.must(json.Unmarshal([]byte(r.Content[0].Text), &text))
	w.must(json.Unmarshal(r.Structured, &object))
	if diff := cmp.Diff(text, object.Tree); diff != "" || len(text) != 2 {
		t.Error(diff)
	}
}

// hints is the table that clients decide by: destructive, idempotent.
var hints = map[string][2]bool{
	"write_file": {true, true}, "edit_file": {true, false}, "create_directory": {false, true}, "move_file": {true, false},
	"append_file": {false, false}, "copy_file": {false, false}, "delete_file": {true, false},
}

func readonlyHints(t *testing.T) {
	w := newWorld(t, nil)
	f := w.request("tools/list", args{})
	var list struct {
		Tools []struct {
			Name, Title string
			Annotations map[string]bool
			Meta        map[string]string `json:"_meta"`
		}
	}
	w.must(json.Unmarshal(f.Result, &list))
	for _, tool := range list.Tools {
		want := map[string]bool{"readOnlyHint": true, "openWorldHint": false}
		if h, changes := hints[tool.Name]; changes {
			want = map[string]bool{"readOnlyHint": false, "destructiveHint": h[0], "idempotentHint": h[1], "openWorldHint": false}
		}
		if diff := cmp.Diff(want, tool.Annotations); diff != "" || tool.Title != "" {
			t.Errorf("%s: %s", tool.Name, diff)
		}
		rating, _ := safety.OfTool(tool.Name)
		if tool.Meta["dev.postern/safety_class"] != rating.Class.String() {
			t.Errorf("%s: class %v", tool.Name, tool.Meta)
		}
	}
	if len(list.Tools) != 18 {
		t.Errorf("%d tools", len(list.Tools))
	}
	if n := len(f.Result); n > 11_000 {
		t.Errorf("tools/list has %d bytes", n)
	} else {
		t.Logf("tools/list: %d bytes", n)
	}
}

func nfcNFD(t *testing.T) {
	const decomposed, composed = "cafe\u0301", "caf\u00e9"
	w := newWorld(t, map[string]string{decomposed: "D"})
	read := func(name string) string { return w.call("read_text_file", args{"path": w.at(name)}).body() }
	if got := read(composed); got != "D" {
		t.Error(got)
	}
	w.call("write_file", args{"path": w.at(composed), "content": "C"}).ok()
	w.is(w.at(decomposed), "D")
	if got := read(composed); got != "C" {
		t.Error(got)
	}
	if got := read(decomposed); got != "D" {
		t.Error(got)
	}
	w.put(w.at("\u212b"), "1")
	w.put(w.at("A\u030a"), "2")
	w.call("read_text_file", args{"path": w.at("\u00c5")}).refused().has("equivalent")
}

func invalidUTF8Name(t *testing.T) {
	w := newWorld(t, map[string]string{"bad\xff\xfe.txt": "B", "ok.txt": "K"})
	want := "[FILE] \"bad\\xff\\xfe.txt\" (unreachable: the name is not UTF-8)\n[FILE] ok.txt"
	if got := w.call("list_directory", args{"path": w.root}).body(); got != want {
		t.Errorf("%q", got)
	}
	for _, spelling := range []string{`bad\xff\xfe.txt`, `"bad\xff\xfe.txt"`, "bad\ufffd\ufffd.txt"} {
		w.call("read_text_file", args{"path": w.at(spelling)}).refused("path.missing")
	}
	w.call("list_directory_with_sizes", args{"path": w.root}).ok().has(`"bad\xff\xfe.txt"`, "ok.txt")
	w.call("directory_tree", args{"path": w.root}).ok().has(`bad\\xff`, `"reachable": false`)
	w.call("search_files", args{"path": w.root, "pattern": "*.txt"}).ok().has(`bad\xff\xfe.txt" (unreachable`, w.at("ok.txt"))
}

func unreadableSubfolder(t *testing.T) {
	w := newWorld(t, map[string]string{"a.txt": "A", "priv/x": "X"})
	w.must(os.Chmod(w.at("priv"), 0))
	c := w.client
	if os.Getuid() == 0 {
		c = w.spawn(w.as(nobody))
	}
	r := c.call("directory_tree", args{"path": w.root}).ok().has("a.txt", `"name": "priv"`, `"unreadable": true`, "partial: true")
	if r.outcome()["partial"] != true {
		t.Error(r.raw)
	}
	r = c.call("search_files", args{"path": w.root, "pattern": "**"}).ok().has(w.at("a.txt"), w.at("priv"), "partial: true", "1 directory could not be read")
	if r.outcome()["partial"] != true {
		t.Error(r.raw)
	}
	w.must(os.Chmod(w.at("priv"), 0o755))
	c.call("directory_tree", args{"path": w.root}).ok().has(`"name": "x"`).lacks("partial") // control
}

func sameDevice(t *testing.T, a, b string) bool {
	t.Helper()
	var x, y syscall.Stat_t
	if err := syscall.Stat(a, &x); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Stat(b, &y); err != nil {
		t.Fatal(err)
	}
	return x.Dev == y.Dev
}
