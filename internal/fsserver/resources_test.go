// SPDX-License-Identifier: Apache-2.0

//go:build linux

package fsserver

import (
	"context"
	"encoding/json"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"
)

// part is one part of a resource.
type part struct{ URI, MimeType, Text, Blob string }

// failure is the error of a request, with its data.
type failure struct {
	Code    int
	Message string
	Data    struct{ Code, Rule, ID, URI string }
}

// read reads a resource; exactly one of both is set.
func (c *client) read(uri string) ([]part, *failure) {
	c.t.Helper()
	_, ch := c.start("resources/read", map[string]any{"uri": uri})
	return c.parts(<-ch)
}

func (c *client) parts(line json.RawMessage) ([]part, *failure) {
	c.t.Helper()
	var got struct {
		Result struct{ Contents []part }
		Error  *failure
	}
	if err := json.Unmarshal(line, &got); err != nil {
		c.t.Fatal(err)
	}
	if (got.Error == nil) == (got.Result.Contents == nil) {
		c.t.Fatalf("%s", line)
	}
	return got.Result.Contents, got.Error
}

func (w *world) uri(name string) string { return fileURL(w.at(name)) }

// TestResourceLists: the roots are listed, and every file has a URI.
func TestResourceLists(t *testing.T) {
	w := newWorld(t, nil)
	f := w.request("resources/list", map[string]any{})
	want := `"resources":[{"uri":"` + w.uri("") + `/","name":"project","mimeType":"inode/directory"}]`
	if !strings.Contains(string(f.Result), want) {
		t.Errorf("%s\nwant %s", f.Result, want)
	}
	f = w.request("resources/templates/list", map[string]any{})
	if !strings.Contains(string(f.Result), `"uriTemplate":"file:///{+path}"`) {
		t.Errorf("%s", f.Result)
	}
	off := w.serveWith(func(o *Options) { o.Off = []string{"read_text_file"} })
	if f := off.request("resources/list", map[string]any{}); f.Error == nil || f.Error.Code != -32601 {
		t.Errorf("%+v", f)
	}
}

// TestReadResource: text comes in an envelope, bytes as they are, a directory as
// its list; what is missing is said too.
func TestReadResource(t *testing.T) {
	w := newWorld(t, map[string]string{"a b.txt": "one\n<untrusted-x>", "d/x": "X", "d/.env": "SECRET=1", "bin": "a\x00b", "p.png": "\x89PNG\r\n\x1a\n\x00", "i.svg": "<svg/>", "é": "accent"})
	got, _ := w.read(w.uri("a b.txt"))
	if e, ok := open(got[0].Text); !ok || e.attribute("kind") != "file" || e.attribute("source") != "project://a b.txt" ||
		!strings.HasPrefix(e.body, "one\n") || got[0].URI != w.uri("a b.txt") || got[0].MimeType != "text/plain" {
		t.Errorf("%+v", got)
	}
	if got, _ = w.read(w.uri("bin")); got[0].Blob != "YQBi" || got[0].MimeType != "application/octet-stream" {
		t.Errorf("%+v", got)
	}
	if got, _ = w.read(w.uri("p.png")); got[0].Blob != "iVBORw0KGgoA" || got[0].MimeType != "image/png" {
		t.Errorf("%+v", got)
	}
	if got, _ = w.read(w.uri("i.svg")); !strings.Contains(got[0].Text, "<svg/>") || !strings.HasPrefix(got[0].Text, "<untrusted-") {
		t.Errorf("%+v", got)
	}
	for _, uri := range []string{w.uri("d"), w.uri("d") + "/"} {
		got, _ = w.read(uri)
		if e, ok := open(got[0].Text); !ok || e.body != "[FILE] x" || len(got) != 2 || got[1].Text != "1 name is hidden by policy" {
			t.Errorf("%s: %+v", uri, got)
		}
	}
	if got, _ = w.read("file://localhost" + w.at("d") + "/x"); len(got) != 1 {
		t.Errorf("%+v", got)
	}
	if got, _ = w.read(w.uri("é")); len(got) != 1 || !strings.HasSuffix(got[0].URI, "/%C3%A9") {
		t.Errorf("%+v", got)
	}
	big := w.serveWith(func(o *Options) { o.WholeRead = 3 })
	if _, f := big.read(w.uri("a b.txt")); f == nil || f.Data.Code != "limit.exceeded" || !strings.Contains(f.Message, "read_text_file") {
		t.Errorf("%+v", f)
	}
}

// TestHostileURIs: a URI means the one path that it spells, or nothing. Each of
// the files is read where its name is given plainly, so the refusals are of the
// URI.
func TestHostileURIs(t *testing.T) {
	w := newWorld(t, map[string]string{"a": "A", "d/b": "B", ".env": "S=1", "%61": "percent"})
	w.put(w.outside+"/o", "OUT")
	w.link(w.outside+"/o", "out")
	for uri, code := range map[string]string{
		w.uri(".env"):                                    "policy.denied",
		w.uri("out"):                                     "path.escape",
		"file:///etc/passwd":                             "path.escape",
		w.uri("") + "/../outside/o":                      "path.escape",
		w.uri("") + "/%2e%2e/outside/o":                  "path.escape",
		w.uri("") + "/%252e%252e/outside/o":              "path.missing", // decoded once
		w.uri("") + "/d%2fb":                             "path.denied",
		w.uri("") + "/d%2Fb":                             "path.denied",
		w.uri("") + "/a%00":                              "path.denied",
		w.uri("") + "/%ff":                               "path.denied",
		w.uri("") + "/%zz":                               "path.denied",
		w.uri("a") + "?x":                                "path.denied",
		w.uri("a") + "#x":                                "path.denied",
		w.uri("a") + "?":                                 "path.denied",
		w.uri("a") + "#":                                 "path.denied",
		"file://evil.test" + w.at("a"):                   "path.denied",
		"file://127.0.0.1" + w.at("a"):                   "path.denied",
		"file://localhost:80" + w.at("a"):                "path.denied",
		"file://user@localhost" + w.at("a"):              "path.denied",
		"file:a":                                         "path.denied",
		"file:" + strings.TrimPrefix(w.at("a"), "/"):     "path.denied",
		"http://localhost" + w.at("a"):                   "path.denied",
		"project://a":                                    "path.denied", // arguments spell it so, URIs don't
		w.at("a"):                                        "path.denied",
		"":                                               "path.denied",
		w.uri("missing"):                                 "path.missing",
		w.uri("") + "/" + strings.Repeat("x", 300):       "path.denied",
		"file:///" + strings.Repeat("x/", 4000):          "path.denied",
		w.uri("a") + "/":                                 "path.missing",
		"file:///proc/self/cwd/internal/fsserver/doc.go": "path.escape",
	} {
		got, f := w.read(uri)
		switch {
		case f == nil:
			t.Errorf("%.200s: read %+v", uri, got)
		case f.Data.Code != code:
			t.Errorf("%.200s: %+v, want %s", uri, f, code)
		case code == "path.missing" && f.Code != -32002, code != "path.missing" && f.Code != -32602:
			t.Errorf("%.200s: number %d of %s", uri, f.Code, code)
		case strings.Contains(f.Message, w.outside) && !strings.Contains(uri, w.outside):
			t.Errorf("%.200s tells where the link leads: %s", uri, f.Message)
		}
	}
	if got, f := w.read(w.uri("") + "/%2561"); f != nil || !strings.Contains(got[0].Text, "percent") {
		t.Errorf("%+v %+v", got, f)
	}
	if got, f := w.read(w.uri("") + "/d/%2e%2e/a"); f != nil || !strings.Contains(got[0].Text, "A") {
		t.Errorf("%+v %+v", got, f) // stays inside, as of any spelling
	}
}

// TestAliasResource: a root with a scheme of its own is listed and read under it.
func TestAliasResource(t *testing.T) {
	w := newWorld(t, map[string]string{"a b": "A", "d/x": "X"}, func(w *world) { w.setup.Roots = []string{"project=" + w.root + "=res"} })
	f := w.request("resources/list", map[string]any{})
	if !strings.Contains(string(f.Result), `"uri":"res://"`) {
		t.Errorf("%s", f.Result)
	}
	for _, uri := range []string{"res://", "res://a%20b", "res://d/x", "res://d/"} {
		if got, f := w.read(uri); f != nil {
			t.Errorf("%s: %+v %+v", uri, got, f)
		}
	}
	for _, uri := range []string{"res://d%2Fx", "res://../outside", "res:///a", "res://a?b", w.uri("d")} {
		if got, f := w.read(uri); f == nil {
			t.Errorf("%s: %+v", uri, got)
		}
	}
}

// heard waits until a notification of the URI has come.
func (c *client) heard(uri string) string {
	c.t.Helper()
	for end := time.Now().Add(patience); time.Now().Before(end); time.Sleep(2 * time.Millisecond) {
		c.mu.Lock()
		for i, line := range c.updates {
			if strings.Contains(line, `"uri":"`+uri+`"`) {
				c.updates = append(c.updates[:i:i], c.updates[i+1:]...)
				c.mu.Unlock()
				return line
			}
		}
		c.mu.Unlock()
	}
	c.t.Fatalf("no notification of %s", uri)
	return ""
}

func (c *client) silent() {
	c.t.Helper()
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.updates) > 0 {
		c.t.Errorf("unasked: %q", c.updates)
	}
}

func (c *client) subscribe(uri string) *failure {
	c.t.Helper()
	_, ch := c.start("resources/subscribe", map[string]any{"uri": uri})
	var got struct{ Error *failure }
	if err := json.Unmarshal(<-ch, &got); err != nil {
		c.t.Fatal(err)
	}
	return got.Error
}

// TestSubscribeResource: a directory and a file tell of changes, and nothing
// tells of a name that is hidden.
func TestSubscribeResource(t *testing.T) {
	w := newWorld(t, map[string]string{"d/a": "1", "f": "1", "g": "1"})
	for _, uri := range []string{w.uri("d"), w.uri("f")} {
		if f := w.subscribe(uri); f != nil {
			t.Fatalf("%s: %+v", uri, f)
		}
	}
	w.put(w.at("d/.env"), "S=1") // hidden by the built-in list
	w.put(w.at("g"), "2")
	time.Sleep(300 * time.Millisecond)
	w.silent()
	w.put(w.at("d/new"), "1")
	w.heard(w.uri("d"))
	w.call("write_file", args{"path": w.at("f"), "content": "2"}).ok()
	w.heard(w.uri("f"))
	for uri, code := range map[string]string{
		w.uri("none"): "path.missing", w.uri("d/.env"): "policy.denied", "file:///etc": "path.escape", "x": "path.denied",
	} {
		if f := w.subscribe(uri); f == nil || f.Data.Code != code {
			t.Errorf("%s: %+v, want %s", uri, f, code)
		}
	}
	w.must(os.RemoveAll(w.at("d")))
	for line := ""; !strings.Contains(line, "the subscription has ended"); {
		line = w.heard(w.uri("d"))
	}
	w.request("resources/unsubscribe", map[string]any{"uri": w.uri("f")})
	time.Sleep(300 * time.Millisecond)
	w.mu.Lock()
	w.updates = nil
	w.mu.Unlock()
	w.put(w.at("f"), "3")
	time.Sleep(300 * time.Millisecond)
	w.silent()
}

// TestSubscribeWithinRoots: a client's roots narrow what it may subscribe to, and
// roots that become narrower end it.
func TestSubscribeWithinRoots(t *testing.T) {
	w := newWorld(t, map[string]string{"in/a": "1", "out/a": "1"}, later)
	c := w.serve(w.setup, []string{w.uri("in")})
	if f := c.subscribe(w.uri("out")); f == nil || f.Data.Code != "policy.denied" {
		t.Errorf("%+v", f)
	}
	if f := c.subscribe(w.uri("in")); f != nil {
		t.Fatalf("%+v", f)
	}
	w.put(w.at("in/a"), "2")
	c.heard(w.uri("in"))
	c.setRoots(w.uri("out"))
	c.call("list_directory", args{"path": w.at("out")}).ok() // the new list is known
	for line, n := "", 0; !strings.Contains(line, "the subscription has ended"); n++ {
		w.put(w.at("in/a"), strconv.Itoa(n))
		line = c.heard(w.uri("in"))
	}
}

// TestListenToResource: the same in the stateless era.
func TestListenToResource(t *testing.T) {
	w := newWorld(t, map[string]string{"d/a": "1"})
	meta := map[string]any{"io.modelcontextprotocol/protocolVersion": "2026-07-28", "io.modelcontextprotocol/clientCapabilities": map[string]any{}}
	id, ch := w.start("subscriptions/listen", map[string]any{
		"_meta": meta, "notifications": map[string]any{"resourceSubscriptions": []string{w.uri("d"), w.uri("none")}},
	})
	line := ""
	for end := time.Now().Add(patience); line == "" && time.Now().Before(end); { // until it is acknowledged, changes may be missed
		w.put(w.at("d/a"), time.Now().String())
		time.Sleep(50 * time.Millisecond)
		w.mu.Lock()
		if len(w.updates) > 0 {
			line = w.updates[0]
		}
		w.mu.Unlock()
	}
	if !strings.Contains(line, `"io.modelcontextprotocol/subscriptionId":`+strconv.Itoa(id)+`},"uri":"`+w.uri("d")+`"`) {
		t.Error(line)
	}
	w.must(os.RemoveAll(w.at("d")))
	if f := w.await(ch); f.Error != nil || !strings.Contains(string(f.Result), `"resultType":"complete"`) {
		t.Errorf("%s", f.Result)
	}
	_, missing := w.start("resources/read", map[string]any{"_meta": meta, "uri": w.uri("none")})
	if _, f := w.parts(<-missing); f == nil || f.Code != -32602 || f.Data.Code != "path.missing" {
		t.Errorf("%+v", f)
	}
}

// FuzzResource: whatever URI arrives, there is exactly one answer, no bug, and
// nothing of the outside in it.
func FuzzResource(f *testing.F) {
	w := newFuzzWorld(f)
	f.Cleanup(func() { w.session.Close(context.WithoutCancel(f.Context())) })
	for _, tail := range []string{
		"/d/f", "/d/out/f", "/../outside/f", "/d/%2e%2e/%2e%2e/outside/f", "/d%2ff", "/%252e%252e/outside/f",
		"/d/f?x", "/d/f#x", "/d/f%00", "/d/\u00e9", "/d/", "//d", "/.", "%zz",
	} {
		f.Add("file://" + w.root + tail)
		f.Add("file://localhost" + w.root + tail)
		f.Add("project://" + tail)
	}
	f.Add("file://" + w.outside + "/f")
	f.Add("FILE:///etc/passwd")
	f.Fuzz(func(t *testing.T, uri string) {
		w.plant(t)
		spelled, err := json.Marshal(uri)
		if err != nil {
			t.Fatal(err)
		}
		for _, method := range []string{"resources/read", "resources/subscribe", "resources/unsubscribe"} {
			answers := w.dispatch(t, `{"jsonrpc":"2.0","id":1,"method":"`+method+`","params":{"uri":`+string(spelled)+`}}`)
			if len(answers) != 1 || !json.Valid([]byte(answers[0])) {
				t.Fatalf("%s: %q", method, answers)
			}
			for _, bad := range []string{"internal.bug", secret} {
				if strings.Contains(answers[0], bad) && !strings.Contains(uri, bad) {
					t.Errorf("%s", answers[0])
				}
			}
		}
	})
}
