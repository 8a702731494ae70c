// SPDX-License-Identifier: Apache-2.0

//go:build unix

package enforce

import (
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/postern-gate/postern/core"
	"github.com/postern-gate/postern/core/policy"
)

func outcomeOf(a core.Action, d core.Decision, name string, rest core.Decision) map[core.Action]policy.Rules {
	return map[core.Action]policy.Rules{a: {Matches: []policy.Match{{Pattern: policy.Pattern{Text: name}, Decision: d}}, Else: &policy.Outcome{Decision: rest}}}
}

const onlyOfAFolder = "only of a folder's"

// stricterMoved have stricter rules for what is in priv than for what was in pub, and
// let an agent write in both.
var stricterMoved = map[string]policy.Layer{
	"for reading":       {Rules: outcomeOf(core.FSRead, core.Deny, "priv/**", core.Allow)},
	"a rule":            {Rules: outcomeOf(core.FSDelete, core.Allow, "pub/**", core.Ask)},
	"for another agent": {Agents: map[string]map[core.Action]policy.Rules{"zed": outcomeOf(core.FSWrite, core.Ask, "priv/**", core.Allow)}},
	"read by an agent":  {Agents: map[string]map[core.Action]policy.Rules{"zed": outcomeOf(core.FSRead, core.Deny, "priv/**", core.Allow)}},
	"a project's":       {Tighten: true, Agents: map[string]map[core.Action]policy.Rules{"zed": outcomeOf(core.FSDelete, core.Deny, "priv/**", core.Allow)}},
	onlyOfAFolder:       {Rules: outcomeOf(core.FSList, core.Ask, "priv/sub/**", core.Allow)},
}

var movedTree = map[string]string{
	"pub/x": "X", "pub/sub/y": "Y", "pub/sub/deep/z": "Z", "pub/sub/deep/er/z": "Z", "pub/more/w": "W", "pub/none/": "", "pub/sub/none/": "", "rest/old/o": "O", "rest/r": "R",
}

// TestMovedFolderOfSession: whatever an agent does in a folder that it moved, and in the
// folders of it, its session is undone whole, at once or one change after the other,
// where nobody else has changed anything; and what somebody put in a stricter place
// meanwhile stays there.
func TestMovedFolderOfSession(t *testing.T) {
	at := places(t)
	rapid.Check(t, func(r *rapid.T) {
		s := &mover{r: r, top: "pub"}
		s.undoWorld = newUndoWorld(t, at[s.draw("state", sortedNames(at))](t), UndoOptions{}, movedTree)
		defer func() { _ = s.state.Close() }()
		before := s.files()
		later()
		s.changes(3)
		s.move("priv")
		s.changes(8)
		name := s.draw("policy", sortedNames(stricterMoved))
		by := Person{Decider: shippedWith(t, policy.Config{Layers: []policy.Layer{stricterMoved[name]}})}
		if folders := s.stricter(); len(folders) > 0 && rapid.Bool().Draw(r, "theirs") {
			s.theirs(s.draw("their folder", folders), by)
			s.stayed(map[bool]string{true: "priv/sub/", false: "priv/"}[name == onlyOfAFolder])
			return
		}
		s.back(by)
		s.same("undone", before)
	})
}

func sortedNames[T any](m map[string]T) (names []string) {
	for name := range m {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// mover is a session of an agent that moves a folder.
type mover struct {
	*undoWorld
	r   *rapid.T
	top string
	ids []string
}

func (s *mover) draw(what string, of []string) string { return rapid.SampledFrom(of).Draw(s.r, what) }

// beneath are the names of this kind beneath a folder, itself among them.
func (s *mover) beneath(top string, dirs bool) (names []string) {
	_ = filepath.WalkDir(s.path(top), func(p string, d fs.DirEntry, err error) error {
		s.must(err)
		if d.IsDir() == dirs {
			rel, err := filepath.Rel(s.dir, p)
			s.must(err)
			names = append(names, filepath.ToSlash(rel))
		}
		return nil
	})
	return names
}

func (s *mover) did(out Outcome, err error) {
	if err == nil && out.UndoID != "" {
		s.ids = append(s.ids, out.UndoID)
	}
}

func (s *mover) move(to string) {
	out, err := s.gate.Move(s.t.Context(), s.top, to, Call{})
	s.must(err)
	s.did(out, nil)
	s.top = to
}

// changes are random ones beneath the folder, or to it and from it. What can't be
// undone is refused.
func (s *mover) changes(most int) {
	ctx := s.t.Context()
	for range rapid.IntRange(0, most).Draw(s.r, "changes") {
		dir := s.draw("folder", s.beneath(s.top, true))
		name := dir + "/" + s.draw("name", []string{"n", "m", "y", "sub"})
		files := s.beneath(s.top, false)
		any := append(slices.Concat(files, s.beneath("rest", false)), s.beneath(s.top, true)[1:]...)
		switch s.draw("op", []string{"create", "write", "edit", "append", "mkdir", "move", "take", "copy", "delete", "folder"}) {
		case "create":
			s.did(s.gate.Write(ctx, name, []byte("new"), Call{}))
		case "write":
			s.did(s.gate.Write(ctx, s.draw("of", any), []byte("written"), Call{}))
		case "edit":
			s.did(s.gate.Edit(ctx, s.draw("of", any), func(b []byte) ([]byte, error) { return append(b, 'e'), nil }, Call{}))
		case "append":
			s.did(s.gate.Append(ctx, s.draw("of", any), []byte("a"), Call{}))
		case "mkdir":
			s.did(s.gate.MakeDir(ctx, name, Call{}))
		case "move":
			s.did(s.gate.Move(ctx, s.draw("of", append(any, "rest/old")), name, Call{}))
		case "take":
			s.did(s.gate.Move(ctx, s.draw("of", any), "rest/"+filepath.Base(name), Call{}))
		case "copy":
			s.did(s.gate.Copy(ctx, s.draw("of", append(any, "rest/old")), name, Call{}))
		case "delete":
			s.did(s.gate.Delete(ctx, s.draw("of", any), true, Call{}))
		case "folder":
			if s.top != "pub" {
				s.move(map[string]string{"priv": "other", "other": "priv"}[s.top])
			}
		}
	}
}

// back undoes the session, at once or one change after the other.
func (s *mover) back(by Person) {
	switch {
	case len(s.ids) > 0 && rapid.Bool().Draw(s.r, "at once"):
		if _, p := s.undoBy(UndoSelect{Session: prefixOf(s.ids[0])}, by); p.Problems() > 0 {
			s.r.Fatalf("at once: %s", problems(p))
		}
	default:
		for _, id := range slices.Backward(s.ids) {
			if _, p := s.undoBy(UndoSelect{ID: id}, by); p.Problems() > 0 {
				s.r.Fatalf("%s: %s", id, problems(p))
			}
		}
	}
}

// stricter are the folders that every policy here is stricter for.
func (s *mover) stricter() (folders []string) {
	for _, dir := range s.beneath(s.top, true) {
		if strings.HasPrefix(dir+"/", "priv/sub/") {
			folders = append(folders, dir)
		}
	}
	return folders
}

// theirs puts something in a stricter place, and undoes the session, which can't be done whole.
func (s *mover) theirs(dir string, by Person) {
	later()
	switch s.draw("their way", []string{"new", "in place", "moved", "in a folder"}) {
	case "in place":
		if files := s.beneath(dir, false); len(files) > 0 {
			s.put(s.draw("their file", files), "THEIRS")
			break
		}
		fallthrough
	case "new":
		s.put(dir+"/theirs", "THEIRS")
	case "moved":
		s.put("rest/theirs", "THEIRS")
		later()
		s.must(os.Rename(s.path("rest/theirs"), s.path(dir+"/theirs")))
	case "in a folder":
		s.put("rest/their/theirs", "THEIRS")
		later()
		s.must(os.Rename(s.path("rest/their"), s.path(dir+"/their")))
		s.put(dir+"/their/went", "")
		s.must(os.Remove(s.path(dir + "/their/went")))
	}
	if _, p := s.undoBy(UndoSelect{Session: prefixOf(s.ids[0])}, by); p.Problems() == 0 {
		s.r.Fatal("all was undone")
	}
}

func (s *mover) stayed(place string) {
	for _, name := range s.beneath(".", false) {
		if s.read(name) == "THEIRS" && !strings.HasPrefix(name, place) {
			s.r.Fatalf("it is at %s", name)
		}
	}
}
