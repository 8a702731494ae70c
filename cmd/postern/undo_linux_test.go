// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
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
