// SPDX-License-Identifier: Apache-2.0

package attach

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/pelletier/go-toml/v2"
	"github.com/tailscale/hujson"
	"pgregory.net/rapid"
)

func testEntry(f form) entry {
	id := "claude-code"
	if f.toml {
		id = "codex"
	}
	return entry{name: "postern", command: "/opt/postern/bin/postern", args: []string{"serve", "--agent", id, "/home/u/pro\u00efect \"x\""}}
}

// forms are the distinct ones of the clients.
func forms() map[string]form {
	all := map[string]form{}
	for _, c := range Clients() {
		all[c.ID] = c.form
	}
	return all
}

// decode is the oracle: another reader's view of a text.
func decode(f form, text []byte) (map[string]any, error) {
	text = bytes.TrimPrefix(text, bom)
	v := map[string]any{}
	if f.toml {
		return v, toml.Unmarshal(text, &v)
	}
	if len(bytes.TrimSpace(text)) == 0 {
		return v, nil
	}
	std, err := hujson.Standardize(append(bytes.Clone(text), '\n'))
	if err != nil {
		return nil, err
	}
	d := json.NewDecoder(bytes.NewReader(std))
	d.UseNumber()
	return v, d.Decode(&v)
}

// without takes the entry out of a decoded text, and the object of entries if
// it is empty then and was absent before.
func without(f form, after, before map[string]any, name string) {
	servers := sub(after, f.key)
	if servers == nil {
		return
	}
	delete(servers, name)
	if _, was := before[f.key]; len(servers) == 0 && !was {
		delete(after, f.key)
	}
}

func sub(v map[string]any, key string) map[string]any {
	m, _ := v[key].(map[string]any) // nil for anything else
	return m
}

// holds checks everything that add and remove promise, for any text at all.
func holds(t interface {
	Helper()
	Fatalf(string, ...any)
}, f form, src []byte) (added bool,
) {
	t.Helper()
	e := testEntry(f)
	before := bytes.Clone(src)
	after, m, prob := f.add(src, e)
	if !bytes.Equal(src, before) {
		t.Fatalf("the text itself was changed")
	}
	if prob != nil {
		if strings.HasPrefix(prob.text, "adding the entry would") || strings.HasPrefix(prob.text, "the entry can't be added so") {
			if _, err := decode(f, src); err == nil {
				t.Fatalf("%s: %q", prob.text, src)
			}
		}
		return false
	}
	if bytes.Equal(after, src) {
		return false // it was there
	}
	if was, _ := f.entries(src); slices.ContainsFunc(was, func(o entry) bool { return o.name == e.name }) {
		values(t, f, src, after, e) // ours, brought up to date
		return true
	}
	if !subsequence(src, after) {
		t.Fatalf("a byte of\n%q\nis lost in\n%q", src, after)
	}
	back, prob := f.remove(after, e.name, &m)
	if prob != nil || !bytes.Equal(back, src) {
		t.Fatalf("there and back: %v\n%q\n%q\n%q", prob, src, after, back)
	}
	again, _, prob := f.add(after, e)
	if prob != nil || !bytes.Equal(again, after) {
		t.Fatalf("a second time: %v\n%q\n%q", prob, after, again)
	}
	values(t, f, src, after, e)
	return true
}

// values compares what another reader sees before and after.
func values(t interface {
	Helper()
	Fatalf(string, ...any)
}, f form, src, after []byte, e entry,
) {
	t.Helper()
	want, err := decode(f, src)
	if err != nil {
		return // the oracle is stricter: about numbers and dates in TOML
	}
	got, err := decode(f, after)
	if err != nil {
		t.Fatalf("the oracle can't read it any more: %v\n%q\n%q", err, src, after)
	}
	servers, _ := got[f.key].(map[string]any)
	if diff := cmp.Diff(f.wanted(e), servers[e.name]); diff != "" {
		t.Fatalf("the entry: %s\n%q", diff, after)
	}
	_, was := sub(want, f.key)[e.name]
	delete(sub(want, f.key), e.name)
	if was && f.toml && len(sub(want, f.key)) == 0 { // a table that its only entry stood for
		delete(want, f.key)
	}
	without(f, got, want, e.name)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Fatalf("foreign values: %s\n%q\n%q", diff, src, after)
	}
	bare, prob := f.remove(after, e.name, nil)
	if prob != nil {
		t.Fatalf("with nothing remembered: %v", prob)
	}
	if got, err = decode(f, bare); err != nil {
		t.Fatalf("with nothing remembered: %v\n%q\n%q", err, after, bare)
	}
	without(f, got, want, e.name)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Fatalf("with nothing remembered: %s\n%q\n%q", diff, src, bare)
	}
}

// wanted is the entry as a reader sees it.
func (f form) wanted(e entry) any {
	var v any
	if err := json.Unmarshal([]byte(f.object(e, style{inline: true})), &v); err != nil {
		panic(err)
	}
	return v
}

func subsequence(part, whole []byte) bool {
	i := 0
	for _, c := range whole {
		if i < len(part) && part[i] == c {
			i++
		}
	}
	return i == len(part)
}

// A generator of texts as people and programs leave them.
func blanks() *rapid.Generator[string] {
	return rapid.SampledFrom([]string{"", "", " ", "\n", "\n  ", "\n\t", "\r\n    ", " // c\n", " // {\"x\": [\r\n  ", "/* , } */", "\n/* a\n b */ ", "\n\n", "// postern\r\n"})
}

func jsonText(keys []string) *rapid.Generator[string] {
	var value func(t *rapid.T, depth int) string
	value = func(t *rapid.T, depth int) string {
		b := func() string { return blanks().Draw(t, "blank") }
		kind := rapid.IntRange(0, 5).Draw(t, "kind")
		if depth == 0 {
			kind = rapid.SampledFrom([]int{0, 0, 0, 0, 3}).Draw(t, "root")
		}
		if depth > 3 && kind < 2 {
			kind = 4
		}
		if kind > 1 {
			return rapid.SampledFrom([]string{`"s"`, `1e3`, `null`, `true`, `"\u0000 // , }"`, `"\\"`, `[]`, `{}`, `-0.10`}).Draw(t, "leaf")
		}
		n := rapid.IntRange(0, 3).Draw(t, "n")
		var parts []string
		for range n {
			part := b() + value(t, depth+1) + b()
			if kind == 0 {
				part = b() + rapid.SampledFrom(keys).Draw(t, "key") + b() + ":" + part
			}
			parts = append(parts, part)
		}
		text := strings.Join(parts, ",")
		if n > 0 && rapid.Bool().Draw(t, "trailing") {
			text += ","
		}
		text += b()
		return map[int]string{0: "{" + text + "}", 1: "[" + text + "]"}[kind]
	}
	return rapid.Custom(func(t *rapid.T) string {
		return rapid.SampledFrom([]string{"", "", "\xef\xbb\xbf"}).Draw(t, "bom") + blanks().Draw(t, "front") + value(t, 0) + blanks().Draw(t, "back")
	})
}

func TestAddAndRemoveJSON(t *testing.T) {
	for id, f := range forms() {
		if f.toml {
			continue
		}
		t.Run(id, func(t *testing.T) {
			keys := []string{`"` + f.key + `"`, `"` + f.key + `"`, `"other"`, `"post\u0065rn"`, `"a"`, `"b"`}
			added := 0
			rapid.Check(t, func(t *rapid.T) {
				if holds(t, f, []byte(jsonText(keys).Draw(t, "text"))) {
					added++
				}
			})
			if added < 10 {
				t.Errorf("only %d texts took the entry: this run shows nothing", added)
			}
		})
	}
}

func TestAddAndRemoveTOML(t *testing.T) {
	f := forms()["codex"]
	line := rapid.SampledFrom([]string{
		"", "a = 1", "b = \"# added by postern init: postern\"", "# a comment", "[table]", "[mcp_servers.other]", "command = \"x\"",
		"args = [ # c\n  \"a\",\n  'b',\n]", "m = \"\"\"\n[mcp_servers.postern]\n# added by postern init: postern\n\"\"\"", "d = 1979-05-27 07:32:00",
		"[[list]]", "x = { y = [1, {z = 2}], \"q\" = 'r' }", "[mcp_servers]", "mcp_servers.dotted.command = 'x'", "l = '''\\'''", "e = \"\\u00e9\\\"\"",
		"[mcp_servers.\"quoted name\"]", "  indented = true  # c", "[ spaced . table ]", "w = \"\"\"a\"\"\"\"\"",
	})
	added, judged := 0, 0
	rapid.Check(t, func(t *rapid.T) {
		eol := rapid.SampledFrom([]string{"\n", "\n", "\r\n"}).Draw(t, "eol")
		text := strings.Join(rapid.SliceOfN(line, 0, 7).Draw(t, "lines"), eol) + rapid.SampledFrom([]string{"", eol, eol + eol}).Draw(t, "end")
		text = rapid.SampledFrom([]string{"", "", "\xef\xbb\xbf"}).Draw(t, "bom") + text
		if holds(t, f, []byte(text)) {
			added++
			if _, err := decode(f, []byte(text)); err == nil {
				judged++
			}
		}
	})
	if added < 10 || judged < 10 {
		t.Errorf("%d texts took the entry, the oracle read %d: this run shows nothing", added, judged)
	}
}

func FuzzJSON(f *testing.F) {
	for _, c := range Clients() {
		for _, text := range configs(f, c) {
			f.Add(text)
		}
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		for _, form := range []form{{key: "mcpServers"}, {key: "mcp", kind: "local", array: true, enabled: true}} {
			holds(t, form, text)
		}
	})
}

func FuzzTOML(f *testing.F) {
	codex, _ := ByID("codex")
	for _, text := range configs(f, codex) {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text []byte) { holds(t, codex.form, text) })
}
