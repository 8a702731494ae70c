// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/postern-gate/postern/core"
	"github.com/postern-gate/postern/core/fault"
	"github.com/postern-gate/postern/enforce"
)

// place is a folder and a home beside it.
type place struct {
	*testing.T
	home, dir string
}

func newPlace(t *testing.T, files map[string]string) *place {
	t.Helper()
	p := &place{t, t.TempDir(), t.TempDir()}
	for name, content := range files {
		p.put(filepath.Join(p.dir, name), content)
	}
	return p
}

func (p *place) must(err error) {
	p.Helper()
	if err != nil {
		p.Fatal(err)
	}
}

func (p *place) put(name, content string) {
	p.Helper()
	p.must(os.MkdirAll(filepath.Dir(name), 0o755))
	p.must(os.WriteFile(name, []byte(content), 0o600))
}

func (p *place) env(in io.Reader, out io.Writer) Env {
	return Env{
		In: in, Out: out, Err: p.Output(),
		Getenv: func(name string) string { return map[string]string{"HOME": p.home}[name] },
		Getwd:  func() (string, error) { return p.dir, nil },
	}
}

// session is postern serve over the folder, in this process.
type session struct {
	*place
	in  io.Writer
	out *bufio.Scanner
}

func (p *place) serve(args ...string) *session {
	p.Helper()
	inR, inW := io.Pipe()
	outR, outW := io.Pipe()
	ended := make(chan int, 1)
	env := p.env(inR, outW)
	ctx := context.WithoutCancel(p.Context()) // until its input ends
	go func() {
		code := run(ctx, append([]string{"serve"}, args...), env)
		_, _ = outW.Close(), inR.Close() // so that nobody waits for one that didn't start
		ended <- code
	}()
	p.Cleanup(func() {
		p.must(inW.Close())
		go io.Copy(io.Discard, outR) //nolint:errcheck // until it ends
		if code := <-ended; code != fault.ExitOK {
			p.Errorf("serve: exit %d", code)
		}
	})
	s := &session{p, inW, bufio.NewScanner(outR)}
	s.ask("initialize", map[string]any{
		"protocolVersion": "2025-11-25", "capabilities": map[string]any{}, "clientInfo": map[string]any{"name": "t", "version": "1"},
	})
	return s
}

type toolResult struct {
	Content []struct{ Text string }
	Meta    struct {
		Error  struct{ Code, ID string } `json:"dev.postern/error"`
		Result json.RawMessage           `json:"dev.postern/result"`
	} `json:"_meta"`
	IsError bool
}

func (s *session) ask(method string, params any) toolResult {
	s.Helper()
	b, err := json.Marshal(map[string]any{"jsonrpc": "2.0", "id": 1, "method": method, "params": params})
	s.must(err)
	_, err = s.in.Write(append(b, '\n'))
	s.must(err)
	if !s.out.Scan() {
		s.Fatal("no answer")
	}
	var answer struct {
		Result toolResult
		Error  *struct{ Message string }
	}
	s.must(json.Unmarshal(s.out.Bytes(), &answer))
	if answer.Error != nil {
		s.Fatal(answer.Error.Message)
	}
	return answer.Result
}

// call returns the code of the refusal, "ok" for none.
func (s *session) call(tool string, args map[string]any) string {
	s.Helper()
	r := s.ask("tools/call", map[string]any{"name": tool, "arguments": args})
	if r.Meta.Error.Code == "" && !r.IsError {
		return fault.OK.String()
	}
	return r.Meta.Error.Code
}

// check runs postern check --json and returns its exit code and the code that
// it says a door would answer with.
func (p *place) check(args ...string) (exit int, code string) {
	p.Helper()
	var out bytes.Buffer
	exit = run(p.Context(), append([]string{"check", "--json"}, args...), p.env(strings.NewReader(""), &out))
	var got checkJSON
	p.must(json.Unmarshal(out.Bytes(), &got))
	if got.Code == "" {
		got.Code = fault.OK.String()
	}
	return exit, got.Code
}

// asked is how each action is asked for of the server, without effect.
var asked = map[core.Action]struct {
	tool string
	args func(name string) map[string]any
}{
	core.FSRead: {"read_text_file", func(n string) map[string]any { return map[string]any{"path": n} }},
	core.FSList: {"get_file_info", func(n string) map[string]any { return map[string]any{"path": n} }},
	core.FSWrite: {"append_file", func(n string) map[string]any {
		return map[string]any{"path": n, "content": "x", "dry_run": true}
	}},
	core.FSCreate: {"create_directory", func(n string) map[string]any { return map[string]any{"path": n, "dry_run": true} }},
	core.FSRename: {"move_file", func(n string) map[string]any {
		return map[string]any{"source": n, "destination": "free-name", "dry_run": true}
	}},
	core.FSDelete: {"delete_file", func(n string) map[string]any {
		return map[string]any{"path": n, "recursive": true, "confirm": true, "dry_run": true}
	}},
}

const mixedPolicy = `version: 1
deny: ["secret/**", "**/*.bak"]
allow: ["**"]
agents:
  codex: { fs.write: ask, fs.read: { "docs/**": deny, else: allow } }
rules:
  fs.read: allow
  fs.list: { "hidden/**": deny, else: allow }
  fs.write: { "docs/**": ask, "generated/**": deny, else: allow }
  fs.create: { "generated/**": deny, else: allow }
  fs.rename: { "docs/**": ask, else: allow }
  fs.delete: { "tmp/**": allow, "docs/**": deny, else: ask }
`

func agreeFiles() map[string]string {
	return map[string]string{
		"a.txt": "a", "docs/a.md": "a", "docs/sub/b.md": "b", "secret/s": "s", "old.bak": "o", "hidden/h": "h",
		"generated/g": "g", "tmp/t": "t", "tmp/deep/.env": "S=1", "mixed/ok": "1", "mixed/x.bak": "1",
		".env": "S=1", ".env.example": "S=", ".npmrc": "//r/:_authToken=x", "id_rsa": "k", "id_rsa.pub": "k",
		".git/config": "c", ".git/HEAD": "r", ".git/hooks/pre-commit": "h", ".vscode/settings.json": "{}", ".postern/note": "n",
		"über.txt": "u", "plain/.npmrc": "x",
	}
}

func agreeNames(p *place) []string {
	for name, to := range map[string]string{
		"to-a": "a.txt", "to-env": ".env", "to-secret": "secret/s", "named.bak": "a.txt", "to-out": "/etc/hostname",
		"to-docs": "docs", "loop": "loop", "dangling": "nowhere", "via": "to-docs", "up": "../" + filepath.Base(p.home),
	} {
		p.must(os.Symlink(to, filepath.Join(p.dir, name)))
	}
	p.must(syscall.Mkfifo(filepath.Join(p.dir, "fifo"), 0o600))
	names := []string{
		"", ".", "..", "../x", "/etc/passwd", "a.txt/", "./a.txt", "docs/../a.txt", "docs/../../x", "project://a.txt", "project://../x",
		"other://a.txt", "no-such", "no/such/deep", "docs", "docs/", "secret", "tmp", "tmp/deep", "mixed", "hidden", "generated", "generated/new",
		"generated/new/deep", "docs/new", "docs/new/deep", "secret/new", ".ENV", ".Env", "SECRET/s", "Docs/a.md", "x.BAK", ".git", ".git/hooks",
		".git/hooks/new", ".Git/Config", ".postern", ".postern/policy.yaml", "fifo", "to-a", "to-env", "to-secret", "named.bak", "to-out", "to-docs",
		"to-docs/a.md", "to-docs/new", "via/sub/b.md", "via/sub", "loop", "dangling", "up", "up/x", "a.txt/x", "plain", "a\x00b", "a\nb", "u\u0308ber.txt",
		p.dir, filepath.Join(p.dir, "a.txt"), filepath.Join(p.dir, ".env"), strings.Repeat("n", 300), "~/x", "file:///etc/passwd", `C:\x`, `docs\a.md`,
	}
	for name := range agreeFiles() {
		names = append(names, name)
	}
	return names
}

// TestCheckAgreesWithServe: check never says allow where serve refuses by the
// policy or a guard, nor refuses or asks where serve would do it, and the code
// is the same.
func TestCheckAgreesWithServe(t *testing.T) {
	for name, c := range map[string]struct{ policy, agent string }{
		"shipped": {"version: 1\n", ""}, "mixed": {mixedPolicy, ""}, "agent": {mixedPolicy, "codex"},
	} {
		t.Run(name, func(t *testing.T) {
			p := newPlace(t, agreeFiles())
			names := agreeNames(p)
			policy := filepath.Join(p.home, "policy.yaml")
			p.put(policy, c.policy)
			flags := []string{"--policy", policy}
			if c.agent != "" {
				flags = append(flags, "--agent", c.agent)
			}
			s := p.serve(append(flags, p.dir)...)
			allowed, refused := 0, 0
			for _, n := range names {
				for action, how := range asked {
					served := s.call(how.tool, how.args(n))
					if served == fault.PathMissing.String() || !comparable(p, action, n) {
						continue
					}
					question := append(flags, action.String(), n)
					if action == core.FSRename {
						question = append(question, "free-name")
					}
					exit, code := p.check(question...)
					if code != decided(served) || exit != exitOf(code) {
						t.Errorf("%s %q: serve says %s, check %s with exit %d", action, n, served, code, exit)
					}
					if code == fault.OK.String() {
						allowed++
					} else {
						refused++
					}
				}
			}
			if allowed < 60 || refused < 120 {
				t.Errorf("only %d allowed and %d refused were compared", allowed, refused)
			}
		})
	}
}

// comparable leaves out where the tool does something else than the action
// alone: append_file creates what is not there, and a directory has no text.
func comparable(p *place, a core.Action, name string) bool {
	full := name
	if !filepath.IsAbs(name) {
		full = filepath.Join(p.dir, strings.TrimPrefix(name, "project://"))
	}
	info, err := os.Stat(full)
	switch a {
	case core.FSWrite:
		return err == nil && !info.IsDir() && !strings.HasSuffix(name, "/") // the tool refuses the slash itself
	case core.FSRead:
		return err != nil || !info.IsDir()
	default:
		return true
	}
}

// decided drops what is no decision: a failure is for check what is allowed.
func decided(code string) string {
	for c := fault.OK; c.String() != ""; c++ {
		if c.String() == code && c.Kind() != fault.KindDenial {
			return fault.OK.String()
		}
		if c == fault.Cancelled {
			break
		}
	}
	return code
}

func exitOf(code string) int {
	switch code {
	case fault.OK.String():
		return fault.ExitOK
	case fault.PolicyAsk.String():
		return fault.ExitAsk
	default:
		return fault.ExitDenied
	}
}

// TestReadOnlyHoldsInTheGate: behind the list of tools, the gate refuses
// every change too; without the flag the same calls succeed.
func TestReadOnlyHoldsInTheGate(t *testing.T) {
	for _, readOnly := range []bool{true, false} {
		t.Run(fmt.Sprint(readOnly), func(t *testing.T) {
			p := newPlace(t, map[string]string{"a": "a", "b": "b"})
			policy := filepath.Join(p.home, "policy.yaml")
			p.put(policy, "version: 1\nrules: { fs.delete: allow }\nrequire: { confirm: [] }\n")
			o := &options{readOnly: readOnly, policy: policy}
			env := p.env(strings.NewReader(""), io.Discard)
			w, err := o.load(&env, []string{p.dir})
			p.must(err)
			p.must(w.open(&env))
			state, err := enforce.OpenState(w.stateDir, enforce.StateOptions{})
			p.must(err)
			defer state.Close()
			g, err := enforce.New(o.gate(w, state, state, nil))
			p.must(err)
			ctx := t.Context()
			f, err := g.Open(ctx, "a")
			p.must(errors.Join(err, f.Close()))
			want := fault.OK
			if readOnly {
				want = fault.PolicyDenied
			}
			text := []byte("x")
			same := func(b []byte) ([]byte, error) { return b, nil }
			for what, do := range map[string]func() (enforce.Outcome, error){
				"write":  func() (enforce.Outcome, error) { return g.Write(ctx, "a", text, enforce.Call{}) },
				"create": func() (enforce.Outcome, error) { return g.Write(ctx, "new", text, enforce.Call{}) },
				"edit":   func() (enforce.Outcome, error) { return g.Edit(ctx, "a", same, enforce.Call{}) },
				"append": func() (enforce.Outcome, error) { return g.Append(ctx, "a", text, enforce.Call{}) },
				"mkdir":  func() (enforce.Outcome, error) { return g.MakeDir(ctx, "dir", enforce.Call{}) },
				"copy":   func() (enforce.Outcome, error) { return g.Copy(ctx, "a", "copy", enforce.Call{}) },
				"move":   func() (enforce.Outcome, error) { return g.Move(ctx, "a", "moved", enforce.Call{DryRun: true}) },
				"delete": func() (enforce.Outcome, error) { return g.Delete(ctx, "b", false, enforce.Call{}) },
			} {
				if _, err := do(); fault.CodeOf(err) != want {
					t.Errorf("%s: %v, want %s", what, err, want)
				}
			}
			if entries, err := os.ReadDir(p.dir); err != nil || readOnly && len(entries) != 2 {
				t.Errorf("%v: %v", entries, err)
			}
		})
	}
}
