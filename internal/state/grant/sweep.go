// SPDX-License-Identifier: Apache-2.0

package grant

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"strings"
	"time"
)

// Timeout is the reason in the record of what ended when its time was over.
const Timeout = "timeout"

// Sweep puts away what is over and removes what a crash left. Nothing depends
// on it: what is over is so by its own time.
func (s *Store) Sweep(ctx context.Context) error {
	done, err := s.enter(ctx)
	if err != nil {
		return err
	}
	defer done()
	s.sweep(ctx)
	return nil
}

// sweep is Sweep for one who holds the lock.
func (s *Store) sweep(ctx context.Context) {
	if _, err := s.secret(false); err != nil {
		return
	}
	now, alive := s.clock.now(), s.alive(ctx, sessions)
	for _, name := range s.names(pendingDir) {
		q, err := s.question(name)
		switch {
		case err != nil:
			_ = os.Remove(s.path(pendingDir, name)) // it can't be answered
		case s.ended(q.ID):
			_ = s.putAway(name, q.ID)
		case s.questionOver(q, now):
			_ = s.expire(name, q, Timeout)
		case q.For.Process != "" && !alive[q.For.Process]:
			_ = s.expire(name, q, "its session has ended")
		}
	}
	for _, name := range s.names(grantsDir) {
		g, err := s.answer(grantsDir, name)
		switch {
		case err != nil: // it is no grant; a person may want to see it
		case s.over(g, now):
			_ = s.lapse(g, Timeout)
		case g.For.Process != "" && !alive[g.For.Process] && !g.Kind.outlives():
			_ = s.lapse(g, "its session has ended")
		}
	}
	s.sweepSpent(now)
	s.sweepLitter(now)
}

// ended reports whether the question was answered or put away: what has its file is
// a copy that was put back, or what a crash left.
func (s *Store) ended(id string) bool {
	return s.exists(grantsDir, id) || s.exists(spentDir, id) || s.exists(spentDir, id+asked)
}

// expire puts a question away that nobody answered in time.
func (s *Store) expire(name string, q *Question, reason string) error {
	if err := s.putAway(name, q.ID); err != nil {
		return err
	}
	s.keepWhy(q.ID, reason)
	_ = s.note(q.note(Expired, reason)) // it is over, recorded or not
	return nil
}

// putAway ends a question. What it showed is not kept, only that it was there.
func (s *Store) putAway(name, id string) error {
	aside := s.path(spentDir, id+asked)
	err := s.move(s.path(pendingDir, name), aside)
	if errors.Is(err, fs.ErrExist) { // one that was put back
		return os.Remove(s.path(pendingDir, name))
	}
	if err != nil {
		return err
	}
	return os.Truncate(aside, 0)
}

// lapse puts an answer away whose time is over.
func (s *Store) lapse(g *Grant, reason string) error {
	if err := s.retire(g.ID); err != nil {
		return err
	}
	if g.Kind != No {
		s.keepWhy(g.ID, reason)
		_ = s.note(g.note(Expired, reason)) // it is over, recorded or not
	}
	return nil
}

// sweepSpent removes what could not be spent again even if it were put back.
func (s *Store) sweepSpent(now Moment) {
	for _, name := range s.names(spentDir) {
		info, err := os.Lstat(s.path(spentDir, name))
		if err != nil {
			continue
		}
		life := time.Duration(0)
		if g, err := s.answer(spentDir, name); err == nil {
			life = g.Life
		}
		if now.Wall.Sub(info.ModTime()) > life+keepSpent {
			_ = os.Remove(s.path(spentDir, name))
		}
	}
}

func (s *Store) sweepLitter(now Moment) {
	for _, dir := range []string{pendingDir, grantsDir, agentsDir} {
		found, err := os.ReadDir(s.path(dir))
		if err != nil {
			continue
		}
		for _, f := range found {
			info, err := f.Info()
			if err == nil && strings.HasPrefix(f.Name(), tempPrefix) && now.Wall.Sub(info.ModTime()) > keepLitter {
				_ = os.Remove(s.path(dir, f.Name()))
			}
		}
	}
}
