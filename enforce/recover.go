// SPDX-License-Identifier: Apache-2.0

package enforce

import (
	"context"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/postern-gate/postern/core"
	"github.com/postern-gate/postern/core/fault"
	"github.com/postern-gate/postern/core/pathguard"
	"github.com/postern-gate/postern/internal/state/audit"
	"github.com/postern-gate/postern/internal/state/live"
	"github.com/postern-gate/postern/internal/state/undo"
)

// How what is there now compares with what an intent found.
const (
	foundUnchanged  = "unchanged"
	foundChanged    = "changed"
	foundAbsent     = "absent"
	foundUnreadable = "unreadable"
)

// Recover looks after processes that ended between an intent and its outcome:
// each such intent gets one record that says how its target compares with what
// the intent found. A target is looked at by its name beneath its root, and no
// link is followed; what can't be compared, as a name that the log holds only
// as a hash, or one whose root a power cut made us forget, is "unreadable". Intents of processes that are alive stay open.
//
// Before that it compares the newest part of the log with what was signed. One
// that was changed is audit.broken: from then on this process changes nothing,
// until a person renews the log.
//
// Every process that acts should call it once after its start, in the
// background if it likes: it waits for others that do the same. Its error is
// that of the log, or of the context.
//
// On Linux what such a process had not yet finished, a file named .postern-tmp-*
// beside its target, is removed where it is certainly that.
func (s *State) Recover(ctx context.Context) error { return s.recover(ctx, s.undo.Recover) }

// Settle is Recover for who looks at what can be undone, or undoes it: nothing
// that is kept for that is removed, however old it is.
func (s *State) Settle(ctx context.Context) error { return s.recover(ctx, s.undo.Settle) }

func (s *State) recover(ctx context.Context, kept func(context.Context, undo.OpenRoot) error) error {
	if err := s.log.Examine(ctx); err != nil {
		return err
	}
	done, err := s.live.Alone(ctx)
	if err != nil {
		return err
	}
	defer done()
	before, err := s.log.Unfinished()
	if err != nil {
		return err
	}
	processes, err := s.live.List(ctx)
	if err != nil {
		return err
	}
	// A process that ended well in between has its outcomes by now.
	after, err := s.log.Unfinished()
	if err != nil {
		return err
	}
	known := map[[2]string]bool{}
	for _, p := range before {
		known[[2]string{p.Corr, p.Resource}] = true
	}
	a := newAftermath(processes)
	defer a.close()
	var dead []casualty
	for _, p := range after {
		prefix, _, _ := strings.Cut(p.Corr, "-")
		if known[[2]string{p.Corr, p.Resource}] && !a.alive[prefix] && ctx.Err() == nil {
			dead = append(dead, a.examine(prefix, p))
		}
	}
	if err := s.tell(ctx, dead); err != nil {
		return err
	}
	if err := kept(ctx, a.top); err != nil && ctx.Err() != nil {
		return err // else what is kept can't be used, which each change says itself
	}
	return s.forgetDead(ctx, processes)
}

func (s *State) forgetDead(ctx context.Context, processes []live.Entry) error {
	for _, p := range processes {
		if p.Alive {
			continue
		}
		if err := s.live.Remove(ctx, p); err != nil {
			return err
		}
	}
	return nil
}

// tell removes what the dead left unfinished and records what became of their
// changes, in this order: a next start does both if this one is killed too.
func (s *State) tell(ctx context.Context, dead []casualty) error {
	if ctx.Err() == nil {
		sweep(dead)
	}
	for _, c := range dead {
		if ctx.Err() != nil {
			break
		}
		if err := s.log.Record(unknown(c.Pending, c.found), true); err != nil {
			return err
		}
	}
	if err := ctx.Err(); err != nil {
		return &fault.Error{Code: fault.Cancelled, Op: "record", Retry: true, Err: err}
	}
	return nil
}

// unknown is the record of an outcome that nobody saw.
func unknown(p audit.Pending, found string) core.Event {
	action, _ := core.ParseAction(p.Op)
	level := core.LevelNone
	for level < core.LevelOS && level.String() != p.Level {
		level++
	}
	return core.Event{
		Time: time.Now(), Phase: core.PhaseUnknown,
		Subject: core.Subject{Agent: p.Agent, Session: p.Session, Source: p.Source, Level: level},
		Action:  action, Resource: core.Resource{Name: p.Resource, Resolved: true}, Folder: p.Folder, Corr: p.Corr, Policy: p.Policy, Found: found,
		Verdict: core.Verdict{Decision: core.Allow, Reason: core.Reason{
			Decision: core.Allow, Why: "the process ended before it could record an outcome",
		}},
	}
}

// opened is how a root was opened: its name, its path, and the mount points that
// it may enter.
type opened struct{ root, path, mounts string }

// aftermath is what is known of processes, and the roots of dead ones.
type aftermath struct {
	alive map[string]bool
	paths map[string]map[string]string
	tops  map[opened]pathguard.Name
}

func newAftermath(processes []live.Entry) *aftermath {
	a := &aftermath{
		alive: map[string]bool{strings.TrimSuffix(idPrefix(), "-"): true},
		paths: map[string]map[string]string{}, tops: map[opened]pathguard.Name{},
	}
	for _, p := range processes {
		if p.Alive {
			a.alive[p.Prefix] = true
		}
		a.paths[p.Prefix] = p.Roots
	}
	return a
}

func (a *aftermath) close() {
	for _, top := range a.tops {
		_ = top.Root().Close()
	}
}

// casualty is an intent whose process was killed, and what is there now. The
// name is that of its target where known says so.
type casualty struct {
	audit.Pending
	name  pathguard.Name
	known bool
	found string
}

// examine looks at what the intent was about.
func (a *aftermath) examine(prefix string, p audit.Pending) casualty {
	c := casualty{Pending: p}
	c.name, c.known = a.name(prefix, p.Resource)
	c.found = compare(c)
	return c
}

func compare(c casualty) string {
	name, p := c.name, c.Pending
	if !c.known || p.Was == "" || name.Root().Missing() {
		return foundUnreadable
	}
	info, err := name.Lstat()
	switch missing := fault.CodeOf(plain(err)) == fault.PathMissing; {
	case err != nil && !missing:
		return foundUnreadable
	case missing && p.Was == absent, !missing && info.Fingerprint.String() == p.Was:
		return foundUnchanged
	case missing:
		return foundAbsent
	default:
		return foundChanged
	}
}

// name is the canonical name that a record spells out, beneath the root as the
// dead process had it.
func (a *aftermath) name(prefix, resource string) (pathguard.Name, bool) {
	root, rel, plain := strings.Cut(resource, "://")
	path := a.paths[prefix][root]
	if !plain || path == "" || strings.ContainsRune(rel, utf8.RuneError) {
		return pathguard.Name{}, false
	}
	n, known := a.top(root, path, nil)
	if !known {
		return n, false
	}
	if rel == "" {
		return n, true
	}
	for entry := range strings.SplitSeq(rel, "/") {
		var err error
		if n, err = n.Join(entry); err != nil {
			return n, false
		}
	}
	return n, true
}

// top is the name of a root at a path.
func (a *aftermath) top(root, path string, mounts []string) (pathguard.Name, bool) {
	key := opened{root, path, strings.Join(mounts, "\x00")}
	n, known := a.tops[key]
	if path == "" {
		return n, false // it would be taken for the folder that we run in
	}
	if !known {
		if n, known = topOf(root, path, mounts); !known {
			return n, false
		}
		a.tops[key] = n
	}
	return n, true
}

// topOf opens a root and returns its own name.
func topOf(root, path string, mounts []string) (pathguard.Name, bool) {
	r, err := pathguard.OpenRoot(path, pathguard.Options{Name: root, Mounts: mounts})
	if err != nil {
		return pathguard.Name{}, false
	}
	if w, err := pathguard.NewWorkspace(r); err == nil {
		if names, err := w.Parse(root + "://"); err == nil && len(names) == 1 {
			return names[0], true
		}
	}
	_ = r.Close()
	return pathguard.Name{}, false
}
