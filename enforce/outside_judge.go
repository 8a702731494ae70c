// SPDX-License-Identifier: Apache-2.0

package enforce

import (
	"context"
	"errors"
	"path/filepath"
	"time"

	"github.com/postern-gate/postern/core"
	"github.com/postern-gate/postern/core/fault"
	"github.com/postern-gate/postern/core/pathguard"
	"github.com/postern-gate/postern/internal/state/audit"
	auditlog "github.com/postern-gate/postern/internal/state/audit/records"
)

// judge records an entry that has settled, unless a call left it as it is. A call
// that has not ended yet is waited for.
func (w *Outside) judge(key entryKey, p *unsettled, last bool) {
	name, now, ok := w.look(key, p)
	if !ok {
		return
	}
	path := filepath.Join(name.Root().Resolved(), filepath.FromSlash(name.Rel()))
	why := "another program"
	switch {
	case w.left.Left(path, now):
		return
	case !w.left.Under(path):
	case !last && time.Since(p.first) < w.pace.waits:
		w.again(key, p)
		return
	default:
		why = "another program, or a call whose end is not known"
	}
	w.left.Forget(path)
	action := core.FSWrite
	switch {
	case now == (pathguard.Facts{}):
		action = core.FSDelete
	case p.made:
		action = core.FSCreate
	}
	w.named(name, action, why)
}

// look finds what is there now, zero for nothing. It is false for what needs no
// name in the log, or has none that opens anything.
func (w *Outside) look(key entryKey, p *unsettled) (name pathguard.Name, now pathguard.Facts, ok bool) {
	name, err := key.dir.Join(key.entry)
	if err == nil && name.Root() != key.dir.Root() {
		return name, now, false // another root, which is watched by itself
	}
	var info pathguard.Info
	if err == nil {
		info, err = name.Lstat()
	}
	switch {
	case fault.CodeOf(err) == fault.PathMissing:
		return name, now, !p.made // else it came and went
	case err != nil: // such as a file of postern's own
		w.unnamed++
		return name, now, false
	}
	return name, info.Fingerprint.Facts(), !info.Kind.Special()
}

// again lets an entry wait once more.
func (w *Outside) again(key entryKey, p *unsettled) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if later := w.pending[key]; later != nil {
		later.first, later.made = p.first, p.made
		return
	}
	p.last = time.Now()
	w.pending[key] = p
}

// named records a name, as far as the policy and the bounds let it be told.
func (w *Outside) named(name pathguard.Name, action core.Action, why string) {
	r := name.Resource()
	v := w.o.Decider.Evaluate(core.Request{Subject: core.Subject{Source: WatcherSource}, Action: core.FSList, Resource: r})
	now := time.Now()
	w.bucket = min(float64(w.pace.named), w.bucket+now.Sub(w.filled).Seconds())
	w.filled = now
	if v.Decision == core.Deny && v.Class == "" || w.bucket < 1 {
		w.unnamed++
		return
	}
	w.bucket--
	w.record(core.Event{
		Action: action, Resource: r, Folder: name.Root().Resolved(), Class: v.Class, File: true, Verdict: core.Verdict{Reason: core.Reason{Why: why}},
		Outside: core.Outside{Event: string(audit.Outside)},
	})
}

// OutsideCount is what was seen of changes by other programs.
type OutsideCount struct {
	Files   int64 // a file counts once, and each change whose name is not told
	Since   time.Time
	Watched bool // something was watched at all
	Missed  bool // there may be more
}

// mostDistinct bounds how many names are told apart.
const mostDistinct = 100_000

// outsideBefore is how long before the oldest change that is listed the changes
// by other programs are counted.
const outsideBefore = time.Hour

// OutsideOf counts the changes by other programs, in any folder, since an hour
// before the listed changes began, or since the log begins. It is what watchers
// saw: nothing while none ran.
func (s *State) OutsideOf(ctx context.Context, listed []UndoEntry, now time.Time) (OutsideCount, error) {
	oldest := now
	for i := range listed {
		if listed[i].Time.Before(oldest) {
			oldest = listed[i].Time
		}
	}
	c, err := s.outsideSince(ctx, oldest.Add(-outsideBefore))
	if err != nil {
		return c, err
	}
	if began := s.logBegan(ctx); began.After(c.Since) && began.Before(now) {
		c.Since = began // nothing was seen before
	}
	return c, nil
}

// logBegan is the time of the first record that is kept, zero for none.
func (s *State) logBegan(ctx context.Context) (at time.Time) {
	r := auditlog.NewReader(filepath.Join(s.Path(), "audit"), auditlog.Cursor{})
	defer r.Close()
	_ = r.Each(ctx, func(e auditlog.Entry) error { // a log that can't be read is found out by what counts
		if e.Err != nil {
			return nil //nolint:nilerr // a line that is no record
		}
		at = e.Record.Time
		return errFirst
	})
	return at
}

var errFirst = errors.New("the first record")

// outsideSince counts what the log has from then on.
func (s *State) outsideSince(ctx context.Context, since time.Time) (c OutsideCount, err error) {
	c.Since = since
	dir := filepath.Join(s.Path(), "audit")
	from, err := auditlog.Since(dir, since)
	if err != nil {
		return c, err
	}
	r := auditlog.NewReader(dir, from)
	defer r.Close()
	seen := map[[2]string]bool{}
	err = r.EachWith(ctx, []byte(`"source":"`+WatcherSource+`"`), func(e auditlog.Entry) error {
		m := &e.Record
		if e.Err != nil || m.Source != WatcherSource || m.Time.Before(since) {
			return nil //nolint:nilerr // a line that is no record
		}
		c.Watched = true
		switch key := [2]string{m.Corr, m.Resource}; {
		case m.Event == string(audit.OutsideMissed):
			c.Missed = true
		case m.Event != string(audit.Outside):
		case m.N > 0:
			c.Files += m.N
		case !seen[key]:
			if c.Files++; len(seen) < mostDistinct {
				seen[key] = true
			}
		}
		return nil
	})
	return c, err
}
