// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
)

var update = flag.Bool("update", false, "rewrite what the scripts compare with")

// asPostern makes the test program be postern, for tests that need a process.
const asPostern = "POSTERN_TEST_MAIN"

func TestMain(m *testing.M) {
	if os.Getenv(asPostern) == "1" {
		main()
	}
	testscript.Main(m, map[string]func(){"postern": main})
}

// TestScripts plays each testdata/script/*.txtar: a command line as a person
// or a client has it, with its exit code, its stdout and its stderr.
func TestScripts(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Dir: filepath.Join("testdata", "script"), UpdateScripts: *update, RequireExplicitExec: true, RequireUniqueNames: true,
		Setup: func(e *testscript.Env) error {
			e.Setenv("HOME", filepath.Join(e.WorkDir, "home"))
			e.Setenv("XDG_CONFIG_HOME", "")
			e.Setenv("XDG_STATE_HOME", "")
			e.Setenv("POSTERN_STATE", "")
			return os.MkdirAll(filepath.Join(e.WorkDir, "home"), 0o755)
		},
		Condition: func(name string) (bool, error) {
			if name != "slash" { // the folder of tests is on the file system of /
				return false, fmt.Errorf("unknown condition %q", name)
			}
			there, err := onSlash(t.TempDir())
			if err == nil && !there && os.Getenv("POSTERN_CI") == "1" {
				err = errors.New("POSTERN_CI=1, and the folder of tests is on another file system than /")
			}
			return there, err
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"code":   code,
			"answer": answers,
			"play":   play,
		},
	})
}

// code N COMMAND… runs the command, which must end with that exit code.
func code(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: code N COMMAND…")
	}
	err := ts.Exec(args[1], args[2:]...)
	got := "0"
	if err != nil {
		got = strings.TrimPrefix(err.Error(), "exit status ")
	}
	if got != args[0] {
		ts.Fatalf("exit %s, want %s", got, args[0])
	}
}

// answer ID TEXT: the answer to that request, on stdout, holds the text.
// ! answer ID TEXT: it doesn't. The line must be there either way.
func answers(ts *testscript.TestScript, neg bool, args []string) {
	if len(args) != 2 {
		ts.Fatalf("usage: [!] answer ID TEXT")
	}
	for line := range strings.SplitSeq(ts.ReadFile("stdout"), "\n") {
		if !strings.Contains(line, `"id":`+args[0]+`,`) && !strings.Contains(line, `"id":`+args[0]+`}`) {
			continue
		}
		if strings.Contains(line, args[1]) == neg {
			ts.Fatalf("answer %s: %s", args[0], line)
		}
		return
	}
	ts.Fatalf("there is no answer %s", args[0])
}

// play FILE makes the file requests of the calls in FILE, a tool and its
// arguments a line. The first call has id 1. $NAME is the environment's.
func play(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: play FILE")
	}
	var b strings.Builder
	b.WriteString(hello)
	id := 0
	for line := range strings.Lines(ts.ReadFile(args[0])) {
		tool, arguments, ok := strings.Cut(strings.TrimSpace(line), " ")
		if !ok {
			ts.Fatalf("no arguments: %s", line)
		}
		id++
		fmt.Fprintf(&b, callLine, id, tool, os.Expand(arguments, ts.Getenv))
	}
	ts.Check(os.WriteFile(ts.MkAbs("requests"), []byte(b.String()), 0o600))
}

const (
	hello = `{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},` +
		`"clientInfo":{"name":"trusted-agent","version":"1"}}}` + "\n" + `{"jsonrpc":"2.0","method":"notifications/initialized"}` + "\n"
	callLine = `{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":"%s","arguments":%s}}` + "\n"
)

func onSlash(dir string) (bool, error) {
	var here, top syscall.Stat_t
	err := errors.Join(syscall.Stat(dir, &here), syscall.Stat("/", &top))
	return here.Dev == top.Dev, err
}

// TestVectors: each case of vectors/cli is played by a script that names it.
func TestVectors(t *testing.T) {
	vectors, err := os.ReadFile("../../vectors/cli/commands.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	scripts, err := filepath.Glob(filepath.Join("testdata", "script", "*.txtar"))
	if err != nil {
		t.Fatal(err)
	}
	var all strings.Builder
	for _, name := range scripts {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		all.Write(text)
	}
	for line := range strings.Lines(string(vectors)) {
		var c struct{ ID, Right string }
		if err := json.Unmarshal([]byte(line), &c); err != nil || c.ID == "" || c.Right == "" {
			t.Fatalf("%v: %s", err, line)
		}
		if !strings.Contains(all.String(), "# "+c.ID+": ") {
			t.Errorf("no script plays %s: %s", c.ID, c.Right)
		}
	}
}
