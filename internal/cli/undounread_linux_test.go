// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/postern-gate/postern/core/fault"
)

// undoIn runs a verb of undo in the folder.
func (p *place) undoIn(args ...string) (exit int, out, warned string) {
	p.Helper()
	var told, said bytes.Buffer
	env := p.env(strings.NewReader(""), &told)
	env.Err = &said
	exit = run(p.Context(), append([]string{"undo"}, args...), env)
	return exit, told.String(), said.String()
}

// TestUndoBesideABrokenPolicy: a policy that isn't valid takes no undo away, a
// project's or the user's: what needs no judging is done, with a warning, and what
// would give a name back is a conflict that says where the policy is broken.
func TestUndoBesideABrokenPolicy(t *testing.T) {
	for name, broken := range map[string]func(*place) string{
		"user":    (*place).user,
		"project": func(p *place) string { return filepath.Join(p.dir, ".postern/policy.yaml") },
	} {
		t.Run(name, func(t *testing.T) {
			p := newPlace(t, map[string]string{"f": "old", "moved": "m"})
			s := p.serve(".")
			made := s.made("write_file", map[string]any{"path": "new", "content": "n"})
			written := s.made("write_file", map[string]any{"path": "f", "content": "changed"})
			renamed := s.made("move_file", map[string]any{"source": "moved", "destination": "away"})
			p.put(broken(p), "version: 1\ndeny: 3\n")
			warning := "warning: the policy can't be read: " + broken(p) + ":2:7: postern status tells more\n"
			if exit, out, warned := p.undoIn("list"); exit != fault.ExitOK || warned != warning || !strings.Contains(out, made) {
				t.Errorf("list: exit %d: %s%s", exit, out, warned)
			}
			if exit, out, warned := p.undoIn("--last", "--dry-run"); exit != fault.ExitFailed || warned != warning || strings.Contains(out, "\nnext: ") {
				t.Errorf("dry run: exit %d: %s%s", exit, out, warned)
			}
			if step := p.back(p.dir, renamed); step.Done || step.Problem != "conflict" || !strings.Contains(step.Why, "the policy there can't be read: "+broken(p)+":2:7; next: ") {
				t.Errorf("rename back: %+v", step)
			}
			for _, id := range []string{made, written} {
				if step := p.back(p.dir, id); !step.Done {
					t.Errorf("%+v", step)
				}
			}
			if b, err := os.ReadFile(filepath.Join(p.dir, "f")); err != nil || string(b) != "old" {
				t.Errorf("%q, %v", b, err)
			}
			p.put(broken(p), "version: 1\n")
			if step := p.back(p.dir, renamed); !step.Done {
				t.Errorf("mended: %+v", step)
			}
		})
	}
}

// TestUndoBesideABrokenPolicyTellsNoName: the policy may have wanted hashed names, so
// what is recorded beside one that can't be read has no others.
func TestUndoBesideABrokenPolicyTellsNoName(t *testing.T) {
	p := newPlace(t, map[string]string{"private-f": "old"})
	p.put(p.user(), "version: 1\naudit: { paths: hashed }\n")
	id := p.serve(".").made("write_file", map[string]any{"path": "private-f", "content": "new"})
	p.put(p.user(), "version: 1\naudit: { paths: hashed }\ndeny: 3\n")
	if step := p.back(p.dir, id); !step.Done {
		t.Fatalf("%+v", step)
	}
	var out bytes.Buffer
	if code := run(t.Context(), []string{"log", "--json"}, p.env(strings.NewReader(""), &out)); code != fault.ExitOK {
		t.Fatal(code)
	}
	if text := out.String(); !strings.Contains(text, `"undo"`) || strings.Contains(text, "private-f") {
		t.Error(text)
	}
}

// TestUndoElsewhereOfABrokenPolicy: what is broken here judges nothing there.
func TestUndoElsewhereOfABrokenPolicy(t *testing.T) {
	p := newPlace(t, map[string]string{"f": "old"})
	id := p.serve(".").made("move_file", map[string]any{"source": "f", "destination": "g"})
	here := t.TempDir()
	p.put(filepath.Join(here, ".postern/policy.yaml"), "version: 1\ndeny: 3\n")
	if step := p.back(here, id); !step.Done {
		b, _ := json.Marshal(step)
		t.Errorf("%s", b)
	}
}

// TestUndoOfAFolderThatIsNotEmpty: what is next is to empty it, also when the session is
// undone once more; and an undo is of no session that can be undone.
func TestUndoOfAFolderThatIsNotEmpty(t *testing.T) {
	p := newPlace(t, map[string]string{"f": "old"})
	s := p.serve(".")
	s.made("write_file", map[string]any{"path": "f", "content": "new"})
	s.made("create_directory", map[string]any{"path": "d"})
	p.put(filepath.Join(p.dir, "d/mine"), "mine")
	session := func() (undos, others []string) {
		_, out, _ := p.undoIn("list", "--json")
		var list undoListJSON
		p.must(json.Unmarshal([]byte(out), &list))
		for _, e := range list.Entries {
			if e.Undoes {
				undos = append(undos, e.Session)
			} else {
				others = append(others, e.Session)
			}
		}
		return undos, others
	}
	_, all := session()
	for again := range 2 {
		if exit, out, _ := p.undoIn("--session", all[0], "--yes"); exit != fault.ExitFailed || strings.Contains(out, "\nnext: empty the folder, and run it again\n") != (again == 1) {
			t.Errorf("exit %d: %s", exit, out)
		}
	}
	if undos, others := session(); len(undos) != 1 || undos[0] != "" || len(others) != 2 || others[0] == "" {
		t.Errorf("%q, %q", undos, others)
	}
}
