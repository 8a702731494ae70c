// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/postern-gate/postern/internal/testenv"
)

// sentinel begins every text that must be in no record. Each has a number
// after it that says which one leaked.
const sentinel = "S3NT1NEL"

// sentinels gives out texts and remembers what each stood for.
type sentinels struct{ meant []string }

func (s *sentinels) next(what string) string {
	s.meant = append(s.meant, what)
	return fmt.Sprintf("%s%04d", sentinel, len(s.meant)-1)
}

// leaks are the sentinels in a text.
func (s *sentinels) leaks(text []byte) (all []string) {
	for i := range s.meant {
		if bytes.Contains(text, fmt.Appendf(nil, "%s%04d", sentinel, i)) {
			all = append(all, s.meant[i])
		}
	}
	if n := bytes.Count(bytes.ToUpper(text), []byte(sentinel)); n > 0 && len(all) == 0 {
		all = append(all, fmt.Sprintf("%d pieces that no field had", n))
	}
	return all
}

// leaksBeneath looks into every file and name beneath a folder, all of which
// must be closed to others.
func (s *sentinels) leaksBeneath(t *testing.T, dir string) (all []string) {
	t.Helper()
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		want := fs.FileMode(0o600)
		if d.IsDir() {
			want = 0o700
		}
		if info.Mode().Perm() != want {
			t.Errorf("%s has mode %v", path, info.Mode())
		}
		// What undo keeps is the files themselves, and where they were: it is
		// kept from others, and told nowhere else.
		if d.IsDir() && d.Name() == "images" {
			return filepath.SkipDir
		}
		if filepath.Base(filepath.Dir(path)) == "undo" {
			return nil
		}
		text := []byte(d.Name())
		if !d.IsDir() {
			data, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			text = append(text, data...)
		}
		for _, leak := range s.leaks(text) {
			all = append(all, filepath.Base(path)+": "+leak)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

type toolSchema struct {
	Name        string
	InputSchema struct {
		Properties map[string]struct{ Type string }
	}
}

// arguments fills in every parameter of a tool: paths with the one given, all
// other text with a sentinel.
func (s *sentinels) arguments(tool toolSchema, path string) args {
	a := args{}
	for name, p := range tool.InputSchema.Properties {
		what := tool.Name + " " + name
		switch {
		case name == "path" || name == "source":
			a[name] = path
		case name == "destination":
			a[name] = ".env.d/" + s.next(what)
		case name == "paths":
			a[name] = []string{path, "/outside/" + s.next(what)}
		case name == "edits":
			a[name] = []args{{"oldText": s.next(what), "newText": s.next(what)}}
		case name == "excludePatterns":
			a[name] = []string{s.next(what)}
		case name == "confirm" || name == "recursive":
			a[name] = true
		case p.Type == "string" && name != "sortBy":
			a[name] = s.next(what)
		}
	}
	return a
}

// frame is a message with a sentinel in each place that a client fills in.
func (s *sentinels) frame(method string, params any) string {
	b, err := json.Marshal(args{
		"jsonrpc": "2.0", "id": s.next("id"), "method": method, "params": params, s.next("member's name"): s.next("member"),
	})
	if err != nil {
		panic(err)
	}
	return string(b)
}

func (s *sentinels) callFrame(tool string, a args) string {
	return s.frame("tools/call", args{
		"name": tool, "arguments": a,
		"_meta": args{"progressToken": s.next("progress token"), s.next("name in _meta"): s.next("_meta"), "traceparent": s.next("traceparent")},
	})
}

// plainCall is one that a server takes.
func (s *sentinels) plainCall(tool string, a args) string {
	b, err := json.Marshal(args{"jsonrpc": "2.0", "id": s.next("id"), "method": "tools/call", "params": args{
		"name": tool, "arguments": a, "_meta": args{"progressToken": s.next("progress token"), s.next("name in _meta"): s.next("_meta")},
	}})
	if err != nil {
		panic(err)
	}
	return string(b)
}

// conversation is every tool in forms that succeed, are refused and fail, and
// frames that are none.
func (s *sentinels) conversation(tools []toolSchema) (lines []string) {
	for _, tool := range tools {
		for _, path := range []string{"file", "made", ".env", s.next("secret folder") + "/.env", "/outside/" + s.next("outside"), "../" + s.next("above"), "file\x00" + s.next("form"), "none://" + s.next("scheme")} {
			a := s.arguments(tool, path)
			lines = append(lines, s.plainCall(tool.Name, a), s.callFrame(tool.Name, a))
			a["dry_run"] = true
			lines = append(lines, s.plainCall(tool.Name, a))
			a[s.next("argument's name")] = s.next("argument nobody knows")
			lines = append(lines, s.plainCall(tool.Name, a))
		}
		lines = append(lines,
			s.plainCall(tool.Name, args{"path": args{s.next("name"): s.next("object as a path")}}),
			s.plainCall(tool.Name, args{"path": []string{s.next("list as a path")}, "paths": s.next("text as a list")}),
			s.plainCall(tool.Name, nil))
	}
	lines = append(lines,
		s.plainCall("write_file", args{"path": "made", "content": s.next("content")}),
		s.plainCall("edit_file", args{"path": "made", "edits": []args{{"oldText": s.next("old text"), "newText": "x"}}}),
		s.plainCall("read_text_file", args{"path": "file"}),
		s.plainCall("read_text_file", args{"path": "file", "head": s.next("text as a number")}),
		s.plainCall(s.next("tool"), args{"path": "file"}),
		s.frame(s.next("method"), args{s.next("name"): s.next("params")}),
		s.frame("resources/read", args{"uri": "file:///" + s.next("uri")}),
		s.frame("prompts/get", args{"name": s.next("prompt")}),
		`{"jsonrpc":"2.0","method":"notifications/`+s.next("notification")+`","params":{"reason":"`+s.next("reason")+`"}}`,
		`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"`+s.next("id")+`","reason":"`+s.next("reason")+`"}}`,
		`{"jsonrpc":"1.0","id":1,"method":"`+s.next("method")+`"}`,
		`{"jsonrpc":"2.0","id":{"`+s.next("id's name")+`":1},"method":"tools/call"}`,
		`{"jsonrpc":"2.0","id":1,"id":"`+s.next("second id")+`","method":"tools/call"}`,
		`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"`+s.next("cut off"),
		`[{"jsonrpc":"2.0","id":"`+s.next("batch")+`","method":"ping"}]`,
		`"`+s.next("text")+`"`, s.next("no JSON"), "\x1b[2K"+s.next("escape"), "\xff"+s.next("not UTF-8"),
		`{"jsonrpc":"2.0","id":"`+s.next("response")+`","result":{"x":"`+s.next("result")+`"}}`,
		`{"jsonrpc":"2.0","id":99,"error":{"code":1,"message":"`+s.next("message")+`"}}`)
	return lines
}

// talk runs the program over dir with what a client sends, and returns what it
// says on stdout and stderr.
func talk(t *testing.T, home, dir string, lines []string) (out, said []byte) {
	t.Helper()
	cmd := exec.Command(os.Args[0], "serve", "--agent", "codex", dir)
	cmd.Env = []string{asPostern + "=1", "HOME=" + home, "PATH=" + os.Getenv("PATH")}
	var stdout, stderr bytes.Buffer
	cmd.Stdin, cmd.Stdout, cmd.Stderr = strings.NewReader(strings.Join(lines, "\n")+"\n"), &stdout, &stderr
	if err := cmd.Run(); err != nil {
		t.Fatalf("%v; stderr: %s", err, &stderr)
	}
	return stdout.Bytes(), stderr.Bytes()
}

func greeting(s *sentinels) []string {
	return []string{
		`{"jsonrpc":"2.0","id":"` + s.next("id") + `","method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{"experimental":{"` +
			s.next("capability") + `":{}}},"clientInfo":{"name":"` + s.next("clientInfo") + `","version":"` + s.next("version") + `"},"_meta":{"authorization":"Bearer ` + s.next("authorization") + `"}}}`,
		`{"jsonrpc":"2.0","method":"notifications/initialized"}`,
	}
}

// offered asks for the tools, so that no new one is left out.
func offered(t *testing.T, home, dir string) []toolSchema {
	t.Helper()
	out, _ := talk(t, home, dir, append(greeting(&sentinels{}), `{"jsonrpc":"2.0","id":"list","method":"tools/list"}`))
	for line := range bytes.Lines(out) {
		var m struct {
			ID     any
			Result struct{ Tools []toolSchema }
		}
		if err := json.Unmarshal(line, &m); err == nil && m.ID == "list" {
			return m.Result.Tools
		}
	}
	t.Fatalf("no tools: %s", out)
	return nil
}

// TestSecretsStayOut: nothing that a client sends or a file holds is in the
// state directory or on stderr, whether the call succeeds, is refused or
// fails, and whatever the log holds is closed to others.
func TestSecretsStayOut(t *testing.T) {
	for _, rules := range []string{"", "rules: { fs.delete: allow }\nallow_sensitive: [dotenv]\n", "audit: { paths: hashed }\n", "envelope: off\ndefault: deny\nrules: { fs.read: deny, fs.list: deny, fs.write: deny, fs.create: deny, fs.rename: deny, fs.delete: deny }\n"} {
		s := &sentinels{}
		home, dir := folder(t, map[string]string{"file": s.next("content of a file"), ".env": s.next("content of .env")})
		put(t, filepath.Join(home, ".config/postern/policy.yaml"), "version: 1\n"+rules)
		tools := offered(t, home, dir)
		if len(tools) < 14 {
			t.Fatalf("%d tools", len(tools))
		}
		lines := append(greeting(s), s.conversation(tools)...)
		out, said := talk(t, home, dir, lines)
		state := filepath.Join(home, ".local/state/postern")
		for _, leak := range append(s.leaksBeneath(t, state), s.leaks(said)...) {
			t.Errorf("policy %q: %s", rules, leak)
		}
		// Controls: what was sent did reach it, and a file that holds it is found.
		if n := len(s.leaks(out)); n < 20 {
			t.Errorf("only %d sentinels came back: this run shows nothing", n)
		}
		if err := os.WriteFile(filepath.Join(state, "leak"), out, 0o600); err != nil {
			t.Fatal(err)
		}
		if len(s.leaksBeneath(t, state)) < 20 {
			t.Error("a file that leaks is not found")
		}
		log, err := os.ReadFile(filepath.Join(state, "audit/000001.jsonl"))
		if err != nil {
			t.Fatal(err)
		}
		for _, want := range []string{`"event":"refusal"`, `"resource":"outside:`} {
			if !bytes.Contains(log, []byte(want)) {
				t.Errorf("policy %q: no record has %s", rules, want)
			}
		}
		if strings.Contains(rules, "default: deny") {
			continue
		}
		for _, want := range []string{`"event":"decision"`, `"event":"intent"`, `"event":"outcome"`, `"event":"failure"`, `"event":"preview"`, `"resource":"dotenv:`} {
			if !bytes.Contains(log, []byte(want)) {
				t.Errorf("policy %q: no record has %s", rules, want)
			}
		}
	}
}

// TestLogThatCannotBeWritten: whoever may not write the log starts and reads,
// and changes nothing, without any record or with none at all.
func TestLogThatCannotBeWritten(t *testing.T) {
	if os.Geteuid() != 0 {
		testenv.Missing(t, "root, to become another user")
	}
	box, err := os.MkdirTemp("", "unwritable") //nolint:usetesting // others can enter it, unlike that of a test
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(box) })
	program, home, dir := filepath.Join(box, "postern"), filepath.Join(box, "home"), filepath.Join(box, "dir")
	put(t, filepath.Join(dir, "mine"), "mine")
	put(t, filepath.Join(home, ".config/postern/policy.yaml"), "version: 1\nrules: { fs.delete: allow }\n")
	if err := errors.Join(copyProgram(program), os.Chmod(box, 0o755), filepath.WalkDir(box, func(path string, _ fs.DirEntry, err error) error {
		if path == box || path == program {
			return err
		}
		return errors.Join(err, os.Chown(path, nobody, nobody))
	})); err != nil {
		t.Fatal(err)
	}
	start := func() *process {
		return launch(t, home, dir, func(cmd *exec.Cmd) {
			cmd.Path, cmd.Dir = program, dir
			cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: nobody, Gid: nobody}}
		})
	}
	calls := func(p *process, want string) {
		t.Helper()
		last := "mine" // where it still is, or has been moved to
		if want == "ok" {
			last = "moved"
		}
		for _, c := range []struct {
			tool string
			args args
		}{
			{"write_file", args{"path": "mine", "content": "mine"}},
			{"write_file", args{"path": "new", "content": "new"}},
			{"create_directory", args{"path": "folder"}},
			{"move_file", args{"source": "mine", "destination": "moved"}},
			{"delete_file", args{"path": last, "confirm": true}},
		} {
			if code, text := p.call(c.tool, c.args); code != want {
				t.Errorf("%s %v: %s, want %s: %s", c.tool, c.args, code, want, text)
			}
		}
	}
	p := start()
	if code, text := p.call("write_file", args{"path": "mine", "content": "first"}); code != "ok" {
		t.Fatal(text)
	}
	p.must(p.in.Close())
	p.ends()
	audit := filepath.Join(home, ".local/state/postern/audit")
	segment := filepath.Join(audit, "000001.jsonl")
	before, err := os.ReadFile(segment)
	p.must(errors.Join(err, os.Chmod(segment, 0o400), os.Chmod(audit, 0o500)))

	p = start()
	p.says("nothing can be recorded, so every change is refused\ndenied: record\nbecause: ")
	calls(p, "audit.unwritable")
	if code, text := p.call("read_text_file", args{"path": "mine"}); code != "ok" || !strings.Contains(text, "first") {
		t.Errorf("a read: %s %s", code, text)
	}
	p.must(p.in.Close())
	_, _ = io.Copy(io.Discard, p.out)
	p.ends()
	names, err := filepath.Glob(filepath.Join(dir, "*"))
	after, err2 := os.ReadFile(segment)
	p.must(errors.Join(err, err2))
	if len(names) != 1 || !bytes.Equal(before, after) {
		t.Errorf("something changed: %v", names)
	}

	p.must(errors.Join(os.Chmod(segment, 0o600), os.Chmod(audit, 0o700)))
	calls(start(), "ok") // control
}

// TestLooksAfterTheDead: what a process left open that nobody knows any more is
// closed by the next start, whatever a client asks for meanwhile.
func TestLooksAfterTheDead(t *testing.T) {
	home, dir := folder(t, map[string]string{"f": "f"})
	p := launch(t, home, dir, nil)
	if code, text := p.call("write_file", args{"path": "f", "content": "x"}); code != "ok" {
		t.Fatal(text)
	}
	p.must(p.in.Close())
	p.ends()
	var intent string
	for line := range strings.Lines(p.log()) {
		if strings.Contains(line, `"event":"intent"`) {
			intent = line
		}
	}
	_, corr, _ := strings.Cut(intent, `"corr":"`)
	corr, _, _ = strings.Cut(corr, `"`)
	segment, err := os.OpenFile(filepath.Join(home, ".local/state/postern/audit/000001.jsonl"), os.O_WRONLY|os.O_APPEND, 0)
	p.must(err)
	_, err = segment.WriteString(strings.Replace(intent, corr, "0123456789ab-7", 1))
	p.must(errors.Join(err, segment.Close()))

	p = launch(t, home, dir, nil)
	p.eventually("outcome_unknown", func() bool { return strings.Contains(p.log(), `"outcome_unknown"`) })
	if code, text := p.call("write_file", args{"path": "f", "content": "y"}); code != "ok" {
		t.Fatal(text)
	}
	p.must(p.in.Close())
	p.ends()
	p = launch(t, home, dir, nil)
	p.must(p.in.Close())
	p.ends()
	log := p.log()
	if n := strings.Count(log, `"outcome_unknown"`); n != 1 || !strings.Contains(log, `"corr":"0123456789ab-7"`) || !strings.Contains(log, `"found":"unreadable"`) {
		t.Errorf("%d outcomes that nobody saw: %s", n, log)
	}
}
