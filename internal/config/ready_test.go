// SPDX-License-Identifier: Apache-2.0

package config_test

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/postern-gate/postern/core/fault"
	"github.com/postern-gate/postern/core/policy"
	"github.com/postern-gate/postern/internal/config"
	"github.com/postern-gate/postern/policies"
)

// TestReady: each policy is valid where it is meant for, shows what it allows
// and what it denies, and its examples are held: with another decision in one
// of them the file is refused.
func TestReady(t *testing.T) {
	all := map[string][]byte{"user": policies.User(), "project": policies.Project()}
	for _, name := range policies.Ready() {
		all[name], _ = policies.Named(name)
	}
	example := regexp.MustCompile(`(?m)^  - \{ .*decision: (allow|ask|deny) \}$`)
	for name, text := range all {
		project := name == "project"
		if _, err := config.Parse(name, text, project); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		var decisions []string
		for _, at := range example.FindAllSubmatchIndex(text, -1) {
			decision := string(text[at[2]:at[3]])
			decisions = append(decisions, decision)
			other := map[string]string{"allow": "deny", "ask": "allow", "deny": "ask"}[decision]
			changed := string(text[:at[2]]) + other + string(text[at[3]:])
			if _, err := config.Parse(name, []byte(changed), project); err == nil {
				t.Errorf("%s: an example with another decision is accepted: %s", name, text[at[0]:at[1]])
			}
		}
		if name == "user" { // its examples are those of a person's own rules, which it has none of yet
			continue
		}
		if !slices.Contains(decisions, "deny") || !project && !slices.Contains(decisions, "allow") {
			t.Errorf("%s: its examples show only %v", name, decisions)
		}
	}
}

// TestWrittenHold: what init writes for a person and for a project stays valid
// whatever that person writes into their own file later. The control are the
// examples that init wrote once: of what the shipped default decides.
func TestWrittenHold(t *testing.T) {
	dir := t.TempDir()
	project, file := filepath.Join(dir, "ws", ".postern", "policy.yaml"), filepath.Join(dir, "policy.yaml")
	if err := os.MkdirAll(filepath.Dir(project), 0o755); err != nil {
		t.Fatal(err)
	}
	load := func(user, ofProject string) error {
		for name, text := range map[string]string{file: user, project: ofProject} {
			if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		_, err := config.Load(config.Options{Dirs: []string{filepath.Join(dir, "ws")}, WorkDir: dir, PolicyFile: file, SystemFile: filepath.Join(dir, "none")})
		return err
	}
	later := []string{
		"allow_sensitive: [" + strings.Join(policy.Entries(), ", ") + "]", "default: allow", "default: deny", "allow: [\"src/**\"]",
		"rules: { fs.read: deny, fs.write: deny, fs.create: deny, fs.delete: allow }", "rules: { fs.write: { \"**\": ask } }",
		"roots: { work: { path: ./ws, access: read } }", "agents: { codex: { fs.write: deny } }",
	}
	without := strings.Replace(string(policies.User()), "\ndeny: []\n", "\n", 1)
	for _, line := range append(later, "deny: [\"**\"]") {
		if err := load(without+line+"\n", string(policies.Project())); err != nil {
			t.Errorf("%s: %v", line, fault.As(err).Lines())
		}
	}
	before := "version: 1\nexamples: [{ fs.read: \"project://.env\", decision: deny }]\n"
	err := load(without+later[0]+"\n", before)
	if f := fault.As(err); fault.CodeOf(err) != fault.ConfigInvalid || f.Next() != "change the rule, or the example if the new decision is meant; postern test tries all of them" {
		t.Errorf("an example of what another file decides: %v", err)
	}
	if f := fault.As(load(before+later[0]+"\n", before)); !strings.HasPrefix(f.Next(), "change the rule, or the example") { // both files have one
		t.Errorf("%v", f.Lines())
	}
	if f := fault.As(load("version: 2\n", "version: 1\n")); !strings.HasPrefix(f.Next(), "correct the file") {
		t.Errorf("%v", f.Lines())
	}
}
