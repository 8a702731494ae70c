// SPDX-License-Identifier: Apache-2.0

package page

import (
	"bytes"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"html"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/postern-gate/postern/core"
	"github.com/postern-gate/postern/core/fault"
	"github.com/postern-gate/postern/enforce"
	"github.com/postern-gate/postern/internal/listen"
	"github.com/postern-gate/postern/internal/prompt"
	"github.com/postern-gate/postern/internal/state/grant"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var at = netip.MustParseAddrPort("127.0.0.1:4000")

const host, origin = "127.0.0.1:4000", "http://127.0.0.1:4000"

// desk is a page behind its guard, and what it is about.
type desk struct {
	testing.TB

	page    *Page
	state   *enforce.State
	store   *grant.Store
	dir     string
	handler http.Handler
	mu      sync.Mutex
	now     time.Time
	refused []string
	cookie  string
}

func newDesk(t testing.TB) *desk {
	t.Helper()
	d := &desk{TB: t, dir: filepath.Join(t.TempDir(), "state"), now: time.Now()}
	var err error
	if d.state, err = enforce.OpenState(d.dir, enforce.StateOptions{}); err != nil {
		t.Fatal(err)
	}
	d.store = d.state.Grants("page")
	d.page, err = New(Options{
		State: d.state, Grants: d.store, Log: filepath.Join(d.dir, "audit"), Now: d.clock,
		Person: func() enforce.Person {
			return enforce.Person{Subject: core.Subject{Source: Approver, Level: core.LevelSDK}, Decider: aPolicy{core.Allow}}
		},
		Reach:   func(context.Context) Reach { return hostileReach() },
		Explain: explainHostile,
		Refused: func(f *fault.Error) { d.refused = append(d.refused, f.Because()) },
	})
	if err != nil {
		t.Fatal(err)
	}
	rules := d.page.Rules(at)
	rules.Hosts = listen.HostsOf(at)
	d.handler = listen.Guard(d.page.Handler(), rules)
	t.Cleanup(func() {
		if err := errors.Join(d.page.Close(), d.state.Close()); err != nil {
			t.Error(err)
		}
	})
	return d
}

func (d *desk) clock() time.Time {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.now
}

func (d *desk) pass(by time.Duration) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.now = d.now.Add(by)
}

// request is one of a browser that is logged in, unless change says otherwise.
func (d *desk) request(method, path string, form url.Values, change ...func(*http.Request)) *httptest.ResponseRecorder {
	d.Helper()
	r := httptest.NewRequest(method, path, strings.NewReader(form.Encode()))
	r.Host = host
	if method == http.MethodPost {
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		r.Header.Set("Origin", origin)
	}
	if d.cookie != "" {
		r.AddCookie(&http.Cookie{Name: "postern-4000", Value: d.cookie})
	}
	for _, c := range change {
		c(r)
	}
	w := httptest.NewRecorder()
	d.handler.ServeHTTP(w, r)
	return w
}

func (d *desk) get(path string) string {
	d.Helper()
	w := d.request(http.MethodGet, d.page.base+path, nil)
	if w.Code != http.StatusOK {
		d.Fatalf("%s: %d %s", path, w.Code, w.Body)
	}
	return w.Body.String()
}

func (d *desk) login() {
	d.Helper()
	link, err := url.Parse(d.page.Link())
	if err != nil {
		d.Fatal(err)
	}
	w := d.request(http.MethodPost, link.Path, link.Query())
	if w.Code != http.StatusSeeOther || w.Header().Get("Location") != d.page.base+"/" {
		d.Fatal(w.Code, w.Header())
	}
	c := w.Result().Cookies()[0]
	if !c.HttpOnly || c.SameSite != http.SameSiteStrictMode || c.Domain != "" || c.Path != d.page.base || c.Name != "postern-4000" || len(c.Value) < 26 {
		d.Errorf("%+v", c)
	}
	d.cookie = c.Value
}

var hidden = regexp.MustCompile(`<input type="hidden" name="([a-z]+)" value="([^"]*)">`)

// form is the one that posts there and is about that, as the page has it.
func (d *desk) form(path, act, about string) url.Values {
	d.Helper()
	for _, f := range regexp.MustCompile(`(?s)<form [^>]*action="`+regexp.QuoteMeta(d.page.base+act)+`".*?</form>`).FindAllString(d.get(path), -1) {
		v := url.Values{}
		for _, m := range hidden.FindAllStringSubmatch(f, -1) {
			v.Set(m[1], html.UnescapeString(m[2]))
		}
		if v.Get("about") == base64.RawURLEncoding.EncodeToString([]byte(about)) {
			return v
		}
	}
	d.Fatalf("%s has no form %s about %q", path, act, about)
	return nil
}

// post sends a form and returns what the page then says.
func (d *desk) post(act string, v url.Values) string {
	d.Helper()
	w := d.request(http.MethodPost, d.page.base+act, v)
	if w.Code != http.StatusSeeOther {
		d.Fatalf("%s: %d %s", act, w.Code, w.Body)
	}
	return d.get(strings.TrimPrefix(w.Header().Get("Location"), d.page.base))
}

// ask puts a question and returns its id.
func (d *desk) ask(name, class string) string {
	d.Helper()
	q, err := d.store.Ask(d.Context(), grant.Binding{
		Asker: grant.Asker{Agent: "claude-code", Session: "s", Host: true, Source: "serve"}, Server: "postern", Tool: "write_file", Class: class,
		Operations: []grant.Operation{{Action: "fs.write", Resource: name}}, Objects: []grant.Object{{Name: name, State: "e"}},
	}, grant.Card{Rule: "fs.write: ask", Change: "-old\n+new\n", Undo: "yes", Says: []grant.Field{{Name: "client", Text: "trust me"}}}, "c", time.Hour)
	if err != nil {
		d.Fatal(err)
	}
	return q.ID
}

// explainHostile stands for postern explain.
func explainHostile(_ context.Context, id string) (string, error) {
	if id == "unknown" {
		return "", &fault.Error{Code: fault.PathMissing, Op: "explain", Resource: id, Rule: "no record has this id", Hint: "postern log"}
	}
	return "asked: " + id + "\nbecause: " + hostile + "\n", nil
}

// files is every file of the state directory but the log of refusals.
func (d *desk) files() string {
	d.Helper()
	var b strings.Builder
	for _, dir := range []string{"pending", "grants", "spent", "agents", "undo"} {
		_ = filepath.WalkDir(filepath.Join(d.dir, dir), func(path string, e os.DirEntry, err error) error {
			if err == nil && !e.IsDir() {
				data, _ := os.ReadFile(path)
				fmt.Fprintf(&b, "%s %x\n", path, data)
			}
			return nil
		})
	}
	return b.String()
}

// TestAnswers: each answer is what the store then has, by whom and for what was
// shown.
func TestAnswers(t *testing.T) {
	d := newDesk(t)
	d.login()
	for answer, want := range map[string]grant.Kind{"once": grant.Once, "session": grant.Session} {
		id := d.ask("project://"+answer, "mutating")
		q, err := d.store.Question(t.Context(), id)
		if err != nil {
			t.Fatal(err)
		}
		v := d.form("/", "/decide", id)
		v.Set("answer", answer)
		d.pass(prompt.Deaf)
		if text := d.post("/decide", v); !strings.Contains(text, "fs.write project://"+answer) || strings.Contains(text, "notice bad") {
			t.Error(text)
		}
		var found *grant.Grant
		for _, g := range d.store.Grants() {
			if g.ID == id {
				found = g
			}
		}
		if found == nil || found.Kind != want || found.Approver != "page" || found.Shown != prompt.Draw(q).Digest {
			t.Errorf("%s: %+v", answer, found)
		}
		if text := d.post("/decide", v); !strings.Contains(text, "it was answered before: approved by page") {
			t.Error("twice:", text)
		}
		d.pass(prompt.Deaf)
		v = d.form("/grants", "/revoke", id)
		d.pass(prompt.Deaf)
		d.post("/revoke", v)
	}
	if all := d.store.Grants(); len(all) != 0 {
		t.Errorf("not revoked: %+v", all)
	}
	id := d.ask("project://no", "mutating")
	v := d.form("/", "/decide", id)
	v.Set("answer", "no")
	d.pass(prompt.Deaf)
	if text := d.post("/decide", v); !strings.Contains(text, "denied: fs.write project://no") {
		t.Error(text)
	}
}

// TestDestructive: what can't be taken back wants the code that is on its card,
// and is approved once.
func TestDestructive(t *testing.T) {
	d := newDesk(t)
	d.login()
	id := d.ask("project://x", "destructive")
	q, err := d.store.Question(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	code := prompt.Draw(q).Code
	text := d.get("/")
	if !strings.Contains(text, "it is destructive, so a yes wants its code. type <strong>"+code+"</strong>") || strings.Contains(text, `value="session"`) {
		t.Error(text)
	}
	v := d.form("/", "/decide", id)
	d.pass(prompt.Deaf)
	for _, try := range [][2]string{{"once", ""}, {"once", "zzzz"}, {"session", ""}, {"session", code}, {"always", code}} {
		v.Set("answer", try[0])
		v.Set("code", try[1])
		if text := d.post("/decide", v); !strings.Contains(text, "notice bad") || len(d.store.Grants()) != 0 {
			t.Errorf("%v: %s", try, text)
		}
	}
	v.Set("answer", "once")
	v.Set("code", " "+strings.ToUpper(code))
	if d.post("/decide", v); len(d.store.Grants()) != 1 {
		t.Error("the code is not taken")
	}
}

// TestEarly: what comes in the first half second after the card was drawn does
// nothing.
func TestEarly(t *testing.T) {
	d := newDesk(t)
	d.login()
	id := d.ask("project://x", "mutating")
	v := d.form("/", "/decide", id)
	v.Set("answer", "once")
	d.pass(prompt.Deaf - time.Millisecond)
	if text := d.post("/decide", v); !strings.Contains(text, "first half second") || len(d.store.Grants()) != 0 {
		t.Error(text)
	}
	d.pass(time.Millisecond)
	if d.post("/decide", v); len(d.store.Grants()) != 1 {
		t.Error("nor later")
	}
}

// TestStamp: a form is taken only as this page drew it for this session.
func TestStamp(t *testing.T) {
	d := newDesk(t)
	d.login()
	one, two := d.ask("project://1", "mutating"), d.ask("project://2", "read_only")
	good := d.form("/", "/decide", one)
	good.Set("answer", "once")
	other := d.form("/", "/decide", two)
	first := d.cookie
	d.cookie = ""
	d.login()
	foreign := d.form("/", "/decide", one)
	d.cookie = first
	d.pass(prompt.Deaf)
	before := d.files()
	set := func(name, value string) url.Values {
		v := url.Values{}
		for k := range good {
			v.Set(k, good.Get(k))
		}
		v.Set(name, value)
		return v
	}
	for name, v := range map[string]url.Values{
		"nothing":             {"answer": {"once"}, "about": {good.Get("about")}},
		"no proof":            set("proof", ""),
		"a wrong proof":       set("proof", strings.Repeat("A", 43)),
		"another question":    set("about", other.Get("about")),
		"another card":        set("shown", other.Get("shown")),
		"another time":        set("drawn", "1"),
		"no time":             set("drawn", "x"),
		"another's proof":     set("proof", other.Get("proof")),
		"of another session":  set("proof", foreign.Get("proof")),
		"of another form":     set("proof", d.form("/grants", "/pause", "claude-code").Get("proof")),
		"in parts that shift": set("about", good.Get("about")+good.Get("shown")),
	} {
		w := d.request(http.MethodPost, d.page.base+"/decide", v)
		if w.Code != http.StatusForbidden {
			t.Errorf("%s: %d", name, w.Code)
		}
	}
	in := d.request(http.MethodPost, d.page.base+"/decide?"+good.Encode(), nil)
	if in.Code != http.StatusForbidden {
		t.Errorf("in the query: %d", in.Code)
	}
	if d.files() != before {
		t.Error("something changed")
	}
	d.post("/decide", good) // the control
	if len(d.store.Grants()) != 1 {
		t.Error("the control")
	}
}

// TestDoors: who is nobody, comes from elsewhere, or by another door sees
// nothing and does nothing.
func TestDoors(t *testing.T) {
	d := newDesk(t)
	d.login()
	id := d.ask("project://secret-name", "mutating")
	good := d.form("/", "/decide", id)
	good.Set("answer", "once")
	d.pass(prompt.Deaf)
	before := d.files()
	cookie := func(v string) func(*http.Request) {
		return func(r *http.Request) {
			r.Header.Del("Cookie")
			if v != "" {
				r.Header.Set("Cookie", v)
			}
		}
	}
	header := func(name, value string) func(*http.Request) {
		return func(r *http.Request) { r.Header.Set(name, value) }
	}
	gets := []string{"/", "/activity", "/undo", "/undo/plan?id=x", "/undo/plan?session=s", "/undo?session=s", "/why?id=x", "/grants", "/reach", "/events", "/nothing", "/../" + d.page.base + "/"}
	posts := []string{"/decide", "/answer", "/undo", "/undo/session", "/revoke", "/pause", "/resume", "/logout"}
	for name, change := range map[string]func(*http.Request){
		"no cookie":          cookie(""),
		"a wrong cookie":     cookie("postern-4000=" + strings.Repeat("a", 32)),
		"an empty cookie":    cookie("postern-4000="),
		"another name":       cookie("postern-4001=" + d.cookie),
		"a rebound name":     func(r *http.Request) { r.Host = "evil.test:4000" },
		"no host":            func(r *http.Request) { r.Host = "" },
		"a foreign origin":   header("Origin", "http://evil.test"),
		"another port":       header("Origin", "http://127.0.0.1:4001"),
		"https":              header("Origin", "https://127.0.0.1:4000"),
		"the origin null":    header("Origin", "null"),
		"an MCP token":       header("Authorization", "Bearer x"),
		"a token, no cookie": func(r *http.Request) { cookie("")(r); r.Header.Set("Authorization", "Bearer "+d.cookie) },
		"a web socket":       header("Upgrade", "websocket"),
	} {
		for _, path := range gets {
			if w := d.request(http.MethodGet, d.page.base+path, nil, change); w.Code < 400 || strings.Contains(w.Body.String(), "secret-name") || w.Header().Get("Set-Cookie") != "" {
				t.Errorf("%s: GET %s: %d", name, path, w.Code)
			}
		}
		for _, path := range posts {
			if w := d.request(http.MethodPost, d.page.base+path, good, change); w.Code < 400 {
				t.Errorf("%s: POST %s: %d", name, path, w.Code)
			}
		}
	}
	for _, path := range posts {
		if w := d.request(http.MethodPost, d.page.base+path, good, func(r *http.Request) { r.Header.Del("Origin") }); w.Code != http.StatusForbidden {
			t.Errorf("no origin: POST %s: %d", path, w.Code)
		}
		if w := d.request(http.MethodGet, d.page.base+path+"?"+good.Encode(), nil); w.Code == http.StatusSeeOther || path != "/undo" && w.Code != http.StatusMethodNotAllowed {
			t.Errorf("GET %s: %d", path, w.Code)
		}
	}
	for _, path := range []string{"/", "/mcp", "/login", "/page.js", "/favicon.ico"} { // not beneath the base
		if w := d.request(http.MethodGet, path, nil); w.Code != http.StatusNotFound {
			t.Errorf("%s: %d", path, w.Code)
		}
	}
	for _, method := range []string{http.MethodPut, http.MethodDelete, http.MethodPatch, http.MethodOptions} {
		if w := d.request(method, d.page.base+"/decide", good, header("Origin", origin)); w.Code != http.StatusMethodNotAllowed {
			t.Errorf("%s: %d", method, w.Code)
		}
	}
	if d.files() != before {
		t.Error("something changed")
	}
	if w := d.request(http.MethodGet, d.page.base+"/", nil, cookie("postern-4000=evil; postern-4000="+d.cookie)); w.Code != http.StatusOK {
		t.Errorf("behind another's cookie: %d", w.Code)
	}
}

// TestGetChangesNothing: looking at everything leaves every record as it is.
func TestGetChangesNothing(t *testing.T) {
	d := newDesk(t)
	d.login()
	d.ask("project://x", "mutating")
	before := d.files()
	_, code, _ := strings.Cut(d.page.Link(), "?")
	for _, path := range []string{"/", "/activity", "/activity?q=x", "/undo", "/undo?session=s", "/why?id=x", "/grants", "/reach", "/page.css", "/page.js", "/login?" + code, "/?notice=1"} {
		d.get(path)
	}
	if w := d.request(http.MethodGet, d.page.base+"/undo/plan?session=s", nil); w.Code != http.StatusNotFound {
		t.Errorf("the plan of a session that nobody knows: %d", w.Code)
	}
	if before == "" || d.files() != before {
		t.Error("something changed")
	}
}

// TestLink: a link works once, within a minute, and only the last one does; to
// look at it uses nothing up.
func TestLink(t *testing.T) {
	d := newDesk(t)
	looks := http.StatusOK
	use := func(link string) int {
		u, err := url.Parse(link)
		if err != nil {
			t.Fatal(err)
		}
		for range 2 {
			w := d.request(http.MethodGet, u.RequestURI(), nil)
			opens, over := strings.Contains(w.Body.String(), "open the page"), strings.Contains(w.Body.String(), "the link was used before, or is older than a minute")
			if w.Code != looks || w.Header().Get("Set-Cookie") != "" || over != (looks == http.StatusForbidden) || opens && over {
				t.Errorf("looking: %d, want %d: %s", w.Code, looks, w.Body)
			}
		}
		return d.request(http.MethodPost, u.Path, u.Query()).Code
	}
	old := d.page.Link()
	link := d.page.Link()
	looks = http.StatusForbidden
	if got := use(old); got != http.StatusForbidden {
		t.Errorf("an old link: %d", got)
	}
	looks = http.StatusOK // it is none of ours, and there is nothing to press
	if got := use(link[:len(link)-1] + "0"); got != http.StatusForbidden {
		t.Errorf("a wrong link: %d", got)
	}
	if got := use(link); got != http.StatusSeeOther {
		t.Errorf("the link: %d", got)
	}
	looks = http.StatusForbidden
	if got := use(link); got != http.StatusForbidden {
		t.Errorf("twice: %d", got)
	}
	u, err := url.Parse(d.page.Link())
	if err != nil {
		t.Fatal(err)
	}
	if w := d.request(http.MethodPost, u.Path, nil); w.Code != http.StatusForbidden {
		t.Errorf("no code: %d", w.Code)
	}
	if w := d.request(http.MethodPost, u.Path, u.Query(), func(r *http.Request) { r.Header.Set("Origin", "http://evil.test") }); w.Code != http.StatusForbidden {
		t.Errorf("from elsewhere: %d", w.Code)
	}
	d.pass(LinkLife)
	if got := use(u.String()); got != http.StatusForbidden {
		t.Errorf("late: %d", got)
	}
	d.login()
	d.get("/")
	d.pass(sessionLife)
	if w := d.request(http.MethodGet, d.page.base+"/", nil); w.Code != http.StatusUnauthorized || !strings.Contains(w.Body.String(), "postern page") {
		t.Errorf("after its time: %d %s", w.Code, w.Body)
	}
	d.login()
	v := d.form("/", "/logout", "")
	d.pass(prompt.Deaf)
	if w := d.request(http.MethodPost, d.page.base+"/logout", v); w.Code != http.StatusSeeOther {
		t.Errorf("out: %d", w.Code)
	}
	if w := d.request(http.MethodGet, d.page.base+"/", nil); w.Code != http.StatusUnauthorized {
		t.Errorf("logged out: %d", w.Code)
	}
}

// TestHeaders: every answer of the page forbids what a page of ours never needs.
func TestHeaders(t *testing.T) {
	d := newDesk(t)
	d.login()
	for _, path := range []string{"/", "/login", "/page.css", "/page.js", "/nothing"} {
		h := d.request(http.MethodGet, d.page.base+path, nil).Header()
		for name, want := range map[string]string{
			"Content-Security-Policy": policy, "X-Content-Type-Options": "nosniff", "Referrer-Policy": "same-origin",
			"Cache-Control": "no-store", "X-Frame-Options": "DENY", "Cross-Origin-Resource-Policy": "same-origin",
		} {
			if h.Get(name) != want {
				t.Errorf("%s: %s: %q", path, name, h.Get(name))
			}
		}
	}
}

func TestPause(t *testing.T) {
	d := newDesk(t)
	d.login()
	nameless := grant.Binding{
		Asker: grant.Asker{Session: "s", Host: true, Source: "serve"}, Server: "postern", Tool: "write_file", Class: "mutating",
		Operations: []grant.Operation{{Action: "fs.write", Resource: "project://x"}},
	}
	if _, err := d.store.Ask(t.Context(), nameless, grant.Card{}, "c", time.Hour); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"", "claude-code", hostile} {
		d.pass(time.Second)
		v := d.form("/grants", "/pause", name)
		d.pass(prompt.Deaf)
		d.post("/pause", v)
		if got := d.store.PausedAgents(); len(got) != 1 || got[0] != name {
			t.Errorf("%q", got)
		}
		v = d.form("/grants", "/resume", name)
		d.pass(prompt.Deaf)
		d.post("/resume", v)
		if got := d.store.PausedAgents(); len(got) != 0 {
			t.Errorf("%q", got)
		}
	}
}

const hostile = "</pre><script>alert(1)</script>\"'><img src=x onerror=alert(1)>\u202efdp.exe\u200b\x1b[2J javascript:alert(1) {{.}}"

func hostileReach() Reach {
	return Reach{
		Roots: []Root{{hostile, hostile, "write", true}}, Agents: []Agent{{hostile, hostile, hostile, hostile, hostile}}, Known: []string{"claude-code", hostile},
		Others: []string{hostile}, Files: []string{hostile}, Version: hostile, State: hostile, Log: hostile, Undo: hostile,
		Enforced: []string{hostile}, Not: []string{hostile}, Weaker: []string{hostile}, Warnings: []string{hostile},
	}
}

// TestHostile: what others wrote is text wherever it stands.
func TestHostile(t *testing.T) {
	d := newDesk(t)
	d.login()
	q, err := d.store.Ask(t.Context(), grant.Binding{
		Asker: grant.Asker{Agent: hostile, Session: hostile, Host: true, Source: "serve"}, Server: hostile, Tool: hostile, Class: hostile,
		Operations: []grant.Operation{{Action: hostile, Resource: "project://" + hostile}}, Objects: []grant.Object{{Name: "project://x" + hostile, State: "e"}},
	}, grant.Card{
		Rule: hostile, Change: "+" + hostile + "\n</span>" + hostile, Undo: hostile,
		Details: []grant.Field{{Name: hostile, Text: hostile}}, Says: []grant.Field{{Name: hostile, Text: hostile}},
	}, "c", time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	pages := []string{d.get("/"), d.get("/grants"), d.get("/reach"), d.get("/activity"), d.get("/activity?q=" + url.QueryEscape(hostile)), d.get("/login?code=" + url.QueryEscape(hostile))}
	v := d.form("/", "/decide", q.ID)
	d.pass(prompt.Deaf)
	v.Set("answer", "no")
	pages = append(pages, d.post("/decide", v))
	w := d.request(http.MethodGet, d.page.base+"/undo/plan?id="+url.QueryEscape(hostile), nil)
	pages = append(pages, w.Body.String())
	for i, text := range pages {
		for _, bad := range []string{"<script>", "<img", "\u202e", "\u200b", "\x1b", "</pre><script", "style=", `href="javascript`, "ZgotmplZ"} {
			if strings.Contains(text, bad) {
				t.Errorf("page %d has %q:\n%s", i, bad, text)
			}
		}
		for _, tag := range regexp.MustCompile(`<[^>]*\son[a-z]+=`).FindAllString(regexp.MustCompile(`"[^"]*"`).ReplaceAllString(text, `""`), -1) {
			t.Errorf("page %d has %q", i, tag)
		}
	}
	if !strings.Contains(pages[0], "&lt;script&gt;") {
		t.Error("the card lacks what it is about")
	}
}

// TestNamesOnPage: names that differ in what nobody sees are told apart, where
// they are asked about, where they were answered, and where the yes stands.
func TestNamesOnPage(t *testing.T) {
	d := newDesk(t)
	d.login()
	names := map[string]string{"project://out\u200d/a": `"project://out\u{200d}/a"`, "project://out\u2800/a": `"project://out\u{2800}/a"`, "project://out/a ": `"project://out/a "`}
	told := ""
	for name := range names {
		id := d.ask(name, "mutating")
		v := d.form("/", "/decide", id)
		v.Set("answer", "session")
		text := d.get("/")
		if strings.Contains(text, "out/") == strings.Contains(text, "u{") || strings.Contains(text, `name="pattern"`) == strings.Contains(text, "u{") {
			t.Error("what the form would send is not what is seen", text)
		}
		d.pass(prompt.Deaf)
		told += text + d.post("/decide", v)
	}
	told += d.get("/grants")
	for _, drawn := range names {
		if n := strings.Count(html.UnescapeString(told), "fs.write "+drawn); n < 2 {
			t.Errorf("%s: %d", drawn, n)
		}
	}
	if strings.ContainsAny(told, "\u200d\u2800") {
		t.Error("something is not spelled")
	}
}

// TestWhole: a card leaves nothing out, and its end is what is done, to what.
func TestWhole(t *testing.T) {
	d := newDesk(t)
	d.login()
	name := "project://" + strings.Repeat("very-long/", 300) + "end"
	id := d.ask(name, "mutating")
	text := d.get("/")
	for _, want := range []string{name, "trust me", "it says, not postern", `<span class="removed">-old`, `<span class="added">&#43;new`} {
		if !strings.Contains(text, want) {
			t.Errorf("no %.40q", want)
		}
	}
	card := text[strings.Index(text, `id="q-`+id):]
	if end := card[:strings.Index(card, "</dl>")]; !strings.HasSuffix(strings.TrimSpace(end), name+"</bdi></dd></div>") {
		t.Errorf("the card ends with %q", end[len(end)-200:])
	}
}

// TestScript: it is small, and nothing of the page is inline.
func TestScript(t *testing.T) {
	js, err := files.ReadFile("files/page.js")
	if err != nil || len(js) > 10_000 {
		t.Errorf("%d bytes, %v", len(js), err)
	}
	names, err := files.ReadDir("files")
	if err != nil {
		t.Fatal(err)
	}
	for _, n := range names {
		data, err := files.ReadFile("files/" + n.Name())
		if err != nil {
			t.Fatal(err)
		}
		if strings.HasSuffix(n.Name(), ".html") && (bytes.Contains(data, []byte("style=")) || bytes.Contains(data, []byte("<style")) ||
			bytes.Contains(data, []byte("<script>")) || regexp.MustCompile(`\son[a-z]+="`).Match(data)) {
			t.Errorf("%s has something inline", n.Name())
		}
		if bytes.Contains(data, []byte("://")) && !strings.Contains(string(data), `{{line .Name}}://`) {
			t.Errorf("%s names another place", n.Name())
		}
		for _, bad := range []string{"innerHTML", "eval(", "document.write", "insertAdjacentHTML"} {
			if bytes.Contains(data, []byte(bad)) {
				t.Errorf("%s has %s", n.Name(), bad)
			}
		}
	}
}

// TestFolder: the folder is on the card and with each permission; a card for
// another folder is another card, and what nobody would see is on it too.
func TestFolder(t *testing.T) {
	d := newDesk(t)
	b := grant.Binding{
		Asker: grant.Asker{Agent: "a", Session: "s", Host: true}, Server: "postern", Tool: "write_file", Class: "mutating",
		Roots:      []grant.Root{{Name: "project", Path: "/home/x/one/p", ID: "1:2"}},
		Operations: []grant.Operation{{Action: "fs.write", Resource: "project://f"}}, Objects: []grant.Object{{Name: "project://f"}},
	}
	q, err := d.store.Ask(t.Context(), b, grant.Card{Change: "+a\u200b\n"}, "c", time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	d.login()
	for _, want := range []string{`<dt>folder</dt><dd><bdi class="raw">project:// is /home/x/one/p</bdi>`, `a\u{200b}`, "1 invisible character,"} {
		if got := d.get("/"); !strings.Contains(got, want) {
			t.Errorf("no %q in %s", want, got)
		}
	}
	const where = `<p>in <bdi class="raw">/home/x/one/p</bdi></p>`
	if strings.Contains(d.get("/grants"), where) {
		t.Error("it is a permission already")
	}
	if _, err := d.store.Decide(t.Context(), q.ID, grant.Answer{Kind: grant.Session, Approver: "test"}); err != nil {
		t.Fatal(err)
	}
	if got := d.get("/grants"); !strings.Contains(got, where) {
		t.Errorf("no folder in %s", got)
	}
}
