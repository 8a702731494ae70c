// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/postern-gate/postern/core/fault"
)

// TestOwnFilesReplaced: while a server runs, the policy that is there now is kept
// from agents under every name, whatever was there at its start.
func TestOwnFilesReplaced(t *testing.T) {
	p := newPlace(t, map[string]string{"a.txt": "a"})
	policy := filepath.Join(p.home, ".config/postern/policy.yaml")
	beneath := func(name string) string { return filepath.Join(p.dir, name) }
	p.put(policy, "version: 1\n")
	p.must(os.Link(policy, beneath("old")))
	s := p.serve(p.dir)
	read := func(name string) string { return s.call("read_text_file", map[string]any{"path": name}) }
	want := func(name, code string) {
		t.Helper()
		if got := read(name); got != code {
			t.Errorf("%s: %s, want %s", name, got, code)
		}
	}
	refused := fault.PolicyDenied.String()
	soon := func(name string) { // at the next look
		t.Helper()
		for end := time.Now().Add(time.Minute); read(name) != refused; time.Sleep(50 * time.Millisecond) {
			if time.Now().After(end) {
				t.Fatalf("%s can be read", name)
			}
		}
	}
	want("old", refused)

	p.put(policy+"~", "version: 1\n#\n") // replaced, as editors do
	p.must(os.Rename(policy+"~", policy))
	p.must(os.Link(policy, beneath("new")))
	want("old", fault.OK.String())
	soon("new")

	p.must(os.Rename(policy, policy+"~")) // replaced by one that isn't valid
	p.put(policy, "nonsense")
	p.must(os.Link(policy, beneath("wrong")))
	want("new", fault.OK.String())
	soon("wrong")

	p.must(os.Remove(policy)) // removed: what has its number is the project's
	want("wrong", fault.OK.String())
	p.put(beneath(".postern/policy.yaml"), "version: 1\n") // one that wasn't there
	p.must(os.Link(beneath(".postern/policy.yaml"), beneath("made")))
	soon("made")
}
