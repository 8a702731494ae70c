// SPDX-License-Identifier: Apache-2.0

package attach

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/pelletier/go-toml/v2"
)

// plainTree is what another reader sees, as far as the survey looks: a value that
// is no text, list or table is a word.
func plainTree(v any) any {
	switch v := v.(type) {
	case map[string]any:
		all := map[string]any{}
		for name, one := range v {
			all[name] = plainTree(one)
		}
		return all
	case []any:
		all := []any{}
		for _, one := range v {
			all = append(all, plainTree(one))
		}
		return all
	case string:
		if !strings.Contains(v, "\n") { // nor is one over several lines read
			return v
		}
	}
	return word{}
}

// TestTreeTOML: the survey reads a file as another reader does.
func TestTreeTOML(t *testing.T) {
	texts := map[string][]byte{
		"dotted": []byte("a.b.c = 'x'\n[t.\"u v\"]\nd . e = [\"y\", ['z']]\n"),
		"inline": []byte("a = { b.c = 'x', \"d\" = { e = ['f', { g = 'h' }] }, n = 1 }\nb = {}\n[c]\nd = {e = true}\n"),
		"late":   []byte("[a.b]\nx = 'y'\n[a]\nz = 'w'\n"),
	}
	for name, text := range configs(t, client(t, "codex")) {
		texts[name] = text
	}
	for name, text := range texts {
		var want map[string]any
		items, prob := scanTOML(string(text))
		if err := toml.Unmarshal(text, &want); err != nil || prob != nil {
			t.Fatalf("%s: %v %v", name, err, prob)
		}
		if diff := cmp.Diff(plainTree(want), plainTree(treeTOML(items))); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
}
