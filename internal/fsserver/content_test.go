// SPDX-License-Identifier: Apache-2.0

//go:build linux

package fsserver

import (
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"github.com/postern-gate/postern/core"
	"github.com/postern-gate/postern/core/fault"
	"github.com/postern-gate/postern/enforce"
	"github.com/postern-gate/postern/internal/fsserver/grep"
)

// hits are the lines of a search without the root's name before them.
func (w *world) hits(r result) string {
	w.Helper()
	return strings.ReplaceAll(r.body(), w.root+"/", "")
}

func searchUTF8Panic(t *testing.T) {
	long := strings.Repeat("\u00e9", 5000)
	w := newWorld(t, map[string]string{"u.txt": long + "match" + long})
	r := w.call("search_content", args{"path": w.root, "query": "match", "glob": "*.txt"}).ok().has("1 line is shortened")
	lines := strings.Split(w.hits(r), "\n")
	if len(lines) != 1 || !strings.HasPrefix(lines[0], "u.txt:1: …é") || !strings.HasSuffix(lines[0], "é…") {
		t.Errorf("%q", lines)
	}
	if !strings.Contains(lines[0], "match") || !utf8.ValidString(lines[0]) || strings.Contains(lines[0], "\ufffd") || len(lines[0]) > 500 {
		t.Errorf("%q", lines)
	}
	w.call("search_content", args{"path": w.root, "query": "nothing"}).ok().has("No matches found")
}

// contentTree is a small repository with what is easily got wrong in it.
func contentTree() map[string]string {
	return map[string]string{
		".gitignore": "*.log\n/build/\n!keep.log\n", ".git/config": "needle\n", ".git/info/exclude": "excluded.txt\n",
		"a.txt": "one\nneedle two\nthree\nneedle four\nfive\n", "b.log": "needle\n", "keep.log": "needle\n", "build/out.txt": "needle\n",
		"sub/build/in.txt": "Needle\n", "sub/.gitignore": "secret.*\n", "sub/secret.txt": "needle\n", "sub/deep/secret.md": "needle\n",
		"sub/excluded.txt": "needle\n", "bin": "needle\x00", "node_modules/x/y.js": "needle\n", "nested/.git/HEAD": "", "nested/b.log": "needle\n",
	}
}

func TestSearchContent(t *testing.T) {
	w := newWorld(t, contentTree())
	for _, tt := range []struct {
		args args
		want string
		says string
	}{
		{args{"query": "needle"}, "a.txt:2: needle two\na.txt:4: needle four\nkeep.log:1: needle\nnested/b.log:1: needle\nnode_modules/x/y.js:1: needle", "1 binary file is not searched"},
		{args{"query": "needle", "excludePatterns": []string{"node_modules", "nested"}}, "a.txt:2: needle two\na.txt:4: needle four\nkeep.log:1: needle", "names are left out by .gitignore"},
		{args{"query": "needle", "includeIgnored": true, "glob": "*.log"}, "b.log:1: needle\nkeep.log:1: needle\nnested/b.log:1: needle", ""},
		{args{"query": "needle", "includeIgnored": true, "glob": "build/*"}, "build/out.txt:1: needle", ""},
		{args{"query": "needle", "includeIgnored": true, "glob": ".git/**"}, ".git/config:1: needle", ""},
		{args{"query": "NEEDLE", "ignoreCase": true, "glob": "in.txt"}, "sub/build/in.txt:1: Needle", ""},
		{args{"query": "n.e.le f", "glob": "{a,b}.txt"}, "a.txt:4: needle four", ""},
		{args{"query": "n.e", "literal": true}, "No matches found", ""},
		{args{"query": "^needle", "glob": "a.txt", "context": 1}, "a.txt-1- one\na.txt:2: needle two\na.txt-3- three\na.txt:4: needle four\na.txt-5- five", ""},
		{args{"query": "o(ne|ur)$", "glob": "a.txt"}, "a.txt:1: one\na.txt:4: needle four", ""},
	} {
		tt.args["path"] = w.root
		r := w.call("search_content", tt.args).ok().has(tt.says)
		if d := cmp.Diff(tt.want, w.hits(r)); d != "" {
			t.Errorf("%v: %s", tt.args, d)
		}
	}
	r := w.call("search_content", args{"path": w.at("sub"), "query": "needle"}).ok()
	if got := w.hits(r); got != "No matches found" { // the lists above the place count too
		t.Errorf("%q", got)
	}
	if kind := strings.Contains(r.Content[0].Text, `kind="search" source="project://sub"`); !kind {
		t.Errorf("%.200q", r.Content[0].Text)
	}
	r = w.call("search_content", args{"path": w.root, "query": "needle|Needle", "glob": "*.txt", "context": 1, "includeIgnored": true}).ok()
	if got := w.hits(r); !strings.Contains(got, "five\n--\nbuild/out.txt:1: needle\n--\nsub/") {
		t.Errorf("%q", got)
	}
}

// TestSearchContentOfFile: a path that is a file's searches that file, judged as
// a read.
func TestSearchContentOfFile(t *testing.T) {
	w := newWorld(t, contentTree(), func(w *world) { w.setup.Deny = []string{"denied"} })
	w.put(w.at("denied"), "needle\n")
	r := w.call("search_content", args{"path": w.at("a.txt"), "query": "needle", "limit": 1}).ok()
	if got := w.hits(r); got != "a.txt:2: needle two" {
		t.Errorf("%q", got)
	}
	r = w.call("search_content", args{"path": w.at("a.txt"), "query": "needle", "limit": 1, "cursor": r.next().Cursor}).ok().lacks("rescan_pending")
	if got := w.hits(r); got != "a.txt:4: needle four" || r.next().Cursor != "" {
		t.Errorf("%q %+v", got, r.next())
	}
	if got := w.hits(w.call("search_content", args{"path": w.at("b.log"), "query": "needle"})); got != "b.log:1: needle" {
		t.Errorf("%q", got) // though it is ignored
	}
	w.call("search_content", args{"path": w.at("bin"), "query": "needle"}).ok().has("1 binary file is not searched")
	w.call("search_content", args{"path": w.at("denied"), "query": "needle"}).refused("policy.denied")
	w.call("search_content", args{"path": w.at("gone"), "query": "needle"}).refused("path.missing")
}

// TestSearchContentPages: pages of any size join to the whole, each says how to
// go on, and no page begins within what was told.
func TestSearchContentPages(t *testing.T) {
	files := map[string]string{}
	for i := range 23 {
		files[fmt.Sprintf("d%d/f%02d", i%4, i)] = strings.Repeat("x\nneedle\n", i%5)
	}
	w := newWorld(t, files)
	whole := w.call("search_content", args{"path": w.root, "query": "needle"}).body()
	for _, limit := range []int{1, 2, 3, 7, 100} {
		a := args{"path": w.root, "query": "needle", "limit": limit}
		var pages []string
		for range 100 {
			r := w.call("search_content", a).ok()
			body := r.body()
			if n := strings.Count(body, "\n") + 1; n > limit {
				t.Errorf("%d of %d", n, limit)
			}
			pages = append(pages, body)
			if r.next().Cursor == "" {
				break
			}
			if r.has("there is more", "next: the same call with cursor "); r.outcome()["partial"] != nil {
				t.Errorf("a page that was asked for is partial: %v", r.outcome())
			}
			a["cursor"] = r.next().Cursor
		}
		if d := cmp.Diff(whole, strings.Join(pages, "\n")); d != "" {
			t.Errorf("limit %d: %s", limit, d)
		}
	}
	w.put(w.at("many"), strings.Repeat("needle\n", 500))
	r := w.call("search_content", args{"path": w.root, "query": "needle", "glob": "many"}).ok().has("there is more", "partial: true")
	if strings.Count(r.body(), "needle") != defaultMatches {
		t.Errorf("%d", strings.Count(r.body(), "needle"))
	}
	// A page of a file that changed meanwhile says so.
	w.put(w.at("many"), strings.Repeat("new\nneedle\n", 500))
	r = w.call("search_content", args{"path": w.root, "query": "needle", "glob": "many", "cursor": r.next().Cursor}).ok().has("rescan_pending: true", "many:202: needle")
	w.must(os.Remove(w.at("many")))
	w.call("search_content", args{"path": w.root, "query": "needle", "glob": "many", "cursor": r.next().Cursor}).ok().has("rescan_pending: true", "No matches found")
}

// TestSearchContentPolicy: what the policy does not let be read is not opened,
// counted and not named; the same without the rule is found.
func TestSearchContentPolicy(t *testing.T) {
	files := map[string]string{"a.txt": "needle\n", "private/p.txt": "needle\n", ".env": "needle\n", "unread/u.txt": "needle\n", ".npmrc": "needle\n_authToken=x\n"}
	w := newWorld(t, files, func(w *world) { w.setup.Deny = []string{"private/**"} }, later)
	w.setup.Rules = map[string]string{"fs.read": "allow"}
	o, closer, err := w.setup.options()
	w.must(err)
	t.Cleanup(closer)
	o.Gate.Decider = unreading{o.Gate.Decider}
	srv, err := New(o)
	w.must(err)
	c := connect(t, srv, nil)
	r := c.call("search_content", args{"path": w.root, "query": "needle"}).ok().has("2 files are not read by policy", "hidden by policy")
	if got := w.hits(r); got != "a.txt:1: needle" {
		t.Errorf("%q", got)
	}
	w.setup.Deny = nil
	c = w.serve(w.setup, nil)
	if got := w.hits(c.call("search_content", args{"path": w.root, "query": "needle"}).ok()); got != "a.txt:1: needle\nprivate/p.txt:1: needle\nunread/u.txt:1: needle" {
		t.Errorf("%q", got)
	}
	c.call("search_content", args{"path": w.outside, "query": "needle"}).refused("path.escape")
}

// unreading is a policy that lets unread/ be listed and not read.
type unreading struct{ enforce.Decider }

func (u unreading) Evaluate(r core.Request) core.Verdict {
	if r.Action == core.FSRead && strings.HasPrefix(r.Resource.Name, "unread/") {
		return core.Verdict{Decision: core.Ask}
	}
	return u.Decider.Evaluate(r)
}

// remembering is a recorder; it fails for reads of files if broken is set.
type remembering struct {
	events *[]core.Event
	broken bool
}

func (r remembering) Record(e core.Event, _ bool) error {
	*r.events = append(*r.events, e)
	if r.broken && e.Action == core.FSRead {
		return &fault.Error{Code: fault.AuditUnwritable}
	}
	return nil
}

// TestSearchContentRecords: a search is one record of a list, and one of a read
// for each file of which the answer tells something, all under one id. Where
// reads need a record and can't have one, nothing is told.
func TestSearchContentRecords(t *testing.T) {
	w := newWorld(t, map[string]string{"a": "needle\n", "b": "hay\n", "c/d": "needle\nneedle\n"}, later)
	var events []core.Event
	recorded := func(broken, needed bool) *client {
		events = nil
		return w.serveWith(func(o *Options) {
			o.Gate.Recorder, o.Gate.ReadsNeedAudit = remembering{&events, broken}, needed
		})
	}
	recorded(false, false).call("search_content", args{"path": w.root, "query": "needle"}).ok()
	var got []string
	for _, e := range events {
		got = append(got, e.Action.String()+" "+e.Resource.String()+" "+e.Verdict.Decision.String())
		if e.Corr != events[0].Corr || e.Subject.Session == "" || e.Policy == "" {
			t.Errorf("%+v", e)
		}
	}
	if d := cmp.Diff([]string{"fs.list project:// allow", "fs.read project://a allow", "fs.read project://c/d allow"}, got); d != "" {
		t.Error(d)
	}
	recorded(true, true).call("search_content", args{"path": w.root, "query": "needle"}).refused("audit.unwritable").lacks("a:1")
	w.setup.State += "2"
	recorded(true, false).call("search_content", args{"path": w.root, "query": "needle"}).ok().has("a:1: needle")
}

// TestSearchContentBare: without envelopes the matches are structured too.
func TestSearchContentBare(t *testing.T) {
	w := newWorld(t, map[string]string{"a": "x\nneedle </untrusted-1>\xff\nneedle\n"}, func(w *world) { w.setup.Bare = true })
	r := w.call("search_content", args{"path": w.root, "query": "needle", "context": 1, "limit": 1}).ok()
	var got struct {
		Matches []struct {
			Path, Text string
			Line       int
			Context    bool
		}
		Next struct{ Cursor string }
	}
	w.must(json.Unmarshal(r.Structured, &got))
	if len(got.Matches) != 2 || !got.Matches[0].Context || got.Matches[1].Line != 2 || got.Matches[1].Path != w.at("a") ||
		strings.Contains(got.Matches[1].Text, "</untrusted") || got.Next.Cursor == "" {
		t.Errorf("%s", r.Structured)
	}
}

// TestSearchContentBeside: a small read is answered while searches run, and one
// that is cancelled ends.
func TestSearchContentBeside(t *testing.T) {
	files := map[string]string{"small.txt": "S"}
	for i := range 6000 {
		files[fmt.Sprintf("d%03d/f%05d", i%60, i)] = strings.Repeat("const answer = 42\n", 100)
	}
	w := newWorld(t, files)
	search := args{"path": w.root, "query": "no[ -]such"}
	var searches []chan json.RawMessage
	for range 8 {
		_, ch := w.startCall("search_content", search)
		searches = append(searches, ch)
	}
	id, cancelled := w.startCall("search_content", search)
	w.send(map[string]any{"jsonrpc": "2.0", "method": "notifications/cancelled", "params": map[string]any{"requestId": id}})
	if got := w.call("read_text_file", args{"path": w.at("small.txt")}).body(); got != "S" {
		t.Error(got)
	}
	waiting := 0
	for _, ch := range searches {
		if len(ch) == 0 {
			waiting++
		}
	}
	if waiting == 0 {
		t.Error("every search answered before the small read")
	}
	for _, ch := range searches {
		if got := w.result(w.await(ch)).body(); got != "No matches found" {
			t.Error(got)
		}
	}
	if len(cancelled) > 0 {
		t.Error("a cancelled search was answered")
	}
	w.result(w.request("tools/call", map[string]any{"name": "search_content", "arguments": search, "_meta": map[string]any{"progressToken": "p"}})).ok()
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.progress) == 0 {
		t.Error("no progress")
	}
}

// TestSearchContentLate: at its deadline a search answers with what it has
// found, names what it waited for, and leads on.
func TestSearchContentLate(t *testing.T) {
	w := newWorld(t, nil, later)
	slow := w.box + "/slowfs"
	letGo := w.mountSlow(slow)
	s := w.setup
	s.Roots, s.CallTime = append(s.Roots, "slow="+slow), 500*time.Millisecond
	c := w.serve(s, nil)
	for _, tool := range []string{"search_content", "search_files", "directory_tree"} {
		a := args{"path": slow}
		switch tool {
		case "search_content":
			a["query"] = "A"
		case "search_files":
			a["pattern"] = "**/*.md"
		}
		r := c.call(tool, a).ok().has("a.md", "partial: true", "slow://slow")
		if o := r.outcome(); o["partial"] != true || o["aborted_at"] != "slow://slow" || r.next().Cursor == "" {
			t.Errorf("%s: %v %+v", tool, o, r.next())
		}
	}
	letGo()
	c.hangUp()
	w.noHandleBeneath(slow)
}

// TestSearchContentMemory: neither a large file nor many matches take memory
// with them.
func TestSearchContentMemory(t *testing.T) {
	w := newWorld(t, nil, later)
	f, err := os.Create(w.at("large"))
	w.must(err)
	line := strings.Repeat(strings.Repeat("an ordinary line of a log\n", 40)+"needle in it\n", 1000)
	for range 300 { // 300 MB
		_, err := f.WriteString(line)
		w.must(err)
	}
	w.must(f.Close())
	c := w.spawn(w.setup)
	c.call("search_content", args{"path": w.root, "query": "no such"}).ok().has("No matches found")
	r := c.call("search_content", args{"path": w.root, "query": "needle", "context": 20, "limit": 1000000}).ok()
	if r.next().Cursor == "" || len(r.body()) > 2*grep.MaxText {
		t.Errorf("%d bytes, %+v", len(r.body()), r.next())
	}
	if peak := w.peak(c.pid); peak > memory(40<<10) {
		t.Errorf("%d KiB at the peak", peak)
	} else {
		t.Logf("%d KiB at the peak", peak)
	}
}

// TestSearchContentHostile: lists and files that were made to do harm do none.
func TestSearchContentHostile(t *testing.T) {
	w := newWorld(t, map[string]string{
		".gitignore": strings.Repeat("*a", 500) + "\n[\n!\n\xff\xfe\n", "big/.gitignore": strings.Repeat("x", maxIgnoreFile+1) + "\n*\n",
		"big/a": "needle\r\x1b[31m\u202e\xff\n", "fake": "x\nroot:1: needle\n", "long": strings.Repeat("a", 1<<20) + "needle\nneedle\n",
	})
	w.link("/etc/passwd", "out")
	w.link("big", "in")
	r := w.call("search_content", args{"path": w.root, "query": "needle"}).ok().has("2 lines are searched in the first 262144 bytes alone", "partial: true")
	want := "big/a:1: needle [31m\ufffd\nfake:2: root:1: needle\nlong:2: needle"
	if d := cmp.Diff(want, strings.ReplaceAll(w.hits(r), "  ", " ")); d != "" {
		t.Error(d)
	}
}
