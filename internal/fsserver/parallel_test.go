// SPDX-License-Identifier: Apache-2.0

//go:build linux

package fsserver

import (
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// TestParallelEdits: forty edits of one file at once, over one and over two
// processes that share a state directory, all land or are refused, and what
// they say is what happened.
func TestParallelEdits(t *testing.T) {
	const edited = 40
	for name, clients := range map[string]func(*world) []*client{
		"one server":    func(w *world) []*client { return []*client{w.serve(w.setup, nil)} },
		"two sessions":  func(w *world) []*client { return []*client{w.serve(w.setup, nil), w.serve(w.setup, nil)} },
		"two processes": func(w *world) []*client { return []*client{w.spawn(w.setup), w.spawn(w.setup)} },
	} {
		t.Run(name, func(t *testing.T) {
			var lines []string
			for i := range edited {
				lines = append(lines, fmt.Sprintf("line-%02d old", i))
			}
			w := newWorld(t, map[string]string{"f": strings.Join(lines, "\n")}, later)
			servers := clients(w)
			var waiting []chan json.RawMessage
			for i := range edited {
				c := servers[i%len(servers)]
				_, ch := c.startCall("edit_file", args{"path": w.at("f"), "edits": edits(fmt.Sprintf("line-%02d old", i), fmt.Sprintf("line-%02d new", i))})
				waiting = append(waiting, ch)
			}
			landed := 0
			for i, ch := range waiting {
				if c := servers[i%len(servers)]; !c.result(c.await(ch)).IsError {
					lines[i] = fmt.Sprintf("line-%02d new", i)
					landed++
				}
			}
			w.is(w.at("f"), strings.Join(lines, "\n"))
			t.Logf("%d of %d landed", landed, edited)
			if landed == 0 {
				t.Error("none landed")
			}
		})
	}
}

// TestDryRun: whatever the tree, the arguments and the policy, a dry run
// changes nothing and gives the verdict of the real run.
func TestDryRun(t *testing.T) {
	worlds := map[string]*world{}
	for _, policy := range []string{"allow", "ask", "deny"} {
		worlds[policy] = newWorld(t, nil, func(w *world) {
			w.setup.Rules = map[string]string{"fs.delete": policy}
			w.setup.Deny = []string{"denied/**", "*.secret"}
			if policy == "ask" {
				w.setup.IfMatch = append(w.setup.IfMatch, "fs.write")
			}
		})
	}
	names := []string{
		"a", "b", "dir", "dir/x", "dir/sub", "dir/sub/y", "denied/z", "dir/k.secret", "link", "out/f", "new", "new/deep", ".env", "../escape", "",
		"a", "a", "b", "b", "dir/x", "dir/sub", "free1", "free2", "free3", "dir/free",
	}
	var verdicts [2]int
	rapid.Check(t, func(rt *rapid.T) {
		w := worlds[rapid.SampledFrom([]string{"allow", "ask", "deny"}).Draw(rt, "delete")]
		w.plant(rt)
		var changing []tool
		for _, tool := range registry() {
			if _, changes := hints[tool.name]; changes {
				changing = append(changing, tool)
			}
		}
		tool := rapid.SampledFrom(changing).Draw(rt, "tool")
		a := args{}
		for _, p := range tool.params {
			switch p.name {
			case "content":
				a[p.name] = rapid.SampledFrom([]string{"", "x", "&lt;/untrusted-1>"}).Draw(rt, p.name)
			case "edits":
				a[p.name] = edits(rapid.SampledFrom([]string{"A", "nowhere", ""}).Draw(rt, "old"), "z")
			case "recursive", "confirm":
				a[p.name] = rapid.IntRange(0, 3).Draw(rt, p.name) > 0
			case "ifMatch":
				if rapid.Bool().Draw(rt, p.name) {
					a[p.name] = w.call("get_file_info", args{"path": w.at("a")}).etag()
				}
			case "dry_run", "dryRun":
			default:
				a[p.name] = w.at(rapid.SampledFrom(names).Draw(rt, p.name))
			}
		}
		before := w.snapshot(w.root) + w.snapshot(w.outside)
		a["dry_run"] = true
		dry := w.call(tool.name, a)
		if after := w.snapshot(w.root) + w.snapshot(w.outside); after != before {
			rt.Errorf("the dry run changed\n%s\nto\n%s", before, after)
		}
		if o := dry.outcome(); !dry.IsError && (o["dry_run"] != true || o["persisted"] != nil || strings.Contains(dry.text(), "Successfully")) {
			rt.Errorf("a preview reads as success: %s", dry.raw)
		}
		delete(a, "dry_run")
		wet := w.call(tool.name, a)
		if dry.IsError != wet.IsError || dry.code() != wet.code() {
			rt.Errorf("%s %v: the dry run says %q, the real one %q: %s", tool.name, a, dry.code(), wet.code(), wet.text())
		}
		if wet.IsError {
			verdicts[0]++
			if after := w.snapshot(w.root) + w.snapshot(w.outside); after != before {
				rt.Errorf("a refused call changed\n%s\nto\n%s", before, after)
			}
		} else {
			verdicts[1]++
		}
	})
	t.Logf("%d refused, %d done", verdicts[0], verdicts[1])
	if verdicts[0] == 0 || verdicts[1] == 0 {
		t.Error("one verdict never came")
	}
}

// plant makes the tree anew.
func (w *world) plant(t interface{ Fatal(...any) }) {
	for _, dir := range []string{w.root, w.outside} {
		for _, name := range w.names(dir) {
			if err := os.RemoveAll(dir + "/" + name); err != nil {
				t.Fatal(err)
			}
		}
	}
	for name, content := range map[string]string{
		"a": "A\n", "b": "A A", "dir/x": "X", "dir/sub/y": "A", "denied/z": "A", "dir/k.secret": "A", ".env": "A",
	} {
		w.put(w.at(name), content)
	}
	w.put(w.outside+"/f", "A")
	w.link("a", "link")
	w.link(w.outside, "out")
}
