// SPDX-License-Identifier: Apache-2.0

package attach

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/pelletier/go-toml/v2"
	"github.com/tailscale/hujson"
	"pgregory.net/rapid"

	"github.com/postern-gate/postern/core/fault"
	"github.com/postern-gate/postern/core/textsafe"
)

// depthOf is how deep the parser nests a value.
func depthOf(v hujson.ValueTrimmed) int {
	deepest := 0
	switch v := v.(type) {
	case *hujson.Object:
		for _, m := range v.Members {
			deepest = max(deepest, depthOf(m.Value.Value))
		}
	case *hujson.Array:
		for _, e := range v.Elements {
			deepest = max(deepest, depthOf(e.Value))
		}
	default:
		return 0
	}
	return deepest + 1
}

// TestDepth: exactly what the parser would nest deeper than the limit is
// refused, whatever comments and strings are around the brackets.
func TestDepth(t *testing.T) {
	noise := rapid.SampledFrom([]string{
		"", "", " ", "/**/", "/**//**/", "/***/", "/*/*/", "/*//*/", "//\n", "///*\n", "// \"\n", "/*\"*/", "/* [ */", "// [\n", "/*\n//*/", "/**///\n",
	})
	text := rapid.SampledFrom([]string{`"["`, `"\""`, `"\\"`, `"//"`, `"/*"`, `"*/"`, `"\\\""`, `1`})
	deep, flat := 0, 0
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.SampledFrom([]int{1, maxDepth - 1, maxDepth, maxDepth + 1, maxDepth + 2}).Draw(t, "levels")
		front := noise.Draw(t, "front") + noise.Draw(t, "front")
		lead := front + text.Draw(t, "element") + noise.Draw(t, "after") + ","
		one := rapid.SampledFrom([]string{"[", front + "[", "[" + lead}).Draw(t, "one")
		src := strings.Repeat(one, n) + text.Draw(t, "leaf") + noise.Draw(t, "behind") + strings.Repeat("]", n) + noise.Draw(t, "back")
		v, err := hujson.Parse([]byte(src))
		if err != nil {
			t.Fatalf("control: %v: %q", err, src)
		}
		refused := tooDeep([]byte(src)) >= 0
		if depth := depthOf(v.Value); (depth > maxDepth) != refused {
			t.Fatalf("%d levels, refused is %v: %.200q", depth, refused, src)
		}
		if refused {
			deep++
		} else {
			flat++
		}
	})
	if deep < 5 || flat < 5 {
		t.Errorf("%d deep and %d flat texts: this run shows nothing", deep, flat)
	}
}

// FuzzDepth: no text that the limit lets through nests deeper, also one that is
// broken somewhere: the parser has gone down by then.
func FuzzDepth(f *testing.F) {
	for _, text := range []string{`{"x": /**//**/[[[1]]]}`, "// [\n[[[[1]]]]", `["/*", [["//"]]]`, "/*", "//", `"\`, "[/*/[[*/[]]"} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		if v, err := hujson.Parse(append(text, '\n')); err == nil {
			// Every level of the text, many times, so that a limit that is
			// blind to one of them is passed.
			depth := depthOf(v.Value)
			src := []byte(strings.Repeat("[", maxDepth+1-depth) + string(text) + "\n" + strings.Repeat("]", maxDepth+1-depth))
			if depth > 0 && depth <= maxDepth && tooDeep(src) < 0 {
				t.Fatalf("%q", text)
			}
		}
	})
}

// TestDepthIsRefused: the text that would overflow the stack is an error.
func TestDepthIsRefused(t *testing.T) {
	p := newPlace(t)
	for name, front := range map[string]string{"plain": "", "comments": "/**//**/", "in a line": "/*//*/"} {
		p.put(p.project(".mcp.json"), `{"x": `+front+strings.Repeat("[", 4_190_000)+"\n")
		if _, errs := Attached(p.w); len(errs) != 1 || fault.CodeOf(errs[0]) != fault.ConfigInvalid || !strings.Contains(errs[0].Error(), "levels deep") {
			t.Errorf("%s: %v", name, errs)
		}
	}
}

// TestLoneReturn: a comment that ends for one reader and not for another.
func TestLoneReturn(t *testing.T) {
	f := client(t, "vscode").form
	for text, fine := range map[string]bool{
		"{ // a\r\n}":                  true,
		"{\r\n}\r\n":                   true,
		"{ // a\r\"servers\": {}\n}":   false,
		"{ // a\r\r\n}":                false,
		"{}\r":                         false,
		"{ /* a\r */ }":                false,
		"{ \"a\": \"\\r\" // \\r \n }": true,
	} {
		if _, _, prob := f.add([]byte(text), testEntry(f)); (prob == nil) != fine {
			t.Errorf("%q: %v", text, prob)
		}
	}
}

// hidden are characters that a person doesn't see in what is drawn.
const hidden = "\u202e\u2066\u200b\u200d\ufeff\ufe0f\u00ad\u2028\u0085\u00a0\u3164\U000e0041\U000e0101"

// TestHiddenIsSpelled: what is drawn and pasted means the path that it is about.
func TestHiddenIsSpelled(t *testing.T) {
	for _, r := range hidden + "x\u00eb\u65e5\U0001f600" { // the last four are the control
		shown := strings.ContainsRune("x\u00eb\u65e5\U0001f600", r)
		p := newPlace(t)
		p.w.Project = "/a" + string(r) + "b"
		for _, c := range Clients() {
			s := c.Paste(p.w, Server{Command: program})
			drawn := textsafe.Block(s.Text).String()
			if strings.ContainsRune(s.Text, r) != shown || drawn != s.Text {
				t.Errorf("%s %U: %q", c.ID, r, s.Text)
			}
			var all map[string]any
			err := json.Unmarshal([]byte(drawn), &all)
			if c.form.toml {
				err = toml.Unmarshal([]byte(drawn), &all)
			}
			got, prob := c.form.entries([]byte(drawn))
			if err != nil || prob != nil || len(got) != 1 || got[0].args[3] != p.w.Project {
				t.Errorf("%s %U: %v %v %+v", c.ID, r, err, prob, got)
			}
			if bare, _ := c.form.wanted(got[0]).(map[string]any); !c.form.toml && bare == nil {
				t.Errorf("%s %U: another reader can't read it", c.ID, r)
			}
			if has := c.ID == "claude-code" || c.ID == "codex" || c.ID == "vscode"; has && (s.Shell != "") != (shown || c.ID == "vscode") {
				t.Errorf("%s %U: %q", c.ID, r, s.Shell)
			}
			if strings.ContainsRune(s.Shell, r) && !shown {
				t.Errorf("%s %U: it is drawn: %q", c.ID, r, s.Shell)
			}
		}
	}
	if _, ok := ShellWord("a\xff"); ok {
		t.Error("a byte that is no character is drawn")
	}
}

// TestNameIsTakenByAnother: an entry that we are remembered to have added was
// removed by hand, and another folder has the name now.
func TestNameIsTakenByAnother(t *testing.T) {
	for _, id := range []string{"codex", "windsurf"} {
		p, other := newPlace(t), newPlace(t)
		other.w.Home = p.w.Home
		p.apply(p.attach(id))
		config := client(t, id).userFile(p.w)
		if plan := p.undo(); len(plan.Changes) != 1 || len(plan.Kept) != 0 { // control
			t.Errorf("%s: %+v %q", id, plan.Changes, plan.Kept)
		}
		if err := os.Remove(config); err != nil {
			t.Fatal(err)
		}
		other.apply(other.attach(id))
		theirs := p.get(config)
		for _, named := range [][]string{nil, {id}} {
			plan := p.undo(named...)
			p.apply(plan)
			if got := p.get(config); got != theirs || len(plan.Changes) != 0 || len(plan.Left) != 0 {
				t.Errorf("%s %v: %+v %q\n%s", id, named, plan.Changes, plan.Left, got)
			}
		}
		p.apply(p.attach(id)) // beside it, also where their folder is not there in this moment
		if err := os.Rename(other.w.Project, other.w.Project+" away"); err != nil {
			t.Fatal(err)
		}
		if again := p.attach(id); !again.Idle() {
			t.Errorf("%s: %+v", id, again.Changes)
		}
		p.apply(p.undo())
		if got := p.get(config); got != theirs {
			t.Errorf("%s: %s", id, got)
		}
	}
}

// TestSecondNameIsTaken: nor is the name with the hash replaced.
func TestSecondNameIsTaken(t *testing.T) {
	p := newPlace(t)
	f := client(t, "windsurf").form
	text := []byte("{}")
	for _, name := range []string{"postern-my-project", "postern-my-project-" + shortHash(p.w.Project)} {
		text, _, _ = f.add(text, entry{name: name, command: program, args: []string{"serve", "--agent", "windsurf", "/other"}})
	}
	p.put(client(t, "windsurf").userFile(p.w), string(text))
	if _, err := NewPlan(p.w, Server{Command: program}, []Client{client(t, "windsurf")}, nil); fault.CodeOf(err) != fault.ConfigInvalid {
		t.Errorf("%v", err)
	}
	p.put(client(t, "windsurf").userFile(p.w), strings.ReplaceAll(string(text), "/other", p.w.Project))
	p.attach("windsurf") // control
}

// TestWriteThatFailsIsForgotten: what was noted and not written is not
// remembered, nor is its folder left; what was written is.
func TestWriteThatFailsIsForgotten(t *testing.T) {
	p := newPlace(t)
	p.put(p.project(".mcp.json"), "{}")
	p.apply(p.attach("claude-code"))
	plan := p.attach("cursor", "windsurf", "codex")
	if err := plan.disk.write(plan.Changes[1].spot, []byte("{}")); err != nil {
		t.Fatal(err)
	}
	stale := plan.Changes[1] // changes after the last look of the plan, before it is written
	plan = p.attach("cursor", "windsurf", "codex")
	twice := plan.Changes[1]
	twice.Entry, twice.After = "twice", []byte("{ }")
	plan.Changes = []Change{plan.Changes[0], plan.Changes[1], twice, plan.Changes[2]}
	err := plan.Apply(t.Context(), p.state)
	if fault.CodeOf(err) != fault.PreconditionFailed || !strings.HasPrefix(fault.As(err).Next(), "some files are written already") {
		t.Fatalf("%v", err)
	}
	remembered := func() (all []string) {
		j, err := readJournal(p.state, p.w.Project)
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range j.Files {
			all = append(all, r.Client+" "+r.Entry)
		}
		return all
	}
	want := []string{"claude-code postern", "cursor postern", "windsurf postern-my-project"}
	if diff := cmp.Diff(want, remembered()); diff != "" || there(p.home(".codex")) {
		t.Error(diff)
	}
	// The first of the failed is there after all: the error came behind the effect.
	b, err := openBook(t.Context(), p.state, p.w.Project)
	if err != nil {
		t.Fatal(err)
	}
	plan.unnote(b, nil, plan.Changes[:1])
	plan.unnote(b, nil, []Change{stale}) // control: what is there is another text
	b.release()
	if diff := cmp.Diff(want[:2], remembered()); diff != "" {
		t.Error(diff)
	}
}

// TestUndoLeavesFilesOfThePerson: a file whose name only begins like ours, or
// has our form and is somebody's, stays with its folder.
func TestUndoLeavesFilesOfThePerson(t *testing.T) {
	for _, name := range []string{".postern-tmp-notes", ".postern-tmp-0123456789abcdef", ".postern-tmp-0123456789ABCDEF"} {
		p := newPlace(t)
		p.apply(p.attach("cursor"))
		mine := p.project(filepath.Join(".cursor", name))
		p.put(mine, "mine")
		p.apply(p.undo())
		if got := p.get(mine); got != "mine" || there(p.project(".cursor/mcp.json")) {
			t.Errorf("%s: %q", name, got)
		}
	}
}
