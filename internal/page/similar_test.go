// SPDX-License-Identifier: Apache-2.0

package page

import (
	"encoding/base64"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/postern-gate/postern/core"
	"github.com/postern-gate/postern/core/fault"
	"github.com/postern-gate/postern/enforce"
	"github.com/postern-gate/postern/internal/prompt"
	"github.com/postern-gate/postern/internal/state/grant"
)

// ticks are the boxes of the page: those of questions by id, and the one for all.
func (d *desk) ticks() (of map[string]string, all string) {
	d.Helper()
	of = map[string]string{}
	text := d.get("/")
	for _, m := range regexp.MustCompile(`name="tick" value="([^"]*)" id="t-([^"]*)"`).FindAllStringSubmatch(text, -1) {
		of[m[2]] = m[1]
	}
	if m := regexp.MustCompile(`name="all" value="([^"]*)"`).FindStringSubmatch(text); m != nil {
		all = m[1]
	}
	return of, all
}

// several asks about files of one folder, and returns the ids.
func (d *desk) several(n int) (ids []string) {
	for i := range n {
		ids = append(ids, d.ask(fmt.Sprintf("project://f%d", i), "mutating"))
	}
	return ids
}

func (d *desk) kinds() map[string]grant.Kind {
	all := map[string]grant.Kind{}
	for _, g := range d.store.Grants() {
		all[g.ID] = g.Kind
	}
	return all
}

// TestSimilar: questions that are alike are one card. Exactly those that were
// ticked are answered, each bound to what was shown of it.
func TestSimilar(t *testing.T) {
	d := newDesk(t)
	d.login()
	ids := d.several(4)
	text := d.get("/")
	if strings.Count(text, `<article class="card"`) != 1 || strings.Contains(text, " checked") {
		t.Fatal(text)
	}
	if strings.Count(text, `type="checkbox"`) != strings.Count(text, `type="checkbox" autocomplete="off"`) {
		t.Error("a browser may tick by itself what was ticked on the page before")
	}
	for i := range ids {
		if !strings.Contains(text, fmt.Sprintf(`<label for="t-%s"><span class="what">fs.write <bdi class="raw">project://f%d</bdi>`, ids[i], i)) {
			t.Errorf("no label for %d in %s", i, text)
		}
	}
	if strings.Count(text, `<span class="removed">-old`) != 4 || strings.Count(text, "<dt>agent</dt>") != 1 || strings.Count(text, "<dt>can be undone</dt>") != 4 {
		t.Error(text)
	}
	of, _ := d.ticks()
	v := d.form("/", "/answer", "claude-code")
	d.pass(prompt.Deaf)
	v.Set("answer", "once")
	if got := d.post("/answer", v); !strings.Contains(got, "nothing was answered: nothing is ticked") || len(d.kinds()) != 0 {
		t.Error(got)
	}
	v["tick"] = []string{of[ids[1]], of[ids[2]], of[ids[1]]}
	got := d.post("/answer", v)
	if k := d.kinds(); len(k) != 2 || k[ids[1]] != grant.Once || k[ids[2]] != grant.Once || strings.Contains(got, "notice bad") {
		t.Errorf("%v: %s", k, got)
	}
	for _, g := range d.store.Grants() {
		if want := regexp.MustCompile(`[0-9a-f]{64}`).FindString(of[g.ID]); g.Shown != want || g.Approver != Approver {
			t.Errorf("%s is for %s, want %s", g.ID, g.Shown, want)
		}
	}
	v["tick"] = []string{of[ids[0]], of[ids[1]]}
	v.Set("answer", "no")
	if got := d.post("/answer", v); !strings.Contains(got, "denied: fs.write project://f0") || !strings.Contains(got, "not answered: question "+ids[1]+": it was answered before: approved by page") {
		t.Error(got)
	}
}

// TestSimilarAll: a tick for all is for those that stood there when it was drawn.
func TestSimilarAll(t *testing.T) {
	d := newDesk(t)
	d.login()
	ids := d.several(3)
	_, all := d.ticks()
	v := d.form("/", "/answer", "claude-code")
	later := d.ask("project://later", "mutating")
	d.pass(prompt.Deaf)
	v.Set("answer", "session")
	v.Set("all", all)
	d.post("/answer", v)
	if k := d.kinds(); len(k) != 3 || k[later] != "" || k[ids[0]] != grant.Session {
		t.Errorf("%v", k)
	}
	if _, again := d.ticks(); again == all {
		t.Error("the tick for all is the same for others")
	}
}

// TestSimilarEach: a row that is over, too new, or was drawn otherwise is told,
// and keeps no other back; what this page didn't draw is refused whole.
func TestSimilarEach(t *testing.T) {
	d := newDesk(t)
	d.login()
	ids := d.several(3)
	of, _ := d.ticks()
	v := d.form("/", "/answer", "claude-code")
	d.pass(prompt.Deaf)
	late := d.ask("project://late", "mutating")
	now, _ := d.ticks()
	if _, err := d.store.Decide(t.Context(), ids[0], grant.Answer{Kind: grant.No, Approver: "terminal"}); err != nil {
		t.Fatal(err)
	}
	v.Set("answer", "once")
	v["tick"] = []string{of[ids[0]], of[ids[1]], now[late]}
	got := d.post("/answer", v)
	for _, want := range []string{"it was answered before: denied by terminal", "approved once, until", "fs.write project://f1", "not answered: fs.write project://late: that came in the first half second", "notice bad"} {
		if !strings.Contains(got, want) {
			t.Errorf("no %q in %s", want, got)
		}
	}
	if k := d.kinds(); len(k) != 1 || k[ids[1]] != grant.Once {
		t.Errorf("%v", k)
	}
	before := d.files()
	parts := strings.Split(of[ids[2]], ".")
	other := strings.Split(now[late], ".")
	forged := func(i int, with string) string {
		p := append([]string{}, parts...)
		p[i] = with
		return strings.Join(p, ".")
	}
	for name, value := range map[string]string{
		"nothing": "", "words": "x", "another question": forged(0, other[0]), "another time": forged(2, "1"), "another's proof": forged(3, other[3]),
		"another card": forged(1, strings.Repeat("0", 64)), "the id": base64.RawURLEncoding.EncodeToString([]byte(ids[2])), "one part more": of[ids[2]] + ".x",
	} {
		for _, box := range []string{"tick", "all"} {
			v := url.Values{"answer": {"once"}, box: {value, of[ids[2]]}}
			for _, k := range []string{"about", "shown", "drawn", "proof"} {
				v.Set(k, d.form("/", "/answer", "claude-code").Get(k))
			}
			d.pass(prompt.Deaf)
			if w := d.request(http.MethodPost, d.page.base+"/answer", v); w.Code != http.StatusForbidden {
				t.Errorf("%s: %s: %d", box, name, w.Code)
			}
		}
	}
	if d.files() != before || len(d.refused) == 0 {
		t.Error("something changed, or nobody was told")
	}
}

// TestSimilarNot: what differs in more than its target is a card of its own, and
// so is what wants a code or belongs to a built-in list.
func TestSimilarNot(t *testing.T) {
	base := func() grant.Binding {
		return grant.Binding{
			Asker: grant.Asker{Agent: "a", Session: "s", Host: true, Source: "serve"}, Server: "postern", Tool: "write_file", Class: "mutating",
			Operations: []grant.Operation{{Action: "fs.write", Resource: "project://f"}}, Objects: []grant.Object{{Name: "project://f", State: "e"}}, Policy: "v1",
		}
	}
	for name, c := range map[string]struct {
		change func(*grant.Binding, *grant.Card)
		alike  bool
	}{
		"another target": {func(b *grant.Binding, _ *grant.Card) { b.Operations[0].Resource = "project://g" }, true},
		"arguments":      {func(b *grant.Binding, _ *grant.Card) { b.Arguments = "x" }, true},
		"agent":          {func(b *grant.Binding, _ *grant.Card) { b.Agent = "b" }, false},
		"session":        {func(b *grant.Binding, _ *grant.Card) { b.Session = "t" }, false},
		"server":         {func(b *grant.Binding, _ *grant.Card) { b.Server = "x" }, false},
		"tool":           {func(b *grant.Binding, _ *grant.Card) { b.Tool = "edit_file" }, false},
		"class":          {func(b *grant.Binding, _ *grant.Card) { b.Class = "read_only" }, false},
		"policy":         {func(b *grant.Binding, _ *grant.Card) { b.Policy = "v2" }, false},
		"folder": {func(b *grant.Binding, _ *grant.Card) {
			b.Roots = []grant.Root{{Name: "project", Path: "/x", ID: "1:1"}}
		}, false},
		"operation":        {func(b *grant.Binding, _ *grant.Card) { b.Operations[0].Action = "fs.create" }, false},
		"one more":         {func(b *grant.Binding, _ *grant.Card) { b.Operations = append(b.Operations, b.Operations[0]) }, false},
		"both destructive": {func(b *grant.Binding, _ *grant.Card) { b.Class = "destructive" }, false},
		"private":          {func(b *grant.Binding, _ *grant.Card) { b.Private = true }, false},
		"not all shown":    {func(b *grant.Binding, k *grant.Card) { b.Arguments, k.Unshown = "y", "the rest" }, false},
	} {
		t.Run(name, func(t *testing.T) {
			d := newDesk(t)
			d.login()
			first, second := base(), base()
			second.Arguments = "second"
			k := grant.Card{Rule: "r"}
			c.change(&second, &k)
			if strings.HasPrefix(name, "both") {
				first.Class = second.Class
			}
			for _, q := range []struct {
				b grant.Binding
				c grant.Card
			}{{first, grant.Card{Rule: "r"}}, {second, k}} {
				if _, err := d.store.Ask(t.Context(), q.b, q.c, "c", time.Hour); err != nil {
					t.Fatal(err)
				}
			}
			want := 2
			if c.alike {
				want = 1
			}
			if got := strings.Count(d.get("/"), `<article class="card"`); got != want {
				t.Errorf("%d cards, want %d", got, want)
			}
		})
	}
}

// TestSimilarPause: three noes in a row pause the agent, and the rows that are
// over by that are told so.
func TestSimilarPause(t *testing.T) {
	d := newDesk(t)
	d.login()
	d.several(4)
	_, all := d.ticks()
	v := d.form("/", "/answer", "claude-code")
	d.pass(prompt.Deaf)
	v.Set("answer", "no")
	v.Set("all", all)
	got := d.post("/answer", v)
	if strings.Count(got, "denied: fs.write") != 3 || strings.Count(got, "not answered: ") != 1 || !strings.Contains(got, "claude-code is paused: three noes in a row") {
		t.Error(got)
	}
}

// TestSimilarHostile: what others wrote is text in each row.
func TestSimilarHostile(t *testing.T) {
	d := newDesk(t)
	d.login()
	for i := range 2 {
		name := fmt.Sprintf("project://%d%s", i, hostile)
		_, err := d.store.Ask(t.Context(), grant.Binding{
			Asker: grant.Asker{Agent: hostile, Session: hostile, Host: true, Source: "serve"}, Server: hostile, Tool: hostile, Class: "mutating",
			Operations: []grant.Operation{{Action: "fs.write", Resource: name}}, Objects: []grant.Object{{Name: name, State: "e"}},
		}, grant.Card{
			Rule: hostile, Change: "+" + hostile + "\n</details></li><script>alert(1)</script>", Undo: hostile,
			Details: []grant.Field{{Name: hostile, Text: fmt.Sprint(i, hostile)}}, Says: []grant.Field{{Name: hostile, Text: hostile}},
		}, "c", time.Hour)
		if err != nil {
			t.Fatal(err)
		}
	}
	text := d.get("/")
	if strings.Count(text, `<article class="card"`) != 1 {
		t.Fatal("they are not one card")
	}
	_, all := d.ticks()
	v := d.form("/", "/answer", hostile)
	d.pass(prompt.Deaf)
	v.Set("answer", "no")
	v.Set("all", all)
	d.inert(text)
	d.inert(d.post("/answer", v))
}

// inert fails where a text of somebody else is more than text.
func (d *desk) inert(text string) {
	d.Helper()
	for _, bad := range []string{"<script>", "<img", "\u202e", "\u200b", "\x1b", "</pre><script", "style=", `href="javascript`, "ZgotmplZ"} {
		if strings.Contains(text, bad) {
			d.Errorf("it has %q:\n%s", bad, text)
		}
	}
	for _, tag := range regexp.MustCompile(`<[^>]*\son[a-z]+=`).FindAllString(regexp.MustCompile(`"[^"]*"`).ReplaceAllString(text, `""`), -1) {
		d.Errorf("it has %q", tag)
	}
}

// TestChanged: a card whose file changed says so, offers no yes, and takes none,
// neither does one that was drawn before; a tab hears of it.
func TestChanged(t *testing.T) {
	d := newDesk(t)
	d.login()
	g := d.guarded(core.Ask, 0)
	g.put("a", "old")
	q := g.asks("a", "new")
	const says = "this changed since it was asked"
	if text := d.get("/"); strings.Contains(text, says) || !strings.Contains(text, ">approve once<") {
		t.Fatal(text)
	}
	before := d.page.print()
	v := d.form("/", "/decide", q.ID)
	d.pass(prompt.Deaf)
	g.put("a", "somebody else's")
	for _, kind := range []string{"once", "session", "until", "pattern", "always"} {
		v.Set("answer", kind)
		v.Set("until", "1h")
		v.Set("pattern", "project://**")
		v.Set("word", "always")
		if text := d.post("/decide", v); !strings.Contains(text, "it changed since it was asked: project://a") || len(d.kinds()) != 0 {
			t.Errorf("%s: %s", kind, text)
		}
	}
	text := d.get("/")
	if !strings.Contains(text, says) || !strings.Contains(text, `changed: <bdi class="raw">project://a</bdi>`) || strings.Contains(text, ">approve") {
		t.Error(text)
	}
	d.page.looked.at = time.Time{}
	if d.page.print() == before {
		t.Error("no tab hears of it")
	}
	// The agent asks anew, which is another card; the old one is never beside it.
	again := g.asks("a", "new")
	if text := d.get("/"); strings.Count(text, `<article class="card"`) != 2 || strings.Count(text, says) != 1 {
		t.Error(text)
	}
	v = d.form("/", "/decide", again.ID)
	d.pass(prompt.Deaf)
	v.Set("answer", "once")
	d.post("/decide", v)
	if err := g.write("a", "new"); err != nil {
		t.Error(err)
	}
	v = d.form("/", "/decide", q.ID)
	d.pass(prompt.Deaf)
	v.Set("answer", "no")
	if text := d.post("/decide", v); !strings.Contains(text, "denied:") {
		t.Error(text)
	}
}

// TestTwoNames: a question about two names of one folder is as good as any other,
// until one of them leads to something else.
func TestTwoNames(t *testing.T) {
	d := newDesk(t)
	d.login()
	g := d.guarded(core.Ask, 0)
	g.put("a", "old")
	move := func() error {
		gate, err := enforce.New(g.o)
		if err == nil {
			_, err = gate.Move(t.Context(), "a", "b", enforce.Call{})
		}
		return err
	}
	if err := move(); fault.CodeOf(err) != fault.PolicyAsk {
		t.Fatal(err)
	}
	q := d.store.Pending()[0]
	if text := d.get("/"); strings.Contains(text, "this changed since") {
		t.Error(text)
	}
	v := d.form("/", "/decide", q.ID)
	v.Set("answer", "once")
	d.pass(prompt.Deaf)
	g.put("b", "in the way")
	if text := d.post("/decide", v); !strings.Contains(text, "it changed since it was asked: project://b") {
		t.Error(text)
	}
	if err := os.Remove(filepath.Join(g.dir, "b")); err != nil {
		t.Fatal(err)
	}
	if text := d.post("/decide", v); !strings.Contains(text, "approved once") {
		t.Error(text)
	}
	if err := move(); err != nil {
		t.Error(err)
	}
}

// TestChangedRow: of several, the one whose file changed is told, and the others
// go through.
func TestChangedRow(t *testing.T) {
	d := newDesk(t)
	d.login()
	g := d.guarded(core.Ask, 0)
	var ids []string
	for _, name := range []string{"a", "b", "c"} {
		g.put(name, "old")
		ids = append(ids, g.asks(name, "new").ID)
	}
	of, _ := d.ticks()
	if len(of) != 3 {
		t.Fatal(d.get("/"))
	}
	v := d.form("/", "/answer", "claude-code")
	d.pass(prompt.Deaf)
	g.put("b", "somebody else's")
	v.Set("answer", "once")
	v["tick"] = []string{of[ids[0]], of[ids[1]], of[ids[2]]}
	text := d.post("/answer", v)
	if !strings.Contains(text, "not answered: fs.write project://b: it changed since it was asked") || len(d.kinds()) != 2 {
		t.Error(text)
	}
	for name, ok := range map[string]bool{"a": true, "b": false, "c": true} {
		if err := g.write(name, "new"); (err == nil) != ok {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestAnotherCard: an answer to a card that would be drawn otherwise now is not
// taken, whether it is a form's or a tick's.
func TestAnotherCard(t *testing.T) {
	d := newDesk(t)
	d.login()
	ids := d.several(2)
	var s *session
	for _, s = range d.page.sessions {
	}
	then, other := d.clock(), strings.Repeat("0", 64)
	d.pass(prompt.Deaf)
	values := func(t stamp) url.Values {
		return url.Values{"about": {t.About}, "shown": {t.Shown}, "drawn": {t.Drawn}, "proof": {t.Proof}, "answer": {"once"}}
	}
	const says = "the card is another one now"
	if text := d.post("/decide", values(s.stamp("decide", ids[0], other, then))); !strings.Contains(text, says) {
		t.Error(text)
	}
	v := values(s.stamp("answer", "claude-code", "", then))
	v["tick"] = []string{s.stamp("tick", ids[0], other, then).Value()}
	v["all"] = []string{s.stamp("all", ids[1]+" "+other+"\n", "", then).Value()}
	if text := d.post("/answer", v); strings.Count(text, says) != 2 {
		t.Error(text)
	}
	if k := d.kinds(); len(k) != 0 {
		t.Errorf("%v", k)
	}
}
