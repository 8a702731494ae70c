// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/postern-gate/postern/core/fault"
	"github.com/postern-gate/postern/internal/testenv"
)

// process is postern serve as a process of its own, with a client's ends of
// its pipes.
type process struct {
	*testing.T
	cmd  *exec.Cmd
	in   io.WriteCloser
	out  io.ReadCloser
	line *bufio.Scanner
	said said
	home string
}

// said is what came on stderr.
type said struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (s *said) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.Write(p)
}

func (s *said) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.String()
}

// launch starts it over dir. change may alter the command before that.
func launch(t *testing.T, home, dir string, change func(*exec.Cmd), args ...string) *process {
	t.Helper()
	p := &process{T: t, home: home}
	p.cmd = exec.Command(os.Args[0], append(append([]string{"serve"}, args...), dir)...)
	p.cmd.Env = []string{asPostern + "=1", "HOME=" + home, "PATH=" + os.Getenv("PATH")}
	p.cmd.Stderr = &p.said
	if change != nil {
		change(p.cmd)
	}
	var err1, err2 error
	p.in, err1 = p.cmd.StdinPipe()
	p.out, err2 = p.cmd.StdoutPipe()
	p.must(errors.Join(err1, err2))
	p.must(p.cmd.Start())
	t.Cleanup(func() {
		_ = p.cmd.Process.Kill()
		_ = p.cmd.Wait()
	})
	p.line = bufio.NewScanner(p.out)
	p.send(strings.TrimSuffix(hello, "\n"))
	p.receive()
	return p
}

func (p *process) must(err error) {
	p.Helper()
	if err != nil {
		p.Fatalf("%v; stderr: %s", err, &p.said)
	}
}

func (p *process) send(lines string) {
	p.Helper()
	_, err := io.WriteString(p.in, lines+"\n")
	p.must(err)
}

func (p *process) receive() []byte {
	p.Helper()
	if !p.line.Scan() {
		p.Fatalf("no answer; stderr: %s", &p.said)
	}
	return p.line.Bytes()
}

// call runs a tool; the code is "ok" or that of the refusal.
func (p *process) call(tool string, args map[string]any) (code, text string) {
	p.Helper()
	b, err := json.Marshal(map[string]any{
		"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": map[string]any{"name": tool, "arguments": args},
	})
	p.must(err)
	p.send(string(b))
	var answer struct {
		Result struct {
			Content []struct{ Text string }
			Meta    struct {
				Error struct{ Code string } `json:"dev.postern/error"`
			} `json:"_meta"`
		}
	}
	p.must(json.Unmarshal(p.receive(), &answer))
	for _, c := range answer.Result.Content {
		text += c.Text
	}
	if code = answer.Result.Meta.Error.Code; code == "" {
		code = "ok"
	}
	return code, text
}

// until repeats a call until it ends with that code.
func (p *process) until(want, tool string, args map[string]any) {
	p.Helper()
	p.eventually(want, func() bool { code, _ := p.call(tool, args); return code == want })
}

// says waits for a text on stderr, which comes by a pipe of its own.
func (p *process) says(text string) { p.Helper(); p.saysAfter(text, func() {}) }

func (p *process) saysAfter(text string, step func()) {
	p.Helper()
	p.eventually(text, func() bool { step(); return strings.Contains(p.said.String(), text) })
}

func (p *process) eventually(what string, holds func() bool) {
	p.Helper()
	again := time.NewTicker(20 * time.Millisecond)
	defer again.Stop()
	over := time.After(20 * time.Second)
	for !holds() {
		select {
		case <-again.C:
		case <-over:
			p.Fatalf("never: %s; stderr: %s", what, &p.said)
		}
	}
}

// ends waits for the process and returns its exit code.
func (p *process) ends() int {
	p.Helper()
	done := make(chan struct{})
	go func() {
		_ = p.cmd.Wait() // how it ended is asked of ProcessState
		close(done)
	}()
	select {
	case <-done:
	case <-time.After(20 * time.Second):
		p.Fatalf("it doesn't end; stderr: %s", &p.said)
	}
	return p.cmd.ProcessState.ExitCode()
}

func (p *process) log() string {
	p.Helper()
	data, err := os.ReadFile(filepath.Join(p.home, ".local/state/postern/audit/000001.jsonl"))
	p.must(err)
	return string(data)
}

func folder(t *testing.T, files map[string]string) (home, dir string) {
	t.Helper()
	home, dir = t.TempDir(), t.TempDir()
	for name, content := range files {
		put(t, filepath.Join(dir, name), content)
	}
	return home, dir
}

func put(t *testing.T, name, content string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(name+".new", []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(name+".new", name); err != nil {
		t.Fatal(err)
	}
}

type args = map[string]any

// TestPolicyChangesWhileServing: a change is in force at a later decision, one
// that is not valid never is and is said once, and one that is valid again is.
func TestPolicyChangesWhileServing(t *testing.T) {
	home, dir := folder(t, map[string]string{"a": "a"})
	mine := filepath.Join(home, ".config/postern/policy.yaml")
	put(t, mine, "version: 1\nrules: { fs.write: allow }\n")
	p := launch(t, home, dir, nil)
	write := args{"path": "a", "content": "b", "dry_run": true}
	p.until("ok", "write_file", write)
	put(t, mine, "version: 1\nrules: { fs.write: deny }\n")
	p.until("policy.denied", "write_file", write)
	put(t, mine, "version: 1\nrules: { fs.write: allow, fs.wipe: allow }\n")
	p.saysAfter("the changed policy is not in force, the last good one is", func() { p.until("policy.denied", "write_file", write) })
	p.until("policy.denied", "write_file", write)
	p.says("policy.yaml:2:27: ")
	p.says("next: correct the file")
	put(t, mine, "version: 1\nrules: { fs.write: ask }\n")
	p.until("policy.ask", "write_file", write)
	p.says("the policy is valid again and in force")
	if said := p.said.String(); strings.Count(said, "not in force") != 1 {
		t.Errorf("said more than once: %s", said)
	}
	// A project's policy that appears tightens at once.
	put(t, filepath.Join(dir, ".postern/policy.yaml"), "version: 1\nrules: { fs.read: deny }\n")
	p.until("policy.denied", "read_text_file", args{"path": "a"})
	p.must(p.in.Close())
	if code := p.ends(); code != fault.ExitOK {
		t.Errorf("exit %d; stderr: %s", code, &p.said)
	}
}

// TestInterrupted: a signal ends it in order, with what it has done on disk.
func TestInterrupted(t *testing.T) {
	for name, sig := range map[string]os.Signal{"interrupt": os.Interrupt, "terminate": syscall.SIGTERM} {
		t.Run(name, func(t *testing.T) {
			home, dir := folder(t, map[string]string{"seen": "a"})
			p := launch(t, home, dir, nil)
			if code, text := p.call("read_text_file", args{"path": "seen"}); code != "ok" {
				t.Fatal(text)
			}
			p.must(p.cmd.Process.Signal(sig))
			if code := p.ends(); code != fault.ExitOK {
				t.Errorf("exit %d; stderr: %s", code, &p.said)
			}
			if log := p.log(); !strings.Contains(log, "project://seen") {
				t.Errorf("the read is not in the log: %s", log)
			}
			if p.said.String() != "" {
				t.Errorf("stderr: %s", &p.said)
			}
		})
	}
}

// TestClientGone: a client that closes its end is no reason to lose records.
func TestClientGone(t *testing.T) {
	home, dir := folder(t, map[string]string{"seen": "a"})
	p := launch(t, home, dir, nil)
	p.must(p.out.Close())
	p.send(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"read_text_file","arguments":{"path":"seen"}}}`)
	if code := p.ends(); code != fault.ExitFailed {
		t.Errorf("exit %d; stderr: %s", code, &p.said)
	}
	if log := p.log(); !strings.Contains(log, "project://seen") {
		t.Errorf("the read is not in the log: %s", log)
	}
	if !strings.Contains(p.said.String(), "because: the connection to the client broke") {
		t.Errorf("stderr: %s", &p.said)
	}
}

const nobody = 65534

// TestOrdinaryUser runs it without any privilege: what the user may not do, it
// may not either, and what it makes belongs to the user.
func TestOrdinaryUser(t *testing.T) {
	if os.Geteuid() != 0 {
		testenv.Missing(t, "root, to become another user")
	}
	box, err := os.MkdirTemp("", "ordinary") //nolint:usetesting // others can enter it, unlike that of a test
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(box) })
	program, home, dir := filepath.Join(box, "postern"), filepath.Join(box, "home"), filepath.Join(box, "dir")
	put(t, filepath.Join(dir, "mine"), "mine")
	put(t, filepath.Join(dir, ".env"), "SECRET=1")
	put(t, filepath.Join(box, "outside"), "outside")
	if err := errors.Join(os.MkdirAll(home, 0o700), copyProgram(program), os.Chmod(box, 0o755),
		os.Chown(home, nobody, nobody), os.Chown(dir, nobody, nobody), os.Chown(filepath.Join(dir, "mine"), nobody, nobody),
		os.Chmod(filepath.Join(box, "outside"), 0o644)); err != nil {
		t.Fatal(err)
	}
	put(t, filepath.Join(dir, "roots"), "root's, 0600")
	p := launch(t, home, dir, func(cmd *exec.Cmd) {
		cmd.Path, cmd.Dir = program, dir
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: nobody, Gid: nobody}}
	})
	for _, c := range []struct {
		tool string
		args args
		want string
	}{
		{"read_text_file", args{"path": "mine"}, "ok"},
		{"write_file", args{"path": "mine", "content": "changed"}, "ok"},
		{"write_file", args{"path": "new", "content": "new"}, "ok"},
		{"read_text_file", args{"path": ".env"}, "policy.denied"},
		{"read_text_file", args{"path": "../outside"}, "path.escape"},
		{"read_text_file", args{"path": "roots"}, "io.failed"},
		{"delete_file", args{"path": "mine", "confirm": true}, "policy.ask"},
	} {
		if code, text := p.call(c.tool, c.args); code != c.want {
			t.Errorf("%s %v: %s, want %s: %s", c.tool, c.args, code, c.want, text)
		}
	}
	for _, name := range []string{filepath.Join(dir, "new"), filepath.Join(home, ".local/state/postern")} {
		info, err := os.Stat(name)
		p.must(err)
		if st, ok := info.Sys().(*syscall.Stat_t); !ok || st.Uid != nobody {
			t.Errorf("%s belongs to %v", name, info.Sys())
		}
	}
}

func copyProgram(to string) error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	// Not by this process: what another test starts meanwhile would hold the file
	// open for writing, and then it can't be run.
	if out, err := exec.Command("cp", "--", self, to).CombinedOutput(); err != nil {
		return fmt.Errorf("cp: %w: %s", err, out)
	}
	return os.Chmod(to, 0o755) //nolint:gosec // another user runs it
}
