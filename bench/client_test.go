// SPDX-License-Identifier: Apache-2.0

//go:build linux

package bench

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
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/postern-gate/postern/internal/testenv"
)

// client is a session with a server on stdio.
type client struct {
	tb    testing.TB
	cmd   *exec.Cmd
	in    io.WriteCloser
	lines chan []byte
	said  bytes.Buffer // stderr, to be read once the server ended
	id    int
}

// postern builds the program and returns its command line for a folder.
func postern(tb testing.TB) func(root string) *exec.Cmd {
	tb.Helper()
	dir := tb.TempDir()
	bin := filepath.Join(dir, "bin", "postern") // not where the policy would be
	build := exec.Command("go", "build", "-trimpath", "-ldflags=-s -w", "-o", bin, "../cmd/postern")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		tb.Fatalf("%v\n%s", err, out)
	}
	env := append(os.Environ(), "HOME="+dir, "XDG_CONFIG_HOME="+dir, "POSTERN_STATE="+filepath.Join(dir, "state"))
	return func(root string) *exec.Cmd {
		cmd := exec.Command(bin, "serve", root)
		cmd.Env = env
		return cmd
	}
}

// servers returns the command lines to compare, built or found once.
func servers(tb testing.TB) map[string]func(root string) *exec.Cmd {
	tb.Helper()
	npm := os.Getenv("POSTERN_NPM")
	if npm == "" {
		testenv.Missing(tb, "POSTERN_NPM")
	}
	return map[string]func(string) *exec.Cmd{
		"postern": postern(tb),
		"reference": func(root string) *exec.Cmd {
			return exec.Command("node", filepath.Join(npm, "node_modules/@modelcontextprotocol/server-filesystem/dist/index.js"), root)
		},
	}
}

// start launches the server and answers when initialize is answered.
func start(tb testing.TB, cmd *exec.Cmd) *client {
	tb.Helper()
	in, err1 := cmd.StdinPipe()
	out, err2 := cmd.StdoutPipe()
	if err := errors.Join(err1, err2); err != nil {
		tb.Fatal(err)
	}
	c := &client{tb: tb, cmd: cmd, in: in, lines: make(chan []byte, 256)}
	cmd.Stderr = &c.said
	if err := cmd.Start(); err != nil {
		tb.Fatal(err)
	}
	go func() {
		defer close(c.lines)
		r := bufio.NewReaderSize(out, 1<<20)
		for {
			line, err := r.ReadBytes('\n')
			if err != nil {
				return
			}
			c.lines <- line
		}
	}()
	c.send(`{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"bench","version":"1"}}}`)
	c.receive()
	c.send(`{"jsonrpc":"2.0","method":"notifications/initialized"}`)
	return c
}

func (c *client) send(line string) {
	if _, err := io.WriteString(c.in, line+"\n"); err != nil {
		c.tb.Fatal(err)
	}
}

func (c *client) receive() []byte {
	select {
	case line, ok := <-c.lines:
		if !ok {
			c.tb.Fatalf("the server ended: %v: %s", c.cmd.Wait(), &c.said)
		}
		return line
	case <-time.After(2 * time.Minute):
		c.tb.Fatal("no answer")
	}
	return nil
}

func (c *client) request(tool string, args map[string]any) {
	c.id++
	data, err := json.Marshal(args)
	if err != nil {
		c.tb.Fatal(err)
	}
	c.send(fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":%q,"arguments":%s}}`, c.id, tool, data))
}

// answer receives one answer, which must be a success.
func (c *client) answer() []byte {
	line := c.receive()
	if bytes.Contains(line, []byte(`"isError":true`)) || !bytes.Contains(line, []byte(`"result"`)) {
		c.tb.Fatalf("answer %.300s", line)
	}
	return line
}

func (c *client) call(tool string, args map[string]any) []byte {
	c.request(tool, args)
	return c.answer()
}

// readsDuring starts a call and times one read after another until it is
// answered.
func (c *client) readsDuring(tool string, args, read map[string]any) []time.Duration {
	c.request(tool, args)
	slow := fmt.Appendf(nil, `"id":%d`, c.id)
	var took []time.Duration
	for done := false; !done; {
		from := time.Now()
		c.request("read_text_file", read)
		for range 2 {
			if line := c.answer(); !bytes.Contains(line[:min(len(line), 64)], slow) && !isLast(line, slow) {
				break
			}
			done = true
		}
		took = append(took, time.Since(from))
	}
	return took
}

// isLast finds the id of a server that writes it at the end.
func isLast(line, id []byte) bool {
	return bytes.HasSuffix(bytes.TrimSpace(line), append(bytes.Clone(id), '}'))
}

// cpu is the processor time that the server has used.
func (c *client) cpu() time.Duration {
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", c.cmd.Process.Pid))
	if err != nil {
		c.tb.Fatal(err)
	}
	// Fields 14 and 15 of proc_pid_stat(5), in ticks of 10 ms.
	fields := strings.Fields(string(data[bytes.LastIndexByte(data, ')')+2:]))
	user, _ := strconv.Atoi(fields[11])
	system, _ := strconv.Atoi(fields[12])
	return time.Duration(user+system) * 10 * time.Millisecond
}

// memory is the resident size in MiB, now or at its peak.
func (c *client) memory(field string) float64 {
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", c.cmd.Process.Pid))
	if err != nil {
		c.tb.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(data), field+":")
	kib, err := strconv.ParseFloat(strings.Fields(rest)[0], 64)
	if err != nil {
		c.tb.Fatal(err)
	}
	return kib / 1024
}

func (c *client) stop() {
	_ = c.in.Close()
	done := make(chan struct{})
	go func() { _ = c.cmd.Wait(); close(done) }()
	select {
	case <-done:
	case <-time.After(5 * time.Second):
		_ = c.cmd.Process.Kill()
		<-done
	}
}
