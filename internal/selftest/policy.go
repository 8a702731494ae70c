// SPDX-License-Identifier: Apache-2.0

package selftest

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/postern-gate/postern/core"
	"github.com/postern-gate/postern/enforce"
)

// secrets: what the built-in list names stays unread, under spellings too that
// only some file system takes for the same.
func secrets(l *lab, t *trial) {
	names := []string{
		".env", "sub/.env.local", ".ENV", ".Env.production", "\uff0eenv", ".e\u200bnv", ".en\u00adv", "．ＥＮＶ",
		"id_rsa", "keys/ID_ED25519", ".ssh/config", ".SSH/known_hosts", ".aws/credentials", "sub/.npmrc", ".netrc", ".git-credentials",
		"cert.pem", "server.key", "credentials.json", ".postern-tmp-0123456789abcdef",
	}
	t.about = fmt.Sprintf("%d files of the built-in list, folded and with hidden characters: read, searched, listed", len(names))
	for _, name := range names {
		path := l.at("secrets/" + name)
		t.against(printable(name), func() error {
			return errors.Join(l.put(path, l.marker), holds(path, l.marker))
		}, func() error {
			return l.refused(l.main.client.call("read_text_file", args{"path": "secrets/" + name}))
		})
	}
	t.against("a search", func() error { return holds(l.at("secrets/.env"), l.marker) }, func() error {
		a, err := l.main.client.does("search_content", args{"path": "secrets", "query": markerStart, "includeIgnored": true})
		if err == nil && l.leaks(a) {
			err = errors.New("the content came out")
		}
		return err
	})
}

func printable(name string) string { return strings.Trim(fmt.Sprintf("%+q", name), `"`) }

// runsByItself: what a program runs or obeys without being told to is read and
// never changed.
func runsByItself(l *lab, t *trial) {
	const before = "as it was"
	names := []string{
		".git/hooks/pre-commit", ".GIT/hooks/post-checkout", ".git/config", ".git/HEAD", ".g\u200bit/config", "sub/.git/hooks/pre-push",
		".husky/pre-commit", ".claude/settings.json", ".mcp.json", ".cursor/mcp.json", ".codex/config.toml", ".gemini/settings.json",
		".vscode/tasks.json", ".VSCode/settings.json", ".envrc", ".postern/policy.yaml",
	}
	t.about = fmt.Sprintf("%d files that are obeyed without being asked for: written, appended to and made anew", len(names))
	for _, name := range names {
		path, rel := l.at("runs/"+name), "runs/"+name
		control := func() error { return errors.Join(l.put(path, "control"), l.put(path, before)) }
		t.against(printable(name), control, func() error {
			for _, tool := range []string{"write_file", "append_file"} {
				if err := l.refused(l.main.client.call(tool, args{"path": rel, "content": "changed"})); err != nil {
					return err
				}
			}
			return holds(path, before)
		})
		t.against(printable(name)+", new", func() error { return errors.Join(control(), os.Remove(path)) }, func() error {
			if err := l.refused(l.main.client.call("write_file", args{"path": rel, "content": "changed"})); err != nil {
				return err
			}
			if _, err := os.Lstat(path); err == nil {
				return errors.New("it was made")
			}
			return nil
		})
	}
}

const loosening = "version: 1\nrules:\n  fs.delete: allow\n"

// projectPolicy: the same text that a person's own policy may say has no effect
// in the project, and what loosens by its kind isn't valid there.
func projectPolicy(l *lab, t *trial) {
	t.about = "rules that loosen, in a project's own policy, beside the same in the person's"
	dir := filepath.Join(l.box, "project")
	file := filepath.Join(dir, "f")
	try := func(user string) (answer, error) {
		g, err := l.guard(setting{dir: dir, policy: user})
		if err != nil {
			return answer{}, err
		}
		return g.client.call("delete_file", args{"path": "f", "confirm": true})
	}
	t.against("fs.delete: allow", func() error {
		err := l.put(file, "f")
		if err == nil {
			var a answer
			if a, err = try(loosening); err == nil && a.code != "" {
				err = errors.New("the person's own policy doesn't allow it either")
			}
		}
		return err
	}, func() error {
		if err := errors.Join(l.put(file, "f"), l.put(filepath.Join(dir, ".postern", "policy.yaml"), loosening)); err != nil {
			return err
		}
		if err := l.refused(try("")); err != nil {
			return err
		}
		return holds(file, "f")
	})
	lifting := "version: 1\nallow_sensitive: [dotenv]\n"
	t.against("allow_sensitive", func() error {
		_, err := l.guard(setting{dir: l.root, policy: lifting})
		return err
	}, func() error {
		if err := l.put(filepath.Join(dir, ".postern", "policy.yaml"), lifting); err != nil {
			return err
		}
		if _, err := l.guard(setting{dir: dir}); err == nil {
			return errors.New("a project's policy with it was taken")
		}
		return nil
	})
}

// nobody is a policy that has no opinion.
type nobody struct{}

func (nobody) Evaluate(core.Request) core.Verdict { return core.Verdict{} }
func (nobody) ConfirmRequired(core.Action) bool   { return false }
func (nobody) IfMatchRequired(core.Action) bool   { return false }
func (nobody) Version() string                    { return "nobody" }

// noDecision: where nobody decides, nothing is done.
func noDecision(l *lab, t *trial) {
	t.about = "a policy that has no opinion, asked for everything"
	dir := filepath.Join(l.box, "undecided")
	if !t.needs("a file", l.put(filepath.Join(dir, "f"), l.marker)) {
		return
	}
	silent, err := l.guard(setting{dir: dir, decider: nobody{}})
	if !t.needs("a guard", err) {
		return
	}
	for tool, a := range map[string]args{
		"read_text_file": {"path": "f"}, "list_directory": {"path": "."}, "write_file": {"path": "f", "content": "x"},
		"create_directory": {"path": "d"}, "move_file": {"source": "f", "destination": "g"}, "delete_file": {"path": "f", "confirm": true},
	} {
		t.against(tool, func() error { return holds(filepath.Join(dir, "f"), l.marker) }, func() error {
			return l.refused(silent.client.call(tool, a))
		})
	}
}

// readOnly: with --read-only no tool that changes anything is offered, and the
// gate itself refuses what the policy allows.
func readOnly(l *lab, t *trial) {
	t.about = "changes that the policy allows, with --read-only"
	dir := filepath.Join(l.box, "readonly")
	if !t.needs("a file", l.put(filepath.Join(dir, "f"), "f")) {
		return
	}
	reader, err := l.guard(setting{dir: dir, readOnly: true})
	if !t.needs("a guard", err) {
		return
	}
	writer, err := l.guard(setting{dir: dir})
	if !t.needs("a guard", err) {
		return
	}
	control := func() error {
		_, err := writer.client.does("write_file", args{"path": "f", "content": "f"})
		return err
	}
	t.against("write_file", control, func() error {
		return l.refused(reader.client.call("write_file", args{"path": "f", "content": "changed"}))
	})
	for what, change := range map[string]func() error{
		"write": func() error {
			_, err := reader.gate.Write(l.ctx, "f", []byte("changed"), enforce.Call{Confirm: true})
			return err
		},
		"create": func() error { _, err := reader.gate.MakeDir(l.ctx, "d", enforce.Call{}); return err },
		"move":   func() error { _, err := reader.gate.Move(l.ctx, "f", "g", enforce.Call{Confirm: true}); return err },
	} {
		t.against(what+" in the gate", control, func() error {
			if change() == nil {
				return errors.New("it was not refused")
			}
			return holds(filepath.Join(dir, "f"), "f")
		})
	}
}
