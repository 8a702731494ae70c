// SPDX-License-Identifier: Apache-2.0

package page

import (
	"bytes"
	"strings"
	"testing"

	"github.com/postern-gate/postern/enforce"
	"github.com/postern-gate/postern/internal/prompt"
	"github.com/postern-gate/postern/internal/state/audit/records"
)

// TestHeading: a card begins with what is done to what, and ends with it.
func TestHeading(t *testing.T) {
	d := newDesk(t)
	d.login()
	id := d.ask("project://x", "mutating")
	text := d.get("/")
	if !strings.Contains(text, `<h2 id="q-`+id+`"><span class="what">fs.write <bdi class="raw">project://x</bdi></span> <small>question `+id+`</small></h2>`) {
		t.Error(text)
	}
	if strings.Count(text, ">project://x</bdi>") != 2 {
		t.Error("the card doesn't end with it:", text)
	}
}

// TestHeadingOfMany: a card of many begins with a few, and says how many more.
func TestHeadingOfMany(t *testing.T) {
	var all []part
	for range maxHeads + 2 {
		all = append(all, part{Kind: "field"}, part{Kind: "target"})
	}
	if h := headsOf(all); len(h.First) != maxHeads || h.More != 2 {
		t.Errorf("%+v", h)
	}
	if h := headsOf(append(all[:2:2], part{Kind: "field", Name: "from"}, part{Kind: "says", Name: "from"})); len(h.First) != 1 || h.More != 0 || len(h.From) != 1 {
		t.Errorf("%+v", h)
	}
}

// TestUsed: that something was approved once isn't said of a yes that is gone.
func TestUsed(t *testing.T) {
	d := newDesk(t)
	d.login()
	id := d.ask("project://x", "mutating")
	v := d.form("/", "/decide", id)
	v.Set("answer", "once")
	d.pass(prompt.Deaf)
	if text := d.post("/decide", v); !strings.Contains(text, ">approved once, until ") || !strings.Contains(text, ": fs.write project://x; a call that waits goes on, else the agent has to call again<") {
		t.Error(text)
	}
	if _, err := d.store.Revoke(t.Context(), id, "terminal"); err != nil {
		t.Fatal(err)
	}
	if text := d.get("/?notice=1"); strings.Contains(text, "approved once, until") || !strings.Contains(text, ">approved once, and the yes is used by now, or over: fs.write project://x<") {
		t.Error(text)
	}
}

// TestWho: what postern did by itself or for a person is not of an agent without
// a name.
func TestWho(t *testing.T) {
	for _, c := range []struct {
		r    records.Record
		want string
	}{
		{records.Record{Agent: "codex", Source: "serve"}, "codex"},
		{records.Record{Agent: "undo", Source: "serve"}, "undo"},
		{records.Record{Source: "serve"}, "- (no name)"},
		{records.Record{Source: "serve-http", Undoes: "x"}, "- (no name)"},
		{records.Record{Source: "watcher"}, "watcher"},
		{records.Record{Source: "undo"}, "undo"},
		{records.Record{Source: "page", Undoes: "x"}, "undo"},
		{records.Record{Source: "page"}, "page"},
	} {
		if got := who(&c.r); got != c.want {
			t.Errorf("%+v: %q, want %q", c.r, got, c.want)
		}
	}
}

// TestDid: what was done reads as done.
func TestDid(t *testing.T) {
	for verb, want := range map[string]string{
		"restore": "restored", "remove": "removed", "recreate": "recreated", "rename back": "renamed back", "shorten": "shortened", "lengthen": "lengthened",
	} {
		s := stepOf(&enforce.UndoStep{Verb: verb, Name: "project://a", Root: "/p", Done: true})
		if s.Text != want+" project://a in /p" {
			t.Errorf("%s: %q", verb, s.Text)
		}
	}
}

// TestRows: a refusal stands out, a question that nobody answered doesn't; no
// operation is none, and a folder is told where it is known.
func TestRows(t *testing.T) {
	d := newDesk(t)
	var b bytes.Buffer
	rows := []row{{Key: "1", Event: "refusal", Op: "fs.read", Decision: "deny"}, {Key: "2", Event: "expired", Op: "fs.read", Decision: "deny"}, {Key: "3", Event: "resumed", Op: "unknown"}}
	for _, folder := range []string{"/home/u/p\u202e", ""} {
		rows = append(rows, rowOf(&records.Entry{Record: records.Record{Event: "decision", Op: "fs.list", Resource: "project://a", Folder: folder}}))
	}
	if err := d.page.templates.ExecuteTemplate(&b, "activity.html", shown{Data: activity{Rows: rows, Page: 1}}); err != nil {
		t.Fatal(err)
	}
	if text := b.String(); !strings.Contains(text, `data-key="1" class="denied"`) || strings.Count(text, `class="denied"`) != 1 || strings.Contains(text, "unknown") ||
		!strings.Contains(text, `<bdi class="raw">project://a</bdi> in <bdi class="raw">&#34;/home/u/p\u202e&#34;</bdi></td>`) || strings.Count(text, " in <bdi") != 1 {
		t.Error(text)
	}
}

// TestPausable: an agent without a name is one to pause where there is one.
func TestPausable(t *testing.T) {
	d := newDesk(t)
	d.login()
	if text := d.get("/grants"); strings.Contains(text, "(no name)") {
		t.Error(text)
	}
	if err := d.store.Pause(t.Context(), "", "terminal"); err != nil {
		t.Fatal(err)
	}
	if text := d.get("/grants"); !strings.Contains(text, `aria-label="resume - (no name)"`) {
		t.Error(text)
	}
}
