// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/postern-gate/postern/internal/prompt"
)

// person is somebody at a terminal on which a command runs.
type person struct {
	t      *testing.T
	master *os.File
	cmd    *exec.Cmd
	mu     sync.Mutex
	seen   bytes.Buffer
	more   chan struct{}
}

// sit starts the command on a terminal of its own with so many rows.
func sit(t *testing.T, env []string, rows uint16, args ...string) *person {
	t.Helper()
	master, err := os.OpenFile("/dev/ptmx", os.O_RDWR|syscall.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	var n int
	conn, err := master.SyscallConn()
	if err != nil {
		t.Fatal(err)
	}
	_ = conn.Control(func(fd uintptr) {
		if err = unix.IoctlSetPointerInt(int(fd), unix.TIOCSPTLCK, 0); err == nil {
			n, err = unix.IoctlGetInt(int(fd), unix.TIOCGPTN)
		}
		if err == nil {
			err = unix.IoctlSetWinsize(int(fd), unix.TIOCSWINSZ, &unix.Winsize{Row: rows, Col: 80})
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	slave, err := os.OpenFile(fmt.Sprintf("/dev/pts/%d", n), os.O_RDWR|syscall.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer slave.Close()
	p := &person{t: t, master: master, more: make(chan struct{}, 1)}
	p.cmd = exec.Command(os.Args[0], args...)
	p.cmd.Env = append(env, asPostern+"=1")
	p.cmd.Dir = strings.TrimPrefix(env[0], "HOME=")
	p.cmd.Stdin, p.cmd.Stdout, p.cmd.Stderr = slave, slave, slave
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = p.cmd.Process.Kill(); _ = master.Close() })
	go p.look()
	return p
}

func (p *person) look() {
	var buf [4096]byte
	for {
		n, err := p.master.Read(buf[:])
		p.mu.Lock()
		p.seen.Write(buf[:n])
		p.mu.Unlock()
		select {
		case p.more <- struct{}{}:
		default:
		}
		if err != nil {
			return
		}
	}
}

func (p *person) screen() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.seen.String()
}

// sees waits until the pattern shows, and returns what it found.
func (p *person) sees(pattern string) []string {
	p.t.Helper()
	re, late := regexp.MustCompile(pattern), time.After(30*time.Second)
	for {
		if m := re.FindStringSubmatch(p.screen()); m != nil {
			return m
		}
		select {
		case <-p.more:
		case <-late:
			p.t.Fatalf("%q never shows:\n%q", pattern, p.screen())
		}
	}
}

// types presses keys, after the time in which nothing is heard.
func (p *person) types(keys string) {
	p.t.Helper()
	time.Sleep(prompt.Deaf + 200*time.Millisecond)
	p.blurts(keys)
}

// blurts presses keys at once.
func (p *person) blurts(keys string) {
	p.t.Helper()
	if _, err := p.master.WriteString(keys); err != nil {
		p.t.Fatal(err)
	}
}

func (p *person) ends(code int) {
	p.t.Helper()
	_ = p.cmd.Wait()
	if got := p.cmd.ProcessState.ExitCode(); got != code {
		p.t.Errorf("exit %d, want %d:\n%s", got, code, p.screen())
	}
}

// agent is a client of postern serve.
type agent struct {
	t   *testing.T
	in  io.WriteCloser
	out *bufio.Scanner
	id  int
}

func newAgent(t *testing.T, env []string, dir string) *agent {
	t.Helper()
	cmd := exec.Command(os.Args[0], "serve", "--agent", "tester", dir)
	cmd.Env = append(env, asPostern+"=1")
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	a := &agent{t: t, in: in, out: bufio.NewScanner(out)}
	t.Cleanup(func() { _ = in.Close(); _ = cmd.Wait() })
	if _, err := io.WriteString(in, hello); err != nil || !a.out.Scan() {
		t.Fatal("no answer to initialize")
	}
	return a
}

// call sends a call and returns how to wait for its text.
func (a *agent) call(tool string, args map[string]any) (text func() string) {
	a.t.Helper()
	a.id++
	b, _ := json.Marshal(args)
	if _, err := fmt.Fprintf(a.in, callLine, a.id, tool, b); err != nil {
		a.t.Fatal(err)
	}
	return func() string {
		a.t.Helper()
		if !a.out.Scan() {
			a.t.Fatal("no answer")
		}
		return a.out.Text()
	}
}

func desk(t *testing.T) (env []string, dir string) {
	t.Helper()
	home := t.TempDir()
	dir = filepath.Join(home, "ws")
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	policy := filepath.Join(home, ".config", "postern")
	if err := os.MkdirAll(policy, 0o755); err != nil {
		t.Fatal(err)
	}
	text := "version: 1\nrules: { fs.write: ask }\nask: { wait: 2m }\n"
	if err := os.WriteFile(filepath.Join(policy, "policy.yaml"), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return []string{"HOME=" + home, "PATH=" + os.Getenv("PATH"), "TERM=xterm"}, dir
}

func place(t *testing.T, dir, name, content string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o644); err != nil {
		t.Fatal(err)
	}
}

// TestTerminalPrompt: a person sees a question as it comes, what they typed
// before is not taken for an answer, only the code of the card lets what can't
// be taken back happen, and the call that waited succeeds.
func TestTerminalPrompt(t *testing.T) {
	env, dir := desk(t)
	place(t, dir, "a.txt", "one\n")
	p := sit(t, env, 40, "pending", "--watch")
	p.sees("questions of agents are shown here")
	a := newAgent(t, env, dir)
	text := a.call("delete_file", map[string]any{"path": "a.txt", "confirm": true})
	code := p.sees(`a yes, once, wants its code: type ([a-z2-7]{4}) `)[1]
	p.blurts(code + "\r") // typed ahead
	p.types("y\r")        // not enough for this one
	p.sees(`(?s)a yes, once.*not answered: the code is wrong; for a yes type [a-z2-7]{4}\r\n.*a yes, once`)
	if _, err := os.Stat(filepath.Join(dir, "a.txt")); err != nil {
		t.Fatalf("it is gone already: %v\n%s", err, p.screen())
	}
	p.types(code + "\r")
	p.sees(`approved [0-9a-z]{8}, once`)
	if got := text(); !strings.Contains(got, "Successfully deleted a.txt") {
		t.Errorf("answer %s", got)
	}
	if err := os.Mkdir(filepath.Join(dir, "src"), 0o755); err != nil {
		t.Fatal(err)
	}
	const name = "src/b.txt" // of a name in the root itself one key would give all of it away
	place(t, dir, name, "one\ntwo\n")
	text = a.call("write_file", map[string]any{"path": name, "content": "one\nthree\n"})
	p.sees(`(?s)  \| -two\r\n  \| \+three\r\n.*can be undone: yes\r\nfs\.write project://src/b\.txt\r\ny yes, once`)
	p.types("n\r")
	p.sees("denied [0-9a-z]{8}")
	if got := text(); !strings.Contains(got, "because: a person said no") {
		t.Errorf("answer %s", got)
	}
	text = a.call("write_file", map[string]any{"path": name, "content": "four\n"})
	p.sees(`\+four`)
	p.types("p\r")
	p.sees(`approved [0-9a-z]{8}, pattern`)
	if got := text(); !strings.Contains(got, "Successfully wrote") {
		t.Errorf("answer %s", got)
	}
	if got := a.call("write_file", map[string]any{"path": name, "content": "five\n"})(); !strings.Contains(got, "Successfully wrote") {
		t.Errorf("answer %s", got)
	}
	p.blurts("\x03")
	p.ends(0)
}

// TestHostileCard: names and words of an agent don't act on the terminal, and
// a long card is shown to its end before it can be answered.
func TestHostileCard(t *testing.T) {
	env, dir := desk(t)
	name := "x\x1b[2J\x1b]0;t\x07\u202eyes\r\nfs.read ok\n" + strings.Repeat("n", 150)
	place(t, dir, name, "a\n")
	a := newAgent(t, env, dir)
	content := "\x1b[1A\x1b[2Kallow? y\r" + strings.Repeat("\u202eline\n", 60)
	got := a.call("write_file", map[string]any{"path": name, "content": content})()
	id := regexp.MustCompile(`postern approve ([0-9a-z]{8})`).FindStringSubmatch(got)
	if id == nil {
		t.Fatal(got)
	}
	p := sit(t, env, 20, "approve", id[1])
	for pages := 1; ; pages++ {
		p.sees(fmt.Sprintf(`(?s)(-- more: enter --.*){%d}|y yes, once`, pages))
		if strings.Contains(p.screen(), "y yes, once") {
			if pages < 4 {
				t.Errorf("%d pages", pages)
			}
			break
		}
		p.types("\r")
	}
	screen := p.screen()
	if strings.ContainsAny(screen, "\x1b\x07\u202e") {
		t.Errorf("the screen was acted on: %q", screen)
	}
	whole := strings.ReplaceAll(screen, "\r\n  ¦ ", "") // what continues a line is marked
	if whole == screen {
		t.Errorf("no line was continued: %q", screen)
	}
	last := strings.Split(strings.TrimSpace(whole), "\r\n")
	if target := last[len(last)-2]; !strings.HasPrefix(target, `fs.write "project://x\u{1b}[2J`) || !strings.HasSuffix(target, strings.Repeat("n", 150)+`"`) {
		t.Errorf("the target is %q", target)
	}
	p.types("y\r")
	p.sees("approved " + id[1])
	p.ends(0)
}

// TestAnsweredElsewhere: of two people the second is told, while the card is
// on the screen.
func TestAnsweredElsewhere(t *testing.T) {
	env, dir := desk(t)
	place(t, dir, "a.txt", "a\n")
	a := newAgent(t, env, dir)
	got := a.call("write_file", map[string]any{"path": "a.txt", "content": "b\n"})()
	id := regexp.MustCompile(`postern approve ([0-9a-z]{8})`).FindStringSubmatch(got)
	if id == nil {
		t.Fatal(got)
	}
	p := sit(t, env, 40, "approve", id[1])
	p.sees("y yes, once")
	cmd := exec.Command(os.Args[0], "deny", id[1])
	cmd.Env = append(env, asPostern+"=1")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	p.sees("because: it was answered before: denied by command")
	p.ends(1)
}

// refusedWith makes calls while nobody is there, and returns the ids of their
// questions.
func (a *agent) refusedWith(calls ...map[string]any) (ids []string) {
	a.t.Helper()
	for _, args := range calls {
		got := a.call("write_file", args)()
		id := regexp.MustCompile(`postern approve ([0-9a-z]{8})`).FindStringSubmatch(got)
		if id == nil {
			a.t.Fatal(got)
		}
		ids = append(ids, id[1])
	}
	return ids
}

// TestAlikeOnOneCard: questions that differ in their target alone come on one
// card, each whole, and nothing but all or numbers answers them.
func TestAlikeOnOneCard(t *testing.T) {
	env, dir := desk(t)
	var calls []map[string]any
	for _, name := range []string{"a", "b", "c"} {
		place(t, dir, name, "old "+name+"\n")
		calls = append(calls, map[string]any{"path": name, "content": "new " + name + "\n"})
	}
	a := newAgent(t, env, dir)
	ids := a.refusedWith(calls...)
	p := sit(t, env, 60, "pending", "--watch")
	p.sees(`(?s)3 questions\r\nagent       tester\r\n.*\r\n1           question ` + ids[0] + `\r\n.*  \| -old a\r\n  \| \+new a\r\n.*fs\.write project://a\r\n` +
		`2 .*  \| \+new b\r\n.*3           question ` + ids[2] + `.*  \| \+new c\r\n.*all yes to each`)
	p.types("y\r")
	p.sees(`(?s)not answered: that is no answer to these.*all yes to each`)
	p.types("1 3\r")
	p.sees("approved " + ids[0] + ", once")
	p.sees("approved " + ids[2] + ", once")
	p.sees(`(?s)question ` + ids[1] + `\r\nagent.*y yes, once`) // the one that is left
	place(t, dir, "b", "something else\n")
	p.sees(`because: it changed since it was asked: project://b`)
	p.blurts("\x03")
	p.ends(0)
	for i, args := range calls {
		got := a.call("write_file", args)()
		if strings.Contains(got, "Successfully wrote") != (i != 1) {
			t.Errorf("%d: %s", i, got)
		}
	}

	ids = a.refusedWith(map[string]any{"path": "a", "content": "1"}, map[string]any{"path": "c", "content": "2"})
	p = sit(t, env, 60, append([]string{"approve"}, ids...)...)
	p.sees(`2 questions\r\n`)
	p.sees(`all yes to each`)
	p.types("all\r")
	p.sees(`approved ` + ids[1] + `: fs\.write project://c`)
	p.ends(0)
}

// TestChangedSinceAsked: what changed since it was asked takes no yes.
func TestChangedSinceAsked(t *testing.T) {
	env, dir := desk(t)
	place(t, dir, "a", "old\n")
	a := newAgent(t, env, dir)
	id := a.refusedWith(map[string]any{"path": "a", "content": "new\n"})[0]
	place(t, dir, "a", "something else\n")
	for _, args := range [][]string{{"approve", id}, {"approve", "--yes", id}} {
		p := sit(t, env, 40, args...)
		p.sees(`because: it changed since it was asked: project://a`)
		p.sees(`next: let the agent call again, which asks anew`)
		p.ends(4)
	}
	p := sit(t, env, 40, "deny", id)
	p.sees("denied " + id)
	p.ends(0)
}
