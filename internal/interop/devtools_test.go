// SPDX-License-Identifier: Apache-2.0

package interop

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/postern-gate/postern/internal/testenv"
)

// chromium is a headless browser that is driven over its debugging pipe.
type chromium struct {
	t       *testing.T
	in      io.Writer
	mu      sync.Mutex
	id      int
	waiting map[int]chan message
	dialogs int
	session string // of the tab that commands go to
}

type message struct {
	ID        int             `json:"id,omitempty"`
	SessionID string          `json:"sessionId,omitempty"`
	Method    string          `json:"method,omitempty"`
	Params    any             `json:"params,omitempty"`
	Result    json.RawMessage `json:"result,omitempty"`
	Error     *struct {
		Message string `json:"message"`
	} `json:"error,omitempty"`
}

// newChromium starts a browser with a tab.
func newChromium(t *testing.T) *chromium {
	t.Helper()
	path := ""
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome"} {
		if found, err := exec.LookPath(name); err == nil {
			path = found
			break
		}
	}
	if path == "" {
		testenv.Missing(t, "chromium")
	}
	profile, err := os.MkdirTemp("", "postern-chromium-") //nolint:usetesting // its children may still write when the test ends
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.WithoutCancel(t.Context()))
	cmd := exec.CommandContext(ctx, path, "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage",
		"--no-first-run", "--disable-background-networking", "--user-data-dir="+profile,
		"--host-resolver-rules=MAP evil.test 127.0.0.1", "--remote-debugging-pipe", "about:blank")
	theirIn, ourOut, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	ourIn, theirOut, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	cmd.ExtraFiles = []*os.File{theirIn, theirOut}
	cmd.WaitDelay = 10 * time.Second
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	_ = errors.Join(theirIn.Close(), theirOut.Close())
	c := &chromium{t: t, in: ourOut, waiting: map[int]chan message{}}
	t.Cleanup(func() {
		_, _ = io.WriteString(ourOut, `{"id":0,"method":"Browser.close"}`+"\x00")
		timer := time.AfterFunc(10*time.Second, stop)
		_ = cmd.Wait() // it may have been killed
		timer.Stop()
		stop()
		_ = errors.Join(ourOut.Close(), ourIn.Close())
		for range 20 { // its children end a little later, and write until then
			if os.RemoveAll(profile) == nil {
				break
			}
			time.Sleep(100 * time.Millisecond)
		}
	})
	go c.read(ourIn)
	c.session = c.tab()
	return c
}

func (c *chromium) read(in io.Reader) {
	for r := bufio.NewReader(in); ; {
		text, err := r.ReadBytes(0)
		if err != nil {
			return
		}
		var m message
		if json.Unmarshal(text[:len(text)-1], &m) != nil {
			continue
		}
		c.mu.Lock()
		if m.Method == "Page.javascriptDialogOpening" {
			c.dialogs++
		}
		to := c.waiting[m.ID]
		delete(c.waiting, m.ID)
		c.mu.Unlock()
		if to != nil {
			to <- m
		}
	}
}

// do sends a command and reads its result into v, unless that is nil.
func (c *chromium) do(session, method string, params, v any) {
	c.t.Helper()
	if failure := c.try(session, method, params, v); failure != "" {
		c.t.Fatalf("%s: %s", method, failure)
	}
}

// try is do, and returns why the browser didn't, "" if it did.
func (c *chromium) try(session, method string, params, v any) (failure string) {
	c.t.Helper()
	answer := make(chan message, 1)
	c.mu.Lock()
	c.id++
	c.waiting[c.id] = answer
	text, err := json.Marshal(message{ID: c.id, SessionID: session, Method: method, Params: params})
	if err == nil {
		_, err = c.in.Write(append(text, 0))
	}
	c.mu.Unlock()
	if err != nil {
		c.t.Fatal(err)
	}
	select {
	case m := <-answer:
		if m.Error != nil {
			return m.Error.Message
		}
		if v != nil {
			if err := json.Unmarshal(m.Result, v); err != nil {
				c.t.Fatal(err)
			}
		}
	case <-time.After(2 * time.Minute):
		c.t.Fatalf("%s: no answer", method)
	}
	return ""
}

// tab opens one and returns its session.
func (c *chromium) tab() string {
	c.t.Helper()
	var target struct {
		TargetID string `json:"targetId"`
	}
	c.do("", "Target.createTarget", map[string]any{"url": "about:blank"}, &target)
	var attached struct {
		SessionID string `json:"sessionId"`
	}
	c.do("", "Target.attachToTarget", map[string]any{"targetId": target.TargetID, "flatten": true}, &attached)
	c.do(attached.SessionID, "Page.enable", nil, nil)
	return attached.SessionID
}

// run evaluates an expression in the tab and returns it as text.
func (c *chromium) run(js string) string {
	c.t.Helper()
	var r struct {
		Result           struct{ Value any }
		ExceptionDetails *struct{ Exception struct{ Description string } }
	}
	failure := c.try(c.session, "Runtime.evaluate", map[string]any{"expression": js, "returnByValue": true, "awaitPromise": true}, &r)
	if failure != "" { // the page was about to give way to another: who waits asks again
		return "failed: " + failure
	}
	if r.ExceptionDetails != nil {
		return "failed: " + r.ExceptionDetails.Exception.Description
	}
	if s, ok := r.Result.Value.(string); ok {
		return s
	}
	text, _ := json.Marshal(r.Result.Value)
	return string(text)
}

// goes opens an address.
func (c *chromium) goes(url string) {
	c.t.Helper()
	c.do(c.session, "Page.navigate", map[string]any{"url": url}, nil)
	c.sees("document.readyState === 'complete' && location.href !== 'about:blank'")
}

// sees waits until an expression is true.
func (c *chromium) sees(js string) {
	c.t.Helper()
	last := ""
	for late := time.Now().Add(30 * time.Second); time.Now().Before(late); time.Sleep(50 * time.Millisecond) {
		if last = c.run("!!(" + js + ")"); last == "true" {
			return
		}
	}
	c.t.Fatalf("it never is: %s (%s)\n%s", js, last, c.run("document.documentElement.outerHTML"))
}

// clicks presses the mouse on an element, where it is.
func (c *chromium) clicks(selector string) {
	c.t.Helper()
	c.sees("document.readyState === 'complete'")
	at := c.run(`(() => { const e = document.querySelector(` + quote(selector) + `); e.scrollIntoView({block: 'center'}); const r = e.getBoundingClientRect(); return [r.x + r.width / 2, r.y + r.height / 2] })()`)
	var p [2]float64
	if err := json.Unmarshal([]byte(at), &p); err != nil {
		c.t.Fatalf("%s: %s", selector, at)
	}
	for _, kind := range []string{"mousePressed", "mouseReleased"} {
		c.do(c.session, "Input.dispatchMouseEvent", map[string]any{"type": kind, "x": p[0], "y": p[1], "button": "left", "clickCount": 1}, nil)
	}
}

// types sends text to what has the focus.
func (c *chromium) types(text string) {
	c.t.Helper()
	c.do(c.session, "Input.insertText", map[string]any{"text": text}, nil)
}

// presses a key.
func (c *chromium) presses(key string) {
	c.t.Helper()
	params := map[string]any{"type": "keyDown", "key": key, "text": key}
	up := map[string]any{"type": "keyUp", "key": key}
	switch key {
	case "Enter":
		params["text"], params["windowsVirtualKeyCode"] = "\r", 13
	case " ":
		params["windowsVirtualKeyCode"], up["windowsVirtualKeyCode"] = 32, 32
	case "Tab":
		params["text"], params["windowsVirtualKeyCode"] = "", 9
	}
	c.do(c.session, "Input.dispatchKeyEvent", params, nil)
	c.do(c.session, "Input.dispatchKeyEvent", up, nil)
}

// nameless are the controls that assistive technology has no name for.
func (c *chromium) nameless() (all []string) {
	c.t.Helper()
	c.do(c.session, "Accessibility.enable", nil, nil)
	var tree struct {
		Nodes []struct {
			Ignored    bool
			Role, Name struct{ Value any }
		}
	}
	c.do(c.session, "Accessibility.getFullAXTree", nil, &tree)
	controls := 0
	for _, n := range tree.Nodes {
		role, _ := n.Role.Value.(string)
		name, _ := n.Name.Value.(string)
		switch role {
		case "button", "link", "textbox", "searchbox", "checkbox", "DisclosureTriangle", "navigation", "article", "heading", "table", "RootWebArea":
			if controls++; !n.Ignored && strings.TrimSpace(name) == "" {
				all = append(all, role)
			}
		}
	}
	if controls < 5 {
		all = append(all, "nearly nothing is there")
	}
	return all
}

func quote(s string) string {
	b, _ := json.Marshal(s)
	return string(b)
}
