// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"html"
	"io"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/postern-gate/postern/internal/prompt"
)

// browser is as much of one as forms need.
type browser struct {
	t        *testing.T
	base     string
	cookie   string
	location string
}

// send makes a request and returns the answer's text.
func (b *browser) send(method, path string, form url.Values) (status int, text string) {
	b.t.Helper()
	r, err := http.NewRequestWithContext(b.t.Context(), method, b.base+path, strings.NewReader(form.Encode()))
	if err != nil {
		b.t.Fatal(err)
	}
	if method == http.MethodPost {
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		r.Header.Set("Origin", "http://"+r.Host)
	}
	if b.cookie != "" {
		r.Header.Set("Cookie", b.cookie)
	}
	a, err := http.DefaultTransport.RoundTrip(r) //nolint:forbidigo // a test's own server
	if err != nil {
		b.t.Fatal(err)
	}
	defer a.Body.Close()
	data, err := io.ReadAll(a.Body)
	if err != nil {
		b.t.Fatal(err)
	}
	if set := a.Header.Get("Set-Cookie"); set != "" {
		b.cookie, _, _ = strings.Cut(set, ";")
	}
	b.location = a.Header.Get("Location")
	return a.StatusCode, string(data)
}

// open opens the link that is on the terminal.
func open(t *testing.T, p *person) *browser {
	t.Helper()
	link := p.sees(`the page, in the next minute and once: (http://127\.0\.0\.1:\d+/[a-z2-7]{32})/login\?code=([a-z2-7]{32})\r\n`)
	b := &browser{t: t, base: link[1]}
	if status, text := b.send(http.MethodPost, "/login", url.Values{"code": {link[2]}}); status != http.StatusSeeOther || b.cookie == "" {
		t.Fatal(status, text)
	}
	return b
}

var hiddenInput = regexp.MustCompile(`<input type="hidden" name="([a-z]+)" value="([^"]*)">`)

// form is the first one that posts there.
func (b *browser) form(path, act string) url.Values {
	b.t.Helper()
	for late := time.Now().Add(30 * time.Second); time.Now().Before(late); time.Sleep(50 * time.Millisecond) {
		_, text := b.send(http.MethodGet, path, nil)
		f := regexp.MustCompile(`(?s)<form [^>]*action="[^"]*` + act + `".*?</form>`).FindString(text)
		v := url.Values{}
		for _, m := range hiddenInput.FindAllStringSubmatch(f, -1) {
			v.Set(m[1], html.UnescapeString(m[2]))
		}
		if f != "" {
			return v
		}
	}
	b.t.Fatalf("%s never has a form %s", path, act)
	return nil
}

// TestUpOnTerminal: up shows decisions and asks on the same terminal, a line
// that comes meanwhile waits, and the page that it serves answers and undoes.
func TestUpOnTerminal(t *testing.T) {
	env, dir := desk(t)
	place(t, dir, "a.txt", "one\n")
	p := sit(t, env, 40, "up", dir)
	b := open(t, p)
	a := newAgent(t, env, dir)
	text := a.call("write_file", map[string]any{"path": "a.txt", "content": "two\n"})
	p.sees(`fs\.write project://a\.txt\r\ny yes, once`)
	reader := newAgent(t, env, dir)
	if got := reader.call("read_text_file", map[string]any{"path": ".env"})(); !strings.Contains(got, "denied") {
		t.Error(got)
	}
	time.Sleep(prompt.Deaf) // the line would have been there
	if strings.Contains(p.screen(), "project://.env") || strings.Contains(p.screen(), "id=") {
		t.Errorf("a line came into the question:\n%s", p.screen())
	}
	p.types("y\r")
	p.sees(`approved [0-9a-z]{8}, once`)
	p.sees(`refusal .* id=`)
	if got := text(); !strings.Contains(got, "Successfully wrote") {
		t.Error(got)
	}
	text = a.call("write_file", map[string]any{"path": "a.txt", "content": "three\n"})
	p.sees(`\+three`)
	v := b.form("/", "/decide")
	v.Set("answer", "once")
	time.Sleep(prompt.Deaf)
	if status, _ := b.send(http.MethodPost, "/decide", v); status != http.StatusSeeOther {
		t.Error(status)
	}
	p.sees(`answered: [0-9a-z]{8}, approved by page`)
	if got := text(); !strings.Contains(got, "Successfully wrote") {
		t.Error(got)
	}
	_, list := b.send(http.MethodGet, "/activity", nil)
	why := regexp.MustCompile(`/why\?id=[^"]+`).FindString(list)
	if _, said := b.send(http.MethodGet, why, nil); !strings.Contains(said, "asked: fs.write project://a.txt") || !strings.Contains(said, "rule: fs.write: ask") {
		t.Error(why, said)
	}
	_, list = b.send(http.MethodGet, "/undo", nil)
	plan := regexp.MustCompile(`/undo/plan\?id=[^"]+`).FindString(list)
	v = b.form(plan, "/undo")
	time.Sleep(prompt.Deaf)
	b.send(http.MethodPost, "/undo", v)
	if _, said := b.send(http.MethodGet, b.location[strings.LastIndex(b.location, "/"):], nil); !strings.Contains(said, "restored project://a.txt") {
		t.Error(said)
	}
	if now, err := os.ReadFile(filepath.Join(dir, "a.txt")); err != nil || string(now) != "two\n" {
		t.Errorf("%q %v", now, err)
	}
	q := sit(t, env, 40, "undo", "--last")
	q.sees(`undo it\? \[y/N\] `)
	q.types("y\r")
	q.sees(`done: restore project://a\.txt`)
	q.ends(0)
	// What changed since is a conflict: told before, and left as it is.
	_, list = b.send(http.MethodGet, "/undo", nil)
	plan = regexp.MustCompile(`/undo/plan\?id=[^"]+`).FindString(list)
	old := b.form(plan, "/undo")
	place(t, dir, "a.txt", "mine\n")
	time.Sleep(prompt.Deaf)
	if _, said := b.send(http.MethodGet, plan, nil); !strings.Contains(said, "conflict: project://a.txt in "+dir+" stays as it is") || strings.Contains(said, "undo it") {
		t.Error(said)
	}
	b.send(http.MethodPost, "/undo", old)
	if _, said := b.send(http.MethodGet, b.location[strings.LastIndex(b.location, "/"):], nil); !strings.Contains(said, "what would be done is something else now") {
		t.Error(said)
	}
	q = sit(t, env, 40, "undo", strings.TrimPrefix(plan, "/undo/plan?id=")) // nor is anything asked on the terminal
	q.sees(`left out: 1 of 1 step`)
	q.ends(1)
	if strings.Contains(q.screen(), "[y/N]") {
		t.Error(q.screen())
	}
	if now, err := os.ReadFile(filepath.Join(dir, "a.txt")); err != nil || string(now) != "mine\n" {
		t.Errorf("%q %v", now, err)
	}
	p.blurts("\x03") // the terminal is its own again: this is a signal
	p.ends(0)
}

// TestUpInterrupted: ctrl-c at a question ends up too, and the question stays.
func TestUpInterrupted(t *testing.T) {
	env, dir := desk(t)
	place(t, dir, "a.txt", "one\n")
	p := sit(t, env, 40, "up", dir)
	p.sees("the page, in the next minute")
	a := newAgent(t, env, dir)
	a.call("write_file", map[string]any{"path": "a.txt", "content": "x"})
	p.sees("y yes, once")
	p.types("\x03")
	p.ends(0)
	q := sit(t, env, 40, "pending")
	q.sees("fs.write project://a.txt")
	q.ends(0)
}

// TestPageAlone: the page by itself; enter gives another link.
func TestPageAlone(t *testing.T) {
	env, dir := desk(t)
	p := sit(t, env, 40, "page", dir)
	b := open(t, p)
	if status, text := b.send(http.MethodGet, "/reach", nil); status != http.StatusOK || !strings.Contains(text, "project://") {
		t.Error(status, text)
	}
	policy := filepath.Join(strings.TrimPrefix(env[0], "HOME="), ".config", "postern", "policy.yaml")
	if err := os.WriteFile(policy, []byte("version: 1\nrulez: { fs.write: deny }\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	said := ""
	for late := time.Now().Add(30 * time.Second); time.Now().Before(late) && !strings.Contains(said, "the edited policy is not in force"); time.Sleep(50 * time.Millisecond) {
		_, said = b.send(http.MethodGet, "/", nil)
	}
	if !strings.Contains(said, "rulez") {
		t.Error(said)
	}
	p.blurts("\r")
	p.sees(`(?s)in the next minute and once.*in the next minute and once`)
	p.blurts("\x03")
	p.ends(0)
}
