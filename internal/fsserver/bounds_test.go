// SPDX-License-Identifier: Apache-2.0

//go:build linux

package fsserver

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/postern-gate/postern/core"
	"github.com/postern-gate/postern/internal/fsserver/edit"
)

// TestAnswersAreBoundedAsSent: what is sent has at most the limit for answers,
// escapes, indents and structured content counted, and says that there is more.
func TestAnswersAreBoundedAsSent(t *testing.T) {
	const answer = 60_000
	deep := strings.TrimSuffix(strings.Repeat("d/", 200), "/")
	files := map[string]string{"controls": strings.Repeat("\x01", answer), "lines": strings.Repeat("\n", answer)}
	for i := range 300 {
		files[fmt.Sprintf("%s/file-%03d", deep, i)] = ""
		files[fmt.Sprintf("long/%03d-%s", i, strings.Repeat("n", 240))] = ""
		files[fmt.Sprintf("odd/%03d-%s", i, strings.Repeat("\x01", 200))] = ""
	}
	for _, bare := range []bool{false, true} {
		w := newWorld(t, files, later)
		c := w.serveWith(func(o *Options) { o.Answer, o.Bare = answer, bare })
		for _, tt := range []struct {
			tool string
			args args
		}{
			{"directory_tree", args{"path": w.root}},
			{"directory_tree", args{"path": w.at(deep)}},
			{"directory_tree", args{"path": w.at("odd")}},
			{"list_directory", args{"path": w.at("long")}},
			{"list_directory", args{"path": w.at("odd")}},
			{"list_directory_with_sizes", args{"path": w.at("long")}},
			{"list_directory_with_sizes", args{"path": w.at("odd")}},
			{"search_files", args{"path": w.root, "pattern": "**"}},
			{"read_text_file", args{"path": w.at("controls")}},
			{"read_text_file", args{"path": w.at("lines")}},
			{"read_text_file", args{"path": w.at("lines"), "tail": answer}},
			{"read_text_file", args{"path": w.at("lines"), "head": answer}},
			{"read_multiple_files", args{"paths": []string{w.at("lines"), w.at("controls")}}},
		} {
			r := c.call(tt.tool, tt.args).ok()
			if len(r.raw) > answer+4000 {
				t.Errorf("%s %v (bare: %t): %d bytes are sent", tt.tool, tt.args, bare, len(r.raw))
			}
			if tt.args["path"] == w.at(deep) {
				continue // fits where only its own depth is counted
			}
			if len(r.raw) < answer/3 || r.outcome()["partial"] != true {
				t.Errorf("%s %v (bare: %t): %d bytes are sent, %v", tt.tool, tt.args, bare, len(r.raw), r.outcome())
			}
			if bare && r.Structured == nil && !strings.HasPrefix(tt.tool, "read_") {
				t.Errorf("%s %v: what is shown has no structured content", tt.tool, tt.args)
			}
			var tree []any
			if tt.tool == "directory_tree" && !bare && json.Unmarshal([]byte(r.body()), &tree) != nil {
				t.Errorf("%v: a tree that is cut is no JSON", tt.args)
			}
		}
	}
}

// TestTreeMemory: a deep tree takes no more than some times the limit for
// answers.
func TestTreeMemory(t *testing.T) {
	w := newWorld(t, nil, later)
	dir := w.at(strings.TrimSuffix(strings.Repeat("d/", 1000), "/"))
	w.must(os.MkdirAll(dir, 0o755))
	for i := range 12_000 {
		w.must(os.WriteFile(fmt.Sprintf("%s/%05d", dir, i), nil, 0o644))
	}
	c := w.spawn(w.setup)
	r := c.call("directory_tree", args{"path": w.root}).ok()
	if r.outcome()["partial"] != true || len(r.raw) > defaultAnswer+4000 {
		t.Errorf("%d bytes are sent, %v", len(r.raw), r.outcome())
	}
	if peak := w.peak(c.pid); peak > memory(100<<10) {
		t.Errorf("%d KiB at the peak", peak)
	}
}

// TestLargeCalls: calls that hold much memory wait for each other, and small
// ones do not wait for them.
func TestLargeCalls(t *testing.T) {
	const size = 10 << 20
	w := newWorld(t, map[string]string{"small": "S"}, later)
	w.must(os.WriteFile(w.at("big"), []byte(strings.Repeat("\x01", size)), 0o644))
	w.must(os.WriteFile(w.at("text"), []byte(strings.Repeat("line of text\n", 12<<20/13)), 0o644))
	c := w.spawn(w.setup)
	var answers []chan json.RawMessage
	for range 10 {
		for _, name := range []string{"big", "text"} {
			_, ch := c.startCall("read_text_file", args{"path": w.at(name), "max_bytes": size})
			answers = append(answers, ch)
		}
		_, ch := c.startCall("read_multiple_files", args{"paths": []string{w.at("text"), w.at("small")}})
		answers = append(answers, ch)
		_, ch = c.startCall("edit_file", args{"path": w.at("text"), "edits": edits("line of text\nline of text\nline of text", "x"), "dry_run": true})
		answers = append(answers, ch)
	}
	c.call("read_text_file", args{"path": w.at("small")}).ok()
	for _, ch := range answers {
		c.await(ch)
	}
	if peak := w.peak(c.pid); peak > memory(200<<10) {
		t.Errorf("%d KiB at the peak", peak)
	}
}

// TestReplacements: a call replaces a bounded number of places, whatever it
// costs to find them.
func TestReplacements(t *testing.T) {
	w := newWorld(t, map[string]string{"many": strings.Repeat("a", edit.MaxReplaced+1), "most": strings.Repeat("a", edit.MaxReplaced)}, later)
	w.must(os.WriteFile(w.at("huge"), []byte(strings.Repeat("a", 16<<20)), 0o644))
	c := w.spawn(w.setup)
	all := func(name string) args {
		return args{"path": w.at(name), "edits": []map[string]any{{"oldText": "a", "newText": "b", "replaceAll": true}}}
	}
	for _, name := range []string{"many", "huge"} {
		c.call("edit_file", all(name)).refused("limit.exceeded").has("more than 100000 matches")
	}
	c.call("edit_file", all("most")).ok()
	w.is(w.at("most"), strings.Repeat("b", edit.MaxReplaced))
	if peak := w.peak(c.pid); peak > memory(120<<10) {
		t.Errorf("%d KiB at the peak", peak)
	}
}

// TestManyPatterns: what patterns take when they are compiled is bounded; what
// is ordinary is far from it.
func TestManyPatterns(t *testing.T) {
	w := newWorld(t, map[string]string{"a.ts": "", "b.js": "", "c.go": ""})
	w.call("search_files", args{"path": w.root, "pattern": "{a,b}.[jt]s", "excludePatterns": []string{"[x-z]*", "{1..50}/[a-c]?"}}).ok().has("a.ts", "b.js").lacks("c.go")
	for name, pattern := range map[string]string{
		"alternatives": "{1..1000}[a-z][[:alpha:]]",
		"classes":      strings.Repeat("{a,b}[[:alpha:]]", 9) + strings.Repeat("[[:alpha:]]", 50),
	} {
		r := w.call("search_files", args{"path": w.root, "pattern": pattern}).refused("request.invalid")
		if !strings.Contains(r.text(), "too many sets and groups") {
			t.Errorf("%s: %q", name, r.text())
		}
	}
}

// TestRefusalMeta: the name is the canonical one whoever refuses, and only a rule
// of the policy stands where programs look for a rule.
func TestRefusalMeta(t *testing.T) {
	w := newWorld(t, map[string]string{"f": "F"})
	for _, tt := range []struct {
		tool, code, head string
		args             args
		rule             bool
	}{
		{"edit_file", "precondition.failed", "fs.write project://f", args{"path": "f", "edits": edits("none", "x")}, false},
		{"delete_file", "confirm.missing", "fs.delete project://f", args{"path": w.at("f")}, false},
		{"read_text_file", "path.missing", "fs.read project://none", args{"path": "none"}, false},
		{"read_text_file", "path.escape", "fs.read ../f", args{"path": "../f"}, false},
		{"write_file", "policy.denied", "fs.write project://.git/hooks/x", args{"path": ".git/hooks/x", "content": "x"}, true},
	} {
		r := w.call(tt.tool, tt.args).refused(tt.code)
		if head, _, _ := strings.Cut(r.text(), "\n"); !strings.HasSuffix(head, ": "+tt.head) {
			t.Errorf("%s: %q, want %s", tt.code, head, tt.head)
		}
		var e struct{ Rule *string }
		if err := json.Unmarshal(r.Meta["dev.postern/error"], &e); err != nil || e.Rule == nil || (*e.Rule != "") != tt.rule {
			t.Errorf("%s: %s", tt.code, r.Meta["dev.postern/error"])
		}
	}
}

// TestRefusalsSayWhat: a refusal that no gate makes names what was called for,
// and is recorded.
func TestRefusalsSayWhat(t *testing.T) {
	w := newWorld(t, map[string]string{"f": "F"}, later)
	var events []core.Event
	c := w.serveWith(func(o *Options) { o.Gate.Recorder = failing{&events} })
	for _, tt := range []struct {
		tool string
		args args
		head string
	}{
		{"search_files", args{"path": w.root, "pattern": "x!(a)"}, "fs.list project://"},
		{"directory_tree", args{"path": w.root, "excludePatterns": []string{"x!(a)"}}, "fs.list project://"},
		{"read_text_file", args{"path": w.at("f"), "head": 1, "tail": 1}, "fs.read project://f"},
	} {
		before := len(events)
		r := c.call(tt.tool, tt.args).refused("request.invalid")
		if head, _, _ := strings.Cut(r.text(), "\n"); !strings.HasSuffix(head, ": "+tt.head) {
			t.Errorf("%s: %q", tt.tool, head)
		}
		if len(events) != before+1 || events[before].Code != "request.invalid" {
			t.Errorf("%s: recorded %v", tt.tool, events[before:])
		}
	}
}

// TestEmptyIfMatch: an empty etag is a mistake, and not none.
func TestEmptyIfMatch(t *testing.T) {
	w := newWorld(t, map[string]string{"f": "F"})
	a := args{"path": w.at("f"), "content": "G", "ifMatch": ""}
	w.call("write_file", a).refused("request.invalid").has("ifMatch must not be empty")
	w.is(w.at("f"), "F")
	delete(a, "ifMatch")
	w.call("write_file", a).ok()
	w.is(w.at("f"), "G")
}

// TestSlashAtTheEnd: it makes a name a directory's, which a file is not.
func TestSlashAtTheEnd(t *testing.T) {
	w := newWorld(t, map[string]string{"f": "F"})
	for tool, a := range map[string]args{
		"read_file": {}, "read_text_file": {}, "read_media_file": {}, "write_file": {"content": "x"}, "append_file": {"content": "x"},
		"edit_file": {"edits": edits("F", "x")},
	} {
		a["path"] = w.at("f") + "/"
		w.call(tool, a).refused("request.invalid").has("ends in a slash")
		w.is(w.at("f"), "F")
	}
	w.call("read_multiple_files", args{"paths": []string{w.at("f") + "/", w.at("f")}}).ok().has("ends in a slash", "F\n")
	w.call("write_file", args{"path": w.at("new/"), "content": "x"}).ok()
	w.call("write_file", args{"path": w.at("other") + "/", "content": "x"}).refused("request.invalid")
	w.absent(w.at("other"))
	w.call("list_directory", args{"path": w.root + "/"}).ok()
}

// TestEmptyRoots: a client whose list of roots is empty narrows nothing, and is
// told so.
func TestEmptyRoots(t *testing.T) {
	w := newWorld(t, map[string]string{"f": "F"}, later)
	const told = "list of roots is empty"
	c := w.serve(w.setup, []string{})
	c.call("list_allowed_directories", args{}).ok().has(w.root, told)
	c.call("read_text_file", args{"path": w.at("f")}).ok()
	w.serve(w.setup, nil).call("list_allowed_directories", args{}).ok().lacks(told)
	w.serve(w.setup, []string{"file://" + w.root}).call("list_allowed_directories", args{}).ok().lacks(told)
}

// TestEndDuringCopy: when the client goes away while a large file is copied,
// nothing of it is left, and the log says how it ended.
func TestEndDuringCopy(t *testing.T) {
	w := newWorld(t, nil, later)
	f, err := os.Create(w.at("big"))
	w.must(err)
	w.must(f.Truncate(64 << 30)) // a hole: only the copy takes room, as far as it gets
	w.must(f.Close())
	o, closer, err := w.setup.options()
	w.must(err)
	t.Cleanup(closer)
	intent := make(chan struct{})
	outcomes := make(chan core.Event, 10)
	o.Gate.Recorder = watched{intent, outcomes}
	srv, err := New(o)
	w.must(err)
	c := connect(t, srv, nil)
	c.startCall("copy_file", args{"source": w.at("big"), "destination": w.at("copy")})
	<-intent
	c.hangUp()
	select {
	case e := <-outcomes:
		if e.Code != "call.cancelled" {
			t.Errorf("recorded %+v", e)
		}
	default:
		t.Error("no outcome is recorded")
	}
	if names := w.names(w.root); len(names) != 1 {
		t.Errorf("left: %q", names)
	}
}

// watched is a recorder that tells when an intent and an outcome are recorded.
type watched struct {
	intent   chan struct{}
	outcomes chan core.Event
}

func (r watched) Record(e core.Event, _ bool) error {
	switch e.Phase {
	case core.PhaseIntent:
		select {
		case <-r.intent:
		default:
			close(r.intent)
		}
	case core.PhaseOutcome:
		r.outcomes <- e
	default:
	}
	return nil
}

// slow is a locker that ends a while after its context, as a call does that
// undoes what is half done.
type slow struct{}

func (slow) LockWith(ctx context.Context, _, _ []int64) (func(), error) {
	<-ctx.Done()
	<-time.After(2 * callGrace)
	return func() {}, ctx.Err()
}

// TestMutationSaysHowItEnded: a mutation whose time is over is waited for while
// it undoes what is half done, and then says itself how it ended.
func TestMutationSaysHowItEnded(t *testing.T) {
	w := newWorld(t, map[string]string{"f": "F"}, later)
	c := w.serveWith(func(o *Options) { o.Gate.Locker, o.CallTime = slow{}, 50*time.Millisecond })
	r := c.call("write_file", args{"path": w.at("f"), "content": "new"}).refused("call.cancelled")
	if r.outcome()["may_have_applied"] != nil {
		t.Errorf("it says that it is not known: %s", r.raw)
	}
	w.is(w.at("f"), "F")
}
