// SPDX-License-Identifier: Apache-2.0

//go:build unix

package enforce

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/postern-gate/postern/core"
	"github.com/postern-gate/postern/core/fault"
	"github.com/postern-gate/postern/core/pathguard"
)

// onWalk runs a function within a walk of the root.
func (w *world) onWalk(g *Gate, limit int, do func(*Walk, func(string) pathguard.Name)) {
	w.t.Helper()
	w.must(g.Walk(w.t.Context(), "project://", limit, func(walk *Walk, top pathguard.Name) error {
		do(walk, func(path string) pathguard.Name {
			names, err := g.o.Workspace.Parse("project://" + path)
			w.must(err)
			return names[0]
		})
		return nil
	}))
}

// TestWalkOpensWhatMayBeRead: a walk opens a file as a call would that names it:
// what is denied or asked about is refused, a link is not followed, and what a
// file holds may protect it. Without the rules the same files open.
func TestWalkOpensWhatMayBeRead(t *testing.T) {
	spec := map[string]string{"no": "N", "ask": "A", "yes": "Y", "ln": "-> yes", ".npmrc": "//x/:_authToken=t", "d/": ""}
	strict := rules{deny: map[string]core.Decision{"fs.read project://no": core.Deny, "fs.read project://ask": core.Ask}}
	for _, tt := range []struct {
		name            string
		strict, without fault.Code
	}{
		{"no", fault.PolicyDenied, fault.Code(0)},
		{"ask", fault.PolicyDenied, fault.Code(0)},
		{"yes", fault.Code(0), fault.Code(0)},
		{"ln", fault.PathSymlink, fault.PathSymlink},
		{".npmrc", fault.PolicyDenied, fault.PolicyDenied},
		{"d", fault.IOFailed, fault.IOFailed},
		{"gone", fault.PathMissing, fault.PathMissing},
	} {
		for which, r := range map[string]rules{"strict": strict, "without": {}} {
			want := tt.without
			if which == "strict" {
				want = tt.strict
			}
			w := newWorld(t, r, spec)
			w.onWalk(w.gate, 100, func(walk *Walk, name func(string) pathguard.Name) {
				f, err := walk.Open(name(tt.name))
				if err == nil {
					w.must(f.Close())
				}
				if (err == nil) != (want == fault.Code(0)) || err != nil && fault.CodeOf(err) != want {
					t.Errorf("%s %s: %v", which, tt.name, err)
				}
			})
			if len(w.log.events) != 1 {
				t.Errorf("%d records", len(w.log.events))
			}
		}
	}
}

// TestToldIsRecorded: what of a file is told is a read under the walk's id.
// Where reads need a record and can't have one it is an error, and else not;
// what the policy has come to deny is an error.
func TestToldIsRecorded(t *testing.T) {
	spec := map[string]string{"f": "F"}
	w := newWorld(t, rules{}, spec)
	w.onWalk(w.gate, 100, func(walk *Walk, name func(string) pathguard.Name) { w.must(walk.Told(name("f"))) })
	var got []string
	for _, e := range w.log.events {
		got = append(got, e.Action.String()+" "+e.Resource.String()+" "+e.Verdict.Decision.String())
		if e.Corr == "" || e.Corr != w.log.events[0].Corr || e.Policy != "v1" || !e.File {
			t.Errorf("%+v", e)
		}
	}
	if d := cmp.Diff([]string{"fs.list project:// allow", "fs.read project://f allow"}, got); d != "" {
		t.Error(d)
	}
	for _, needed := range []bool{false, true} {
		w := newWorld(t, rules{}, spec, func(o *Options) { o.ReadsNeedAudit = needed })
		w.onWalk(w.gate, 100, func(walk *Walk, name func(string) pathguard.Name) {
			w.must(walk.Told(name("f")))
			if synced := w.log.synced[1]; synced != needed {
				t.Errorf("needed %t: synced %t", needed, synced)
			}
			w.log.fail = errors.New("full")
			if err := walk.Told(name("f")); (err != nil) != needed {
				t.Errorf("needed %t: %v", needed, err)
			}
		})
	}
	w = newWorld(t, rules{deny: map[string]core.Decision{"fs.read project://f": core.Deny}}, spec)
	w.onWalk(w.gate, 100, func(walk *Walk, name func(string) pathguard.Name) {
		if err := walk.Told(name("f")); fault.CodeOf(err) != fault.PolicyDenied {
			t.Error(err)
		}
	})
}

// TestWalkLooksAhead: looking counts nothing; taking does, up to the limit.
func TestWalkLooksAhead(t *testing.T) {
	w := newWorld(t, rules{deny: map[string]core.Decision{"fs.list project://d/3": core.Deny}}, map[string]string{"d/1": "", "d/2": "", "d/3": "", "d/4": "", "e/5": "", "e/6": ""})
	w.onWalk(w.gate, 5, func(walk *Walk, name func(string) pathguard.Name) {
		d, e, gone := walk.Look(name("d"), false, 100), walk.Look(name("e"), true, 1), walk.Look(name("gone"), false, 1)
		if walk.Left() != 5 || walk.Hidden+walk.Unreadable != 0 || walk.Full || walk.Raced || d.Seen() != 4 || d.Over() || !e.Over() {
			t.Errorf("%+v, %d left", walk, walk.Left())
		}
		if items, ok, err := walk.Take(gone); len(items) > 0 || ok || err != nil || !walk.Raced {
			t.Errorf("%v %t %v", items, ok, err)
		}
		items, ok, err := walk.Take(d)
		if len(items) != 3 || items[0].Name != "1" || items[2].Name != "4" || !ok || err != nil || walk.Left() != 1 || walk.Hidden != 1 || walk.Full {
			t.Errorf("%v %t %v, %d left", items, ok, err, walk.Left())
		}
		if items, _, _ = walk.Take(walk.Look(name("e"), false, 9)); len(items) != 1 || items[0].Name != "5" || !walk.Full || walk.Left() != 0 {
			t.Errorf("%v, %d left", items, walk.Left())
		}
	})
}

// TestWalkTellsKinds: of what may not be listed nothing is told.
func TestWalkTellsKinds(t *testing.T) {
	w := newWorld(t, rules{deny: map[string]core.Decision{"fs.list project://no": core.Deny}}, map[string]string{"no": "N", "f": "F", "d/": "", "ln": "-> f"})
	w.onWalk(w.gate, 100, func(walk *Walk, name func(string) pathguard.Name) {
		for path, want := range map[string]pathguard.Kind{
			"no": pathguard.KindUnknown, "gone": pathguard.KindUnknown, "f": pathguard.KindFile, "d": pathguard.KindDir, "ln": pathguard.KindLink,
		} {
			if got := walk.Kind(name(path)); got != want {
				t.Errorf("%s is %v", path, got)
			}
		}
	})
}
