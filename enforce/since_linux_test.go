// SPDX-License-Identifier: Apache-2.0

package enforce

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/postern-gate/postern/core"
	"github.com/postern-gate/postern/core/fault"
	"github.com/postern-gate/postern/core/pathguard"
	"github.com/postern-gate/postern/internal/state/grant"
)

var treeAsks = []string{"fs.delete project://", "fs.rename project://", "fs.create project://"}

// forFolder are what a yes for a folder d can be for.
var forFolder = map[string]func(context.Context, *Gate) (Outcome, error){
	"delete": func(ctx context.Context, g *Gate) (Outcome, error) {
		return g.Delete(ctx, "d", true, Call{Confirm: true})
	},
	"move": func(ctx context.Context, g *Gate) (Outcome, error) { return g.Move(ctx, "d", "e", Call{Confirm: true}) },
	"copy": func(ctx context.Context, g *Gate) (Outcome, error) { return g.Copy(ctx, "d", "e", Call{Confirm: true}) },
	"tool": func(ctx context.Context, g *Gate) (Outcome, error) {
		h := g.Guard(Tool{Server: "s", Name: "t", Class: core.Mutating, Params: []Param{
			Project("from", core.FSRename), Project("to", core.FSRename),
		}}, func(_ context.Context, call ToolCall) (any, error) {
			from, to := call.Paths["from"][0], call.Paths["to"][0]
			return nil, os.Rename(filepath.Join(from.Root().Resolved(), from.Rel()), filepath.Join(to.Root().Resolved(), to.Rel()))
		})
		_, err := h(ctx, ToolCall{Args: map[string]any{"from": "d", "to": "e"}})
		return Outcome{}, err
	},
}

// approved is a desk where an effect was approved, once; then happens at the step
// of spending.
func approved(t *testing.T, what string, kept bool, asks []string, spec map[string]string) (d *desk, do func(when string, then func()) (Outcome, error)) {
	d = newDesk(t, asks, spec)
	if what == "delete" {
		d.asking.Class = core.Destructive
	}
	var hook func(string)
	ap := d.state.Approvals(ApprovalOptions{Times: func() (time.Duration, time.Duration) { return d.wait, d.deadline }, Clock: d.clock.clock(), Step: func(s string) {
		if hook != nil {
			hook(s)
		}
	}})
	t.Cleanup(func() { d.must(ap.Close()) })
	g := func() *Gate {
		return d.call(func(o *Options) {
			o.Approver = ap
			if kept {
				o.Keeper = d.state
			}
		})
	}
	_, err := forFolder[what](t.Context(), g())
	open := d.person.Pending()
	if fault.CodeOf(err) != fault.PolicyAsk || len(open) != 1 {
		t.Fatal(err, open)
	}
	d.yes(open[0].ID, grant.Answer{})
	return d, func(when string, then func()) (Outcome, error) {
		fired := false
		hook = func(s string) {
			if s == when {
				fired = true
				then()
			}
		}
		out, err := forFolder[what](t.Context(), g())
		if !fired {
			t.Errorf("%s: nothing at %q: %v", what, when, err)
		}
		return out, err
	}
}

// TestApprovedBeneath: what is beneath a folder is not what was approved any
// more, between the last look and the effect. Nothing happens. Without a change
// the same call goes through.
func TestApprovedBeneath(t *testing.T) {
	changes := map[string]func(d *desk){
		"nothing": func(*desk) {},
		"added":   func(d *desk) { d.put("d/s/new", "LATER") },
		"edited": func(d *desk) {
			info, err := os.Stat(d.path("d/s/f"))
			d.must(err)
			d.put("d/s/f", "E")
			d.must(os.Chtimes(d.path("d/s/f"), info.ModTime(), info.ModTime()))
		},
		"gone": func(d *desk) { d.must(os.Remove(d.path("d/s/g"))) },
		"swapped": func(d *desk) {
			d.must(unix.Renameat2(unix.AT_FDCWD, d.path("d/s/f"), unix.AT_FDCWD, d.path("d/s/g"), unix.RENAME_EXCHANGE))
		},
	}
	for what := range forFolder {
		for name, change := range changes {
			for _, when := range []string{"checked", "spent"} {
				for _, kept := range []bool{false, true} {
					t.Run(fmt.Sprintf("%s/%s/%s/%t", what, name, when, kept), func(t *testing.T) {
						d, do := approved(t, what, kept, treeAsks, map[string]string{"d/s/f": "F", "d/s/g": "G"})
						out, err := do(when, func() { change(d) })
						if name == "nothing" {
							d.must(err)
							return
						}
						_, there := os.Stat(d.path("d/s"))
						_, made := os.Lstat(d.path("e"))
						if fault.CodeOf(err) != fault.GrantStale || out.MayHaveApplied || there != nil || !errors.Is(made, fs.ErrNotExist) {
							t.Errorf("%v, %+v, d %v, e %v", err, out, there, made)
						}
					})
				}
			}
		}
	}
}

// TestApprovedCopySource: a copy makes what was approved, byte for byte.
func TestApprovedCopySource(t *testing.T) {
	d, do := approved(t, "copy", true, treeAsks, map[string]string{"d": "approved"})
	out, err := do("spent", func() { d.put("d", "another!") })
	if _, made := os.Lstat(d.path("e")); fault.CodeOf(err) != fault.GrantStale || out.MayHaveApplied || made == nil {
		t.Errorf("%v, %+v, made %v", err, out, made)
	}
	d, do = approved(t, "copy", true, treeAsks, map[string]string{"d": "approved"})
	if _, err := do("spent", func() {}); err != nil || d.read("e") != "approved" {
		t.Error(err)
	}
}

// TestUnaskedMeetsAsk: a call that nobody was asked about ends where it meets a
// name that the policy asks about; what else appears goes with it, as ever.
func TestUnaskedMeetsAsk(t *testing.T) {
	for name, asks := range map[string]bool{"private": true, "other": false} {
		policy := rules{deny: map[string]core.Decision{"fs.delete project://d/s/private": core.Ask}}
		w := newWorld(t, policy, map[string]string{"d/s/f": "F"})
		w.log.seen = func(e core.Event) {
			if e.Phase == core.PhaseIntent {
				w.put("d/s/"+name, "P")
			}
		}
		_, err := w.gate.Delete(t.Context(), "d", true, Call{Confirm: true})
		_, there := os.Stat(w.path("d/s/f"))
		if asks && (fault.CodeOf(err) != fault.PolicyAsk || there != nil) || !asks && (err != nil || there == nil) {
			t.Errorf("%s: %v, there %v", name, err, there)
		}
	}
}

// TestApprovedRaced: somebody adds to a folder and edits in it all the time. An
// effect that goes through is for what was there when the yes was spent: every
// file of it is one that was seen by the approval.
func TestApprovedRaced(t *testing.T) {
	for _, what := range []string{"delete", "move", "copy"} {
		for _, kept := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s/%t", what, kept), func(t *testing.T) {
				through, refused := 0, 0
				for i := range 20 {
					switch d, err := raceOnce(t, what, kept, time.Duration(i%10)*300*time.Microsecond); {
					case err == nil:
						through++
					case fault.CodeOf(err) == fault.GrantStale:
						refused++
						if _, err := os.Stat(d.path("d/s/f")); err != nil {
							t.Errorf("refused, and %v", err)
						}
					case !errors.Is(err, pathguard.ErrMayHaveApplied):
						t.Error(err)
					}
				}
				if refused == 0 {
					t.Errorf("%d through, %d refused: nothing was attacked", through, refused)
				}
			})
		}
	}
}

// raceOnce lets the attacker begin some time after the yes was spent.
func raceOnce(t *testing.T, what string, kept bool, after time.Duration) (*desk, error) {
	spec := map[string]string{"d/s/f": "approved"}
	for i := range 20 {
		spec[fmt.Sprintf("d/s/k%d/f", i)] = "approved"
	}
	d, do := approved(t, what, kept, treeAsks, spec)
	began, stop, done := make(chan struct{}), make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		<-began
		time.Sleep(after)
		s, err := unix.Open(d.path("d/s"), unix.O_PATH|unix.O_DIRECTORY, 0) // goes with the folder
		if err != nil {
			return
		}
		defer unix.Close(s)
		for {
			select {
			case <-stop:
				return
			default:
			}
			if fd, err := unix.Openat(s, "f", unix.O_WRONLY, 0); err == nil {
				_, _ = unix.Write(fd, []byte("ATTACKER"))
				unix.Close(fd)
			}
			time.Sleep(50 * time.Microsecond)
		}
	}()
	_, err := do("spent", func() { close(began) })
	if err == nil && what == "copy" {
		if got := d.read("e/s/f"); got != "approved" {
			t.Errorf("copied %q", got)
		}
	}
	close(stop)
	<-done
	return d, err
}
