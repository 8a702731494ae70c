// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/postern-gate/postern/core/fault"
)

// full is a pipe that takes nothing any more.
func full(t *testing.T) *os.File {
	t.Helper()
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = r.Close(); _ = w.Close() })
	_ = w.SetWriteDeadline(time.Now().Add(100 * time.Millisecond))
	for err == nil {
		_, err = w.Write(make([]byte, 4096))
	}
	return w
}

// endsSoon waits for the process, not for ever.
func endsSoon(t *testing.T, cmd *exec.Cmd) {
	t.Helper()
	ended := make(chan struct{})
	go func() { _ = cmd.Wait(); close(ended) }()
	select {
	case <-ended:
	case <-time.After(15 * time.Second):
		t.Fatal("it does not end")
	}
	if code := cmd.ProcessState.ExitCode(); code != fault.ExitOK {
		t.Errorf("exit %d", code)
	}
}

// TestStderrUnread: what is wrong with an edited policy is said to nobody who is waited
// for: calls go on by the last good one, and the end of the input is the end.
func TestStderrUnread(t *testing.T) {
	home, dir := folder(t, map[string]string{"a": "A"})
	policy := filepath.Join(home, ".config/postern/policy.yaml")
	put(t, policy, "version: 1\n")
	p := launch(t, home, dir, func(cmd *exec.Cmd) { cmd.Stderr = full(t) })
	for _, text := range []string{"version: 1\nrulez: 1\n", "version: 1\n", "nothing: 1\n"} {
		put(t, policy, text)
		time.Sleep(1200 * time.Millisecond) // a change is looked for once a second
		answered := make(chan string, 1)
		go func() { code, _ := p.call("read_text_file", args{"path": "a"}); answered <- code }()
		select {
		case code := <-answered:
			if code != "ok" {
				t.Error(code)
			}
		case <-time.After(15 * time.Second):
			t.Fatalf("after %q no call is answered", text)
		}
	}
	p.must(p.in.Close())
	endsSoon(t, p.cmd)
}

// TestTerminalUnread: up ends though its terminal takes no more lines while a question
// waits to be shown on it.
func TestTerminalUnread(t *testing.T) {
	home, dir := folder(t, map[string]string{"a": "A"})
	env := []string{"HOME=" + home, "PATH=" + os.Getenv("PATH"), "TERM=xterm"}
	up := sit(t, env, 40, "up", dir)
	up.sees("the page, in the next minute")
	up.mu.Lock() // and reads no more
	defer up.mu.Unlock()
	p := launch(t, home, dir, nil, "--agent", "tester")
	for range 300 {
		if code, text := p.call("read_text_file", args{"path": "a"}); code != "ok" {
			t.Fatal(text)
		}
	}
	p.send(`{"jsonrpc":"2.0","id":9999,"method":"tools/call","params":{"name":"delete_file","arguments":{"path":"a","confirm":true}}}`)
	time.Sleep(2 * time.Second)
	p.must(up.cmd.Process.Signal(syscall.SIGTERM))
	endsSoon(t, up.cmd)
}
