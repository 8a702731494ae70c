// SPDX-License-Identifier: Apache-2.0

//go:build unix

package grant

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"strconv"
	"strings"
	"syscall"
	"testing"
)

// The environment that makes the test program one that is killed.
const (
	killDir  = "POSTERN_TEST_GRANT_DIR"
	killWhat = "POSTERN_TEST_GRANT_DO"
	killStep = "POSTERN_TEST_GRANT_STEP"
	killFull = "POSTERN_TEST_GRANT_FULL"
)

// TestMain runs the victim of TestKilled.
func TestMain(m *testing.M) {
	if dir := os.Getenv(killDir); dir != "" {
		victim(dir)
		return
	}
	os.Exit(m.Run())
}

// victim does one thing and is killed at the step with that number. It says
// how many steps there are when there are fewer.
func victim(dir string) {
	at, _ := strconv.Atoi(os.Getenv(killStep))
	n := 0
	log, err := os.OpenFile(dir+"/log", os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		panic(err)
	}
	s := Open(dir, Options{
		Record: func(x Note) error { _, err := fmt.Fprintln(log, x.Event, x.ID); return err },
		Step: func(string) {
			if n++; n == at {
				_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
				select {}
			}
		},
	})
	if os.Getenv(killFull) != "" { // writes beyond a few bytes fail, as on a full disk
		signal.Ignore(syscall.SIGXFSZ)
		if err := syscall.Setrlimit(syscall.RLIMIT_FSIZE, &syscall.Rlimit{Cur: 200, Max: 200}); err != nil {
			panic(err)
		}
	}
	b := write1()
	ctx := context.Background()
	what, id, _ := strings.Cut(os.Getenv(killWhat), " ")
	switch what {
	case "ask":
		_, err = s.Ask(ctx, b, Card{}, "c", testLife)
	case "approve":
		_, err = s.Decide(ctx, id, Answer{Kind: Once, Approver: "x"})
	case "deny":
		_, err = s.Decide(ctx, id, Answer{Kind: No, Approver: "x"})
	case "spend":
		_, err = s.Spend(ctx, id, &b, "c")
	case "revoke":
		_, err = s.Revoke(ctx, id, "x")
	case "sweep":
		err = s.Sweep(ctx)
	case "outdate":
		err = s.Outdate(ctx, func(*Binding) bool { return true })
	}
	fmt.Println("ended", n, err)
}

// TestKilled: a process that is killed at any step leaves a question that
// waits or none, a yes that is there or was used, never one that counts twice.
// What was taken back before it stays so.
func TestKilled(t *testing.T) {
	for _, what := range []string{"ask", "approve", "deny", "spend", "revoke", "sweep", "outdate"} {
		steps := 0
		for at := 1; ; at++ {
			w := newWorld(t)
			w.store = Open(w.dir, Options{}) // by the system's clock, as the victim's
			b := write1()
			id := ""
			if what != "ask" {
				q := w.ask(b)
				id = q.ID
				if what == "spend" || what == "revoke" || what == "outdate" {
					w.decide(q, Once)
				}
			}
			if what == "sweep" { // a yes whose question was not put away yet
				q := w.ask(b)
				left, err := os.ReadFile(w.path("pending", b.exact()))
				w.must(err)
				w.decide(q, Once)
				w.must(os.WriteFile(w.path("pending", b.exact()), left, 0o600))
			}
			cmd := exec.Command(os.Args[0])
			cmd.Env = append(os.Environ(), killDir+"="+w.dir, killWhat+"="+what+" "+id, killStep+"="+strconv.Itoa(at))
			out, err := cmd.Output()
			if ended := strings.HasPrefix(string(out), "ended"); ended != (err == nil) {
				t.Fatalf("%s at %d: %v, %s", what, at, err, out)
			} else if ended {
				if !strings.HasSuffix(string(out), "<nil>\n") {
					t.Fatalf("%s: %s", what, out)
				}
				break
			}
			steps++
			w.afterKill(what, at, id)
		}
		if steps == 0 {
			t.Errorf("%s was never killed", what)
		}
	}
}

// afterKill goes on where somebody was killed: the question can be answered
// and the yes used, once in all.
func (w *world) afterKill(what string, at int, id string) {
	w.t.Helper()
	bad := func(format string, args ...any) {
		w.t.Helper()
		w.t.Errorf("%s at %d: %s", what, at, fmt.Sprintf(format, args...))
	}
	b, ctx := write1(), context.Background()
	spends := 0
	told, _ := os.ReadFile(w.path("log"))
	for range 2 { // one that was there, then one that it may leave
		if f := w.store.Find(&b); f.Grant != nil {
			if w.spend(f.Grant.ID, b) == nil {
				spends++
			}
		}
	}
	if strings.Contains(string(told), "spent") {
		spends++
	}
	most := map[string]int{"ask": 0, "deny": 0}
	limit, ok := most[what]
	if !ok {
		limit = 1
	}
	if spends > limit {
		bad("spent %d times", spends)
	}
	if id != "" && w.spend(id, b) == nil {
		bad("spent once more")
	}
	if spends == 1 && what == "approve" && !strings.Contains(string(told), "approved") {
		bad("a yes that the log has nothing of")
	}
	w.must(w.store.Sweep(ctx))
	q, err := w.store.Ask(ctx, b, Card{}, "c", testLife)
	w.must(err)
	g, err := w.store.Decide(ctx, q.ID, Answer{Kind: Once, Approver: "x"})
	if err != nil {
		bad("the next question: %v", err)
		return
	}
	if err := w.spend(g.ID, b); err != nil {
		bad("the next yes: %v", err)
	}
	if w.spend(g.ID, b) == nil {
		bad("the next yes, twice")
	}
}

// TestFullDisk: where a file can't be written whole nothing is asked or
// answered, nor recorded as such, no part of it is left, and what needs no new file goes on.
func TestFullDisk(t *testing.T) {
	for _, full := range []bool{true, false} {
		for _, what := range []string{"ask", "approve", "deny", "spend", "revoke"} {
			w := newWorld(t)
			w.store = Open(w.dir, Options{})
			id := ""
			switch what {
			case "approve", "deny":
				id = w.ask(write1()).ID
			case "spend", "revoke":
				id = w.decide(w.ask(write1()), Once).ID
			case "ask":
				w.must(w.store.Resume(t.Context(), "a", "x")) // so that the key is there
			}
			cmd := exec.Command(os.Args[0])
			cmd.Env = append(os.Environ(), killDir+"="+w.dir, killWhat+"="+what+" "+id)
			if full {
				cmd.Env = append(cmd.Env, killFull+"=1")
			}
			out, err := cmd.Output()
			w.must(err)
			works := !full || what == "spend" || what == "revoke"
			if ok := strings.HasSuffix(string(out), "<nil>\n"); ok != works {
				t.Errorf("full %v, %s: %s", full, what, out)
			}
			for _, dir := range []string{"pending", "grants"} {
				for _, name := range files(t, w.path(dir)) {
					if strings.HasPrefix(name, ".") {
						t.Errorf("full %v, %s: %s is left in %s", full, what, name, dir)
					}
				}
			}
			told, err := os.ReadFile(w.path("log"))
			w.must(err)
			if word := map[string]string{"ask": "asked", "approve": "approved", "deny": "denied", "spend": "spent", "revoke": "revoked"}[what]; strings.Contains(string(told), word) != works {
				t.Errorf("full %v, %s: the log has %q", full, what, told)
			}
			if b := write1(); full && (what == "approve" || what == "deny") && (w.store.Find(&b) != (Found{}) || len(w.store.Pending()) != 1) {
				t.Errorf("%s: %+v", what, w.store.Find(&b))
			}
		}
	}
}
