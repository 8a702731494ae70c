// SPDX-License-Identifier: Apache-2.0

//go:build linux

package enforce

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/postern-gate/postern/core"
	"github.com/postern-gate/postern/core/policy"
)

// stopAt is a state whose process stops, for good, when it comes to an intent
// that was recorded or an outcome that was not.
type stopAt struct {
	*State
	phase core.Phase
	stop  func()
}

func (s stopAt) Record(e core.Event, sync bool) error {
	if e.Phase == core.PhaseOutcome && s.phase == core.PhaseOutcome {
		s.stop()
	}
	err := s.State.Record(e, sync)
	if e.Phase == core.PhaseIntent && s.phase == core.PhaseIntent && sync { // the last one of the call
		s.stop()
	}
	return err
}

// victim is a process that makes one change and is killed in it.
type victim struct {
	Root, State, Do string
	After, Hashed   bool
}

const victimEnv = "POSTERN_TEST_VICTIM"

// TestVictim is not a test: it is the process.
func TestVictim(t *testing.T) {
	var v victim
	if os.Getenv(victimEnv) == "" {
		return
	}
	if err := json.Unmarshal([]byte(os.Getenv(victimEnv)), &v); err != nil {
		t.Fatal(err)
	}
	s, err := OpenState(v.State, StateOptions{HashedPaths: v.Hashed})
	if err != nil {
		t.Fatal(err)
	}
	shipped := policy.Default()
	shipped.Confirm = nil
	shipped.Rules[core.FSDelete] = policy.Rules{Else: &policy.Outcome{Decision: core.Allow}}
	shipped.Rules[core.ToolCall] = shipped.Rules[core.FSDelete]
	p, err := policy.Compile(policy.Config{Roots: []policy.Root{{Name: "project"}}, Fallback: &shipped, Lift: []string{"dotenv"}})
	if err != nil {
		t.Fatal(err)
	}
	at := stopAt{s, core.PhaseIntent, func() {
		fmt.Println("stopped")
		_, _ = io.Copy(io.Discard, os.Stdin)
	}}
	if v.After {
		at.phase = core.PhaseOutcome
	}
	w := &world{t: t, dir: v.Root, log: &log{}}
	g := w.open(p, func(o *Options) { o.Recorder, o.Locker = at, s })
	do, name, _ := strings.Cut(v.Do, " ")
	ctx := context.Background()
	switch do {
	case "write":
		_, err = g.Write(ctx, name, []byte("new content"), Call{})
	case "append":
		_, err = g.Append(ctx, name, []byte("more"), Call{})
	case "delete":
		_, err = g.Delete(ctx, name, true, Call{})
	case "move":
		_, err = g.Move(ctx, name, "moved", Call{})
	case "mkdir":
		_, err = g.MakeDir(ctx, name, Call{})
	case "call":
		_, err = g.Guard(Tool{Server: "s", Name: "t", Class: core.Mutating},
			func(context.Context, ToolCall) (any, error) { return nil, nil })(ctx, ToolCall{})
	}
	t.Fatalf("it did not stop: %v", err)
}

// stopped starts a victim and waits until it has stopped.
func stopped(t *testing.T, v victim) *exec.Cmd {
	t.Helper()
	spec, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(os.Args[0], "-test.run=^TestVictim$")
	cmd.Env = append(os.Environ(), victimEnv+"="+string(spec))
	_, err1 := cmd.StdinPipe()
	out, err2 := cmd.StdoutPipe()
	if err := errors.Join(err1, err2, cmd.Start()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { kill(cmd) })
	scan := bufio.NewScanner(out)
	if !scan.Scan() || scan.Text() != "stopped" {
		t.Fatalf("the victim says %q", scan.Text())
	}
	return cmd
}

func kill(cmd *exec.Cmd) {
	_ = cmd.Process.Kill()
	_ = cmd.Wait()
}

// unknowns are the outcomes that nobody saw, as "name: found".
func unknowns(t *testing.T, state string) (all []string) {
	t.Helper()
	intents := map[any]map[string]any{}
	for _, m := range records(t, state) {
		key := fmt.Sprint(m["corr"], m["resource"])
		switch m["event"] {
		case "intent":
			intents[key] = m
		case "outcome_unknown":
			all = append(all, fmt.Sprint(m["resource"], ": ", m["found"]))
			for _, f := range []string{"agent", "op", "source", "session", "policy", "level"} {
				if m[f] != intents[key][f] {
					t.Errorf("%s is %v, that of the intent is %v", f, m[f], intents[key][f])
				}
			}
		}
	}
	return all
}

func recoverAll(t *testing.T, state string) {
	t.Helper()
	var wg sync.WaitGroup
	for range 3 { // which may well start at once
		wg.Add(1)
		go func() {
			defer wg.Done()
			s, err := OpenState(state, StateOptions{})
			if err == nil {
				err = errors.Join(s.Recover(context.Background()), s.Close())
			}
			if err != nil {
				t.Error(err)
			}
		}()
	}
	wg.Wait()
}

// TestRecover: what became of a change whose process was killed before
// or after its effect is told by the next start, once, and not while it lives.
func TestRecover(t *testing.T) {
	none := func(string) {}
	tests := map[string]struct {
		victim victim
		then   func(root string)
		want   []string
	}{
		"write, before":  {victim{Do: "write f"}, none, []string{"project://f: unchanged"}},
		"write, after":   {victim{Do: "write f", After: true}, none, []string{"project://f: changed"}},
		"append, after":  {victim{Do: "append f", After: true}, none, []string{"project://f: changed"}},
		"create, before": {victim{Do: "write sub/n"}, none, []string{"project://sub/n: unchanged"}},
		"create, after":  {victim{Do: "write sub/n", After: true}, none, []string{"project://sub/n: changed"}},
		"delete, before": {victim{Do: "delete f"}, none, []string{"project://f: unchanged"}},
		"delete, after":  {victim{Do: "delete f", After: true}, none, []string{"project://f: absent"}},
		"tree, after":    {victim{Do: "delete sub", After: true}, none, []string{"project://sub: absent"}},
		"move, before":   {victim{Do: "move f"}, none, []string{"project://f: unchanged", "project://moved: unchanged"}},
		"move, after":    {victim{Do: "move f", After: true}, none, []string{"project://f: absent", "project://moved: changed"}},
		"mkdir, after":   {victim{Do: "mkdir x/y", After: true}, none, []string{"project://x/y: changed"}},
		"became a link": {
			victim{Do: "write f"}, func(root string) {
				must(os.Rename(filepath.Join(root, "f"), filepath.Join(root, "f2")), os.Symlink("f2", filepath.Join(root, "f")))
			}, []string{"project://f: changed"},
		},
		"its folder became a link": {
			victim{Do: "write sub/g"}, func(root string) {
				must(os.Rename(filepath.Join(root, "sub"), filepath.Join(root, "s2")), os.Symlink("s2", filepath.Join(root, "sub")))
			}, []string{"project://sub/g: unreadable"},
		},
		"root is gone": {
			victim{Do: "write f"}, func(root string) { must(os.Rename(root, root+"2")) }, []string{"project://f: unreadable"},
		},
		"nobody knows where": {
			victim{Do: "write f"},
			func(root string) { must(os.RemoveAll(filepath.Join(root, "..", "state", "live"))) },
			[]string{"project://f: unreadable"},
		},
		"a tool":         {victim{Do: "call"}, none, []string{"s://t: unreadable"}},
		"secret":         {victim{Do: "write .env"}, none, []string{"dotenv:HASH: unreadable"}},
		"hashed":         {victim{Do: "write f", Hashed: true}, none, []string{"path:HASH: unreadable"}},
		"hashed, after":  {victim{Do: "write f", Hashed: true, After: true}, none, []string{"path:HASH: unreadable"}},
		"secret, after":  {victim{Do: "write .env", After: true}, none, []string{"dotenv:HASH: unreadable"}},
		"of an odd name": {victim{Do: "write a b%:é\U0001f600", After: true}, none, []string{"project://a b%:é\U0001f600: changed"}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			box := t.TempDir()
			v := tc.victim
			v.Root, v.State = filepath.Join(box, "root"), filepath.Join(box, "state")
			must(os.MkdirAll(filepath.Join(v.Root, "sub"), 0o755))
			for _, f := range []string{"f", ".env", "sub/g"} {
				must(os.WriteFile(filepath.Join(v.Root, f), []byte(f), 0o644))
			}
			cmd := stopped(t, v)
			if !strings.Contains(name, "nobody") { // without its file it is as good as dead
				recoverAll(t, v.State)
				if got := unknowns(t, v.State); len(got) != 0 {
					t.Fatalf("while it lives: %q", got)
				}
			}
			kill(cmd)
			tc.then(v.Root)
			recoverAll(t, v.State)
			recoverAll(t, v.State) // and never again
			got := unknowns(t, v.State)
			for i := range got {
				if class, rest, ok := strings.Cut(got[i], ":"); ok && len(rest) > 24 && rest[24] == ':' {
					got[i] = class + ":HASH" + rest[24:]
				}
			}
			if d := cmp.Diff(tc.want, got); d != "" {
				t.Error(d)
			}
			if left, _ := os.ReadDir(filepath.Join(v.State, "live")); len(left) != 0 {
				t.Errorf("left behind: %v", left)
			}
		})
	}
}

// TestEndedWell: a process that closed its state leaves nothing to look after,
// however often its own and other processes look.
func TestEndedWell(t *testing.T) {
	w := newWorld(t, rules{}, map[string]string{"f": "x"})
	dir := filepath.Join(t.TempDir(), "state")
	for i := range 3 {
		s, err := OpenState(dir, StateOptions{})
		w.must(err)
		g := w.open(rules{}, func(o *Options) { o.Recorder = s })
		_, err = g.Write(t.Context(), "f", []byte{byte(i)}, Call{})
		w.must(err)
		w.must(s.Recover(t.Context()))
		if alive, _ := os.ReadDir(filepath.Join(dir, "live")); len(alive) != 1 {
			t.Errorf("%v", alive)
		}
		w.must(s.Close())
	}
	recoverAll(t, dir)
	if got := unknowns(t, dir); len(got) != 0 {
		t.Errorf("%q", got)
	}
	if n := len(records(t, dir)); n != 6 {
		t.Errorf("%d records, want 6", n)
	}
	if left, _ := os.ReadDir(filepath.Join(dir, "live")); len(left) != 0 {
		t.Errorf("left behind: %v", left)
	}
}

// TestTwoWorkspaces: gates of one state over other roots are all known, and a
// name that two roots have stands for neither.
func TestTwoWorkspaces(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "state")
	s, err := OpenState(dir, StateOptions{})
	must(err)
	a, b := newWorld(t, rules{}, map[string]string{"f": "x"}), newWorld(t, rules{}, map[string]string{"f": "x"})
	for _, w := range []*world{a, b, a} {
		_, err := w.open(rules{}, func(o *Options) { o.Recorder = s }).Write(t.Context(), "f", []byte("y"), Call{})
		must(err)
	}
	if got := s.roots; len(got) != 1 || got["project"] != "" {
		t.Errorf("%v", got)
	}
	must(s.Close())
}
