// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// step is one thing that a reader of the tutorial does, with what the page
// says comes back.
type step struct {
	line  int
	shell string // a command line
	tool  string // or a call of the attached agent: a tool …
	args  string // … and its arguments
	file  string // or a file that is written …
	want  string // … with this content; else the answer, "…" stands for anything
}

// TestTutorial does everything that docs/tutorial.md tells a reader to do, in
// its order, with a postern that is installed as the page says, and compares
// every answer. What the page asks the agent for is called over the line that
// `postern init` wrote.
func TestTutorial(t *testing.T) {
	page, err := os.ReadFile("../../docs/tutorial.md")
	if err != nil {
		t.Fatal(err)
	}
	r := newReader(t)
	for _, s := range tutorialSteps(t, string(page)) {
		r.do(s)
		if t.Failed() {
			return
		}
	}
}

// TestTutorialControl: another answer than that of the page is noticed.
func TestTutorialControl(t *testing.T) {
	for _, c := range []struct {
		want, got string
		same      bool
	}{
		{"a\nb\n", "a\nb\n", true},
		{"a …\n", "a 17\n", true},
		{"a …\n", "a 17\nb\n", false},
		{"a\n…\nc\n", "a\nb\nb\nc\n", true},
		{"a\n…\nc\n", "a\nc\n", true},
		{"a\n…\nc\n", "a\nb\nd\n", false},
		{"a.c\n", "abc\n", false},
		{"", "a\n", false},
	} {
		if got := answersAs(c.want, c.got); got != c.same {
			t.Errorf("%q as %q: %v", c.got, c.want, got)
		}
	}
}

// tutorialSteps reads the blocks of the page. In a block `console` a line that
// begins with "$ " is a command and the others are its answer; a comment before
// a block `text` names the agent's call of which it is the answer, or the file
// that a block `yaml` is the content of.
func tutorialSteps(t *testing.T, page string) (steps []step) {
	t.Helper()
	call := regexp.MustCompile(`^<!-- agent: (\w+) (\{.*\}) -->$`)
	file := regexp.MustCompile(`^<!-- file: (\S+) -->$`)
	var kind string
	var next step
	for i, line := range strings.Split(page, "\n") {
		if m := call.FindStringSubmatch(line); m != nil {
			next = step{line: i + 1, tool: m[1], args: m[2]}
		} else if m := file.FindStringSubmatch(line); m != nil {
			next = step{line: i + 1, file: m[1]}
		}
		switch {
		case strings.HasPrefix(line, "```") && kind == "":
			kind = strings.TrimPrefix(line, "```")
			if kind == "text" || kind == "yaml" {
				steps, next = append(steps, next), step{}
			}
		case line == "```":
			kind = ""
		case kind == "console" && strings.HasPrefix(line, "$ "):
			steps = append(steps, step{line: i + 1, shell: line[2:]})
		case kind == "text", kind == "yaml", kind == "console" && len(steps) > 0:
			steps[len(steps)-1].want += line + "\n"
		}
	}
	if len(steps) < 10 {
		t.Fatalf("only %d steps found", len(steps))
	}
	return steps
}

// reader is somebody who follows the page on a machine of their own.
type reader struct {
	*testing.T
	dir string
	env []string
}

func newReader(t *testing.T) *reader {
	t.Helper()
	home, bin := t.TempDir(), t.TempDir()
	build := exec.Command("go", "build", "-trimpath", "-o", bin, ".")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	if err := os.Mkdir(filepath.Join(home, ".claude"), 0o700); err != nil { // as Claude Code leaves it
		t.Fatal(err)
	}
	return &reader{t, home, []string{"HOME=" + home, "PATH=" + bin + ":/usr/bin:/bin", "LANG=C.UTF-8", "TERM=xterm"}}
}

func (r *reader) do(s step) {
	r.Helper()
	var got string
	switch {
	case s.file != "":
		if err := os.WriteFile(filepath.Join(r.dir, s.file), []byte(s.want), 0o600); err != nil {
			r.Fatalf("docs/tutorial.md:%d: %v", s.line, err)
		}
		return
	case s.tool != "":
		got = r.ask(s)
	case s.shell != "":
		got = r.shell(s)
	default:
		r.Fatalf("docs/tutorial.md:%d: nothing says what this block is", s.line)
	}
	if !answersAs(s.want, got) {
		r.Errorf("docs/tutorial.md:%d: %s%s %s\nthe page has\n%s\nthe answer is\n%s", s.line, s.shell, s.tool, s.args, s.want, got)
	}
}

// shell runs a command line where the one before it left off.
func (r *reader) shell(s step) string {
	r.Helper()
	where := filepath.Join(r.TempDir(), "where")
	cmd := exec.Command("bash", "-c", s.shell+"\nleft=$?; pwd >"+where+"; exit $left")
	cmd.Dir, cmd.Env = r.dir, r.env
	out, err := cmd.CombinedOutput()
	if err != nil && s.want == "" {
		r.Fatalf("docs/tutorial.md:%d: %s: %v\n%s", s.line, s.shell, err, out)
	}
	now, err := os.ReadFile(where)
	if err != nil {
		r.Fatal(err)
	}
	r.dir = strings.TrimSpace(string(now))
	return string(out)
}

// ask calls a tool as the attached agent would: over the line in .mcp.json.
func (r *reader) ask(s step) string {
	r.Helper()
	text, err := os.ReadFile(filepath.Join(r.dir, ".mcp.json"))
	if err != nil {
		r.Fatal(err)
	}
	var entries struct {
		MCPServers map[string]struct {
			Command string
			Args    []string
		}
	}
	if err := json.Unmarshal(text, &entries); err != nil {
		r.Fatal(err)
	}
	entry := entries.MCPServers["postern"]
	cmd := exec.Command(entry.Command, entry.Args...)
	cmd.Dir, cmd.Env = r.dir, r.env
	cmd.Stdin = strings.NewReader(hello + fmt.Sprintf(callLine, 1, s.tool, s.args))
	var errs bytes.Buffer
	cmd.Stderr = &errs
	out, err := cmd.Output()
	if err != nil {
		r.Fatalf("%v\n%s", err, errs.String())
	}
	return toolText(r.T, out)
}

// toolText is the text of the answer to call 1, as a model is shown it.
func toolText(t *testing.T, out []byte) string {
	t.Helper()
	lines := bufio.NewScanner(bytes.NewReader(out))
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var answer struct {
			ID     any
			Result struct{ Content []struct{ Text string } }
		}
		if err := json.Unmarshal(lines.Bytes(), &answer); err != nil {
			t.Fatal(err)
		}
		if answer.ID != float64(1) {
			continue
		}
		var blocks []string
		for _, c := range answer.Result.Content {
			blocks = append(blocks, strings.TrimSuffix(c.Text, "\n"))
		}
		return strings.Join(blocks, "\n") + "\n"
	}
	t.Fatalf("no answer in %s", out)
	return ""
}

// answersAs compares an answer with that of the page, in which "…" within a
// line is anything on that line and a line that is only "…" any lines.
func answersAs(want, got string) bool {
	pattern := regexp.QuoteMeta(want)
	pattern = regexp.MustCompile(`(?m)^…\n`).ReplaceAllString(pattern, `(?:.*\n)*`)
	pattern = strings.ReplaceAll(pattern, "…", `.*`)
	return regexp.MustCompile(`^` + pattern + `$`).MatchString(got)
}
