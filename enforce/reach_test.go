// SPDX-License-Identifier: Apache-2.0

//go:build unix

package enforce

import (
	"context"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/postern-gate/postern/core"
	"github.com/postern-gate/postern/core/fault"
	"github.com/postern-gate/postern/core/pathguard"
	"github.com/postern-gate/postern/core/policy"
	"github.com/postern-gate/postern/internal/state/grant"
)

// listing asks about every list, about some by a rule of their own, and denies
// some.
func listing(t *testing.T, otherwise core.Decision) *policy.Policy {
	t.Helper()
	ask := func(text string) policy.Match {
		return policy.Match{Pattern: policy.Pattern{Text: text}, Decision: core.Ask}
	}
	l := policy.Layer{
		Default: &policy.Outcome{Decision: core.Allow}, Deny: []policy.Pattern{{Text: "d/no"}},
		Rules: map[core.Action]policy.Rules{core.FSList: {Matches: []policy.Match{ask("d/own/**")}, Else: &policy.Outcome{Decision: otherwise}}},
	}
	p, err := policy.Compile(policy.Config{Roots: []policy.Root{{Name: "project"}}, Lift: []string{"dotenv"}, Layers: []policy.Layer{l}})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

var inFolder = map[string]string{"d/a": "", "d/sub/b": "", "d/no": "", "d/own/c": "", "d/.codex/x": "", "d/.env": ""}

// shows is what a walk of the folder shows, and how much it hides.
func (d *desk) shows(g *Gate, folder string) (names []string, hidden int, err error) {
	err = g.Walk(d.t.Context(), folder, 100, func(w *Walk, top pathguard.Name) error {
		var look func(pathguard.Name) error
		look = func(dir pathguard.Name) error {
			items, _, err := w.Entries(dir, false)
			for _, item := range items {
				n, joined := dir.Join(item.Name)
				d.must(joined)
				names = append(names, n.Rel())
				if item.Kind == pathguard.KindDir && err == nil {
					err = look(n)
				}
			}
			return err
		}
		err := look(top)
		hidden = w.Hidden
		return err
	})
	return names, hidden, err
}

// TestYesShowsAFolder: a yes to a look at a folder shows what the same rule asks
// about beneath it, and nothing that another one does, that is denied, that is on a
// built-in list which the folder isn't on, or that the pattern of the yes doesn't
// name. A yes for once is used up by that.
func TestYesShowsAFolder(t *testing.T) {
	for name, c := range map[string]struct {
		otherwise core.Decision
		folder    string
		yes       grant.Answer
		want      string
		hidden    int
	}{
		"once":                  {core.Ask, "d", grant.Answer{}, "d/a d/sub d/sub/b", 4},
		"session":               {core.Ask, "d", grant.Answer{Kind: grant.Session}, "d/a d/sub d/sub/b", 4},
		"a pattern of all":      {core.Ask, "d", grant.Answer{Kind: grant.Pattern, Pattern: "project://d/**"}, "d/a d/sub d/sub/b", 4},
		"a pattern of few":      {core.Ask, "d", grant.Answer{Kind: grant.Pattern, Pattern: "project://d*"}, "", 6},
		"of a list":             {core.Ask, "d/.codex", grant.Answer{}, "d/.codex/x", 0},
		"of a rule":             {core.Ask, "d/own", grant.Answer{}, "d/own/c", 0},
		"the root":              {core.Ask, ".", grant.Answer{}, "d d/a d/sub d/sub/b", 4},
		"nobody asked about it": {core.Allow, "d", grant.Answer{}, "d/.codex d/.codex/x d/.env d/a d/sub d/sub/b", 2},
	} {
		t.Run(name, func(t *testing.T) {
			d := newDesk(t, nil, inFolder)
			g := d.call(decider(listing(t, c.otherwise)))
			if c.otherwise == core.Ask {
				_, _, err := d.shows(g, c.folder)
				d.yes(asked(t, err, fault.PolicyAsk), c.yes)
			}
			names, hidden, err := d.shows(g, c.folder)
			d.must(err)
			slices.Sort(names)
			if diff := cmp.Diff(c.want, strings.Join(names, " ")); diff != "" || hidden != c.hidden {
				t.Errorf("%d hidden, %s", hidden, diff)
			}
			if _, _, err := d.shows(g, c.folder); c.yes.Kind == "" && c.otherwise == core.Ask {
				asked(t, err, fault.PolicyAsk)
			} else {
				d.must(err)
			}
		})
	}
}

// TestYesOpensNoFile: what is shown by a yes to a list is not read by it, and what
// lies beside the folder isn't told of.
func TestYesOpensNoFile(t *testing.T) {
	d := newDesk(t, []string{"fs.list project://", "fs.read project://d/a"}, map[string]string{"d/a": "A", "d/b": "B", "e": "E", "de": "E"})
	_, _, err := d.shows(d.call(), "d")
	d.yes(asked(t, err, fault.PolicyAsk), grant.Answer{})
	d.must(d.call().Walk(t.Context(), "d", 100, func(w *Walk, top pathguard.Name) error {
		for path, open := range map[string]bool{"d/a": false, "d/b": true} {
			names, err := d.gate.o.Workspace.Parse("project://" + path)
			d.must(err)
			f, err := w.Open(names[0])
			if err == nil {
				d.must(f.Close())
			}
			if (err == nil) != open || w.Kind(names[0]) != pathguard.KindFile {
				t.Errorf("%s: %v, %v", path, err, w.Kind(names[0]))
			}
		}
		for _, beside := range []string{"e", "de"} {
			names, err := d.gate.o.Workspace.Parse("project://" + beside)
			d.must(err)
			if w.Kind(names[0]) != pathguard.KindUnknown {
				t.Errorf("it tells of %s", beside)
			}
		}
		return nil
	}))
}

// TestYesIsForThatFolder: a yes for once to a list is for the directory that was
// there, whatever is in it, and a card says when another one is.
func TestYesIsForThatFolder(t *testing.T) {
	for name, c := range map[string]struct {
		alter func(*desk)
		stale bool
	}{
		"nothing":         {func(*desk) {}, false},
		"another content": {func(d *desk) { d.put("d/later", ""); d.must(os.Remove(d.path("d/a"))) }, false},
		"another folder": {func(d *desk) {
			d.must(os.Rename(d.path("d"), d.path("old")))
			d.put("d/secret", "")
		}, true},
		"made anew": {func(d *desk) { d.must(os.RemoveAll(d.path("d"))); d.put("d/secret", "") }, true},
	} {
		t.Run(name, func(t *testing.T) {
			d := newDesk(t, []string{"fs.list project://d"}, map[string]string{"d/a": "A"})
			_, _, err := d.shows(d.call(), "d")
			id := asked(t, err, fault.PolicyAsk)
			q, err := d.person.Question(context.Background(), id)
			d.must(err)
			d.yes(id, grant.Answer{})
			c.alter(d)
			if since := d.state.Since(&q.For); len(since) > 0 != c.stale {
				t.Errorf("changed since: %q", since)
			}
			names, _, err := d.shows(d.call(), "d")
			if c.stale {
				asked(t, err, fault.GrantStale)
			} else {
				d.must(err)
			}
			if len(names) > 0 == c.stale {
				t.Errorf("shows %q", names)
			}
		})
	}
}

// TestFolderSwappedWhileAsked: nor is it for one that takes the place while somebody
// is asked, and the call waits.
func TestFolderSwappedWhileAsked(t *testing.T) {
	for _, swapped := range []bool{true, false} {
		a := &approver{}
		w := newWorld(t, rules{deny: map[string]core.Decision{"fs.list project://d": core.Ask}}, map[string]string{"d/a": "A", "e/secret": "S"}, func(o *Options) { o.Approver = a })
		a.during = func() {
			if swapped {
				w.must(os.Rename(w.path("d"), w.path("old")))
				w.must(os.Rename(w.path("e"), w.path("d")))
			}
		}
		names, _, err := (&desk{world: w}).shows(w.gate, "d")
		if swapped && (fault.CodeOf(err) != fault.GrantStale || len(names)+len(a.spent) > 0) || !swapped && (err != nil || len(names) != 1) {
			t.Errorf("swapped %t: %v, %q, %d spent", swapped, err, names, len(a.spent))
		}
	}
}

// TestYesTellsOfAFolder: a watch of a folder that a person said yes to tells of what
// the same rule asks about, and of nothing else.
func TestYesTellsOfAFolder(t *testing.T) {
	asks := rules{deny: map[string]core.Decision{"fs.list project://d": core.Ask, "fs.list project://d/own": core.Ask, "fs.list project://d/no": core.Deny}}
	w := newWorld(t, asks, map[string]string{"d/a": "1", "d/own": "1", "d/no": "1"}, watching, func(o *Options) { o.Approver = &approver{} })
	var s seen
	watch, err := w.gate.Watch(t.Context(), "d", s.tell)
	w.must(err)
	defer watch.Close()
	for _, name := range []string{"d/own", "d/no", "d/a"} {
		w.put(name, "2")
	}
	eventually(t, "d/a", func() bool { return s.has("d/a") })
	if s.has("d/own") || s.has("d/no") {
		t.Error("a name that nobody said yes to was told")
	}
}
