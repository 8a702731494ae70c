// SPDX-License-Identifier: Apache-2.0

package schema

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"testing"
)

// Every schema of the folder has a name, and is what the folder has.
func TestNamed(t *testing.T) {
	files, err := filepath.Glob("*.json")
	if err != nil || len(files) != len(Names()) {
		t.Fatalf("%v, %q for %q", err, files, Names())
	}
	for _, name := range Names() {
		got, ok := Named(name)
		if !ok || !json.Valid(got) {
			t.Errorf("%s: %t, no JSON", name, ok)
		}
		found := false
		for _, file := range files {
			want, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			found = found || bytes.Equal(got, want)
		}
		if !found {
			t.Errorf("%s is none of %q", name, files)
		}
		got[0] = 'x' // a copy
	}
	if got, ok := Named("policy"); !ok || got[0] == 'x' {
		t.Error("a schema can be changed")
	}
	if _, ok := Named("nothing"); ok {
		t.Error("there is a schema called nothing")
	}
}
