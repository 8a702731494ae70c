// SPDX-License-Identifier: Apache-2.0

package enforce

import (
	"context"
	"sync"
	"time"

	"github.com/postern-gate/postern/internal/state/grant"
)

// How often it is looked whether the policy changed while no call asks: a question
// must end before a person answers it, a yes may be listed a moment longer.
const (
	lookAsked = time.Second
	lookGiven = 15 * time.Second
)

// follower ends what was asked and answered under a policy that is in force no
// more. What it has not ended yet when its process is killed, the next process of
// the door ends.
type follower struct {
	store   *grant.Store
	version func() string
	folders []string
	door    string
	wake    chan struct{}
	stop    context.CancelFunc
	ended   chan struct{}

	mu       sync.Mutex
	now      string
	outdated []func(*grant.Binding) bool // what is still to end
}

// follow begins with what an earlier process of the door has left.
func follow(store *grant.Store, o *ApprovalOptions) *follower {
	ctx, stop := context.WithCancel(context.Background())
	first := o.Policy()
	f := &follower{
		store: store, version: o.Policy, folders: o.Folders, door: o.Door, now: first,
		wake: make(chan struct{}, 1), stop: stop, ended: make(chan struct{}),
		outdated: []func(*grant.Binding) bool{func(b *grant.Binding) bool {
			return b.Door == o.Door && o.Door != "" && b.Policy != first && b.Within(o.Folders)
		}},
	}
	go f.watch(ctx)
	return f
}

func (f *follower) close() {
	f.stop()
	<-f.ended
}

// watch looks as long as there is something that the policy could end.
func (f *follower) watch(ctx context.Context) {
	defer close(f.ended)
	for {
		f.look(ctx)
		var next <-chan time.Time
		switch asked, given := f.store.Any(f.under(f.known())); {
		case asked:
			next = time.After(lookAsked)
		case given:
			next = time.After(lookGiven)
		}
		select {
		case <-ctx.Done():
			return
		case <-f.wake:
		case <-next:
		}
	}
}

func (f *follower) known() string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.now
}

// under is what was put under that version, about folders of this process alone. What
// another door put takes its policy from other files.
func (f *follower) under(policy string) func(*grant.Binding) bool {
	return func(b *grant.Binding) bool {
		return b.Policy == policy && b.Within(f.folders) && (b.Door == f.door || b.Door == "" || f.door == "")
	}
}

// look returns the version in force. If it is another one than before, what was put
// under that one ends. What can't be ended now is by the next look.
func (f *follower) look(ctx context.Context, also ...string) string {
	f.mu.Lock()
	defer f.mu.Unlock()
	now := f.version() // under the lock, so that no look undoes a later one
	if now != f.now {
		also = append(also, f.now)
		f.now = now
	}
	for _, policy := range also {
		if policy != now {
			f.outdated = append(f.outdated, f.under(policy))
		}
	}
	for len(f.outdated) > 0 && f.store.Outdate(ctx, f.outdated[0]) == nil {
		f.outdated = f.outdated[1:]
	}
	return now
}

// still refuses a question that was put under a policy that is in force no more,
// which is over then. It may have been put after the change was noticed.
func (f *follower) still(ctx context.Context, q *Question, asked *grant.Question) error {
	if f == nil {
		return nil
	}
	select {
	case f.wake <- struct{}{}: // there is a question now
	default:
	}
	if f.look(ctx, q.Policy) == q.Policy {
		return nil
	}
	return q.outdated(asked)
}
