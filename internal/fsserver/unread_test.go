// SPDX-License-Identifier: Apache-2.0

//go:build linux

package fsserver

import (
	"fmt"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/postern-gate/postern/core/fault"
	"github.com/postern-gate/postern/enforce"
	"github.com/postern-gate/postern/internal/state/grant"
)

// guess is a file in two states of the same size. Before somebody has said that
// it may be read, no answer may tell which it is.
type guess struct {
	name, file, right, wrong string
	control                  string // the tool that tells them apart where reading is allowed
}

var guesses = []guess{
	{"a text", "f", "the pin is 4711\n", "the pin is 4712\n", "edit_file"},
	{"how often", "f", "4711 4711\n", "4711 4712\n", "edit_file"},
	{"no text", "f", "4711\x00", "4711 ", "edit_file"},
	{"an encoding", "f", "4711\xe9", "4711e", "read_text_file"},
	{"UTF-16", "f", "\xff\xfe4711", "  4711", "edit_file"},
	{"a picture", "f", "GIF89a4711", "GIF80a4711", "read_media_file"},
	{"an escaped tag", "f", "4711 " + escapedTag, "4711 " + strings.ToUpper(escapedTag), "write_file"},
	{"a credential", ".npmrc", "_auth=4711\n", "_aath=4711\n", "move_file"},
	{"what git ignores", ".gitignore", "/other\n", "/othex\n", "search_content"},
}

const escapedTag = "&lt;untrusted-1>"

// play is a call of a tool, or of a method.
type play struct {
	tool string
	args args
}

// plays are calls of every tool about the file. Those that change it come last.
func plays(w *world, file string) (all []play) {
	edit := func(old, put string, dry, every bool) {
		all = append(all, play{"edit_file", args{"path": file, "dryRun": dry, "edits": []args{{"oldText": old, "newText": put, "replaceAll": every}}}})
	}
	for _, old := range []string{"4711", "the pin is 4711\n", "_auth", "/other", "none"} {
		edit(old, "-", true, false)
		edit(old, "-", true, true)
	}
	edit("4711", "é", true, false)
	edit("4711", "-", false, false)
	edit("none", "-", false, false)
	for _, part := range []args{{}, {"head": 1}, {"tail": 1}, {"offset": 5}, {"line": 9}} {
		part["path"] = file
		all = append(all, play{"read_text_file", part})
	}
	uri := "file://" + filepath.Join(w.root, file)
	all = append(all,
		play{"read_file", args{"path": file}}, play{"read_media_file", args{"path": file}}, play{"read_media_file", args{"path": file, "offset": 1, "length": 2}},
		play{"read_multiple_files", args{"paths": []string{file, "other", "absent"}}},
		play{"search_content", args{"path": file, "query": "4711"}}, play{"search_content", args{"path": ".", "query": "4711"}},
		play{"search_content", args{"path": ".", "query": "4711", "includeIgnored": true}},
		play{"search_files", args{"path": ".", "pattern": "**"}}, play{"get_file_info", args{"path": file}},
		play{"list_directory", args{"path": "."}}, play{"list_directory_with_sizes", args{"path": "."}},
		play{"directory_tree", args{"path": "."}}, play{"list_allowed_directories", args{}},
		play{"resources/read", args{"uri": uri}}, play{"create_directory", args{"path": file}},
		play{"copy_file", args{"source": file, "destination": "new", "dry_run": true}},
		play{"copy_file", args{"source": file, "destination": "new"}},
		play{"delete_file", args{"path": file, "confirm": true, "dry_run": true}},
	)
	for _, content := range []string{"4711", escapedTag} {
		for _, tool := range []string{"write_file", "append_file"} {
			all = append(all, play{tool, args{"path": file, "content": content, "dry_run": true, "confirm": true}})
		}
	}
	return append(all,
		play{"move_file", args{"source": file, "destination": "new", "dry_run": true}}, play{"move_file", args{"source": file, "destination": "new"}},
		play{"append_file", args{"path": file, "content": "4711"}}, play{"write_file", args{"path": file, "content": "4711"}},
	)
}

// notContent is what of an answer is by chance, or of the one file and its folder.
var notContent = regexp.MustCompile(`postern approve [0-9a-z]{8}|untrusted-[0-9a-z]+|"(id|undo_id)":"[^"]*"|undo_id: [0-9a-z-]+|` +
	`(created|modified|accessed): [^\\]*|etag(\\"|"|=|:|: )*[0-9A-Za-z_-]{21}|[0-2][0-9]:[0-5][0-9]:[0-5][0-9]`)

// told is what the client hears of each play, where the file has that content,
// and how many questions a person has then.
func told(t *testing.T, g guess, content string, rules map[string]string, paused bool) (heard []string, questions int) {
	t.Helper()
	w := newWorld(t, map[string]string{g.file: content, "other": "4711 other\n"}, later)
	w.setup.Rules = rules
	c, person := w.desk()
	if paused {
		w.must(person.Pause(t.Context(), "test", "test"))
	}
	for _, p := range plays(w, g.file) {
		var f frame
		if strings.Contains(p.tool, "/") {
			f = c.request(p.tool, p.args)
		} else {
			f = c.request("tools/call", map[string]any{"name": p.tool, "arguments": p.args})
		}
		text := fmt.Sprintf("%s %v: %s %+v", p.tool, p.args, f.Result, f.Error)
		heard = append(heard, notContent.ReplaceAllString(strings.ReplaceAll(text, w.root, "/root"), "…"))
	}
	return heard, len(person.Pending())
}

// desk is a client of a server whose questions go to its state directory, and
// where a person answers them.
func (w *world) desk() (*client, *grant.Store) {
	w.Helper()
	o, closer, err := w.setup.options()
	w.must(err)
	w.Cleanup(closer)
	state := o.Gate.Recorder.(*enforce.State)
	approvals := state.Approvals(enforce.ApprovalOptions{Times: func() (time.Duration, time.Duration) { return 0, time.Hour }})
	w.Cleanup(func() { w.must(approvals.Close()) })
	o.Gate.Approver, o.Gate.Keeper = approvals, state
	srv, err := New(o)
	w.must(err)
	return connect(w.T, srv, nil), state.Grants("terminal")
}

// TestUnreadIsUntold: while reading asks, and nobody has said yes, every tool
// answers alike whatever the file holds; so it does where reading is denied. Where
// it is allowed, the same calls tell.
func TestUnreadIsUntold(t *testing.T) {
	for _, policy := range []struct {
		name   string
		rules  map[string]string
		paused bool
	}{
		{"reading asks", map[string]string{"fs.read": "ask"}, false},
		{"all asks", map[string]string{"fs.read": "ask", "fs.write": "ask", "fs.create": "ask", "fs.rename": "ask"}, false},
		{"paused", map[string]string{"fs.read": "ask", "fs.write": "ask"}, true},
		{"reading is denied", map[string]string{"fs.read": "deny"}, false},
		{"reading is denied, writing asks", map[string]string{"fs.read": "deny", "fs.write": "ask"}, false},
	} {
		t.Run(policy.name, func(t *testing.T) {
			for _, g := range guesses {
				right, questions := told(t, g, g.right, policy.rules, policy.paused)
				wrong, others := told(t, g, g.wrong, policy.rules, policy.paused)
				for i := range right {
					if right[i] != wrong[i] {
						t.Errorf("%s is told:\n%s\n%s", g.name, right[i], wrong[i])
					}
				}
				if questions != others || policy.paused && questions > 0 {
					t.Errorf("%s: %d questions, and %d", g.name, questions, others)
				}
			}
		})
	}
	t.Run("the control", func(t *testing.T) {
		var used []string
		for _, g := range guesses {
			right, _ := told(t, g, g.right, nil, false)
			wrong, _ := told(t, g, g.wrong, nil, false)
			differs := false
			for i := range right {
				tool, _, _ := strings.Cut(right[i], " ")
				used = append(used, tool)
				differs = differs || tool == g.control && right[i] != wrong[i]
			}
			if !differs {
				t.Errorf("%s does not tell %s, so this test proves nothing of it", g.control, g.name)
			}
		}
		for _, tool := range registry() {
			if !slices.Contains(used, tool.name) {
				t.Errorf("%s is not tried", tool.name)
			}
		}
	})
}

// TestEditAfterTheYes: a person is shown what the edit would do, or that it does
// not apply; after the yes it is done, or refused for what it is.
func TestEditAfterTheYes(t *testing.T) {
	w := newWorld(t, map[string]string{"f": "the pin is 4711\n"}, later)
	w.setup.Rules = map[string]string{"fs.read": "ask"}
	c, person := w.desk()
	call := func(old string) result {
		return c.call("edit_file", args{"path": "f", "edits": []args{{"oldText": old, "newText": "no pin"}}})
	}
	for _, tc := range []struct{ old, shown, code string }{
		{"the pin is 4712", "does not apply to what is there: edit 1 of 1: oldText is not in the file", fault.PreconditionFailed.String()},
		{"the pin is 4711", "-the pin is 4711\n+no pin", ""},
	} {
		call(tc.old).refused(fault.PolicyAsk.String()).lacks("the pin is")
		q := person.Pending()
		if len(q) != 1 || !strings.Contains(q[0].Card.Change, tc.shown) {
			t.Fatalf("%d questions, the first shows %q", len(q), q[0].Card.Change)
		}
		if _, err := person.Decide(t.Context(), q[0].ID, grant.Answer{Kind: grant.Once, Approver: "test"}); err != nil {
			t.Fatal(err)
		}
		// The yes is for this edit of this file, and for no guess beside it.
		call("the pin is 471").refused(fault.PolicyAsk.String())
		w.must(person.Pause(t.Context(), "test", "test")) // ends that question
		w.must(person.Resume(t.Context(), "test", "test"))
		if r := call(tc.old); tc.code != "" {
			r.refused(tc.code).has("the·pin·is·4711")
		} else {
			r.ok()
		}
	}
	w.is(w.at("f"), "no pin\n")
}

// TestSearchOfOneFileThatAsks: the refusal names the policy, and the question.
func TestSearchOfOneFileThatAsks(t *testing.T) {
	w := newWorld(t, map[string]string{"f": "the pin is 4711\n"}, later)
	w.setup.Rules = map[string]string{"fs.read": "ask"}
	c := w.asks(&asker{})
	c.call("search_content", args{"path": "f", "query": "4711"}).ok().has("4711")
	w.setup.State = filepath.Join(w.box, "state2")
	none := w.serve(w.setup, nil)
	none.call("search_content", args{"path": "f", "query": "4711"}).refused(fault.PolicyAsk.String()).has("fs.read")
}
