// SPDX-License-Identifier: Apache-2.0

package main

import (
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestTwoNames: a question about two names is answered on the terminal, by the
// command, and takes no yes once one of them changed.
func TestTwoNames(t *testing.T) {
	env, dir := desk(t)
	place(t, filepath.Join(filepath.Dir(dir), ".config", "postern"), "policy.yaml", "version: 1\nrules: { fs.rename: ask, fs.create: ask }\n")
	a := newAgent(t, env, dir)
	for tool, args := range map[string]map[string]any{
		"move_file": {"source": "m", "destination": "m2"},
		"copy_file": {"source": "c", "destination": "c2"},
	} {
		from, to := args["source"].(string), args["destination"].(string)
		asks := func() string {
			got := a.call(tool, args)()
			id := regexp.MustCompile(`postern approve ([0-9a-z]{8})`).FindStringSubmatch(got)
			if id == nil {
				t.Fatal(got)
			}
			return id[1]
		}
		place(t, dir, from, "old\n")
		id := asks()
		place(t, dir, from, "something else\n")
		p := sit(t, env, 60, "approve", "--yes", id)
		p.sees("because: it changed since it was asked: project://" + from)
		p.ends(4)

		id = asks()
		p = sit(t, env, 60, "approve", id)
		p.sees("project://" + to)
		p.sees("y yes, once")
		p.types("y\r")
		p.sees("approved " + id)
		p.ends(0)
		if got := a.call(tool, args)(); strings.Contains(got, "postern approve") {
			t.Error(got)
		}
	}
}
