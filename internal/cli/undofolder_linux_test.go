// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// back takes a change back from a folder, and returns its only step.
func (p *place) back(from, id string, flags ...string) undoStepJSON {
	p.Helper()
	var out bytes.Buffer
	env := p.env(strings.NewReader(""), &out)
	env.Getwd = func() (string, error) { return from, nil }
	run(p.Context(), append([]string{"undo", id, "--yes", "--json"}, flags...), env)
	var told undoJSON
	p.must(json.Unmarshal(out.Bytes(), &told))
	if len(told.Steps) != 1 {
		p.Fatal(out.String())
	}
	return told.Steps[0]
}

// made makes a change, and returns its id.
func (s *session) made(tool string, args map[string]any) string {
	s.Helper()
	var told struct {
		UndoID string `json:"undo_id"`
	}
	r := s.ask("tools/call", map[string]any{"name": tool, "arguments": args})
	if s.must(json.Unmarshal(r.Meta.Result, &told)); told.UndoID == "" {
		s.Fatalf("%s: %+v", tool, r)
	}
	return told.UndoID
}

const deniesRun = "version: 1\ndeny: [\"deploy/run.sh\"]\n"

// TestUndoJudgedByItsFolder: what a folder's own policy denies gets its name by no
// undo, from wherever that is run; and what comes back to a policy that doesn't deny
// it is taken back from everywhere.
func TestUndoJudgedByItsFolder(t *testing.T) {
	for name, policy := range map[string]string{"denied": deniesRun, "broken": "version: 1\ndeny: 3\n", "allowed": "version: 1\n"} {
		for _, elsewhere := range []bool{false, true} {
			p := newPlace(t, map[string]string{"deploy/README": "R"})
			from := p.dir
			if elsewhere {
				from = t.TempDir()
			}
			s := p.serve(".")
			id := s.made("move_file", map[string]any{"source": "deploy", "destination": "d2"})
			s.made("write_file", map[string]any{"path": "d2/run.sh", "content": "evil"})
			p.put(filepath.Join(p.dir, ".postern/policy.yaml"), policy)
			step := p.back(from, id)
			_, err := os.Lstat(filepath.Join(p.dir, "deploy/run.sh"))
			why := map[string]string{
				"denied": "something would get a name that the policy protects; next: look at what would be project://deploy/run.sh first",
				"broken": "whether the policy of its folder protects the name can't be told: the policy there can't be read: " +
					filepath.Join(p.dir, ".postern/policy.yaml") + ":2:7; next: run postern status there, and mend what it names",
			}[name]
			if back := name == "allowed"; step.Done != back || (err == nil) != back || !strings.HasPrefix(step.Why, why) || !back && step.Problem != "conflict" {
				t.Errorf("%s, elsewhere %t: %+v", name, elsewhere, step)
			}
		}
	}
}

// TestUndoByAgentsOfItsFolder: the rules that the policy of a folder has for an agent
// judge what an undo gives a name there, also under a name that the root has elsewhere.
func TestUndoByAgentsOfItsFolder(t *testing.T) {
	for _, file := range []string{"run.sh", "else.sh"} {
		p := newPlace(t, map[string]string{"one/deploy/README": "R", "two/x": "X"})
		p.put(filepath.Join(p.dir, "one/.postern/policy.yaml"), "version: 1\nagents: { evil: { fs.create: { deploy/"+file+": deny } } }\n")
		s := p.serve(filepath.Join(p.dir, "one"), filepath.Join(p.dir, "two"))
		id := s.made("move_file", map[string]any{"source": "one://deploy", "destination": "one://d2"})
		s.made("write_file", map[string]any{"path": "one://d2/run.sh", "content": "evil"})
		if step := p.back(p.home, id); step.Done == (file == "run.sh") {
			t.Errorf("%s: %+v", file, step)
		}
	}
}

// TestUndoOfSeveralFolders: a root of several that were served at once has another
// name in the policy of its folder alone, and is judged by that. A policy that names
// other roots alone judges nothing, and the one that is given does.
func TestUndoOfSeveralFolders(t *testing.T) {
	p := newPlace(t, map[string]string{"one/deploy/README": "R", "one/.postern/policy.yaml": deniesRun, "two/x": "X", "two/plain/x": "X"})
	s := p.serve(filepath.Join(p.dir, "one"), filepath.Join(p.dir, "two"))
	denied := s.made("move_file", map[string]any{"source": "one://deploy", "destination": "one://d2"})
	s.made("write_file", map[string]any{"path": "one://d2/run.sh", "content": "evil"})
	plain := s.made("move_file", map[string]any{"source": "two://plain", "destination": "two://p2"})
	other := s.made("move_file", map[string]any{"source": "two://x", "destination": "two://y"})
	if step := p.back(p.home, denied); step.Done || !strings.HasPrefix(step.Why, "something would get a name that the policy protects; ") {
		t.Errorf("%+v", step)
	}
	if step := p.back(p.home, plain); !step.Done {
		t.Errorf("%+v", step)
	}
	p.put(p.user(), "version: 1\nroots: { else: { path: "+t.TempDir()+" } }\n")
	if step := p.back(p.home, other); step.Done || !strings.Contains(step.Why, "the policy names the roots, and this folder is none of them; next: name it there under roots, ") {
		t.Errorf("%+v", step)
	}
	file := filepath.Join(p.home, "given.yaml")
	p.put(file, "version: 1\nroots: { two: { path: "+filepath.Join(p.dir, "two")+" } }\n")
	if step := p.back(p.home, other, "--policy", file); !step.Done {
		t.Errorf("%+v", step)
	}
}
