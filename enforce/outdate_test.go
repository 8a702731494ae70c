// SPDX-License-Identifier: Apache-2.0

package enforce

import (
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/postern-gate/postern/core/fault"
	"github.com/postern-gate/postern/internal/state/grant"
)

// edited is a policy whose version a test changes.
type edited struct {
	rules
	version *atomic.Value
}

func (e edited) Version() string { return e.version.Load().(string) }

// newEdited is a desk whose server follows its policy.
func newEdited(t testing.TB) (d *desk, version *atomic.Value, serve func() *Approvals) {
	t.Helper()
	d, version = newDesk(t, writes, map[string]string{"a": "A"}), new(atomic.Value)
	version.Store("v1")
	d.must(d.approvals.Close())
	serve = func() *Approvals {
		a := d.state.Approvals(ApprovalOptions{
			Times: func() (time.Duration, time.Duration) { return d.wait, d.deadline }, Clock: d.clock.clock(),
			Policy: func() string { return version.Load().(string) }, Folders: []string{d.dir}, Door: "door",
		})
		t.Cleanup(func() {
			if err := a.Close(); err != nil {
				t.Error(err)
			}
		})
		return a
	}
	d.approvals = serve()
	d.gate = d.open(edited{d.rules, version}, d.parts)
	return d, version, serve
}

func (d *desk) write() error {
	_, err := d.call().Write(d.t.Context(), "a", []byte("x"), Call{})
	return err
}

// over checks that the question ended with its policy.
func (d *desk) over(id string) {
	d.t.Helper()
	_, err := d.person.Decide(d.t.Context(), id, grant.Answer{Kind: grant.Once})
	if fault.CodeOf(err) != fault.GrantExpired || fault.As(err).Because() != "the question is over: the policy changed" {
		d.t.Errorf("answered: %v", err)
	}
}

// TestPolicyChanges: a server that nobody calls ends its questions as soon as the
// policy is another one, and its yeses soon; what is asked then is another question.
// Without a change both stay.
func TestPolicyChanges(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d, version, _ := newEdited(t)
		id := asked(t, d.write(), fault.PolicyAsk)
		time.Sleep(time.Minute)
		if n := len(d.person.Pending()); n != 1 {
			t.Fatalf("%d questions while the policy is the same", n)
		}
		version.Store("v2")
		time.Sleep(lookAsked + time.Millisecond)
		if n := len(d.person.Pending()); n != 0 {
			t.Errorf("%d questions", n)
		}
		d.over(id)
		again := asked(t, d.write(), fault.PolicyAsk)
		if again == id {
			t.Error("the old question")
		}
		d.yes(again, grant.Answer{Kind: grant.Always, Pattern: "project://**"})
		d.must(d.write())
		time.Sleep(time.Minute)
		d.inForce(1)
		version.Store("v3")
		time.Sleep(lookGiven + time.Millisecond)
		d.inForce(0)
		version.Store("v2") // the edit is taken back
		asked(t, d.write(), fault.PolicyAsk)
		d.must(d.approvals.Close())
	})
}

// TestPolicyChangesWhileWaiting: a call that waits ends with the refusal that says
// so, whoever of two servers of the folder noticed it; a yes that came before is
// none.
func TestPolicyChangesWhileWaiting(t *testing.T) {
	for name, other := range map[string]bool{"its own server": false, "another server": true} {
		synctest.Test(t, func(t *testing.T) {
			d, version, serve := newEdited(t)
			d.wait = 45 * time.Second
			here, err := d.person.Attend(t.Context())
			d.must(err)
			if other {
				aside := d.approvals
				d.approvals = d.state.Approvals(ApprovalOptions{Times: aside.times, Clock: d.clock.clock()})
				d.must(aside.Close())
				aside = serve()
				time.AfterFunc(10*time.Second-lookAsked, func() { _ = aside.policy.still(t.Context(), &Question{Policy: "v1"}, nil) })
				d.gate = d.open(d.rules, d.parts)
			}
			time.AfterFunc(10*time.Second, func() { version.Store("v2") })
			began := time.Now()
			err = d.write()
			if fault.CodeOf(err) != fault.GrantMismatch || fault.As(err).Because() != policyChanged {
				t.Errorf("%s: %v", name, err)
			}
			if waited := time.Since(began); waited > 13*time.Second {
				t.Errorf("%s: waited %v", name, waited)
			}
			if n := len(d.person.Pending()); n != 0 {
				t.Errorf("%s: %d questions", name, n)
			}
			d.must(errors.Join(here.Leave(), d.approvals.Close()))
		})
	}
}

// TestPolicyChangesBetween: a question that is put after the change was noticed, by
// a call that was judged before, doesn't stay.
func TestPolicyChangesBetween(t *testing.T) {
	d, version, _ := newEdited(t)
	version.Store("v2")
	d.approvals.policy.look(t.Context())
	d.gate = d.open(d.rules, d.parts) // of v1
	err := d.write()
	if fault.CodeOf(err) != fault.GrantMismatch || fault.As(err).Because() != policyChanged {
		t.Error(err)
	}
	if n := len(d.person.Pending()); n != 0 {
		t.Errorf("%d questions", n)
	}
}

// TestPolicyChangedMeanwhile: what was put under another policy ends with the next
// process of the door, as after a kill; not with one of another door.
func TestPolicyChangedMeanwhile(t *testing.T) {
	d, version, serve := newEdited(t)
	id := asked(t, d.write(), fault.PolicyAsk)
	d.must(d.approvals.Close())
	version.Store("v2")
	gone := func() bool {
		for range 200 {
			if len(d.person.Pending()) == 0 {
				return true
			}
			time.Sleep(5 * time.Millisecond)
		}
		return false
	}
	other := d.state.Approvals(ApprovalOptions{Times: d.approvals.times, Policy: d.gate.o.Decider.Version, Folders: []string{d.dir}, Door: "another"})
	other.policy.look(t.Context())
	if d.must(other.Close()); gone() {
		t.Fatal("another door ended it")
	}
	elsewhere := d.state.Approvals(ApprovalOptions{Times: d.approvals.times, Policy: d.gate.o.Decider.Version, Folders: []string{t.TempDir()}, Door: "door"})
	elsewhere.policy.look(t.Context())
	if d.must(elsewhere.Close()); gone() {
		t.Fatal("the same door in another folder ended it")
	}
	d.approvals = serve()
	if !gone() {
		t.Error("it is asked still")
	}
	d.over(id)
}

// TestPolicyChangesOfAnotherDoor: what was put by a door that takes its policy from
// other files, which read the same, does not end with the policy of this one.
func TestPolicyChangesOfAnotherDoor(t *testing.T) {
	for door, ends := range map[string]bool{"door": true, "another": false} {
		d, version, _ := newEdited(t)
		d.must(d.approvals.Close())
		d.approvals = d.state.Approvals(ApprovalOptions{Times: d.approvals.times, Clock: d.clock.clock(), Door: door})
		d.gate = d.open(d.rules, d.parts)
		id := asked(t, d.write(), fault.PolicyAsk)
		beside := d.state.Approvals(ApprovalOptions{
			Times: d.approvals.times, Policy: func() string { return version.Load().(string) }, Folders: []string{d.dir}, Door: "door",
		})
		version.Store("v2")
		beside.policy.look(t.Context())
		d.must(beside.Close())
		if _, err := d.person.Question(t.Context(), id); (err != nil) != ends {
			t.Errorf("%s: %v", door, err)
		}
	}
}
