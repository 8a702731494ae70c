// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/sys/unix"

	"github.com/postern-gate/postern/core/fault"
)

// stateUse is what a verb does with the state directory.
type stateUse int

const (
	without stateUse = iota // it reads nothing of it
	looks                   // it says what it finds of it, or only where it is
	reads                   // it makes nothing, and refuses one that it can't trust
	writes                  // it may make it, or answers questions in it
)

// call is how a verb of the tree is called so that it answers well on stdout.
type verbCall struct {
	args  []string
	state stateUse
	in    string // on stdin
}

const hello = `{"jsonrpc":"2.0","id":1,"method":"ping"}` + "\n"

// calls are of every verb; silent ones print nothing on stdout.
var calls = map[string]verbCall{
	"init":       {args: []string{"--undo", "--dry-run"}, state: looks},
	"serve":      {args: []string{"."}, state: writes, in: hello},
	"up":         {state: writes},
	"check":      {args: []string{"fs.read", "a.txt"}, state: looks},
	"explain":    {state: reads},
	"test":       {args: []string{"policy.yaml"}},
	"schema":     {},
	"paths":      {state: looks},
	"man":        {},
	"status":     {state: reads},
	"pending":    {state: reads},
	"approve":    {args: []string{"--yes", "--code", "CODE", "QUESTION"}, state: writes},
	"deny":       {args: []string{"QUESTION"}, state: writes},
	"grants":     {state: reads},
	"revoke":     {args: []string{"--all"}, state: writes},
	"pause":      {args: []string{"--yes", "coder"}, state: writes},
	"resume":     {args: []string{"idle"}, state: writes},
	"selftest":   {},
	"doctor":     {state: looks},
	"log":        {state: reads},
	"log verify": {state: reads},
	"log key":    {state: reads},
	"log anchor": {state: writes},
	"log prune":  {args: []string{"--keep", "1d"}, state: writes},
	"log export": {args: []string{"--format", "ocsf"}, state: reads},
	"undo":       {args: []string{"--last", "--dry-run"}, state: writes},
	"undo list":  {state: writes},
	"version":    {},
	"completion": {args: []string{"bash"}},
	"help":       {},
}

// silent verbs print nothing on stdout.
var silent = []string{"page"}

// leaves are the verbs of the tree that do something.
func leaves(cmd *cobra.Command) (all []string) {
	for _, c := range cmd.Commands() {
		if c.Runnable() {
			all = append(all, strings.TrimPrefix(c.CommandPath(), "postern "))
		}
		all = append(all, leaves(c)...)
	}
	return all
}

// everyVerb has each verb of the tree called in a place of its own, with a log, a
// change that can be taken back, and a question.
func everyVerb(t *testing.T, each func(t *testing.T, p *place, name string, c verbCall)) {
	env := System()
	root := newRoot(&env)
	root.InitDefaultHelpCmd()
	names := leaves(root)
	for name := range calls {
		if !slices.Contains(names, name) {
			t.Errorf("there is no verb %s", name)
		}
	}
	for _, name := range names {
		c, known := calls[name]
		if !known && !slices.Contains(silent, name) {
			t.Errorf("say in calls how %s is called", name)
		}
		if known {
			t.Run(name, func(t *testing.T) {
				t.Parallel() // most of the time a record is waited for
				each(t, lived(t), name, c)
			})
		}
	}
}

// withJSON reports whether the verb has the flag.
func withJSON(name string) bool {
	env := System()
	cmd, _, err := newRoot(&env).Find(strings.Fields(name))
	return err == nil && cmd.Flags().Lookup("json") != nil
}

// lived is a place in which an agent has done something and asks for more, and
// another one is paused.
func lived(t *testing.T) *place {
	p := newPlace(t, map[string]string{"a.txt": "a", "b.txt": "b", "policy.yaml": "version: 1\nexamples:\n  - { fs.read: \"project://a.txt\", decision: allow }\n"})
	s := p.serve("--agent", "coder", ".")
	s.call("write_file", map[string]any{"path": "new.txt", "content": "x"})
	s.call("read_text_file", map[string]any{"path": ".env"})
	s.call("delete_file", remove("a.txt"))
	if exit := run(t.Context(), []string{"pause", "--yes", "idle"}, p.env(strings.NewReader(""), io.Discard)); exit != 0 {
		t.Fatalf("pause: exit %d", exit)
	}
	p.put(attachedAs(p), "{}")
	return p
}

// attachedAs is where init remembers what it did for the place.
func attachedAs(p *place) string {
	real, err := filepath.EvalSymlinks(p.dir)
	p.must(err)
	sum := sha256.Sum256([]byte(real))
	return filepath.Join(p.home, ".local/state/postern/attached", hex.EncodeToString(sum[:])[:32]+".json")
}

// with fills in the id of the question that waits.
func (p *place) with(c verbCall) []string {
	args := slices.Clone(c.args)
	for i, a := range args {
		if a != "QUESTION" && a != "CODE" {
			continue
		}
		env := p.env(nil, nil)
		store, err := lookAtGrants(&env)
		p.must(err)
		waits := store.Pending()
		if len(waits) == 0 {
			p.Fatal("no question waits")
		}
		args[i] = waits[0].ID
		if a == "CODE" {
			args[i] = questionOf(waits[0]).Code
		}
	}
	return args
}

func (p *place) verb(name string, c verbCall, out, said io.Writer, more ...string) int {
	p.Helper()
	return p.verbUntil(p.Context(), name, c, out, said, more...)
}

func (p *place) verbUntil(ctx context.Context, name string, c verbCall, out, said io.Writer, more ...string) int {
	p.Helper()
	env := p.env(strings.NewReader(c.in), out)
	env.Err = said
	return run(ctx, append(append(strings.Fields(name), p.with(c)...), more...), env)
}

// TestFullStdout: a verb whose answer can't be written fails and says so, as
// text, as JSON and in its help; one whose answer nobody reads fails without a
// word.
func TestFullStdout(t *testing.T) {
	everyVerb(t, func(t *testing.T, p *place, name string, c verbCall) {
		full, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
		p.must(err)
		defer full.Close()
		reader, unread, err := os.Pipe()
		p.must(err)
		p.must(reader.Close())
		defer unread.Close()
		var said bytes.Buffer
		failed := func(form string, code int) {
			if code != fault.ExitFailed || !strings.Contains(said.String(), "can't be written") && name != "serve" || strings.Contains(said.String(), "bug") {
				t.Errorf("%s: exit %d:\n%s", form, code, said.String())
			}
			said.Reset()
		}
		failed("--help", p.verb(name, verbCall{}, full, &said, "--help"))
		if code := p.verb(name, verbCall{}, unread, &said, "--help"); code != fault.ExitFailed || said.Len() > 0 {
			t.Errorf("nobody reads: exit %d:\n%s", code, said.String())
		}
		failed("text", p.verb(name, c, full, &said))
	})
}

// TestFullStdoutJSON: no verb takes what the system says of stdout for a bug.
func TestFullStdoutJSON(t *testing.T) {
	everyVerb(t, func(t *testing.T, p *place, name string, c verbCall) {
		full, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
		p.must(err)
		defer full.Close()
		var said bytes.Buffer
		if !withJSON(name) || name == "serve" {
			return
		}
		if code := p.verb(name, c, full, &said, "--json"); code != fault.ExitFailed || !strings.Contains(said.String(), `"code":"io.failed"`) {
			t.Errorf("exit %d:\n%s", code, said.String())
		}
	})
}

// TestWhoseState: each verb that reads or writes the state directory refuses one
// that isn't this user's own, or has a layout that this program doesn't know, as
// a server does, and leaves it as it is.
func TestWhoseState(t *testing.T) {
	spoil := map[string]func(p *place, dir string){
		"newer layout": func(p *place, dir string) { p.put(filepath.Join(dir, "version"), "99\n") },
		"bytes":        func(p *place, dir string) { p.put(filepath.Join(dir, "version"), "\xfe\x00\x9b") },
		"open":         func(p *place, dir string) { p.must(os.Chmod(dir, 0o777)) },
	}
	if os.Geteuid() == 0 {
		spoil["another's"] = func(p *place, dir string) { p.must(os.Chown(dir, 12345, 12345)) }
	}
	everyVerb(t, func(t *testing.T, p *place, name string, c verbCall) {
		if c.state == without || c.state == looks {
			return
		}
		c.args = p.with(c)
		dir, aside := filepath.Join(p.home, ".local/state/postern"), filepath.Join(p.home, "aside")
		p.must(os.Rename(dir, aside))
		for what, spoilt := range spoil {
			p.must(os.CopyFS(dir, os.DirFS(aside)))
			p.must(os.Chmod(dir, 0o700))
			spoilt(p, dir)
			var out, said bytes.Buffer
			if code := p.verb(name, c, &out, &said); code != fault.ExitConfig || out.Len() > 0 || !strings.Contains(said.String(), "because: the state directory") {
				t.Errorf("%s: exit %d:\n%s%s", what, code, out.String(), said.String())
			}
			p.must(os.RemoveAll(dir))
		}
		p.must(os.Rename(aside, dir))
	})
}

// TestReadersMakeNothing: what only reads makes no state directory.
func TestReadersMakeNothing(t *testing.T) {
	env := System()
	for _, name := range leaves(newRoot(&env)) {
		c, known := calls[name]
		if !known || c.state == writes && name != "undo" && name != "undo list" {
			continue
		}
		p := newPlace(t, map[string]string{"a.txt": "a", "policy.yaml": "version: 1\n"})
		p.must(os.Remove(p.home))
		p.verb(name, c, io.Discard, io.Discard)
		if _, err := os.Lstat(p.home); !os.IsNotExist(err) {
			t.Errorf("%s made something: %v", name, err)
		}
	}
}

// TestFIFOInState: no verb waits for the other end of a pipe that lies in the
// place of a file of the state directory.
func TestFIFOInState(t *testing.T) {
	everyVerb(t, func(t *testing.T, p *place, name string, c verbCall) {
		if c.state == without {
			return
		}
		c.args = p.with(c)
		dir := filepath.Join(p.home, ".local/state/postern")
		var files []string
		p.must(filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
			if err == nil && d.Type().IsRegular() {
				files = append(files, path)
			}
			return err
		}))
		for _, file := range files {
			if os.Rename(file, file+".aside") != nil {
				continue // it had its time
			}
			p.must(unix.Mkfifo(file, 0o600))
			ended := make(chan int, 1)
			ctx, cancel := context.WithCancel(t.Context())
			go func() { ended <- p.verbUntil(ctx, name, c, io.Discard, io.Discard) }()
			if name == "up" { // it runs until then
				cancel()
			}
			select {
			case <-ended:
			case <-time.After(time.Minute):
				t.Fatalf("it waits for %s", file)
			}
			cancel()
			p.must(os.Rename(file+".aside", file))
		}
	})
}
