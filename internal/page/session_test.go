// SPDX-License-Identifier: Apache-2.0

package page

import (
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/postern-gate/postern/core"
	"github.com/postern-gate/postern/enforce"
	"github.com/postern-gate/postern/internal/prompt"
	"github.com/postern-gate/postern/internal/state/grant"
)

func (g *guarded) holds(name, want string) {
	g.d.Helper()
	if data, err := os.ReadFile(filepath.Join(g.dir, name)); err != nil || string(data) != want {
		g.d.Errorf("%s: %q, %v, want %q", name, data, err, want)
	}
}

// TestUndoSession: every change of a session is taken back, as its plan shows,
// and no other; a plan that is another one by then is not carried out.
func TestUndoSession(t *testing.T) {
	d := newDesk(t)
	d.login()
	g := d.guarded(core.Allow, 0)
	g.put("a", "old a")
	g.put("b", "old b")
	g.put("c", "old c")
	write := func(session, name, content string) {
		t.Helper()
		g.o.Subject.Session = session
		if err := g.write(name, content); err != nil {
			t.Fatal(err)
		}
	}
	const s = hostile
	write(s, "a", "new a")
	write("other", "c", "new c")
	write(s, "b", "new b")
	query := "?session=" + url.QueryEscape(s)
	list := d.get("/undo")
	for _, want := range []string{"project://a", "project://c", g.dir, "nothing is recorded of changes outside the guard"} {
		if !strings.Contains(list, want) {
			t.Errorf("no %q in %s", want, list)
		}
	}
	own := d.get("/undo" + query)
	if strings.Contains(own, "project://c") || !strings.Contains(own, "undo all of them…") {
		t.Error(own)
	}
	plan := d.get("/undo/plan" + query)
	for _, want := range []string{"~ restore project://b in " + g.dir, "~ restore project://a", "undo all of the session", "outside the guard"} {
		if !strings.Contains(plan, want) {
			t.Errorf("no %q in %s", want, plan)
		}
	}
	d.inert(list + own + plan)
	v := d.form("/undo/plan"+query, "/undo/session", s)
	d.pass(prompt.Deaf)
	write(s, "a", "newer a")
	if text := d.post("/undo/session", v); !strings.Contains(text, "what would be done is something else now") {
		t.Error(text)
	}
	g.holds("b", "new b")
	if w := d.request(http.MethodPost, d.page.base+"/undo", v); w.Code != http.StatusForbidden {
		t.Errorf("as another act: %d", w.Code)
	}
	v = d.form("/undo/plan"+query, "/undo/session", s)
	d.pass(prompt.Deaf)
	if text := d.post("/undo/session", v); strings.Count(text, "restored project") != 3 {
		t.Error(text)
	}
	g.holds("a", "old a")
	g.holds("b", "old b")
	g.holds("c", "new c")
	for _, path := range []string{"/undo/plan", "/undo/plan?id=x&session=y"} {
		if w := d.request(http.MethodGet, d.page.base+path, nil); w.Code != http.StatusBadRequest {
			t.Errorf("%s: %d", path, w.Code)
		}
	}
}

// TestOutsideText: what is said is what is known.
func TestOutsideText(t *testing.T) {
	at := time.Date(2026, 11, 30, 9, 0, 0, 0, time.Local)
	const since = " outside the guard, in all folders, since 2026-11-30 09:00:00"
	for want, c := range map[string]enforce.OutsideCount{
		"1 file changed" + since + seen:           {Files: 1, Watched: true},
		"at least 3 files changed" + since + seen: {Files: 3, Watched: true, Missed: true},
		"files may have changed" + since:          {Watched: true, Missed: true},
		"no file changed" + since + seen:          {Watched: true},
		"nothing is recorded of changes" + since + ": there were none, or nothing watched; only postern up does": {},
	} {
		c.Since = at
		if got := outsideText(c); got != want {
			t.Errorf("%+v: %q, want %q", c, got, want)
		}
	}
}

// TestActivityLinks: each call leads to why, and a change that is kept to its
// undo, until it is taken back.
func TestActivityLinks(t *testing.T) {
	d := newDesk(t)
	d.login()
	here, err := d.store.Attend(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = here.Leave() }()
	g := d.guarded(core.Ask, time.Minute)
	g.put("a", "old")
	done := make(chan error, 1)
	go func() { done <- g.write("a", "new") }()
	for len(d.store.Pending()) == 0 {
		time.Sleep(10 * time.Millisecond)
	}
	if _, err := d.store.Decide(t.Context(), d.store.Pending()[0].ID, grant.Answer{Kind: grant.Once, Approver: "test"}); err != nil {
		t.Fatal(err)
	}
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	list, _, _, err := d.state.UndoList("", -1)
	if err != nil || len(list) != 1 {
		t.Fatal(list, err)
	}
	id := list[0].ID
	why, undo := `/why?id=`+id+`"`, `/undo/plan?id=`+id+`"`
	for late := time.Now().Add(30 * time.Second); !strings.Contains(d.get("/activity"), ">outcome<") && time.Now().Before(late); {
		time.Sleep(20 * time.Millisecond) // an outcome is written a moment later
	}
	if text := d.get("/activity"); strings.Count(text, why) < 2 || strings.Count(text, undo) != 1 {
		t.Error(text)
	}
	text := d.get("/why?id=" + id)
	if !strings.Contains(text, "asked: "+id) || !strings.Contains(text, undo) || !strings.Contains(text, "because: &lt;/pre&gt;") {
		t.Error(text)
	}
	d.inert(text)
	v := d.form("/undo/plan?id="+id, "/undo", id)
	d.pass(prompt.Deaf)
	d.post("/undo", v)
	g.holds("a", "old")
	if text := d.get("/activity"); !strings.Contains(text, why) || strings.Contains(text, undo) {
		t.Error(text)
	}
	if text := d.get("/why?id=" + id); strings.Contains(text, undo) {
		t.Error(text)
	}
	for path, code := range map[string]int{"/why": http.StatusBadRequest, "/why?id=unknown": http.StatusNotFound, "/why?id=" + strings.Repeat("x", 300): http.StatusBadRequest} {
		w := d.request(http.MethodGet, d.page.base+path, nil)
		if w.Code < 400 {
			t.Errorf("%s: %d, want %d", path, w.Code, code)
		}
	}
}

// TestCovers: two yeses of one name are told apart by what they cover.
func TestCovers(t *testing.T) {
	d := newDesk(t)
	d.login()
	give := func(a grant.Answer, change func(*grant.Binding)) {
		t.Helper()
		b := grant.Binding{
			Asker: grant.Asker{Agent: "a", Session: "s", Host: true, Source: "serve"}, Server: "files", Tool: "write_file", Class: "mutating", Arguments: strings.Repeat("a", 64),
			Operations: []grant.Operation{{Action: "fs.write", Resource: "project://f"}}, Objects: []grant.Object{{Name: "project://f", State: "e", Hash: strings.Repeat("e", 64)}},
		}
		change(&b)
		q, err := d.store.Ask(t.Context(), b, grant.Card{Rule: "r", Details: []grant.Field{{Name: hostile, Text: "content of " + b.Tool}}}, "c", time.Hour)
		if err == nil {
			a.Approver = "test"
			_, err = d.store.Decide(t.Context(), q.ID, a)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	give(grant.Answer{Kind: grant.Session}, func(*grant.Binding) {})
	give(grant.Answer{Kind: grant.Session}, func(b *grant.Binding) { b.Tool = "edit_file" })
	give(grant.Answer{Kind: grant.Session}, func(b *grant.Binding) { b.Arguments = strings.Repeat("b", 64) })
	give(grant.Answer{Kind: grant.Once}, func(b *grant.Binding) { b.Arguments = strings.Repeat("c", 64) })
	give(grant.Answer{Kind: grant.Session}, func(b *grant.Binding) {
		b.Tool, b.Objects = hostile, append(b.Objects, grant.Object{Name: "project://" + hostile})
	})
	give(grant.Answer{Kind: grant.Pattern, Pattern: "project://**"}, func(b *grant.Binding) { b.Arguments = strings.Repeat("d", 64) })
	text := d.get("/grants")
	for want, n := range map[string]int{
		"files/write_file</bdi>": 3, "files/edit_file</bdi>": 1, "sha256 aaaaaaaaaaaa</bdi>": 3, "sha256 bbbbbbbbbbbb</bdi>": 1, "sha256 eeeeeeeeeeee</bdi>": 1,
		"sha256 dddd": 0, "content of edit_file</bdi>": 1, "any of files</bdi>": 1, "on project://** in its session": 1,
	} {
		if got := strings.Count(text, want); got != n {
			t.Errorf("%d times %q, want %d: %s", got, want, n, text)
		}
	}
	d.inert(text)
}
