// SPDX-License-Identifier: Apache-2.0

package attach

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestDoubt: a line of ours in a project's file is a guard of this project for
// its client, or it is doubted.
func TestDoubt(t *testing.T) {
	p := newPlace(t)
	here, link, inside := p.w.Project, p.home("link"), p.project("link")
	for _, at := range []string{link, inside} {
		if err := os.Symlink(here, at); err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range []struct {
		args       []string
		everywhere bool
		want       string // in what is said, "" for no doubt
	}{
		{args: []string{"--agent", "claude-code", here}},
		{args: []string{"--agent=claude-code", "--read-only", "--", here + "/"}},
		{args: []string{"--agent", "claude-code", link}},
		{args: []string{"--agent", "claude-code", inside}, want: "serves another folder"},
		{args: []string{"--agent", "claude-code", "/"}, want: "serves another folder than this one: /"},
		{args: []string{"--agent", "claude-code", here, "/etc"}, want: "serves another folder than this one: /etc"},
		{args: []string{"--agent", "claude-code", "/etc", "--", here}, want: "serves another folder than this one: /etc"},
		{args: []string{"--agent", "claude-code", here + "/../.."}, want: "serves another folder"},
		{args: []string{"--agent", "claude-code", "."}, want: "serves another folder than this one: ."},
		{args: []string{"--agent", "claude-code"}, want: "names no folder"},
		{args: []string{"--agent", "cursor", here}, want: "is for the agent cursor, and its client is claude-code"},
		{args: []string{"--agent", "claude-code", "--agent=x", here}, want: "is for the agent claude-code, x"},
		{args: []string{here}, want: "names no agent"},
		{args: []string{"--policy", here, "--agent", "claude-code"}, want: "names no folder"},
		{args: []string{"--agent", "claude-code", "/other"}, everywhere: true},
		{args: []string{"--agent", "claude-code"}, everywhere: true},
		{args: []string{"--agent", "claude-code", "other"}, everywhere: true, want: "serves another folder"},
	} {
		a := Attachment{Client: client(t, "claude-code"), Args: append([]string{"serve"}, c.args...), Everywhere: c.everywhere, InProject: !c.everywhere}
		if got := a.Doubt(filepath.Clean(here)); !strings.Contains(got, c.want) || c.want == "" && got != "" {
			t.Errorf("%q: %q, want %q", c.args, got, c.want)
		}
	}
	if got := (Attachment{Client: client(t, "codex"), Args: []string{"serve"}, Odd: []string{"env"}}).Doubt(here); !strings.Contains(got, "env") {
		t.Error(got)
	}
}
