// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"strings"
	"testing"

	"github.com/postern-gate/postern/core"
	"pgregory.net/rapid"
)

func compiled(t testing.TB, c Config) *Policy {
	t.Helper()
	d := Default()
	c.Fallback = &d
	p, err := Compile(c)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func asked(p *Policy, a core.Action, root, name string, link bool) core.Verdict {
	return p.Evaluate(core.Request{Subject: core.Subject{Agent: "a"}, Action: a, Resource: core.File(root, name), Link: link})
}

// ruled is a policy with written rules about names beneath others.
func ruled(t testing.TB) *Policy {
	allow := Outcome{Decision: core.Allow}
	match := func(d core.Decision, texts ...string) Rules {
		r := Rules{Else: &allow}
		for _, s := range texts {
			r.Matches = append(r.Matches, Match{Pattern: Pattern{Text: s}, Decision: d})
		}
		return r
	}
	return compiled(t, Config{
		Roots: []Root{{Name: "r", Homes: []string{"home/*"}}, {Name: "other"}, {Name: "own"}},
		Layers: []Layer{
			{
				Deny:  []Pattern{{Text: "r://legal/*/final/**"}},
				Rules: map[core.Action]Rules{core.FSWrite: match(core.Ask, "db/*.sql", "asked/**", "asked/a/b"), core.FSRead: match(core.Deny, "shown/x")},
				Agents: map[string]map[core.Action]Rules{
					"a": {core.FSCreate: match(core.Deny, "made/x/y")}, "b": {core.FSCreate: match(core.Deny, "others/x")},
				},
			},
			{Root: "own", Tighten: true, Rules: map[core.Action]Rules{core.FSCreate: match(core.Ask, "gen/x")}},
		},
		Protected: []Protected{{Root: "r", Path: "cfg/postern/policy.yaml", Entry: "postern"}, {Root: "r", Path: "st[a]te/x", Entry: "postern-state"}},
	})
}

// TestLinkNames: a link gets no name that a rule goes on from; another thing does.
func TestLinkNames(t *testing.T) {
	p := ruled(t)
	rules := map[string]string{
		"r://.claude": "(built-in: agents)", "r://x/.claude": "(built-in: agents)", "r://.claude/rules": "(built-in: agents)",
		"r://.vscode": "(built-in: editors)", "r://etc": "(built-in: autostart)",
		"r://.docker": `deny "**/.docker/config.json" (built-in: cloud)`,
		"r://.config": "(built-in: ", "r://home": "(built-in: ", "r://home/ann": "(built-in: ",
		"r://cfg":     `deny "cfg/postern/policy.yaml" (built-in: postern)`,
		"r://st[a]te": "(built-in: postern-state)", "r://cfg/postern": `deny "cfg/postern/policy.yaml" (built-in: postern)`,
		"r://legal": `deny "r://legal/*/final/**"`, "r://legal/x": `deny "r://legal/*/final/**"`,
		"r://db": `ask "db/*.sql"`, "r://made/x": `deny "made/x/y"`, "own://gen": "ask of the project's own policy",
		// And names that no rule goes on from: by a rule for reading, another agent's,
		// one that asks about the name itself, one of another root.
		"r://x": "", "r://x/a": "", "r://x/cfg": "", "r://legal2": "", "r://state": "", "r://shown": "", "r://others": "", "r://asked/a": "",
		"other://legal": "", "other://cfg": "", "other://gen": "",
	}
	for at, want := range rules {
		root, name, _ := strings.Cut(at, "://")
		got := ""
		for _, a := range []core.Action{core.FSCreate, core.FSWrite} {
			if v := asked(p, a, root, name, true); v.Decision == core.Deny {
				got = v.Reason.String()
			}
			if v := asked(p, a, root, name, false); v.Decision == core.Deny {
				t.Errorf("%s: what is no link is denied: %v", at, v.Reason)
			}
		}
		if (want == "") != (got == "") || !strings.Contains(got, want) || want != "" && !strings.HasSuffix(got, ": "+whyAbove) {
			t.Errorf("a link %s: %q, want %q", at, got, want)
		}
	}
	lifted := compiled(t, Config{Roots: []Root{{Name: "r"}}, Lift: []string{"editors"}})
	if v := asked(lifted, core.FSCreate, "r", ".vscode", true); v.Decision != core.Allow {
		t.Errorf("an entry that is lifted: %v", v.Reason)
	}
}

// TestListsBeforeAPerson: of a link that a person denies too, a list that goes on
// from its name is told; of another thing, and of another name, the person's rule is.
func TestListsBeforeAPerson(t *testing.T) {
	p := compiled(t, Config{Roots: []Root{{Name: "r"}}, Layers: []Layer{{Deny: []Pattern{{Text: "d/**"}}}}})
	for name, want := range map[string]string{"d/.claude": "agents", "d/etc": "autostart", "d/x": "", "d/.env": "dotenv"} {
		v, plain := asked(p, core.FSCreate, "r", name, true), asked(p, core.FSCreate, "r", name, false)
		if v.Decision != core.Deny || plain.Decision != core.Deny || v.Reason.Builtin != want {
			t.Errorf("%s: %+v, not a link %+v", name, v, plain)
		}
		if name == "d/.claude" && plain.Reason.Builtin != "" {
			t.Errorf("%s, not a link: %+v", name, plain)
		}
	}
}

// TestLinkLoosensNothing: whatever a link leads to that may be changed there, no
// name through it is one that the lists would have denied.
func TestLinkLoosensNothing(t *testing.T) {
	p := compiled(t, Config{
		Roots: []Root{{Name: "r", Homes: []string{"home/*"}}}, Protected: []Protected{{Root: "r", Path: "cfg/postern/policy.yaml", Entry: "postern"}},
	})
	var words []string
	for _, r := range append(append([]rule{}, p.runs.rules...), p.secrets.rules...) {
		words = append(words, strings.Split(strings.NewReplacer("**", "v", "*", "q").Replace(r.pattern.String()), "/")...)
	}
	segment := rapid.OneOf(rapid.SampledFrom(words), rapid.SampledFrom([]string{"a", "v2", "docs", "home"}))
	through := 0
	rapid.Check(t, func(t *rapid.T) {
		name := func(label string, least int) string {
			return strings.Join(rapid.SliceOfN(segment, least, 3).Draw(t, label), "/")
		}
		link, to, rest := name("link", 1), name("to", 1), name("rest", 1)
		if r := p.runs.rules[rapid.IntRange(0, len(p.runs.rules)-1).Draw(t, "rule")]; rapid.Bool().Draw(t, "of the rule") {
			parts := strings.Split(strings.NewReplacer("**", "v", "*", "q").Replace(r.pattern.String()), "/")
			n := rapid.IntRange(1, len(parts)).Draw(t, "how much")
			link, rest = strings.Join(parts[:n], "/"), strings.Join(append(parts[n:], "x"), "/")
		}
		if asked(p, core.FSCreate, "r", link, true).Decision == core.Deny || strings.Contains("/"+link, "/.") && strings.Contains("/"+rest, "/.") {
			return // any name with a dot in front may be a client's, and no link is kept from all of them
		}
		through++
		if asked(p, core.FSWrite, "r", link+"/"+rest, false).Decision == core.Deny && asked(p, core.FSWrite, "r", to+"/"+rest, false).Decision != core.Deny {
			t.Fatalf("a link %s to %s gives %s a name that is denied", link, to, rest)
		}
	})
	if through == 0 {
		t.Error("every link was refused: this run proves nothing")
	}
}

// linked is a policy that knows of links.
func linked(t testing.TB, links ...Link) *Policy {
	return compiled(t, Config{
		Roots: []Root{{Name: "r"}, {Name: "other"}}, Links: links,
		Protected: []Protected{{Root: "r", Path: "cfg/postern/policy.yaml", Entry: "postern"}},
	})
}

// TestKnownLinks: where a link with a name of the lists leads, they hold too.
func TestKnownLinks(t *testing.T) {
	p := linked(t,
		Link{Root: "r", Path: ".vscode", ToRoot: "r", To: "Dot"}, Link{Root: "r", Path: ".claude", ToRoot: "other", To: "a/claude"},
		Link{Root: "r", Path: ".envrc", ToRoot: "r", To: "conf/envrc"}, Link{Root: "r", Path: ".env", ToRoot: "r", To: "env.local"},
		Link{Root: "r", Path: "cfg", ToRoot: "r", To: "real"}, Link{Root: "r", Path: "cfg/postern"}, // leads out
		Link{Root: "r", Path: "latest", ToRoot: "r", To: "v2"})
	entries := map[string]string{
		"fs.write r://Dot/tasks.json": "editors", "fs.create r://dot/x/y": "editors", "fs.write r://Dot/extensions.json": "",
		"fs.read r://Dot/tasks.json": "", "fs.write r://Dotted/tasks.json": "", "fs.write other://Dot/tasks.json": "",
		"fs.write other://a/claude/settings.json": "agents", "fs.write other://a/claude/CLAUDE.md": "", "fs.write r://a/claude/settings.json": "",
		"fs.write r://conf/envrc": "editors", "fs.read r://env.local": "dotenv", "fs.write r://real/postern/policy.yaml": "postern",
		"fs.write r://v2/tasks.json": "", "fs.create r://Dot": "",
		"link r://Dot": "editors", "link other://a": "agents", "link other://a/claude/hooks": "agents", "link r://real/postern": "postern",
		"link other://b": "", "link r://v2": "",
		"fs.rename r://cfg": "postern", "fs.delete r://cfg/postern": "postern", "fs.rename r://.vscode": "editors",
		"fs.rename other://.vscode": "", "fs.rename r://latest": "", "fs.write r://cfg": "",
	}
	for what, want := range entries {
		do, at, _ := strings.Cut(what, " ")
		root, name, _ := strings.Cut(at, "://")
		a, ok := core.ParseAction(do)
		if !ok {
			a = core.FSCreate
		}
		v := asked(p, a, root, name, !ok)
		if v.Reason.Builtin != want || (want != "") != (v.Decision == core.Deny) {
			t.Errorf("%s: %v (%v), want %q", what, v.Decision, v.Reason, want)
		}
	}
	if linked(t).Version() != p.Version() {
		t.Error("links, which only deny, change the version that answers are for")
	}
}

// TestLinksLeadOver: what a link with a name of the lists leads over stays too, and
// the reason names that link, unless its name is left out of listings.
func TestLinksLeadOver(t *testing.T) {
	p := linked(t,
		Link{Root: "r", Path: ".env", ToRoot: "r", To: "Current", Over: true}, Link{Root: "r", Path: ".env", ToRoot: "r", To: "releases/42/env"},
		Link{Root: "r", Path: ".vscode", ToRoot: "other", To: "a/b", Over: true}, Link{Root: "r", Path: "latest", ToRoot: "r", To: "v1", Over: true},
		Link{Root: "r", Path: ".cursor/rules", ToRoot: "r", To: "docs"}, Link{Entry: "shell", ToRoot: "r", To: "way", Over: true})
	whys := map[string]string{
		"fs.rename r://Current": "a link with a name", "fs.delete r://current": "a link with a name", "fs.rename other://a/b": `the link ".vscode" leads over it`,
		"fs.delete other://a/b": `the link ".vscode" leads over it`, "fs.read r://releases/42/env": unnamed + whyLed,
		"fs.write r://docs/a/b/c.md": `the link ".cursor/rules" leads there`, "fs.write r://docs2/c.md": "",
		"fs.rename r://Way": unnamed + whyOver, "fs.delete r://way": unnamed, "fs.rename other://way": "", "fs.write r://way/x": "", "fs.rename r://way/x": "", "link r://way": whyAbove,
		"fs.rename r://a/b": "", "fs.rename r://Current/x": "", "fs.rename r://releases": "", "fs.write r://Current": "", "fs.read r://Current/env": "",
		"fs.write other://a/b/tasks.json": "", "fs.rename r://v1": "", "fs.rename other://a": "",
		"link r://Current": whyAbove, "link other://a": whyAbove, "link other://a/b": whyAbove, "link r://v1": "", "link other://a/c": "",
	}
	for what, want := range whys {
		do, at, _ := strings.Cut(what, " ")
		root, name, _ := strings.Cut(at, "://")
		a, ok := core.ParseAction(do)
		if !ok {
			a = core.FSCreate
		}
		v := asked(p, a, root, name, !ok)
		if (v.Decision == core.Deny) != (want != "") || want != "" && !strings.Contains(v.Reason.Why, want) {
			t.Errorf("%s: %v (%v), want %q", what, v.Decision, v.Reason, want)
		}
	}
}

// TestLiftedLinks: what a link leads to whose name belongs to an entry that is
// lifted belongs to it too, so that no yes for a pattern covers it; nothing is held.
func TestLiftedLinks(t *testing.T) {
	links := []Link{
		{Root: "r", Path: ".git/hooks", ToRoot: "r", To: "GitHooks"},
		{Root: "r", Path: ".env", ToRoot: "r", To: "conf/env"},
		{Root: "r", Path: ".env", ToRoot: "r", To: "conf", Over: true},
		{Root: "r", Path: "latest", ToRoot: "r", To: "v2"},
		{Entry: "git", ToRoot: "r", To: "GitHooks", Over: true},
	}
	p := compiled(t, Config{Roots: []Root{{Name: "r"}}, Lift: []string{"git", "dotenv"}, Links: links})
	for name, want := range map[string]string{"GitHooks/pre-commit": "git", "githooks/x": "git", "conf/env": "dotenv", "GitHook": "", "v2/x": "", "conf/x": ""} {
		for _, a := range []core.Action{core.FSWrite, core.FSCreate, core.FSRename} {
			if v := asked(p, a, "r", name, false); v.List != want || v.Decision == core.Deny {
				t.Errorf("%v %s: %v, belongs to %q, want %q", a, name, v.Decision, v.List, want)
			}
		}
	}
	for _, name := range []string{".git/hooks", "conf", "GitHooks", "conf/env"} {
		if asked(p, core.FSRename, "r", name, false).Decision == core.Deny || asked(p, core.FSCreate, "r", "conf", true).Decision == core.Deny {
			t.Errorf("%s is held by entries that are lifted", name)
		}
	}
}
