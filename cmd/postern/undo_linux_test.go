// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/postern-gate/postern/internal/prompt"
)

// answered runs the command with a terminal of its own on which somebody
// types; stdin has another answer, which nobody asked for.
func answered(t *testing.T, home, dir, typed string, args ...string) (out string, err error) {
	t.Helper()
	pty, err := os.OpenFile("/dev/ptmx", os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer pty.Close()
	if err := unix.IoctlSetPointerInt(int(pty.Fd()), unix.TIOCSPTLCK, 0); err != nil {
		t.Fatal(err)
	}
	n, err := unix.IoctlGetInt(int(pty.Fd()), unix.TIOCGPTN)
	if err != nil {
		t.Fatal(err)
	}
	tty, err := os.OpenFile(fmt.Sprint("/dev/pts/", n), os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer tty.Close()
	if _, err := io.WriteString(pty, typed); err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), os.Args[0], args...)
	cmd.Dir = dir
	cmd.Env = []string{"HOME=" + home, "PATH=" + os.Getenv("PATH"), asPostern + "=1"}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true, Ctty: 3}
	cmd.ExtraFiles = []*os.File{tty}
	var b bytes.Buffer
	cmd.Stdin, cmd.Stdout, cmd.Stderr = strings.NewReader("yes\n"), &b, &b
	err = cmd.Run()
	return b.String(), err
}

// TestUndoAsksOnTheTerminal: a yes is typed on the terminal; what comes on stdin
// is none.
func TestUndoAsksOnTheTerminal(t *testing.T) {
	home, dir := folder(t, map[string]string{"a": "old"})
	read := func() string {
		text, err := os.ReadFile(filepath.Join(dir, "a"))
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	talk(t, home, dir, append(greeting(&sentinels{}),
		`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"write_file","arguments":{"path":"a","content":"new"}}}`))
	if read() != "new" {
		t.Fatal("nothing was changed")
	}
	for _, typed := range []string{"no\n", "\n", "maybe\n", "yess\n"} {
		if out, err := answered(t, home, dir, typed, "undo", "--last"); err == nil || read() != "new" || !strings.Contains(out, "would restore project://a") {
			t.Errorf("%q: %v %s", typed, err, out)
		}
	}
	cut := sit(t, []string{"HOME=" + home, "PATH=" + os.Getenv("PATH")}, 40, "undo", "--session", sessionOf(t, home, dir))
	cut.sees(`undo it\? \[y/N\] `)
	cut.blurts("\x03")
	if cut.ends(130); read() != "new" {
		t.Error("what an interrupt cut off was done")
	}
	alone := exec.CommandContext(t.Context(), os.Args[0], "undo", "--last")
	alone.Dir, alone.Env, alone.Stdin = dir, []string{"HOME=" + home, asPostern + "=1"}, strings.NewReader("yes\n")
	alone.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if out, err := alone.CombinedOutput(); err == nil || read() != "new" || !strings.Contains(string(out), "because: a person has to say yes to it") {
		t.Errorf("without a terminal: %v %s", err, out)
	}
	if out, err := answered(t, home, dir, "yes\n", "undo", "--last"); err != nil || read() != "old" || !strings.Contains(out, "done: restore project://a") {
		t.Errorf("%v %s", err, out)
	}
}

// sessionOf is the session of the newest change.
func sessionOf(t *testing.T, home, dir string) string {
	t.Helper()
	m := regexp.MustCompile(`"session": "([^"]+)"`).FindStringSubmatch(runs(t, home, dir, "undo", "list", "--json"))
	if m == nil {
		t.Fatal("no change is listed")
	}
	return m[1]
}

// TestUndoByWhom: an undo on the page is the page's, and one at the command line
// that one's; no agent's, whatever the client and the form say.
func TestUndoByWhom(t *testing.T) {
	home, dir := folder(t, map[string]string{"a": "old", "b": "old"})
	claims := []string{
		`{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"user","version":"page"}}}`,
		`{"jsonrpc":"2.0","method":"notifications/initialized"}`,
	}
	for _, name := range []string{"a", "b"} { // one after the other: calls of one client run side by side
		talk(t, home, dir, append(slices.Clone(claims), `{"jsonrpc":"2.0","id":"`+name+`","method":"tools/call","params":{"name":"write_file","_meta":{"agent":"user","source":"page"},"arguments":{"path":"`+name+`","content":"new"}}}`))
	}
	env := []string{"HOME=" + home, "PATH=" + os.Getenv("PATH"), "TERM=xterm"}
	if out, err := answered(t, home, dir, "y\n", "undo", "--last"); err != nil || !strings.Contains(out, "done: restore project://b in "+dir) {
		t.Fatal(err, out)
	}
	p := sit(t, env, 40, "page", dir)
	b := open(t, p)
	_, list := b.send(http.MethodGet, "/undo", nil)
	plans := regexp.MustCompile(`/undo/plan\?id=[^"]+`).FindAllString(list, -1)
	v := b.form(plans[len(plans)-1], "/undo")
	for _, claim := range []string{"agent", "source", "session"} {
		v.Set(claim, "user")
	}
	time.Sleep(prompt.Deaf)
	b.send(http.MethodPost, "/undo", v)
	if text, err := os.ReadFile(filepath.Join(dir, "a")); err != nil || string(text) != "old" {
		t.Fatalf("%q %v", text, err)
	}
	p.blurts("\x03")
	p.ends(0)
	cmd := exec.CommandContext(t.Context(), os.Args[0], "log", "--json")
	cmd.Dir, cmd.Env = dir, append(env, asPostern+"=1")
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]int{}
	for one := range bytes.Lines(out) {
		var r struct{ Agent, Source, Resource, Undoes string }
		if json.Unmarshal(one, &r) == nil && r.Undoes != "" {
			got[r.Agent+" "+r.Source+" "+r.Resource]++
		}
	}
	if len(got) != 2 || got[" undo project://b"] == 0 || got[" page project://a"] == 0 {
		t.Errorf("%v", got)
	}
}
