// SPDX-License-Identifier: Apache-2.0

package config

import (
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/postern-gate/postern/core"
	"github.com/postern-gate/postern/internal/links"
)

// Live decides by the policy files as they are now: at most once a second it
// looks whether one of them changed. A change that is not valid has no effect;
// the last good policy stays, and the problem is reported once and kept. Roots
// that a change adds are opened by the next start; one that it removes or
// makes read-only is so at once. A Warning
// that comes up is reported too. Report must not call back.
type Live struct {
	opts   Options
	now    func() time.Time
	report func(error)

	current atomic.Pointer[Config]
	problem atomic.Pointer[error]
	next    atomic.Int64 // not looked at again before, in Unix nanoseconds

	mu   sync.Mutex
	last []source // as they were at the last attempt, good or not
	seen func(files []string)
}

// every bounds how often files are looked at.
const every = time.Second

// OpenLive loads the policy, which must be valid, and keeps it current. Report
// is called with each problem of a later change, and with nil when it is gone.
func OpenLive(o Options, now func() time.Time, report func(error)) (*Live, error) {
	o.now = now
	if o.Env == nil {
		o.Env = func(string) string { return "" }
	}
	c, err := Load(o)
	if err != nil {
		return nil, err
	}
	o.opened = map[string]opened{}
	for _, r := range c.Roots {
		if info, err := os.Stat(r.Path); err == nil {
			dirs, _ := o.dirs(r.Path)
			o.opened[r.Path] = opened{info, dirs}
		}
	}
	l := &Live{opts: o, now: now, report: report, last: c.sources}
	l.current.Store(c)
	l.next.Store(now().Add(every).UnixNano())
	return l, nil
}

// Current returns the configuration in force. It is never nil and must not be
// changed.
func (l *Live) Current() *Config {
	if l.now().UnixNano() >= l.next.Load() {
		l.refresh()
	}
	return l.current.Load()
}

// refresh looks once for all callers that are due, and each waits for it: after
// a quiet hour the first burst of calls would else be decided by what held then.
func (l *Live) refresh() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.now().UnixNano() < l.next.Load() {
		return
	}
	l.look()
	if away := slices.ContainsFunc(l.last, func(s source) bool { return s.mount != "" }); l.seen != nil && !away {
		l.seen(places(l.last))
	}
	l.next.Store(l.now().UnixNano() + int64(every)) // a look may take long itself
}

// OnLook has seen called at each look, before a decision that waits for it, with
// the places of the policy files; not while one lies on a mount that may not answer,
// where whoever looks may wait for ever. It must not call back.
func (l *Live) OnLook(seen func(files []string)) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.seen = seen
}

// look takes what files say where one has changed and all are valid, and what there is
// around that in any case.
func (l *Live) look() {
	base := l.current.Load()
	look := l.opts.glance(base.Roots, trusted(l.last)...)
	next := base
	if l.changed(look) {
		next = l.load(base)
	}
	if next == base {
		next = l.opts.again(base, look)
	}
	if next != base {
		l.current.Store(next)
		l.tell(base.Warnings, next.Warnings)
	}
}

// changed reports whether a file has: not that of a project whose folder isn't there
// any more.
func (l *Live) changed(look *links.Look) bool {
	return slices.ContainsFunc(l.last, func(s source) bool {
		if s.root != "" {
			if _, moved := l.opts.dirs(s.root); moved {
				return false
			}
		}
		return s.changed(look)
	})
}

// load returns what files say now, or base while one is invalid.
func (l *Live) load(base *Config) *Config {
	l.opts.before = base
	c, err := Load(l.opts)
	l.last = c.sources
	if err != nil {
		l.problem.Store(&err)
		l.report(err)
		return base
	}
	if l.problem.Swap(nil) != nil {
		l.report(nil)
	}
	return c
}

// tell reports warnings that are new.
func (l *Live) tell(before, now []string) {
	for _, w := range now {
		if !slices.Contains(before, w) {
			l.report(Warning(w))
		}
	}
}

// Warning is reported of a policy that is in force.
type Warning string

func (w Warning) Error() string { return string(w) }

// Problem returns why the last change of a file is not in force, or nil.
func (l *Live) Problem() error {
	if err := l.problem.Load(); err != nil {
		return *err
	}
	return nil
}

// Evaluate decides by the policy in force.
func (l *Live) Evaluate(r core.Request) core.Verdict { return l.Current().Policy.Evaluate(r) }

// Agents names the agents that have rules of their own.
func (l *Live) Agents() []string { return l.Current().Policy.Agents() }

// Ruled reports whether an agent has rules of its own for an action.
func (l *Live) Ruled(agent string, a core.Action) bool { return l.Current().Policy.Ruled(agent, a) }

// Explain lists the rules that match, the deciding one first.
func (l *Live) Explain(r core.Request) []core.Reason { return l.Current().Policy.Explain(r) }

// Version is that of the policy in force.
func (l *Live) Version() string { return l.Current().Policy.Version() }

// ConfirmRequired reports whether the action needs confirm: true.
func (l *Live) ConfirmRequired(a core.Action) bool { return l.Current().Policy.ConfirmRequired(a) }

// IfMatchRequired reports whether the action needs the etag that was read.
func (l *Live) IfMatchRequired(a core.Action) bool { return l.Current().Policy.IfMatchRequired(a) }
