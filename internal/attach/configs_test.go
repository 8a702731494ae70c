// SPDX-License-Identifier: Apache-2.0

package attach

import (
	"os"
	"path/filepath"
	"testing"
)

// configs are the client's files of testdata/configs, as people have them.
func configs(t testing.TB, c Client) map[string][]byte {
	t.Helper()
	names, err := filepath.Glob(filepath.Join("testdata", "configs", c.ID, "*"))
	if err != nil || len(names) == 0 {
		t.Fatalf("no configurations of %s: %v", c.ID, err)
	}
	all := map[string][]byte{}
	for _, name := range names {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		all[filepath.Base(name)] = text
	}
	return all
}

// Each takes the entry, and gives it back.
func TestConfigs(t *testing.T) {
	for _, c := range Clients() {
		for name, text := range configs(t, c) {
			if !holds(t, c.form, text) {
				_, _, prob := c.form.add(text, testEntry(c.form))
				t.Errorf("%s/%s: %v", c.ID, name, prob)
			}
		}
	}
}
