// SPDX-License-Identifier: Apache-2.0

package attach

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/postern-gate/postern/core/fault"
)

// shared is several folders of one home, by whose clients' file they meet.
type shared struct {
	dir     string
	folders []*place
	file    string
	id      string
}

func newShared(t *testing.T, n int, id string) *shared {
	t.Helper()
	first := newPlace(t)
	s := &shared{dir: first.w.Home, id: id, file: client(t, id).userFile(first.w)}
	for _, name := range []string{"a/app", "b/app", "c/site"}[:n] {
		p := *first
		p.w.Project = filepath.Join(filepath.Dir(first.w.Home), name)
		if err := os.MkdirAll(p.w.Project, 0o700); err != nil {
			t.Fatal(err)
		}
		s.folders = append(s.folders, &p)
	}
	return s
}

// start is what there is before anybody is attached: a text, or no file.
func (s *shared) start(text *string) {
	_ = os.RemoveAll(filepath.Join(s.folders[0].state, "attached")) // whatever was before
	_ = os.RemoveAll(s.dir)
	_ = os.Mkdir(s.dir, 0o700)
	if text != nil {
		s.folders[0].put(s.file, *text)
	}
}

// back is the oracle: the bytes and folders of before, "" where they are there.
func (s *shared) back(text *string) string {
	if text == nil {
		left, err := os.ReadDir(s.dir)
		if err != nil || len(left) > 0 {
			return "is left: " + left[0].Name()
		}
		return ""
	}
	got, err := os.ReadFile(s.file)
	if err != nil {
		return err.Error()
	}
	if string(got) != *text {
		return "not the bytes of before: " + string(got)
	}
	return ""
}

func orders(n int) (all [][]int) {
	if n == 0 {
		return [][]int{{}}
	}
	for _, o := range orders(n - 1) {
		for at := range n {
			all = append(all, append(append(append([]int{}, o[:at]...), n-1), o[at:]...))
		}
	}
	return all
}

func text(s string) *string { return &s }

// befores are what a file of the user is before, by client; nil for none.
func befores() map[string][]*string {
	return map[string][]*string{
		"copilot-cli": {
			nil, text(""), text("{}"), text("{}\n"), text("{\n}\n"), text(`{"a": 1}`), text("{\n  \"a\": 1\n}\n"), text("{\r\n\t\"a\": 1,\r\n}\r\n"),
			text(`{"mcpServers": {}}`), text("{\n  \"mcpServers\": {},\n  \"a\": 1\n}\n"), text("{\n  \"mcpServers\": { // c\n  }\n}"),
			text("{\n  \"mcpServers\": {\n    \"x\": {\"command\": \"y\"} // mine\n  }\n}\n"), text(`{"mcpServers": {"x": {},}, /* c */}`), text("\xef\xbb\xbf{ // c\n}"),
		},
		"codex": {nil, text(""), text("\n"), text("a = 1"), text("a = 1\n"), text("a = 1\r\n\r\n"), text("# c\n\n[mcp_servers.x]\ncommand = \"y\" # mine")},
	}
}

// TestEveryOrder: several folders are attached by one file, and undone in any
// order; the last one gives back the bytes and the folders of before.
func TestEveryOrder(t *testing.T) {
	for id, texts := range befores() {
		for i, before := range texts {
			t.Run(fmt.Sprintf("%s %d", id, i), func(t *testing.T) {
				t.Parallel()
				for n := 2; n <= 3; n++ {
					s := newShared(t, n, id)
					for _, order := range orders(n) {
						s.inOrder(t, before, order)
					}
				}
			})
		}
	}
}

func (s *shared) inOrder(t *testing.T, before *string, order []int) {
	t.Helper()
	s.start(before)
	for _, p := range s.folders {
		p.apply(p.attach(s.id))
	}
	if s.back(before) == "" { // control
		t.Fatal("nothing was written")
	}
	for _, i := range order {
		s.folders[i].apply(s.folders[i].undo())
	}
	if bad := s.back(before); bad != "" {
		t.Errorf("%v: %s", order, bad)
	}
}

// TestTurns: the same where folders come and go, and where one is killed. A letter
// is a folder, a large one attaches it; ! before it kills it between the journal
// and the file, ? between the file and the journal.
func TestTurns(t *testing.T) {
	for id, texts := range befores() {
		for _, turns := range []string{"ABaAba", "ABaCAbca", "ABCcbCBabc", "A!Bab", "A!Bba", "AB!aba", "AB!aab", "AB?aba", "AB?baab", "A?Bba", "A?Bab"} {
			t.Run(id+" "+turns, func(t *testing.T) {
				t.Parallel()
				s := newShared(t, 3, id)
				for _, before := range texts[:3] {
					s.start(before)
					kill := rune(0)
					for _, r := range turns {
						if r == '!' || r == '?' {
							kill = r
							continue
						}
						s.turn(t, r, kill)
						kill = 0
					}
					if bad := s.back(before); bad != "" {
						t.Error(bad)
					}
				}
			})
		}
	}
}

func (s *shared) turn(t *testing.T, r, kill rune) {
	t.Helper()
	p := s.folders[(r-'A')%32]
	plan := p.undo
	if r < 'a' {
		plan = func(...string) *Plan { return p.attach(s.id) }
	}
	todo := plan()
	if kill == 0 {
		p.apply(todo)
		return
	}
	b, err := openBook(t.Context(), p.state, p.w.Project)
	if err != nil {
		t.Fatal(err)
	}
	defer b.release()
	if err := todo.remember(b); err != nil {
		t.Fatal(err)
	}
	for _, c := range todo.Changes {
		if kill == '?' {
			if err := todo.write(c); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// TestNothingIsInherited: of another file, of an entry that isn't there any more
// or reads otherwise, nothing is noted: what a person made anew stays.
func TestNothingIsInherited(t *testing.T) {
	for name, tt := range map[string]struct {
		between func(s *shared)
		stays   bool
	}{
		"control": {func(*shared) {}, false},
		"the file was made anew": {func(s *shared) {
			s.folders[0].put(s.file, "{\n  \"mcpServers\": {}\n}\n")
		}, true},
		"the entry runs something else": {func(s *shared) {
			s.folders[0].put(s.file, strings.ReplaceAll(s.folders[0].get(s.file), program, "/my/postern"))
		}, true},
	} {
		s := newShared(t, 2, "copilot-cli")
		s.folders[0].apply(s.folders[0].attach(s.id))
		tt.between(s)
		s.folders[1].apply(s.folders[1].attach(s.id))
		s.folders[0].apply(s.folders[0].undo())
		s.folders[1].apply(s.folders[1].undo())
		if there(s.file) != tt.stays {
			t.Errorf("%s: there %v", name, there(s.file))
		}
	}
}

// TestPolicyOfAll: the user's policy that init made with one folder holds for the
// others, and goes with the last of them; so does the folder that was made for it.
func TestPolicyOfAll(t *testing.T) {
	s := newShared(t, 2, "claude-desktop")
	a, b := s.folders[0], s.folders[1]
	policy := filepath.Join(s.dir, ".config", "postern", "policy.yaml")
	plan, err := NewPlan(a.w, Server{Command: program}, nil, []File{{Path: policy, Text: []byte("version: 1\n")}})
	if err != nil {
		t.Fatal(err)
	}
	a.apply(plan)
	b.apply(b.attach("claude-desktop"))
	undo := a.undo()
	if !slices.ContainsFunc(undo.Kept, func(k string) bool { return strings.HasPrefix(k, policy+": "+b.w.Project+" is attached") }) {
		t.Errorf("%q", undo.Kept)
	}
	a.apply(undo)
	if !there(s.file) || !there(policy) {
		t.Fatal("it is gone")
	}
	b.apply(b.undo())
	if bad := s.back(nil); bad != "" {
		t.Error(bad)
	}
	if undo = a.undo(); len(undo.Changes)+len(undo.Left)+len(undo.Kept) != 0 { // its journal names what is gone
		t.Errorf("%+v", undo)
	}
}

// TestPolicyOfFoldersThatCannotBeTold: the user's policy stays while the journal of
// another folder can't be read, and one that was attached after the plan keeps it; a
// folder that is gone doesn't.
func TestPolicyOfFoldersThatCannotBeTold(t *testing.T) {
	begin := func() (s *shared, policy string) {
		s = newShared(t, 2, "claude-desktop")
		policy = filepath.Join(s.dir, ".config", "postern", "policy.yaml")
		plan, err := NewPlan(s.folders[0].w, Server{Command: program}, nil, []File{{Path: policy, Text: []byte("version: 1\n")}})
		if err != nil {
			t.Fatal(err)
		}
		s.folders[0].apply(plan)
		return s, policy
	}
	s, policy := begin()
	a, b := s.folders[0], s.folders[1]
	b.apply(b.attach("claude-desktop"))
	at := journalPath(a.state, b.w.Project)
	if err := os.WriteFile(at, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	undo := a.undo()
	if a.apply(undo); !there(policy) || !slices.ContainsFunc(undo.Kept, func(k string) bool { return strings.HasSuffix(k, "can't be read: "+at) }) {
		t.Errorf("unreadable: there %v, %q", there(policy), undo.Kept)
	}

	s, policy = begin()
	a, b = s.folders[0], s.folders[1]
	undo = a.undo()
	b.apply(b.attach("claude-desktop"))
	err := undo.Apply(t.Context(), a.state)
	if fault.CodeOf(err) != fault.PreconditionFailed || !there(policy) {
		t.Errorf("attached after the plan: there %v, %v", there(policy), err)
	}

	s, policy = begin()
	a, b = s.folders[0], s.folders[1]
	b.apply(b.attach("claude-desktop"))
	if err := os.RemoveAll(b.w.Project); err != nil {
		t.Fatal(err)
	}
	if a.apply(a.undo()); there(policy) {
		t.Error("a folder that is gone keeps the policy")
	}
}
