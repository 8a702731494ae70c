// SPDX-License-Identifier: Apache-2.0

package attach

import (
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/postern-gate/postern/core/fault"
)

// A file of the user's may lie beneath the project, by a variable that isn't set
// any more when it is undone.
func TestUndoOfAMovedFile(t *testing.T) {
	p := newPlace(t)
	env := map[string]string{"CODEX_HOME": p.project("ch"), "XDG_CONFIG_HOME": p.project("cfg")}
	p.w.Getenv = func(name string) string { return env[name] }
	policy := p.project("cfg/postern/policy.yaml")
	plan, err := NewPlan(p.w, Server{Command: program}, []Client{client(t, "codex")}, []File{{Path: policy, Text: []byte("version: 1\n")}})
	if err != nil {
		t.Fatal(err)
	}
	p.apply(plan)
	if !there(p.project("ch/config.toml")) || !there(policy) { // control
		t.Fatal("nothing was written")
	}
	clear(env)
	plan = p.undo()
	if len(plan.Left)+len(plan.Kept) != 0 {
		t.Errorf("%q %q", plan.Left, plan.Kept)
	}
	p.apply(plan)
	if there(p.project("ch")) || there(p.project("cfg")) {
		t.Error("it is still there")
	}
	if again := p.undo(); !again.Idle() {
		t.Errorf("%+v", again)
	}
}

// Beneath the project no link is followed, whosever file it is.
func TestMovedFileBehindALink(t *testing.T) {
	p := newPlace(t)
	p.put(p.home("mine/config.toml"), "a = 1\n")
	if err := os.Symlink(p.home("mine"), p.project("ch")); err != nil {
		t.Fatal(err)
	}
	p.w.Getenv = func(name string) string { return map[string]string{"CODEX_HOME": p.project("ch")}[name] }
	_, err := NewPlan(p.w, Server{Command: program}, []Client{client(t, "codex")}, nil)
	if fault.CodeOf(err) != fault.PathSymlink {
		t.Errorf("%v", err)
	}
	p.w.Getenv = func(name string) string { return map[string]string{"CODEX_HOME": p.home("mine")}[name] }
	p.attach("codex") // control
}

// An entry that others changed since is theirs: it is named, left and remembered.
func TestUndoLeavesAChangedEntry(t *testing.T) {
	p := newPlace(t)
	p.apply(p.attach("claude-code", "codex"))
	theirs := strings.NewReplacer(program, "/opt/postern", p.w.Project, "/home/mate/c")
	file, config := p.project(".mcp.json"), p.home(".codex/config.toml")
	p.put(file, theirs.Replace(p.get(file)))
	p.put(config, strings.ReplaceAll(p.get(config), program, "/opt/postern"))
	was, wasConfig := p.get(file), p.get(config)
	for range 2 {
		plan := p.undo()
		if len(plan.Left) != 2 || !strings.Contains(plan.Left[0], file+`: the entry "postern" was changed since init wrote it`) {
			t.Fatalf("%q", plan.Left)
		}
		p.apply(plan)
		if p.get(file) != was || p.get(config) != wasConfig {
			t.Fatal("it was changed")
		}
	}
	plan := p.undo("claude-code") // asked for by name
	p.apply(plan)
	if got := p.get(file); strings.Contains(got, "postern") || len(plan.Left) != 0 {
		t.Errorf("%s %q", got, plan.Left)
	}
}

// What ours took the place of is there again after undoing, to the byte, also
// after a second init; ours of an earlier init isn't.
func TestUndoGivesBack(t *testing.T) {
	p := newPlace(t)
	mates := `{"mcpServers":{"postern":{"command":"/home/mate/postern" , "args":["serve","--agent","claude-code","/home/mate/c"]},"a":{}}}`
	file, config := p.project(".mcp.json"), p.home(".codex/config.toml")
	older := "x = 1\n[mcp_servers.postern-my-project]\ncommand =   \"/old/postern\"\nargs = [\"serve\", \"--agent\", \"codex\", \"" + p.w.Project + "\"]\n"
	p.put(file, mates)
	p.put(config, older)
	p.apply(p.attach("claude-code", "codex"))
	plan, err := NewPlan(p.w, Server{Command: "/new/postern"}, []Client{client(t, "claude-code"), client(t, "codex")}, nil)
	if err != nil {
		t.Fatal(err)
	}
	p.apply(plan)
	if got := p.get(file); !strings.Contains(got, "/new/postern") { // control
		t.Fatal(got)
	}
	p.apply(p.undo())
	if got := p.get(file); got != mates {
		t.Error(got)
	}
	if got := p.get(config); got != older {
		t.Error(got)
	}
	if again := p.undo(); !again.Idle() {
		t.Errorf("%+v", again)
	}

	// Ours, that was pulled over and written over.
	p.put(file, "{}")
	p.apply(p.attach("claude-code"))
	p.put(file, mates)
	p.apply(p.attach("claude-code"))
	p.apply(p.undo())
	if got := p.get(file); got != mates {
		t.Error(got)
	}
}

// A comment in an entry is somebody's: it goes neither with it nor by being
// written over.
func TestCommentInTheEntry(t *testing.T) {
	for _, with := range []string{`"command": /* why */ `, "// why\n\"command\": "} {
		p := newPlace(t)
		p.apply(p.attach("cursor"))
		file := p.project(".cursor/mcp.json")
		plain := p.get(file)
		p.put(file, strings.Replace(plain, `"command": `, with, 1))
		was := p.get(file)
		if plan := p.attach("cursor"); len(plan.Changes) != 0 { // it runs what it should
			t.Errorf("%+v", plan.Changes)
		}
		_, err := NewPlan(p.w, Server{Command: "/new/postern"}, []Client{client(t, "cursor")}, nil)
		if fault.CodeOf(err) != fault.ConfigInvalid || !strings.Contains(fault.As(err).Because(), "a comment in the entry") {
			t.Errorf("%v", err)
		}
		plan := p.undo()
		if len(plan.Left) != 1 || !strings.Contains(plan.Left[0], "mcp.json:3:5: there is a comment in the entry") {
			t.Errorf("%q", plan.Left)
		}
		p.apply(plan)
		if got := p.get(file); got != was {
			t.Error(got)
		}
		p.put(file, plain)
		p.apply(p.undo())
		if there(file) {
			t.Error("it is still there") // control
		}
	}
}

// The entry is shown also where the file is one line that is too large.
func TestDiffOfALargeLine(t *testing.T) {
	p := newPlace(t)
	p.put(p.project(".mcp.json"), `{"x":"`+strings.Repeat("ü", 1<<20)+`","mcpServers":{"é":{}},"y":1}`)
	plan := p.attach("claude-code")
	diff := plan.Diff(plan.Changes[0])
	for _, want := range []string{".mcp.json: the change is too large to show", "\n+", `"postern": {"command": "` + program + `", "args": ["serve", "--agent", "claude-code", "` + p.w.Project + `"]}`} {
		if !strings.Contains(diff, want) {
			t.Errorf("%q is not in %q", want, diff)
		}
	}
	if len(diff) > 1000 {
		t.Errorf("%d bytes", len(diff))
	}
	p.apply(plan)
	plan = p.undo()
	if diff := plan.Diff(plan.Changes[0]); !strings.Contains(diff, "\n-") || !strings.Contains(diff, `"postern": {"command": "`+program) {
		t.Error(diff)
	}
}

// Another project may stand at the path by now, with a policy that reads the same.
func TestUndoLeavesThePolicyOfAnother(t *testing.T) {
	for _, another := range []bool{false, true} {
		p := newPlace(t)
		path := p.project(".postern/policy.yaml")
		plan, err := NewPlan(p.w, Server{Command: program}, nil, []File{{Path: path, InProject: true, Text: []byte("version: 1\n")}})
		if err != nil {
			t.Fatal(err)
		}
		p.apply(plan)
		if another {
			if err := os.RemoveAll(p.w.Project); err != nil {
				t.Fatal(err)
			}
			p.put(path, "version: 1\n")
		}
		plan = p.undo()
		if kept := slices.Equal(plan.Kept, []string{path + ": it reads as init wrote it, and is another file or was touched since; servers go on reading it: delete it if they shouldn't"}); kept != another {
			t.Errorf("another %v: %q", another, plan.Kept)
		}
		p.apply(plan)
		if there(path) != another {
			t.Errorf("another %v: there %v", another, !another)
		}
		if again := p.undo(); !again.Idle() {
			t.Errorf("%+v", again)
		}
	}
}

// Nor does a comment go that stands around the object of entries, which init made.
func TestCommentAroundTheEntries(t *testing.T) {
	const before = "{\n  \"a\": 1\n}\n"
	for name, put := range map[string][2]string{
		"control":          {"", ""},
		"before the colon": {`"mcpServers":`, "\"mcpServers\" /* the team's */:"},
		"after the colon":  {`"mcpServers":`, "\"mcpServers\": // the team's\n "},
		"at the comma":     {"\n  }\n}", "\n  } /* the team's */,\n  \"b\": 2\n}"},
	} {
		for _, text := range []string{before, ""} {
			p := newPlace(t)
			file := p.project(".mcp.json")
			p.put(file, text)
			p.apply(p.attach("claude-code"))
			p.put(file, strings.Replace(p.get(file), put[0], put[1], 1))
			plan := p.undo()
			p.apply(plan)
			got := p.get(file)
			if strings.Contains(got, `"postern"`) || len(plan.Left) != 0 {
				t.Errorf("%s: %q %q", name, got, plan.Left)
			}
			if _, err := decode(form{key: "mcpServers"}, []byte(got)); err != nil {
				t.Errorf("%s: %v %q", name, err, got)
			}
			if name == "control" && got != text || name != "control" && (!strings.Contains(got, "the team's") || !strings.Contains(got, "mcpServers")) {
				t.Errorf("%s: %q", name, got)
			}
		}
	}
}

// What Codex has written anew and somebody has added to stays and is told: it is
// neither forgotten nor is a comment in it lost.
func TestChangedTableIsTold(t *testing.T) {
	for name, change := range map[string][2]string{
		"control":             {"", ""},
		"a pair more":         {"command = ", "tool_timeout_sec = 600\ncommand = "},
		"a comment in a list": {"args = [", "args = [ # the team's\n"},
	} {
		p := newPlace(t)
		config := p.home(".codex/config.toml")
		p.put(config, "a = 1\n")
		p.apply(p.attach("codex"))
		bare := strings.NewReplacer("# added by postern init: postern-my-project\n", "", " # end of postern-my-project", "").Replace(p.get(config))
		hand := strings.Replace(bare, change[0], change[1], 1)
		p.put(config, hand)
		plan := p.undo()
		p.apply(plan)
		if name == "control" {
			if got := p.get(config); got != "a = 1\n" || len(plan.Left) != 0 {
				t.Errorf("%q %q", got, plan.Left)
			}
			continue
		}
		if got := p.get(config); got != hand || len(plan.Left) != 1 || !strings.Contains(plan.Left[0], "config.toml:3:1: ") {
			t.Errorf("%s: %q %q", name, got, plan.Left)
		}
		if again := p.undo(); len(again.Left) != 1 {
			t.Errorf("%s: it is forgotten", name)
		}
		if _, err := NewPlan(p.w, Server{Command: "/new/postern"}, []Client{client(t, "codex")}, nil); fault.CodeOf(err) != fault.ConfigInvalid {
			t.Errorf("%s: it is written over: %v", name, err)
		}
	}
}
