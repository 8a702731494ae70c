// SPDX-License-Identifier: Apache-2.0

package interop

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/postern-gate/postern/core"
	"github.com/postern-gate/postern/enforce"
	"github.com/postern-gate/postern/internal/config"
	"github.com/postern-gate/postern/internal/listen"
	local "github.com/postern-gate/postern/internal/page"
	"github.com/postern-gate/postern/internal/prompt"
	"github.com/postern-gate/postern/internal/state/grant"
)

// theDesk is the page over the state of a fresh user, and an agent whose
// writes the policy asks about.
type theDesk struct {
	*chromium
	page  *local.Page
	store *grant.Store
	at    netip.AddrPort
	root  string
	agent *mcpAgent
	serve func() // at the same address as before
	stop  func()
}

const hostileText = "</pre><script>alert(1)</script><img src=x onerror=alert(2)>\"'` javascript:alert(3)\u202e\u200b"

func newTheDesk(t *testing.T) *theDesk {
	t.Helper()
	bin := build(t)
	root, env := folder(t)
	home := filepath.Dir(root)
	file := filepath.Join(home, "config", "postern", "policy.yaml")
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte("version: 1\nrules: { fs.write: ask, fs.create: ask, fs.delete: ask }\nask: { wait: 2m }\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(home, "state")
	state, err := enforce.OpenState(dir, enforce.StateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	live, err := config.OpenLive(config.Options{
		Dirs: []string{root}, PolicyFile: file, WorkDir: root, StateDir: dir, Env: func(string) string { return "" }, Binary: bin,
	}, time.Now, func(error) {})
	if err != nil {
		t.Fatal(err)
	}
	d := &theDesk{root: root, store: state.Grants("page")}
	d.page, err = local.New(local.Options{
		State: state, Grants: d.store, Log: filepath.Join(dir, "audit"),
		Person: func() enforce.Person {
			return enforce.Person{Subject: core.Subject{Source: "undo", Level: core.LevelSDK}, Decider: live, Protect: []string{bin}}
		},
		Explain: func(context.Context, string) (string, error) { return hostileText, nil },
		Reach: func(context.Context) local.Reach {
			return local.Reach{Roots: []local.Root{{Name: "project", Path: root + hostileText, Access: "write", Present: true}}, Not: []string{hostileText}}
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	d.at = netip.MustParseAddrPort("127.0.0.1:0")
	d.serve = func() {
		l, err := listen.Open(t.Context(), d.at, false, slog.New(slog.DiscardHandler))
		if err != nil {
			t.Fatal(err)
		}
		d.at = l.Address()
		rules := d.page.Rules(d.at)
		served := make(chan error, 1)
		go func() { served <- l.Serve(d.page.Handler(), rules) }()
		d.stop = func() {
			ctx, stop := context.WithTimeout(context.WithoutCancel(t.Context()), time.Second)
			defer stop()
			_ = l.Close(ctx) // of a tab that listens it waits in vain
			if err := <-served; err != nil {
				t.Log("the page ended:", err)
			}
		}
	}
	d.serve()
	t.Cleanup(func() {
		err := d.page.Close()
		d.stop()
		if err := errors.Join(err, state.Close()); err != nil {
			t.Error(err)
		}
	})
	d.chromium = newChromium(t)
	d.agent = newMCPAgent(t, bin, root, env)
	return d
}

// hears is true once the page is there and its buttons take clicks.
const hears = "document.readyState === 'complete' && !document.body.classList.contains('deaf')"

// enters opens the link.
func (d *theDesk) enters() {
	d.t.Helper()
	d.goes(d.page.Link())
	d.clicks("main button")
	d.sees("document.body.dataset.view === 'pending' && " + hears)
}

// view follows a link of the navigation.
func (d *theDesk) view(name string) {
	d.t.Helper()
	d.sees("document.readyState === 'complete'")
	d.run(fmt.Sprintf("document.querySelector('nav a[href$=%q]').click()", "/"+name))
	d.sees(fmt.Sprintf("location.pathname.endsWith(%q) && %s", "/"+name, hears))
}

// mcpAgent is a client of postern serve that doesn't wait for its answers.
type mcpAgent struct {
	t   *testing.T
	in  io.Writer
	out *bufio.Scanner
	id  int
}

func newMCPAgent(t *testing.T, bin, root string, env []string) *mcpAgent {
	t.Helper()
	cmd := exec.CommandContext(context.WithoutCancel(t.Context()), bin, "serve", "--agent", "tester", root)
	cmd.Env = env
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = in.Close(); _ = cmd.Wait() })
	a := &mcpAgent{t: t, in: in, out: bufio.NewScanner(out)}
	a.out.Buffer(nil, 1<<20)
	a.send("initialize", map[string]any{"protocolVersion": "2025-11-25", "capabilities": map[string]any{}, "clientInfo": map[string]any{"name": hostileText, "version": "1"}})
	a.answer()
	return a
}

func (a *mcpAgent) send(method string, params any) {
	a.t.Helper()
	a.id++
	text, err := json.Marshal(map[string]any{"jsonrpc": "2.0", "id": a.id, "method": method, "params": params})
	if err == nil {
		_, err = a.in.Write(append(text, '\n'))
	}
	if err != nil {
		a.t.Fatal(err)
	}
}

func (a *mcpAgent) call(tool string, args map[string]any) {
	a.t.Helper()
	a.send("tools/call", map[string]any{"name": tool, "arguments": args})
}

func (a *mcpAgent) answer() string {
	a.t.Helper()
	if !a.out.Scan() {
		a.t.Fatal("no answer", a.out.Err())
	}
	return a.out.Text()
}

func (d *theDesk) holds(name, want string) {
	d.t.Helper()
	data, err := os.ReadFile(filepath.Join(d.root, name))
	if err != nil || string(data) != want {
		d.t.Errorf("%s: %q, %v", name, data, err)
	}
}

// TestPageEndToEnd: an agent's call waits, a person sees the card in a browser as
// it comes, says yes, the file changes, and they undo it: all on the page. No
// text of others runs.
func TestPageEndToEnd(t *testing.T) {
	d := newTheDesk(t)
	d.enters()
	d.sees("document.querySelector('.none')")
	d.run(`window.heard = []; new MutationObserver(() => { const b = document.querySelector('.card .yes'); if (b) { const e = new MouseEvent('click', { bubbles: true, cancelable: true }); b.dispatchEvent(e); window.heard.push(!e.defaultPrevented) } }).observe(document.querySelector('[data-live=cards]'), { childList: true })`)
	name := "<img src=x onerror=alert(4)>\u202e.html"
	if err := os.WriteFile(filepath.Join(d.root, name), []byte("old\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	d.agent.call("write_file", map[string]any{"path": name, "content": hostileText + "\n"})
	d.sees("document.querySelector('.card')") // without a reload
	d.sees("document.title.startsWith('(1)') && document.querySelector('[role=status]').textContent.includes('1 question')")
	for _, want := range []string{"tester", "-old", "+</pre><script>alert(1)</script>", "fs.write", `<img src=x onerror=alert(4)>\\u202e.html`} {
		if got := d.run("document.querySelector('.card').textContent.includes(" + quote(strings.ReplaceAll(want, `\\`, `\`)) + ")"); got != "true" {
			t.Errorf("the card lacks %q: %s", want, d.run("document.querySelector('.card').textContent"))
		}
	}
	if bad := d.nameless(); len(bad) > 0 {
		t.Errorf("without a name: %v", bad)
	}
	if got := d.run("window.heard"); got != "[false]" {
		t.Errorf("a click in the moment of the card's coming: %s", got)
	}
	d.holds(name, "old\n")
	time.Sleep(prompt.Deaf + 200*time.Millisecond)
	d.clicks(".card .yes")
	d.sees("(document.querySelector('.notice') || {}).textContent?.includes('approved once')")
	if got := d.agent.answer(); !strings.Contains(got, "Successfully wrote") {
		t.Error(got)
	}
	d.holds(name, hostileText+"\n")
	d.view("activity")
	d.sees("document.querySelector('tbody').textContent.includes('approved') && document.querySelector('tbody').textContent.includes('fs.write')")
	for _, view := range []string{"grants", "reach", "undo"} {
		d.view(view)
		if bad := d.nameless(); len(bad) > 0 {
			t.Errorf("%s: without a name: %v", view, bad)
		}
		if n := d.run("document.querySelectorAll('main img, main script, iframe, object, embed').length"); n != "0" {
			t.Errorf("%s: %s elements of others", view, n)
		}
	}
	d.clicks("tbody a")
	d.sees("document.querySelector('.plan .added')?.textContent === '+old\\n' && document.querySelector('.plan .removed').textContent.startsWith('-</pre><script>') && " + hears)
	if n := d.run("document.querySelectorAll('main img, main script').length"); n != "0" {
		t.Errorf("the plan: %s elements of others", n)
	}
	d.clicks(".yes")
	d.sees("(document.querySelector('.notice') || {}).textContent?.includes('restored ')")
	d.holds(name, "old\n")
	// What a file of these names holds is never more than text here.
	for _, name := range []string{"x.svg", "x.xhtml", "x.html.txt", "x.html"} {
		d.view("")
		d.sees("document.querySelector('.none')")
		d.agent.call("write_file", map[string]any{"path": name, "content": "<svg xmlns='http://www.w3.org/2000/svg' onload='alert(5)'><script>alert(6)</script></svg>\n"})
		d.sees("document.querySelector('.card')?.textContent.includes('<svg xmlns')")
		if n := d.run("document.querySelectorAll('main svg, main script').length"); n != "0" {
			t.Errorf("%s: %s elements of others", name, n)
		}
		for _, q := range d.store.Pending() {
			if _, err := d.store.Decide(t.Context(), q.ID, grant.Answer{Kind: grant.Once, Approver: "terminal"}); err != nil {
				t.Fatal(err)
			}
		}
		d.agent.answer()
		if got := d.run(fmt.Sprintf("fetch(location.pathname + %q).then((r) => r.status)", name)); got != "404" {
			t.Errorf("%s is served: %s", name, got)
		}
	}
	if d.dialogs != 0 {
		t.Errorf("%d dialogs: a text of somebody else ran", d.dialogs)
	}
}

// TestPageKeyboard: with the keys alone, what can't be taken back by its code;
// and everybody else is told who was first.
func TestPageKeyboard(t *testing.T) {
	d := newTheDesk(t)
	d.enters()
	d.agent.call("delete_file", map[string]any{"path": "sub", "recursive": true, "confirm": true})
	d.agent.call("write_file", map[string]any{"path": "a.txt", "content": "x"})
	d.sees("document.querySelectorAll('.card').length === 2")
	d.presses("j")
	d.presses("j")
	d.presses("k")
	if got := d.run("document.activeElement === document.querySelectorAll('.card')[0]"); got != "true" {
		t.Error("j and k don't move")
	}
	card := d.run("(() => { const c = [...document.querySelectorAll('.card')].find((c) => c.textContent.includes('a.txt')); c.id = 'mine'; return c.dataset.key.slice(0, 8) })()")
	time.Sleep(prompt.Deaf + 200*time.Millisecond)
	d.run("document.querySelector('#mine .no').focus()")
	d.presses("Enter")
	d.sees("(document.querySelector('.notice') || {}).textContent?.includes('denied')")
	if got := d.agent.answer(); !strings.Contains(got, "a person said no") {
		t.Error(got, card)
	}
	d.sees("document.querySelectorAll('.card').length === 1 && " + hears)
	d.run("document.querySelector('.code input').focus()")
	d.types("none")
	d.presses("Enter")
	d.sees("(document.querySelector('.notice') || {}).textContent?.includes('not answered: the code is wrong') && " + hears)
	d.run("document.querySelector('.code input').focus()")
	d.types(d.run("document.querySelector('.code strong').textContent"))
	d.presses("Enter")
	d.sees("(document.querySelector('.notice') || {}).textContent?.includes('approved once')")
	d.agent.answer()
	// Answered elsewhere: the card goes by itself.
	d.agent.call("write_file", map[string]any{"path": "b.txt", "content": "y"})
	d.sees("document.querySelector('.card') && !document.querySelector('.notice')") // what was told before goes
	for _, q := range d.store.Pending() {
		if _, err := d.store.Decide(t.Context(), q.ID, grant.Answer{Kind: grant.No, Approver: "terminal"}); err != nil {
			t.Fatal(err)
		}
	}
	d.sees("!document.querySelector('.card') && document.querySelector('.none')")
	d.agent.answer()
}

// TestPageLost: a tab whose server has ended says that nothing on it is
// current, and takes it back when the server is there again.
func TestPageLost(t *testing.T) {
	d := newTheDesk(t)
	d.enters()
	const lost = "document.getElementById('lost').textContent"
	d.sees("document.querySelector('.none')")
	if got := d.run(lost); got != "" {
		t.Errorf("it says %q while it is connected", got)
	}
	d.stop()
	d.sees(lost + ".includes('not connected: nothing here is current')")
	d.serve()
	d.sees(lost + " === ''")
}

// TestPageWithoutScript: nobody waits then, and all else works.
func TestPageWithoutScript(t *testing.T) {
	d := newTheDesk(t)
	d.do(d.session, "Emulation.setScriptExecutionDisabled", map[string]any{"value": true}, nil)
	d.enters()
	write := map[string]any{"path": "a.txt", "content": "x"}
	d.agent.call("write_file", write)
	if got := d.agent.answer(); !strings.Contains(got, "a person runs: postern approve") {
		t.Error(got)
	}
	d.run("document.querySelector('nav a').click()")
	d.sees("document.readyState === 'complete' && document.querySelector('.card')")
	time.Sleep(prompt.Deaf + 200*time.Millisecond)
	d.clicks(".card .yes")
	d.sees("(document.querySelector('.notice') || {}).textContent?.includes('approved once')")
	d.agent.call("write_file", write)
	if got := d.agent.answer(); !strings.Contains(got, "Successfully wrote") {
		t.Error(got)
	}
	d.holds("a.txt", "x")
	// Several on one card, and a tick for one of them.
	several := []map[string]any{{"path": "a.txt", "content": "y"}, {"path": "sub/b.md", "content": "y"}}
	for _, args := range several {
		d.agent.call("write_file", args)
		d.agent.answer()
	}
	d.run("document.querySelector('nav a').click()")
	d.sees("document.readyState === 'complete' && document.querySelectorAll('.rows > li').length === 2")
	time.Sleep(prompt.Deaf + 200*time.Millisecond)
	d.clicks(".rows > li:nth-child(2) label")
	d.clicks(".card .yes")
	d.sees("document.querySelector('.notice')?.textContent.includes('approved once')")
	for i, args := range several {
		d.agent.call("write_file", args)
		if got := d.agent.answer(); strings.Contains(got, "Successfully wrote") != (i == 1) {
			t.Error(i, got)
		}
	}
}

// TestPageFromElsewhere: a page of another origin, one on another port of this
// machine, and one whose name was rebound get nothing out of a browser that is
// logged in, and can't frame the page.
func TestPageFromElsewhere(t *testing.T) {
	d := newTheDesk(t)
	d.enters()
	d.agent.call("write_file", map[string]any{"path": "a.txt", "content": "x"})
	d.sees("document.querySelector('.card')")
	href := d.run("location.href")
	fields := d.run("new URLSearchParams(new FormData(document.querySelector('.card form'))).toString() + '&answer=once'")
	decide := d.run("document.querySelector('.card form').action")
	var cookies []string
	other := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		cookies = append(cookies, r.Header.Values("Cookie")...)
		w.Header().Set("Content-Type", "text/html")
		_, _ = io.WriteString(w, "<!doctype html><title>elsewhere</title><p>x")
	}))
	defer other.Close()
	time.Sleep(prompt.Deaf)
	for _, origin := range []string{other.URL, strings.Replace(other.URL, "127.0.0.1", "evil.test", 1)} {
		d.goes(origin + "/")
		for _, mode := range []string{"cors", "no-cors"} {
			got := d.run(fmt.Sprintf("fetch(%s, {mode: %q, credentials: 'include'}).then((r) => r.text()).catch(() => '')", quote(href), mode))
			if got != "" {
				t.Errorf("%s reads %.100q", origin, got)
			}
			d.run(fmt.Sprintf("fetch(%s, {method: 'POST', mode: %q, credentials: 'include', headers: {'Content-Type': 'application/x-www-form-urlencoded'}, body: %s}).catch(() => '')",
				quote(decide), mode, quote(fields)))
		}
		got := d.run(fmt.Sprintf(`new Promise((done) => { const f = document.createElement('iframe'); f.onload = () => { try { done(f.contentDocument ? f.contentDocument.title : 'closed') } catch { done('closed') } }; f.src = %s; document.body.append(f); setTimeout(() => done('nothing'), 5000) })`, quote(href)))
		if got != "closed" && got != "nothing" {
			t.Errorf("%s frames %q", origin, got)
		}
		d.run(fmt.Sprintf(`(() => { const f = document.createElement('form'); f.method = 'post'; f.action = %s; for (const [k, v] of new URLSearchParams(%s)) { const i = document.createElement('input'); i.name = k; i.value = v; f.append(i) } document.body.append(f); f.submit() })()`, quote(decide), quote(fields)))
		d.sees("document.body.textContent.includes('denied: http origin')")
	}
	rebound := fmt.Sprintf("http://evil.test:%d%s", d.at.Port(), strings.TrimPrefix(href, "http://"+d.at.String()))
	d.goes(rebound)
	d.sees("document.body.textContent.includes('denied: http host')")
	if len(cookies) > 0 {
		t.Errorf("another port of this machine got %d cookies", len(cookies))
	}
	if n := len(d.store.Grants()); n != 0 {
		t.Errorf("%d yeses", n)
	}
	d.holds("a.txt", "alpha\nbeta\ngamma\n")
	d.goes(href) // the control: typed by the person, it is there
	d.sees("document.querySelector('.card')")
	// The frame is refused by our own words, not by the cookie alone.
	if got := d.run(`new Promise((done) => { const f = document.createElement('iframe'); f.onload = () => { try { done(f.contentDocument && f.contentDocument.body ? f.contentDocument.body.dataset.view || 'blocked' : 'blocked') } catch { done('blocked') } }; f.src = location.href; document.body.append(f); setTimeout(() => done('blocked'), 5000) })`); got != "blocked" {
		t.Errorf("framed by itself: %q", got)
	}
}

// ask has the agent put as many questions about files that are there, at once.
func (d *theDesk) ask(names ...string) {
	d.t.Helper()
	for _, name := range names {
		if err := os.WriteFile(filepath.Join(d.root, name), []byte("old\n"), 0o644); err != nil {
			d.t.Fatal(err)
		}
		d.agent.call("write_file", map[string]any{"path": name, "content": hostileText + "\n"})
	}
}

// ticks the box of the question about that file with the keys.
func (d *theDesk) ticks(name string) {
	d.t.Helper()
	d.run(fmt.Sprintf("[...document.querySelectorAll('.rows > li')].find((r) => r.querySelector('label').textContent.includes(%q)).querySelector('input').focus()", name))
	d.presses(" ")
}

const ticked = "[...document.querySelectorAll('.tick input')].filter((i) => i.checked).length"

// TestPageSimilar: questions that are alike are one card. What is ticked stays so
// while others come, nobody else ticks anything, and exactly that is answered; by
// the keys alone.
func TestPageSimilar(t *testing.T) {
	d := newTheDesk(t)
	d.enters()
	d.ask("s1.txt", "s2.txt", "s3.txt")
	d.sees("document.querySelectorAll('.card').length === 1 && document.querySelectorAll('.rows > li').length === 3 && " + hears)
	if got := d.run(ticked); got != "0" {
		t.Errorf("%s are ticked by themselves", got)
	}
	if bad := d.nameless(); len(bad) > 0 {
		t.Errorf("without a name: %v", bad)
	}
	d.ticks("s2.txt")
	d.sees(ticked + " === 1")
	d.ask("s4.txt")
	d.sees("document.querySelectorAll('.rows > li').length === 4 && document.querySelector('[for^=all-]').textContent === 'all 4 of them' && " + hears)
	if got := d.run(ticked); got != "1" {
		t.Errorf("%s are ticked, of one", got)
	}
	time.Sleep(prompt.Deaf)
	d.run("document.querySelector('.card .yes').focus()")
	d.presses("Enter")
	d.sees("document.querySelector('.notice')?.textContent.includes('s2.txt') && document.querySelectorAll('.rows > li').length === 3 && " + hears)
	if got := d.agent.answer(); !strings.Contains(got, "Successfully wrote") {
		t.Error(got)
	}
	for name, want := range map[string]string{"s1.txt": "old\n", "s2.txt": hostileText + "\n", "s3.txt": "old\n", "s4.txt": "old\n"} {
		d.holds(name, want)
	}
	// One changes meanwhile: it is a card of its own, with no yes; all the rest go through.
	if err := os.WriteFile(filepath.Join(d.root, "s3.txt"), []byte("somebody else's\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	d.sees("[...document.querySelectorAll('.card')].some((c) => c.textContent.includes('this changed since it was asked') && !c.querySelector('.yes')) && document.querySelectorAll('.rows > li').length === 2 && " + hears)
	time.Sleep(prompt.Deaf)
	d.run("document.querySelector('[id^=all-]').focus()")
	d.presses(" ")
	if got := d.run(ticked); got != "3" {
		t.Errorf("%s are ticked, of all: their own and that for all", got)
	}
	d.ticks("s4.txt")
	if got := d.run(ticked); got != "1" {
		t.Errorf("%s are ticked after one was taken back, of the other", got)
	}
	d.run("document.querySelector('[id^=all-]').focus()")
	d.presses(" ")
	d.run("document.querySelector('.card .yes').focus()")
	d.presses("Enter")
	d.sees("document.querySelectorAll('.notice p').length >= 2 && document.querySelector('.notice').textContent.includes('s4.txt') && " + hears)
	d.agent.answer()
	d.agent.answer()
	for name, want := range map[string]string{"s1.txt": hostileText + "\n", "s3.txt": "somebody else's\n", "s4.txt": hostileText + "\n"} {
		d.holds(name, want)
	}
	d.clicks(".card .no")
	d.agent.answer()
	// All of the session is taken back on the page.
	d.view("undo")
	d.run("[...document.querySelectorAll('tbody a')].find((a) => a.textContent === 'undo session…').click()")
	d.sees("document.querySelector('a[href*=\"plan?session=\"]') && " + hears)
	d.clicks("a[href*=\"plan?session=\"]")
	d.sees("document.querySelector('.plan')?.textContent.includes('restore') && " + hears)
	time.Sleep(prompt.Deaf)
	d.clicks(".yes")
	d.sees("document.querySelector('.notice')?.textContent.includes('restored ')")
	for _, name := range []string{"s1.txt", "s2.txt", "s4.txt"} {
		d.holds(name, "old\n")
	}
	if d.dialogs != 0 {
		t.Errorf("%d dialogs: a text of somebody else ran", d.dialogs)
	}
}

// TestPageNarrow: on a phone, light and dark, no view is wider than the screen,
// and each control has a name.
func TestPageNarrow(t *testing.T) {
	d := newTheDesk(t)
	d.do(d.session, "Emulation.setDeviceMetricsOverride", map[string]any{"width": 360, "height": 740, "deviceScaleFactor": 1, "mobile": true}, nil)
	d.enters()
	long := strings.Repeat("long-name-", 20)
	d.ask("n1-"+long, "n2-"+long)
	d.agent.call("delete_file", map[string]any{"path": "sub", "recursive": true, "confirm": true})
	d.agent.call("write_file", map[string]any{"path": "alone.txt", "content": strings.Repeat("x", 500) + "\n"})
	d.sees("document.querySelectorAll('.card').length === 3 && document.querySelectorAll('.rows > li').length === 2")
	d.run("document.querySelector('.wider').open = true")
	narrow := func(view string) {
		t.Helper()
		if got := d.run("document.documentElement.scrollWidth"); got != "360" {
			t.Errorf("%s is %s wide: %s", view, got, d.run("[...document.querySelectorAll('body *')].filter((e) => e.getBoundingClientRect().right > 361).map((e) => e.outerHTML.slice(0, 80)).join(' | ')"))
		}
		if bad := d.nameless(); len(bad) > 0 {
			t.Errorf("%s: without a name: %v", view, bad)
		}
	}
	narrow("questions")
	for _, q := range d.store.Pending() {
		if _, err := d.store.Decide(t.Context(), q.ID, grant.Answer{Kind: grant.Once, Approver: "terminal"}); err != nil {
			t.Fatal(err)
		}
	}
	for range 4 {
		d.agent.answer()
	}
	for _, view := range []string{"activity", "undo", "grants", "reach"} {
		d.view(view)
		narrow(view)
	}
	d.view("activity")
	d.sees("document.querySelector('a[href*=\"/why?\"]')")
	d.clicks("a[href*=\"/why?\"]")
	d.sees("document.querySelector('.why')?.textContent.includes('<script>') && " + hears)
	narrow("why")
	d.view("undo")
	d.clicks("tbody a")
	d.sees("document.querySelector('.plan') && " + hears)
	narrow("plan")
	if n := d.run("document.querySelectorAll('main img, main script, iframe').length"); n != "0" || d.dialogs != 0 {
		t.Errorf("%s elements of others, %d dialogs", n, d.dialogs)
	}
}
