// SPDX-License-Identifier: Apache-2.0

//go:build linux

package interop

import (
	"bufio"
	"context"
	"encoding/json"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/postern-gate/postern/core"
	"github.com/postern-gate/postern/core/pathguard"
	"github.com/postern-gate/postern/core/policy"
	"github.com/postern-gate/postern/enforce"
	"github.com/postern-gate/postern/internal/fsserver"
)

// peer is a server that is asked one thing after the other.
type peer struct {
	t    *testing.T
	root string
	in   *bufio.Reader
	out  io.Writer
	n    int
}

func (p *peer) start(in io.Reader, out io.Writer) *peer {
	p.in, p.out = bufio.NewReaderSize(in, 1<<20), out
	p.request("initialize", map[string]any{
		"protocolVersion": "2025-06-18", "capabilities": map[string]any{}, "clientInfo": map[string]any{"name": "t", "version": "1"},
	})
	p.write(map[string]any{"jsonrpc": "2.0", "method": "notifications/initialized"})
	return p
}

func (p *peer) write(message any) {
	p.t.Helper()
	b, err := json.Marshal(message)
	if err == nil {
		_, err = p.out.Write(append(b, '\n'))
	}
	if err != nil {
		p.t.Fatal(err)
	}
}

func (p *peer) request(method string, params any) json.RawMessage {
	p.t.Helper()
	p.n++
	p.write(map[string]any{"jsonrpc": "2.0", "id": p.n, "method": method, "params": params})
	for {
		line, err := p.in.ReadBytes('\n')
		if err != nil {
			p.t.Fatal(method, err)
		}
		var f struct {
			ID     int
			Result json.RawMessage
			Error  json.RawMessage
		}
		if json.Unmarshal(line, &f) == nil && f.ID == p.n {
			if f.Error != nil {
				p.t.Fatalf("%s: %s", method, f.Error)
			}
			return f.Result
		}
	}
}

// answer is what a client shows of a result, with the root's path blanked.
type answer struct {
	Content []map[string]any
	IsError bool
}

func (a answer) text() string {
	if len(a.Content) == 0 {
		return ""
	}
	text, _ := a.Content[0]["text"].(string)
	return text
}

func (p *peer) call(tool string, args map[string]any) answer {
	p.t.Helper()
	placed := map[string]any{}
	for k, v := range args {
		placed[k] = p.place(v)
	}
	raw := p.request("tools/call", map[string]any{"name": tool, "arguments": placed})
	var a answer
	if err := json.Unmarshal([]byte(strings.ReplaceAll(string(raw), p.root, "$R")), &a); err != nil {
		p.t.Fatal(err)
	}
	return a
}

// place puts the root where an argument says $R.
func (p *peer) place(v any) any {
	switch v := v.(type) {
	case string:
		return strings.ReplaceAll(v, "$R", p.root)
	case []string:
		list := make([]string, len(v))
		for i, s := range v {
			list[i] = strings.ReplaceAll(s, "$R", p.root)
		}
		return list
	}
	return v
}

// reference starts the reference server on a folder.
func reference(t *testing.T, root string) *peer {
	t.Helper()
	cmd := exec.Command("node", filepath.Join(npm(t), "node_modules/@modelcontextprotocol/server-filesystem/dist/index.js"), root)
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = in.Close()
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	return (&peer{t: t, root: root}).start(out, in)
}

// ours starts our tools on a folder, under the shipped policy.
func ours(t *testing.T, root string, bare bool) *peer {
	t.Helper()
	state, err := enforce.OpenState(filepath.Join(t.TempDir(), "state"), enforce.StateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	r, err := pathguard.OpenRoot(root, pathguard.Options{Name: "project"})
	if err != nil {
		t.Fatal(err)
	}
	ws, err := pathguard.NewWorkspace(r)
	if err != nil {
		t.Fatal(err)
	}
	p, err := policy.Compile(policy.Config{Roots: []policy.Root{{Name: "project"}}, Layers: []policy.Layer{policy.Default()}})
	if err != nil {
		t.Fatal(err)
	}
	srv, err := fsserver.New(fsserver.Options{Bare: bare, Version: "test", Gate: enforce.Options{
		Workspace: ws, Decider: p, Recorder: state, Locker: state, Subject: core.Subject{Source: "serve"},
	}})
	if err != nil {
		t.Fatal(err)
	}
	in, toServer := io.Pipe()
	fromServer, out := io.Pipe()
	ended := make(chan error, 1)
	go func() { ended <- srv.ServeStdio(context.Background(), in, out) }()
	t.Cleanup(func() {
		_ = toServer.Close()
		if err := <-ended; err != nil {
			t.Error(err)
		}
		_, _ = r.Close(), state.Close()
	})
	return (&peer{t: t, root: root}).start(fromServer, toServer)
}

func tree(t *testing.T, root string) {
	t.Helper()
	for name, content := range map[string]string{
		"a.txt": "alpha\nbeta\ngamma\n", "empty": "", "crlf.txt": "1\r\n2\r\n3\r\n", "bom": "\ufefféß\n", "noeol": "x\ny", "blank": "\n\n",
		"sub/b.md": "# B\n", "sub/deep/c.ts": "c", "sub/deep/.d.ts": "d", "sub/node_modules/x.ts": "x", "sub/Z": "", "sub/10": "", "sub/9": "",
		"names/a": "", "names/B": "x", "names/A": "xx", "names/_b": strings.Repeat("x", 1152), "names/.c": strings.Repeat("x", 1536),
		"names/é.txt": strings.Repeat("é", 5000), "names/a name with blanks and more than thirty letters": "1", "names/-x": "y", "names/a.b": "z",
		"names/dir/x": "", "pic.png": "\x89PNG\r\n\x1a\n\x00", "song.mp3": "ID3", "bin": "\x00\x01\xff\xfe", "edit.txt": "one\ntwo\nthree\ntwo and a half\n",
		"indent.py": "def f():\n    if x:\n        y()\n", "move.me": "m", "crlf-edit.txt": "a\r\nb\r\n",
	} {
		path := filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Mkdir(filepath.Join(root, "emptydir"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(filepath.Join(root, "links"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("../a.txt", filepath.Join(root, "links", "in")); err != nil {
		t.Fatal(err)
	}
}

// compared is one call of both servers. Without a reason the answers are equal
// to the byte; with one they must differ, so that no reason outlives its cause.
type compared struct {
	tool   string
	args   map[string]any
	differ string
}

func on(path string, more ...any) map[string]any {
	args := map[string]any{"path": path}
	for i := 0; i < len(more); i += 2 {
		args[more[i].(string)] = more[i+1]
	}
	return args
}

const (
	reasonTail    = "tail: a final line feed begins no line, and line ends stay as they are"
	reasonZero    = "head 0 and tail 0 are no lines, not all"
	reasonBinary  = "a binary is refused as text"
	reasonKinds   = "links are kinds of their own"
	reasonRefusal = "refusals have three lines and tell nothing of what is outside"
	reasonPlain   = "a plain word names an entry at any depth"
	reasonExclude = "a plain name is excluded at any depth, in all tools"
	reasonEdit    = "an edit that does not match exactly once is refused, and line ends stay as they are"
	reasonEtag    = "an etag is added"
)

var reading = []compared{
	{tool: "list_allowed_directories"},
	{tool: "get_file_info", args: on("$R/a.txt"), differ: reasonEtag},
	{tool: "get_file_info", args: on("$R/sub"), differ: reasonEtag},
	{tool: "read_file", args: on("$R/a.txt")},
	{tool: "read_text_file", args: on("$R/a.txt")},
	{tool: "read_text_file", args: on("a.txt")},
	{tool: "read_text_file", args: on("$R/sub/../a.txt")},
	{tool: "read_text_file", args: on("$R//sub/./b.md")},
	{tool: "read_text_file", args: on("$R/links/in")},
	{tool: "read_text_file", args: on("$R/empty")},
	{tool: "read_text_file", args: on("$R/crlf.txt")},
	{tool: "read_text_file", args: on("$R/bom")},
	{tool: "read_text_file", args: on("$R/a.txt", "head", 1)},
	{tool: "read_text_file", args: on("$R/a.txt", "head", 2)},
	{tool: "read_text_file", args: on("$R/a.txt", "head", 100)},
	{tool: "read_text_file", args: on("$R/crlf.txt", "head", 2)},
	{tool: "read_text_file", args: on("$R/blank", "head", 5)},
	{tool: "read_text_file", args: on("$R/noeol", "head", 5)},
	{tool: "read_text_file", args: on("$R/names/é.txt", "head", 1)},
	{tool: "read_text_file", args: on("$R/noeol", "tail", 1)},
	{tool: "read_text_file", args: on("$R/noeol", "tail", 9)},
	{tool: "read_text_file", args: on("$R/a.txt", "tail", 2), differ: reasonTail},
	{tool: "read_text_file", args: on("$R/crlf.txt", "tail", 9), differ: reasonTail},
	{tool: "read_text_file", args: on("$R/a.txt", "head", 0), differ: reasonZero},
	{tool: "read_text_file", args: on("$R/a.txt", "tail", 0), differ: reasonZero},
	{tool: "read_text_file", args: on("$R/bin"), differ: reasonBinary},
	{tool: "read_text_file", args: on("$R/absent"), differ: reasonRefusal},
	{tool: "read_text_file", args: on("/etc/hostname"), differ: reasonRefusal},
	{tool: "read_text_file", args: on("$R/sub"), differ: reasonRefusal},
	{tool: "read_text_file", args: on("$R/a.txt", "head", 1, "tail", 1), differ: reasonRefusal},
	{tool: "read_media_file", args: on("$R/pic.png")},
	{tool: "read_media_file", args: on("$R/song.mp3")},
	{tool: "read_media_file", args: on("$R/bin")},
	{tool: "read_media_file", args: on("$R/names/a name with blanks and more than thirty letters")},
	{tool: "read_media_file", args: on("$R/names/é.txt")},
	{tool: "read_multiple_files", args: map[string]any{"paths": []string{"$R/a.txt", "sub/b.md", "$R/empty"}}},
	{tool: "read_multiple_files", args: map[string]any{"paths": []string{"$R/a.txt", "$R/absent"}}, differ: reasonRefusal},
	{tool: "list_directory", args: on("$R")},
	{tool: "list_directory", args: on("$R/sub")},
	{tool: "list_directory", args: on("sub/deep")},
	{tool: "list_directory", args: on("$R/emptydir")},
	{tool: "list_directory", args: on("$R/names")},
	{tool: "list_directory", args: on("$R/links"), differ: reasonKinds},
	{tool: "list_directory", args: on("$R/a.txt"), differ: reasonRefusal},
	{tool: "list_directory_with_sizes", args: on("$R/names")},
	{tool: "list_directory_with_sizes", args: on("$R/names", "sortBy", "name")},
	{tool: "list_directory_with_sizes", args: on("$R/names", "sortBy", "size")},
	{tool: "list_directory_with_sizes", args: on("$R/sub", "sortBy", "size")},
	{tool: "list_directory_with_sizes", args: on("$R/emptydir")},
	{tool: "list_directory_with_sizes", args: on("$R/links"), differ: reasonKinds},
	{tool: "directory_tree", args: on("$R/sub")},
	{tool: "directory_tree", args: on("$R/emptydir")},
	{tool: "directory_tree", args: on("$R/names")},
	{tool: "directory_tree", args: on("$R/sub", "excludePatterns", []string{"node_modules"})},
	{tool: "directory_tree", args: on("$R/sub", "excludePatterns", []string{"**/*.ts", "1?"})},
	{tool: "directory_tree", args: on("$R/links"), differ: reasonKinds},
	{tool: "search_files", args: on("$R", "pattern", "**/*.ts")},
	{tool: "search_files", args: on("$R", "pattern", "*.txt")},
	{tool: "search_files", args: on("$R/sub", "pattern", "**")},
	{tool: "search_files", args: on("sub", "pattern", "*")},
	{tool: "search_files", args: on("$R", "pattern", "sub/*")},
	{tool: "search_files", args: on("$R", "pattern", "sub/deep/c.ts")},
	{tool: "search_files", args: on("$R", "pattern", "{a,e}*")},
	{tool: "search_files", args: on("$R", "pattern", "**/@(c|x).ts")},
	{tool: "search_files", args: on("$R", "pattern", "names/[[:upper:]_]*")},
	{tool: "search_files", args: on("$R", "pattern", "!*.txt")},
	{tool: "search_files", args: on("$R", "pattern", "no-such*")},
	{tool: "search_files", args: on("$R", "pattern", "**/*.ts", "excludePatterns", []string{"**/deep/**"})},
	{tool: "search_files", args: on("$R", "pattern", "**/*.ts", "excludePatterns", []string{"sub/node_modules"})},
	{tool: "search_files", args: on("$R", "pattern", "**/*.ts", "excludePatterns", []string{"node_modules"}), differ: reasonExclude},
	{tool: "search_files", args: on("$R", "pattern", "c.ts"), differ: reasonPlain},
}

func edits(pairs ...string) []map[string]string {
	var list []map[string]string
	for i := 0; i < len(pairs); i += 2 {
		list = append(list, map[string]string{"oldText": pairs[i], "newText": pairs[i+1]})
	}
	return list
}

var changing = []compared{
	{tool: "write_file", args: on("$R/new.txt", "content", "new\n")},
	{tool: "write_file", args: on("$R/new.txt", "content", "newer\n")},
	{tool: "write_file", args: on("rel.txt", "content", "")},
	{tool: "edit_file", args: on("$R/edit.txt", "edits", edits("two\nthree", "2\n3"))},
	{tool: "edit_file", args: on("$R/edit.txt", "edits", edits("one", "```\none", "half", "1/2"))},
	{tool: "edit_file", args: on("$R/edit.txt", "edits", edits("3", "drei"), "dryRun", true)},
	{tool: "edit_file", args: on("$R/edit.txt", "edits", edits("nowhere", "x")), differ: reasonRefusal},
	{tool: "edit_file", args: on("$R/noeol", "edits", edits("y", "z"))},
	{tool: "create_directory", args: on("$R/made/of/three")},
	{tool: "create_directory", args: on("$R/sub")},
	{tool: "move_file", args: map[string]any{"source": "$R/move.me", "destination": "$R/made/moved"}},
	{tool: "move_file", args: map[string]any{"source": "$R/sub", "destination": "$R/sub2"}},
	{tool: "move_file", args: map[string]any{"source": "$R/a.txt", "destination": "$R/noeol"}, differ: reasonRefusal},
	{tool: "write_file", args: on("$R/absent/x", "content", ""), differ: reasonRefusal},
}

// edited are edits on which the two differ for good; they are not made by both
// on one tree.
var edited = []compared{
	{tool: "edit_file", args: on("$R/indent.py", "edits", edits("  if x:\n  y()", "  if x:\n  z()")), differ: reasonEdit},
	{tool: "edit_file", args: on("$R/edit.txt", "edits", edits("n", "N")), differ: reasonEdit},
	{tool: "edit_file", args: on("$R/edit.txt", "edits", edits("", "x")), differ: reasonEdit},
	{tool: "edit_file", args: on("$R/crlf-edit.txt", "edits", edits("a", "b\nc")), differ: reasonEdit},
}

// TestReference drives both servers with the same calls: without envelopes the
// answers are the same but for the reasons in the tables, with them the text
// is the same inside one envelope, of several files inside one each.
func TestReference(t *testing.T) {
	root := filepath.Join(t.TempDir(), "root")
	tree(t, root)
	theirs, bare, wrapped := reference(t, root), ours(t, root, true), ours(t, root, false)
	for _, c := range reading {
		c.compare(t, theirs, bare, wrapped)
	}
}

func TestReferenceChanges(t *testing.T) {
	box := t.TempDir()
	roots := map[string]string{}
	for _, name := range []string{"aa", "bb", "cc"} {
		roots[name] = filepath.Join(box, name)
		tree(t, roots[name])
	}
	theirs, bare, wrapped := reference(t, roots["aa"]), ours(t, roots["bb"], true), ours(t, roots["cc"], false)
	for _, c := range changing {
		c.compare(t, theirs, bare, wrapped)
	}
	want := contents(t, roots["aa"])
	for _, name := range []string{"bb", "cc"} {
		if diff := cmp.Diff(want, contents(t, roots[name])); diff != "" {
			t.Errorf("the trees differ: %s", diff)
		}
	}
	for _, c := range edited {
		c.compare(t, theirs, bare, wrapped)
	}
}

func contents(t *testing.T, root string) map[string]string {
	t.Helper()
	all := map[string]string{}
	err := filepath.WalkDir(root, func(path string, d os.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		content := ""
		if info.Mode().IsRegular() {
			b, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			content = string(b)
		}
		all[strings.TrimPrefix(path, root)] = info.Mode().String() + " " + content
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

var (
	enveloped = regexp.MustCompile(`(?s)\A<untrusted-([0-9a-f]{8}) [^\n]*>\n(.*)\n</untrusted-([0-9a-f]{8})>\z`)
	etagLine  = regexp.MustCompile(`\netag: [\w-]+\z`)
	accessed  = regexp.MustCompile(`\naccessed: [^\n]+`) // each read may change it
)

// apart is the answer about several files, each of which has an envelope of
// its own: what is in them is in the one text without.
func (c compared) apart(t *testing.T, bare, wrapped answer) {
	t.Helper()
	for _, block := range wrapped.Content {
		text, _ := block["text"].(string)
		if m := enveloped.FindStringSubmatch(text); m != nil && m[1] == m[3] {
			text = m[2]
		}
		if !strings.Contains(bare.text(), text) {
			t.Errorf("%s %v: %q inside an envelope, %q without", c.tool, c.args, text, bare.text())
		}
	}
	if paths, ok := c.args["paths"].([]string); !ok || len(wrapped.Content) != len(paths) {
		t.Errorf("%s %v: %d blocks", c.tool, c.args, len(wrapped.Content))
	}
}

func (c compared) compare(t *testing.T, theirs, bare, wrapped *peer) {
	t.Helper()
	want, got, inside := theirs.call(c.tool, c.args), bare.call(c.tool, c.args), wrapped.call(c.tool, c.args)
	equal := cmp.Equal(want.Content, got.Content[:1]) && want.IsError == got.IsError
	switch {
	case c.differ == reasonEtag:
		ref := accessed.ReplaceAllString(want.text(), "")
		our := accessed.ReplaceAllString(got.text(), "")
		if !etagLine.MatchString(our) || etagLine.ReplaceAllString(our, "") != ref {
			t.Errorf("%s %v: %q and %q differ by more than an etag", c.tool, c.args, want.text(), got.text())
		}
	case c.differ == "" && !equal:
		t.Errorf("%s %v: theirs and ours differ without a reason: %s", c.tool, c.args, cmp.Diff(want, got))
	case c.differ != "" && equal:
		t.Errorf("%s %v: equal, but a reason says %q", c.tool, c.args, c.differ)
	}
	if want.IsError != got.IsError && c.differ == "" || got.IsError != inside.IsError {
		t.Errorf("%s %v: isError %t, %t, %t", c.tool, c.args, want.IsError, got.IsError, inside.IsError)
	}
	if got.IsError || got.text() == "" {
		return
	}
	if c.tool == "read_multiple_files" {
		c.apart(t, got, inside)
		return
	}
	text := inside.text()
	if m := enveloped.FindStringSubmatch(text); m != nil && m[1] == m[3] {
		text = m[2]
	}
	if accessed.ReplaceAllString(text, "") != accessed.ReplaceAllString(got.text(), "") {
		t.Errorf("%s %v: %q inside the envelope, %q without", c.tool, c.args, text, got.text())
	}
}

// TestReferenceSurface: the fourteen tools have the reference's parameters,
// required ones and hints.
func TestReferenceSurface(t *testing.T) {
	root := filepath.Join(t.TempDir(), "root")
	tree(t, root)
	type surface struct {
		Name        string
		InputSchema struct {
			Properties map[string]struct{ Type any }
			Required   []string
		}
		Annotations map[string]bool
	}
	list := func(p *peer) map[string]surface {
		var l struct{ Tools []surface }
		if err := json.Unmarshal(p.request("tools/list", map[string]any{}), &l); err != nil {
			t.Fatal(err)
		}
		all := map[string]surface{}
		for _, s := range l.Tools {
			all[s.Name] = s
		}
		return all
	}
	theirs, our := list(reference(t, root)), list(ours(t, root, false))
	if len(theirs) != 14 {
		t.Fatalf("the reference has %d tools", len(theirs))
	}
	for name, ref := range theirs {
		got, ok := our[name]
		if !ok {
			t.Errorf("%s is missing", name)
			continue
		}
		if diff := cmp.Diff(ref.Annotations, got.Annotations); diff != "" {
			t.Errorf("%s: hints %s", name, diff)
		}
		if diff := cmp.Diff(ref.InputSchema.Required, got.InputSchema.Required); diff != "" {
			t.Errorf("%s: required %s", name, diff)
		}
		for p, want := range ref.InputSchema.Properties {
			have, ok := got.InputSchema.Properties[p]
			if !ok {
				t.Errorf("%s has no %s", name, p)
			}
			// A number of lines is an integer.
			if want.Type != have.Type && (want.Type != "number" || have.Type != "integer") {
				t.Errorf("%s %s is %v, not %v", name, p, have.Type, want.Type)
			}
		}
	}
}
