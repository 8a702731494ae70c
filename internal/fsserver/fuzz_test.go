// SPDX-License-Identifier: Apache-2.0

//go:build linux

package fsserver

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/postern-gate/postern/internal/mcpserver"
)

// fuzzWorld is a root with a way out in it, and what must not change.
type fuzzWorld struct {
	root, outside string
	server        *mcpserver.Server
	session       *mcpserver.Session
}

func newFuzzWorld(f *testing.F) *fuzzWorld {
	f.Helper()
	box := f.TempDir()
	w := &fuzzWorld{root: filepath.Join(box, "root"), outside: filepath.Join(box, "outside")}
	s := setup{Roots: []string{"project=" + w.root}, State: filepath.Join(box, "state"), Rules: map[string]string{"fs.delete": "allow"}, CallTime: 10 * time.Second}
	for _, dir := range []string{w.root, w.outside} {
		if err := os.Mkdir(dir, 0o755); err != nil {
			f.Fatal(err)
		}
	}
	o, closer, err := s.options()
	if err == nil {
		f.Cleanup(closer)
		w.server, err = New(o)
	}
	if err != nil {
		f.Fatal(err)
	}
	w.session = w.server.NewSession(func([]byte) error { return nil })
	w.dispatch(f, `{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"f","version":"1"}}}`)
	return w
}

// dispatch sends one frame and returns the answers to it.
func (w *fuzzWorld) dispatch(t testing.TB, frame string) []string {
	t.Helper()
	var answers []string
	work := w.server.Dispatch(t.Context(), w.session, []byte(frame), func(b []byte) error {
		answers = append(answers, string(b))
		return nil
	})
	if work != nil {
		work()
	}
	return answers
}

func (w *fuzzWorld) plant(t *testing.T) {
	t.Helper()
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	must(os.RemoveAll(w.root + "/d"))
	must(os.MkdirAll(w.root+"/d", 0o755))
	must(os.WriteFile(w.root+"/d/f", []byte("one\n"), 0o644))
	must(os.Symlink(w.outside, w.root+"/d/out"))
	must(os.Symlink("f", w.root+"/d/in"))
	must(os.WriteFile(w.root+"/d/.gitignore", []byte("g\n"), 0o644))
	must(os.WriteFile(w.outside+"/f", []byte(secret), 0o644))
}

// FuzzTools: whatever arguments arrive, there is exactly one answer, no bug,
// nothing of the outside in it and nothing changed there.
func FuzzTools(f *testing.F) {
	w := newFuzzWorld(f)
	tools := registry()
	for i, tool := range tools {
		for _, path := range []string{"d/f", "d/out/f", "../outside/f", "project://d", `\u0000`, "d/in"} {
			a := sample(&tool, map[string]string{"path": path, "paths": path, "source": path, "destination": "d/new"})
			b, err := json.Marshal(a)
			if err != nil {
				f.Fatal(err)
			}
			f.Add(uint8(i), string(b))
		}
	}
	f.Add(uint8(0), `{"path":"d/f","path":"d/out/f"}`)
	f.Add(uint8(0), `{"path":"\ud800"}`)
	f.Add(uint8(11), `{"path":"d","pattern":"**/{a,b}@(x|*)[!z]","excludePatterns":["!"]}`)
	for i, tool := range tools {
		more := map[string][]string{
			"read_text_file":            {`"offset":1,"length":2`, `"offset":9223372036854775807`, `"line":2,"lines":9223372036854775807`, `"line":1,"max_bytes":1`, `"offset":9223372036854775807,"length":9223372036854775807`},
			"read_media_file":           {`"offset":1,"length":2`, `"offset":9223372036854775807,"length":1`},
			"list_directory":            {`"limit":1`, `"cursor":"AAAA"`, `"limit":9223372036854775807`},
			"list_directory_with_sizes": {`"limit":1,"sortBy":"size"`},
			"directory_tree":            {`"limit":1`},
			"search_files":              {`"pattern":"F","substring":true,"limit":1`},
			"search_content": {
				`"query":"o.e$","context":2,"limit":1`, `"query":"(","literal":true`, `"query":"(?i)[^\\n]{9}"`, `"query":"ONE","ignoreCase":true,"glob":"{f,g}"`, `"query":"x{1000}"`, `"query":"","includeIgnored":true`,
			},
		}
		for _, rest := range more[tool.name] {
			f.Add(uint8(i), `{"path":"d",`+rest+`}`)
			f.Add(uint8(i), `{"path":"d/f",`+rest+`}`)
		}
	}
	f.Fuzz(func(t *testing.T, which uint8, arguments string) {
		w.plant(t)
		name := tools[int(which)%len(tools)].name
		frame := `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"` + name + `","arguments":` + arguments + `}}`
		answers := w.dispatch(t, frame)
		if len(answers) != 1 {
			t.Fatalf("%d answers", len(answers))
		}
		if !json.Valid([]byte(answers[0])) {
			t.Errorf("not JSON: %q", answers[0])
		}
		for _, bad := range []string{"internal.bug", secret} { // unless the caller said it itself
			if strings.Contains(answers[0], bad) && !strings.Contains(arguments, bad) {
				t.Errorf("%s", answers[0])
			}
		}
		content, err := os.ReadFile(w.outside + "/f")
		entries, listErr := os.ReadDir(w.outside)
		if err != nil || string(content) != secret || listErr != nil || len(entries) != 1 {
			t.Errorf("the outside holds %q %v %v", content, entries, err)
		}
	})
}

// FuzzCursor: whatever a cursor leads to, the page is an answer or a refusal,
// ends, and shows nothing of the outside.
func FuzzCursor(f *testing.F) {
	w := newFuzzWorld(f)
	tools := []string{"list_directory", "list_directory_with_sizes", "directory_tree", "search_files", "search_content"}
	for i := range tools {
		for _, path := range []string{"", "d", "d/f", "d/out/f", "../outside", "d/\x00", "d//", "/", "\xff"} {
			f.Add(uint8(i), path, false, int64(1))
			f.Add(uint8(i), path, true, int64(-1))
		}
	}
	f.Fuzz(func(t *testing.T, which uint8, path string, past bool, n int64) {
		w.plant(t)
		name := tools[int(which)%len(tools)]
		a := arguments{path: "project://"}
		more := map[string]string{"search_files": `,"pattern":"**"`, "search_content": `,"query":"e"`}[name]
		switch name {
		case "search_files":
			a.pattern = "**"
		case "search_content":
			a.query = "e"
		}
		cursor := (&call{tool: &tool{name: name}, args: a}).cursor(position{path: path, past: past, n: n})
		answers := w.dispatch(t, `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"`+name+`","arguments":{"path":"project://","limit":1,"cursor":"`+cursor+`"`+more+`}}}`)
		if len(answers) != 1 || !json.Valid([]byte(answers[0])) || strings.Contains(answers[0], "internal.bug") || strings.Contains(answers[0], secret) {
			t.Errorf("%q", answers)
		}
		if strings.Contains(answers[0], "another request") {
			t.Errorf("the cursor of this request is refused: %s", answers[0])
		}
	})
}
