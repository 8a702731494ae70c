// SPDX-License-Identifier: Apache-2.0

package enforce

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/postern-gate/postern/core"
	"github.com/postern-gate/postern/core/fault"
	"github.com/postern-gate/postern/core/policy"
	"github.com/postern-gate/postern/internal/state/grant"
)

// rulesOf is a real policy that asks about those actions and allows the rest.
func rulesOf(t *testing.T, lift []string, asks ...core.Action) *policy.Policy {
	t.Helper()
	l := policy.Layer{Default: &policy.Outcome{Decision: core.Allow}, Rules: map[core.Action]policy.Rules{}}
	for _, a := range asks {
		l.Rules[a] = policy.Rules{Else: &policy.Outcome{Decision: core.Ask}}
	}
	p, err := policy.Compile(policy.Config{
		Roots: []policy.Root{{Name: "project"}}, Lift: lift, Layers: []policy.Layer{l},
		Protected: []policy.Protected{{Root: "project", Path: "x/own", Entry: "agents"}},
	})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func decider(p Decider) func(*Options) { return func(o *Options) { o.Decider = p } }

func (d *desk) writes(p Decider, name string) error {
	_, err := d.call(decider(p)).Write(d.t.Context(), name, []byte("#!/bin/sh\n"), Call{})
	return err
}

func (d *desk) reads(p Decider, name string) error {
	f, err := d.call(decider(p)).Open(d.t.Context(), name)
	if err == nil {
		err = f.Close()
	}
	return err
}

func (d *desk) copies(p Decider, name string) error {
	_, err := d.call(decider(p)).Copy(d.t.Context(), name, "copy-of-"+strings.ReplaceAll(name, ".", ""), Call{})
	return err
}

// TestPatternSparesLists: a yes for a pattern, given for an ordinary name, covers
// the other ordinary ones and no name of a built-in list: lifted or not, whatever is
// done to it, and whether or not it is the name that is asked about.
func TestPatternSparesLists(t *testing.T) {
	changes := []core.Action{core.FSWrite, core.FSCreate}
	for name, c := range map[string]struct {
		policy          *policy.Policy
		do              func(*desk, Decider, string) error
		there, given    string
		spared, covered []string
	}{
		"what runs by itself, lifted": {
			rulesOf(t, []string{"git", "editors", "agents"}, changes...), (*desk).writes, ".git/hooks/", "notes.txt",
			[]string{".git/hooks/pre-commit", ".git/config", ".envrc", ".mcp.json", "x/own"},
			[]string{"other.txt", "x/other", ".git/description"},
		},
		"a secret, lifted": {rulesOf(t, []string{"dotenv"}, changes...), (*desk).writes, "", "notes.txt", []string{".env"}, []string{".env.example"}},
		"what runs by itself, read": {
			rulesOf(t, nil, core.FSRead), (*desk).reads, "a b .codex/auth.json .mcp.json x/own .git/config .git/description", "a", []string{".codex/auth.json", ".mcp.json", "x/own", ".git/config"}, []string{"b", ".git/description"},
		},
		"an old name that isn't asked about": {rulesOf(t, []string{"dotenv"}, core.FSCreate), (*desk).copies, "a b .env", "a", []string{".env"}, []string{"b"}},
	} {
		for _, kind := range []grant.Kind{grant.Pattern, grant.Always} {
			t.Run(string(kind)+" "+name, func(t *testing.T) {
				d := newDesk(t, nil, map[string]string{"x/": ""})
				for n := range strings.FieldsSeq(c.there) {
					d.put(n, "there")
				}
				d.yes(asked(t, c.do(d, c.policy, c.given), fault.PolicyAsk), grant.Answer{Kind: kind, Pattern: "project://**"})
				for _, n := range c.covered {
					if err := c.do(d, c.policy, n); err != nil {
						t.Errorf("%s: %v", n, err)
					}
				}
				for _, n := range c.spared {
					id := asked(t, c.do(d, c.policy, n), fault.PolicyAsk)
					_, err := d.person.Decide(t.Context(), id, grant.Answer{Kind: kind, Pattern: "project://**", Approver: "test"})
					q, _ := d.person.Question(t.Context(), id)
					if fault.CodeOf(err) != fault.RequestInvalid || q.Alike() != "" {
						t.Errorf("%s: %v, alike %q", n, err, q.Alike())
					}
					d.yes(id, grant.Answer{}) // it can be approved by itself
					d.must(c.do(d, c.policy, n))
				}
			})
		}
	}
}

// TestOldPatternSparesLists: nor does one from before the lists were known so well,
// which was given for such a name itself.
func TestOldPatternSparesLists(t *testing.T) {
	for name, spared := range map[string]bool{".envrc": true, "notes.txt": false} {
		p := rulesOf(t, []string{"editors"}, core.FSWrite, core.FSCreate)
		d := newDesk(t, nil, nil)
		q, err := d.person.Question(t.Context(), asked(t, d.writes(p, name), fault.PolicyAsk))
		d.must(err)
		old := q.For
		old.Private, old.Operations, old.Arguments = false, slices.Clone(old.Operations), "of another content"
		old.Operations[0].List = ""
		before, err := d.approvals.store.Ask(t.Context(), old, q.Card, "c", time.Hour)
		d.must(err)
		d.yes(before.ID, grant.Answer{Kind: grant.Pattern, Pattern: "project://**"})
		if err := d.writes(p, name); (fault.CodeOf(err) == fault.PolicyAsk) != spared || !spared && err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestAskedNames: a record of a question spells out what runs by itself, and no
// secret.
func TestAskedNames(t *testing.T) {
	p := rulesOf(t, []string{"dotenv", "editors"}, core.FSCreate)
	d := newDesk(t, nil, nil)
	for _, name := range []string{".env", ".envrc", "notes.txt"} {
		d.yes(asked(t, d.writes(p, name), fault.PolicyAsk), grant.Answer{})
	}
	d.must(d.state.Problem())
	var got []string
	for _, r := range records(t, d.state.Path()) {
		if r["event"] == "asked" {
			name, _, _ := strings.Cut(fmt.Sprint(r["resource"]), ":")
			got = append(got, name, strings.TrimPrefix(fmt.Sprint(r["resource"]), name))
		}
	}
	if len(got) != 6 || got[0] != "dotenv" || got[3] != "://.envrc" || got[5] != "://notes.txt" {
		t.Errorf("%q", got)
	}
}

// TestAlikeSparesLists: a hook is on no card with a note, and two notes are.
func TestAlikeSparesLists(t *testing.T) {
	p := rulesOf(t, []string{"git"}, core.FSCreate)
	d := newDesk(t, nil, map[string]string{".git/hooks/": ""})
	alike := map[string]string{}
	for _, name := range []string{"a", "b", ".git/hooks/pre-commit", ".git/hooks/pre-push"} {
		q, err := d.person.Question(context.Background(), asked(t, d.writes(p, name), fault.PolicyAsk))
		d.must(err)
		alike[name] = q.Alike()
	}
	if alike["a"] == "" || alike["a"] != alike["b"] || alike[".git/hooks/pre-commit"]+alike[".git/hooks/pre-push"] != "" {
		t.Errorf("%q", alike)
	}
}
