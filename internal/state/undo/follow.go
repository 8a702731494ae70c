// SPDX-License-Identifier: Apache-2.0

package undo

import (
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/postern-gate/postern/core/pathguard"
	"github.com/postern-gate/postern/internal/state/regular"
)

const (
	// followTail is how much of a journal is read that was there before.
	followTail = 256 << 10
	// followFor is how long what a change left is remembered.
	followFor = 5 * time.Minute
	// followMost bounds what is remembered; the oldest half goes then.
	followMost = 50_000
)

// Follower knows what the changes of every process of a state directory left in
// the last minutes, from their journals. It is not for use by several goroutines
// at once.
type Follower struct {
	dir  string
	now  func() time.Time
	read map[string]int64 // of each journal
	open map[string][]begun
	left map[string]leftBy
}

// begun is a step whose end is not written yet.
type begun struct {
	Step
	group int
	at    time.Time // of reading
}

type leftBy struct {
	facts pathguard.Facts // zero for nothing there
	at    time.Time
}

// Follow returns a Follower.
func Follow(stateDir string) *Follower {
	return &Follower{
		dir: filepath.Join(stateDir, dirName), now: time.Now,
		read: map[string]int64{}, open: map[string][]begun{}, left: map[string]leftBy{},
	}
}

// path is where the place lies.
func (p Place) path() string { return filepath.Join(p.Path, filepath.FromSlash(p.Rel)) }

// Poll reads what was appended since.
func (f *Follower) Poll() error {
	names, _, err := journals(f.dir)
	if err != nil {
		return err
	}
	there := map[string]bool{}
	for _, name := range names {
		there[name] = true
		if e := f.file(name); e != nil && !errors.Is(e, os.ErrNotExist) {
			err = e
		}
	}
	for name := range f.read {
		if !there[name] {
			delete(f.read, name)
		}
	}
	f.forgetOld()
	return err
}

func (f *Follower) file(name string) error {
	info, err := os.Stat(name)
	if err != nil {
		return err
	}
	from, known := f.read[name]
	if !known {
		from = max(0, info.Size()-followTail) // a line that is cut there is not one
	}
	if info.Size() <= from {
		f.read[name] = from
		return nil
	}
	in, err := regular.Open(name)
	if err != nil {
		return err
	}
	defer in.Close()
	text, err := io.ReadAll(io.NewSectionReader(in, from, min(info.Size()-from, maxLine)))
	if err != nil {
		return err
	}
	whole := bytes.LastIndexByte(text, '\n') + 1
	if whole == 0 && len(text) == maxLine {
		whole = maxLine // no line of ours
	}
	for one := range bytes.Lines(text[:whole]) {
		if l, ok := parseLine(bytes.TrimSuffix(one, []byte("\n"))); ok {
			f.line(l)
		}
	}
	f.read[name] = from + int64(whole)
	return nil
}

func (f *Follower) line(l line) {
	switch l.Kind {
	case kindBegin:
		for _, s := range l.Steps {
			f.open[l.ID] = append(f.open[l.ID], begun{s, l.Steps[0].N, f.now()})
		}
	case kindDone, kindEnd:
		for _, d := range l.Done {
			for _, s := range f.open[l.ID] {
				if s.N == d.N {
					f.leave(s.Step, d.Now)
				}
			}
		}
	}
	if l.Kind != kindEnd {
		return
	}
	var rest []begun
	for _, s := range f.open[l.ID] {
		if s.group != l.First {
			rest = append(rest, s)
		}
	}
	if f.open[l.ID] = rest; rest == nil {
		delete(f.open, l.ID)
	}
}

func (f *Follower) leave(s Step, now pathguard.Facts) {
	at := f.now()
	switch s.Do {
	case Remove:
		f.left[s.path()] = leftBy{at: at}
	case Rename:
		f.left[s.path()] = leftBy{at: at}
		f.left[s.To.path()] = leftBy{now, at}
	default:
		f.left[s.path()] = leftBy{now, at}
	}
}

func (f *Follower) forgetOld() {
	f.forgetBefore(f.now().Add(-followFor))
	if len(f.left)+len(f.open) > followMost {
		f.forgetBefore(f.now().Add(-followFor / 10))
	}
	if len(f.left)+len(f.open) > 2*followMost {
		clear(f.left)
		clear(f.open)
	}
}

func (f *Follower) forgetBefore(old time.Time) {
	for path, l := range f.left {
		if l.at.Before(old) {
			delete(f.left, path)
		}
	}
	for id, steps := range f.open {
		if steps[len(steps)-1].at.Before(old) {
			delete(f.open, id)
		}
	}
}

// Left reports whether what is at a path now, zero for nothing, is what a change
// left there: the last one, or one that took away a folder above it.
func (f *Follower) Left(path string, now pathguard.Facts) bool {
	if l, ok := f.left[path]; ok {
		return same(l.facts, now)
	}
	if now != (pathguard.Facts{}) {
		return false
	}
	for up := filepath.Dir(path); up != filepath.Dir(up); up = filepath.Dir(up) {
		if l, ok := f.left[up]; ok && l.facts == (pathguard.Facts{}) {
			return true
		}
	}
	return false
}

// same leaves the number of the device out, and of a folder what it holds.
func same(a, b pathguard.Facts) bool {
	if a.Kind() == pathguard.KindDir {
		return a.Moved(b)
	}
	a.Dev, b.Dev = 0, 0
	return a == b
}

// Under reports whether a change of the path, or of a folder above it, has begun
// and not ended.
func (f *Follower) Under(path string) bool {
	for _, steps := range f.open {
		for _, s := range steps {
			if above(s.path(), path) || s.To != nil && above(s.To.path(), path) {
				return true
			}
		}
	}
	return false
}

func above(top, path string) bool {
	return path == top || strings.HasPrefix(path, strings.TrimSuffix(top, "/")+"/")
}

// Forget forgets what a change left at a path: somebody else changed it.
func (f *Follower) Forget(path string) { delete(f.left, path) }
