// SPDX-License-Identifier: Apache-2.0

package config_test

import (
	"encoding/json"
	"errors"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/jsonschema-go/jsonschema"
	"github.com/postern-gate/postern/core"
	"github.com/postern-gate/postern/core/policy"
	"github.com/postern-gate/postern/internal/config"
	"github.com/postern-gate/postern/internal/safety"
	"go.yaml.in/yaml/v4"
	"pgregory.net/rapid"
)

const schemaFile = "../../schema/policy.schema.json"

func schema(t *testing.T) *jsonschema.Resolved {
	t.Helper()
	src, err := os.ReadFile(schemaFile)
	if err != nil {
		t.Fatal(err)
	}
	var s jsonschema.Schema
	if err := json.Unmarshal(src, &s); err != nil {
		t.Fatal(err)
	}
	r, err := s.Resolve(nil)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func asJSON(t *testing.T, src []byte) any {
	t.Helper()
	var v any
	if err := yaml.Unmarshal(src, &v); err != nil {
		t.Fatal(err)
	}
	b, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	var out any
	if err := json.Unmarshal(b, &out); err != nil {
		t.Fatal(err)
	}
	return out
}

// TestSchemaKnowsThePolicies: the shipped files pass, and what the parser
// refuses for its keys and words the schema refuses too.
func TestSchemaKnowsThePolicies(t *testing.T) {
	s := schema(t)
	for _, name := range []string{"default", "strict"} {
		if err := s.Validate(asJSON(t, shippedFile(t, name))); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	for _, name := range []string{
		"unknown-key", "version-other", "text-for-list", "entry-unknown-key", "entry-without-match", "decision-unknown",
		"action-unknown", "rule-empty", "class-unknown", "require-action", "duration-bad", "duration-zero", "size-bad", "number-bad", "enum-bad",
		"root-no-path", "root-access", "root-alias", "root-unknown-key", "lift-unknown", "example-no-decision",
		"tool-unknown", "pattern-negated", "example-no-root",
	} {
		src, err := os.ReadFile(filepath.Join("testdata/invalid", name+".yaml"))
		if err != nil {
			t.Fatal(err)
		}
		if s.Validate(asJSON(t, src)) == nil {
			t.Errorf("the schema accepts %s", name)
		}
	}
}

var known = regexp.MustCompile(`unknown key "zzz" in [^;]*; known: (.*)`)

// TestSchemaAndParserHaveTheSameKeys asks the parser for its keys by giving
// each object one that it does not know.
func TestSchemaAndParserHaveTheSameKeys(t *testing.T) {
	src, err := os.ReadFile(schemaFile)
	if err != nil {
		t.Fatal(err)
	}
	var tree map[string]any
	if err := json.Unmarshal(src, &tree); err != nil {
		t.Fatal(err)
	}
	for path, text := range map[string]string{
		"":                                    "zzz: 1",
		"/definitions/root":                   "roots: { a: { path: ., zzz: 1 } }",
		"/definitions/rules":                  "rules: { zzz: 1 }",
		"/definitions/example":                "examples: [{ fs.read: \"project://a\", decision: deny, zzz: 1 }]",
		"/definitions/patterns/items/oneOf/1": "deny: [{ match: a, zzz: 1 }]",
		"/definitions/toolRule/oneOf/1/properties/class": "rules: { tool.call: { class: { zzz: 1 } } }",
		"/properties/require":                            "require: { zzz: 1 }", "/properties/tools": "tools: { zzz: 1 }", "/properties/audit": "audit: { zzz: 1 }",
		"/properties/ask": "ask: { zzz: 1 }", "/properties/undo": "undo: { zzz: 1 }", "/properties/limits": "limits: { zzz: 1 }",
		"/properties/egress": "egress: { zzz: 1 }", "/properties/screen": "screen: { zzz: 1 }",
	} {
		node := any(tree)
		for key := range strings.SplitSeq(strings.TrimPrefix(path, "/"), "/") {
			switch n := node.(type) {
			case map[string]any:
				if key != "" {
					node = n[key]
				}
			case []any:
				node = n[int(key[0]-'0')]
			}
		}
		object, ok := node.(map[string]any)
		if !ok {
			t.Fatalf("no schema at %s", path)
		}
		properties, _ := object["properties"].(map[string]any)
		_, err := config.Parse("p", []byte("version: 1\n"+text+"\n"), false)
		m := known.FindStringSubmatch(errorText(err))
		if m == nil {
			t.Fatalf("%s: %v", text, err)
		}
		parser := strings.Split(strings.SplitN(m[1], "\n", 2)[0], ", ")
		if d := cmp.Diff(slices.Sorted(maps.Keys(properties)), parser); d != "" {
			t.Errorf("%s: -schema +parser\n%s", path, d)
		}
	}
	if got := tree["definitions"].(map[string]any)["action"].(map[string]any)["enum"].([]any); len(got) != len(core.Actions()) {
		t.Errorf("actions: %v", got)
	}
	var offered []string
	for _, name := range tree["properties"].(map[string]any)["tools"].(map[string]any)["properties"].(map[string]any)["off"].(map[string]any)["items"].(map[string]any)["enum"].([]any) {
		offered = append(offered, name.(string))
	}
	if d := cmp.Diff(safety.Tools(), offered); d != "" {
		t.Error(d)
	}
	for word, accepted := range map[string]bool{"on": true, "off": true, "true": false, "false": false} {
		src := []byte("version: 1\nenvelope: " + word + "\n")
		_, err := config.Parse("p", src, false)
		if bySchema := schema(t).Validate(asJSON(t, src)) == nil; bySchema != accepted || (err == nil) != accepted {
			t.Errorf("envelope %s: the schema accepts it: %v, the parser: %v", word, bySchema, err == nil)
		}
	}
	lift := tree["properties"].(map[string]any)["allow_sensitive"].(map[string]any)["items"].(map[string]any)["enum"].([]any)
	var entries []any
	for _, e := range policy.Entries() {
		entries = append(entries, e)
	}
	if d := cmp.Diff(entries, lift); d != "" {
		t.Error(d)
	}
}

func errorText(err error) string {
	var invalid *config.Invalid
	if errors.As(err, &invalid) {
		return invalid.Error()
	}
	return ""
}

func shippedFile(t testing.TB, name string) []byte {
	t.Helper()
	src, err := os.ReadFile("../../policies/" + name + ".yaml")
	if err != nil {
		t.Fatal(err)
	}
	return src
}

func parse(t testing.TB, name string) *policy.Policy {
	t.Helper()
	p, err := config.Parse(name, shippedFile(t, name), false)
	if err != nil {
		t.Fatalf("%v\n%v", err, errors.Unwrap(err))
	}
	return p
}

// TestDefaultFileIsTheDefault: spelled out it decides as built in.
func TestDefaultFileIsTheDefault(t *testing.T) {
	file := parse(t, "default")
	d := policy.Default()
	builtin, err := policy.Compile(policy.Config{Roots: []policy.Root{{Name: "project"}}, Fallback: &d})
	if err != nil {
		t.Fatal(err)
	}
	names := rapid.OneOf(rapid.SampledFrom([]string{"", "a/b", ".env", ".ENV", ".git/config", ".bashrc", "x/.npmrc", "a/../b", "server"}), rapid.String())
	rapid.Check(t, func(t *rapid.T) {
		r := core.Request{
			Action: rapid.SampledFrom(append(core.Actions(), core.ActionUnknown)).Draw(t, "action"),
			Class:  core.Class(rapid.IntRange(0, 5).Draw(t, "class")),
			Resource: core.Resource{
				Root: rapid.SampledFrom([]string{"project", "", "other"}).Draw(t, "root"),
				Name: names.Draw(t, "name"), Resolved: rapid.IntRange(0, 9).Draw(t, "resolved") > 0,
			},
			Subject: core.Subject{Agent: rapid.SampledFrom([]string{"", "a"}).Draw(t, "agent"), Proven: rapid.Bool().Draw(t, "proven")},
		}
		if a, b := file.Evaluate(r), builtin.Evaluate(r); a.Decision != b.Decision || a.Reason.Step != b.Reason.Step || a.Reason.Rule != b.Reason.Rule {
			t.Fatalf("%+v: the file says %v, built in is %v", r, a, b)
		}
	})
	for _, a := range core.Actions() {
		if file.ConfirmRequired(a) != builtin.ConfirmRequired(a) || file.IfMatchRequired(a) != builtin.IfMatchRequired(a) {
			t.Errorf("%v: other preconditions", a)
		}
	}
	p := newPlace(t)
	plain := p.load().Settings
	p.user(string(shippedFile(t, "default")))
	if d := cmp.Diff(plain, p.load().Settings); d != "" {
		t.Errorf("-built in +file\n%s", d)
	}
}

func TestStrictFileIsStricter(t *testing.T) {
	strict, lax := parse(t, "strict"), parse(t, "default")
	for _, a := range core.Actions() {
		r := core.Request{Action: a, Resource: core.File("", "x"), Class: core.ReadOnly}
		if a.IsFile() {
			r.Resource.Root = "project"
		}
		if a == core.ToolCall {
			r.Resource.Root = "server"
		}
		if strict.Evaluate(r).Decision > lax.Evaluate(r).Decision {
			t.Errorf("%v is looser", a)
		}
	}
}

// TestShippedFilesMarkWhatIsUnheeded: the keys that a warning names are those
// that are marked (1) in the file.
func TestShippedFilesMarkWhatIsUnheeded(t *testing.T) {
	key := regexp.MustCompile(`(?m)^ *([a-z][a-z._]*):[^#\n]*# \(1\)`)
	for _, name := range []string{"default", "strict"} {
		src := shippedFile(t, name)
		var marked []string
		for _, m := range key.FindAllStringSubmatch(string(src), -1) {
			marked = append(marked, m[1])
		}
		p := newPlace(t)
		path := p.user(string(src))
		var said []string
		for _, w := range p.load().Warnings {
			list, ok := strings.CutPrefix(w, path+": set but without effect in this release: ")
			if !ok {
				t.Errorf("%s: %s", name, w)
			}
			for key := range strings.SplitSeq(list, ", ") {
				said = append(said, key)
			}
		}
		slices.Sort(marked)
		slices.Sort(said)
		if d := cmp.Diff(said, marked); d != "" {
			t.Errorf("%s: -warned +marked\n%s", name, d)
		}
	}
}
