// SPDX-License-Identifier: Apache-2.0

package page

import (
	"strings"
	"testing"
	"time"

	"github.com/postern-gate/postern/core"
	"github.com/postern-gate/postern/internal/prompt"
	"github.com/postern-gate/postern/internal/state/grant"
)

// TestWider: a yes for a pattern and one until a time are what the store then
// has, and it refuses what the terminal refuses.
func TestWider(t *testing.T) {
	d := newDesk(t)
	d.login()
	g := d.guarded(core.Ask, 0)
	g.put("a", "old")
	q := g.asks("a", "new")
	text := d.get("/")
	for _, want := range []string{`name="pattern" value="project://**"`, `name="until"`, "<strong>fs.write</strong>, and no other action (a new file is fs.create, and not in it), by any tool of", "for 8 hours at most", "7 days at most"} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in %s", want, text)
		}
	}
	v := d.form("/", "/decide", q.ID)
	d.pass(prompt.Deaf)
	for _, try := range [][3]string{
		{"pattern", "", ""},
		{"pattern", "**", ""},
		{"pattern", "project://b", ""},
		{"pattern", "project://[", ""},
		{"pattern", "other://**", ""},
		{"always", "", ""},
		{"always", "project://b", ""},
		{"until", "", ""},
		{"until", "", "never"},
		{"until", "", "8d"},
		{"until", "", "-1h"},
		{"until", "", "0s"},
	} {
		v.Set("answer", try[0])
		v.Set("pattern", try[1])
		v.Set("until", try[2])
		if text := d.post("/decide", v); !strings.Contains(text, "notice bad") || len(d.kinds()) != 0 {
			t.Errorf("%q: %s", try, text)
		}
	}
	v.Set("answer", "pattern")
	v.Set("pattern", " project://** ")
	if text := d.post("/decide", v); !strings.Contains(text, "approved on project://** for this session, until") {
		t.Error(text)
	}
	given := d.store.Grants()
	if len(given) != 1 || given[0].Kind != grant.Pattern || given[0].Pattern != "project://**" || given[0].Shown != prompt.Draw(q).Digest || given[0].Approver != Approver {
		t.Fatalf("%+v", given)
	}
	if err := g.write("a", "of the pattern"); err != nil {
		t.Error(err)
	}
	if _, err := d.store.Revoke(t.Context(), q.ID, Approver); err != nil {
		t.Fatal(err)
	}
	q = g.asks("a", "always")
	v = d.form("/", "/decide", q.ID)
	d.pass(prompt.Deaf)
	v.Set("answer", "always")
	v.Set("pattern", "project://**")
	for _, word := range []string{"", "yes"} { // all of a root isn't given away by a click
		v.Set("word", word)
		if text := d.post("/decide", v); !strings.Contains(text, "notice bad") || !strings.Contains(text, "with the word always") || len(d.store.Grants()) != 0 {
			t.Errorf("%q: %s", word, text)
		}
	}
	v.Set("word", " Always")
	if text := d.post("/decide", v); !strings.Contains(text, "approved on project://** for any session, until") {
		t.Error(text)
	}
	if all := d.store.Grants(); len(all) != 1 || all[0].Kind != grant.Always || all[0].Life != grant.AlwaysLife {
		t.Fatalf("%+v", all)
	}
	if text := d.get("/grants"); !strings.Contains(text, "on project://** in any session") || !strings.Contains(text, "any of postern") {
		t.Error(text)
	}
	if _, err := d.store.Revoke(t.Context(), q.ID, Approver); err != nil {
		t.Fatal(err)
	}
	q = g.asks("a", "until")
	v = d.form("/", "/decide", q.ID)
	d.pass(prompt.Deaf)
	v.Set("answer", "until")
	v.Set("until", "2h")
	if text := d.post("/decide", v); !strings.Contains(text, "approved for any session, until") {
		t.Error(text)
	}
	if all := d.store.Grants(); len(all) != 1 || all[0].Kind != grant.Until || all[0].Life != 2*time.Hour {
		t.Fatalf("%+v", all)
	}
	for range 2 {
		if err := g.write("a", "until"); err != nil {
			t.Error(err)
		}
	}
}

// TestWiderNot: what wants a code offers neither, nor does a name of a built-in
// list a pattern, nor an agent without a name a time; and none is taken.
func TestWiderNot(t *testing.T) {
	for name, c := range map[string]struct {
		change         func(*grant.Binding, *grant.Card)
		pattern, until bool
	}{
		"plain":         {func(*grant.Binding, *grant.Card) {}, true, true},
		"destructive":   {func(b *grant.Binding, _ *grant.Card) { b.Class = "destructive" }, false, false},
		"not all shown": {func(_ *grant.Binding, k *grant.Card) { k.Unshown = "the rest of the change: <b>7</b> lines\u202e" }, false, false},
		"names unsaid":  {func(b *grant.Binding, _ *grant.Card) { b.More = 2 }, false, false},
		"private":       {func(b *grant.Binding, _ *grant.Card) { b.Private = true }, false, true},
		"no name":       {func(b *grant.Binding, _ *grant.Card) { b.Agent = "" }, true, false},
	} {
		t.Run(name, func(t *testing.T) {
			d := newDesk(t)
			d.login()
			b := grant.Binding{
				Asker: grant.Asker{Agent: "a", Session: "s", Host: true, Source: "serve"}, Server: "postern", Tool: "write_file", Class: "mutating",
				Operations: []grant.Operation{{Action: "fs.write", Resource: "project://src/f"}}, Objects: []grant.Object{{Name: "project://src/f", State: "e"}},
			}
			k := grant.Card{Rule: "r", Change: "+a\n"}
			c.change(&b, &k)
			q, err := d.store.Ask(t.Context(), b, k, "c", time.Hour)
			if err != nil {
				t.Fatal(err)
			}
			text := d.get("/")
			if strings.Contains(text, `value="project://src/**"`) != c.pattern || strings.Contains(text, `name="until"`) != c.until || strings.Contains(text, `value="always"`) != (c.pattern && c.until) {
				t.Error(text)
			}
			coded := prompt.Draw(q).Code != ""
			if strings.Contains(text, `name="code"`) != coded || coded && strings.Contains(text, ">approve the same call, this session<") {
				t.Error(text)
			}
			d.inert(text)
			if k.Unshown != "" && !strings.Contains(text, `not all of it is shown here. not shown: <bdi class="raw">the rest of the change: &lt;b&gt;7`) {
				t.Error(text)
			}
			v := d.form("/", "/decide", q.ID)
			d.pass(prompt.Deaf)
			for kind, offered := range map[string]bool{"pattern": c.pattern, "until": c.until, "always": c.pattern && c.until} {
				if offered {
					continue
				}
				for _, code := range []string{"", prompt.Draw(q).Code} {
					v.Set("answer", kind)
					v.Set("pattern", "project://src/**")
					v.Set("until", "2h")
					v.Set("code", code)
					if text := d.post("/decide", v); !strings.Contains(text, "notice bad") || len(d.kinds()) != 0 {
						t.Errorf("%s with %q: %s", kind, code, text)
					}
				}
			}
			v.Set("answer", "once")
			v.Set("code", "")
			if d.post("/decide", v); (len(d.kinds()) == 1) == coded {
				t.Error("a click and its code")
			}
		})
	}
}
