// SPDX-License-Identifier: Apache-2.0

package undo

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"slices"
	"strings"

	"github.com/postern-gate/postern/core/fault"
	"github.com/postern-gate/postern/core/pathguard"
)

const (
	whyOther = "it is neither what it was nor what it should have become"
	whyMade  = "who made this folder can't be told: the call that was about to ended before it said so"
)

// OpenRoot returns the name of a root that lies at a path and may enter these
// mount points, false for one that can't be opened.
type OpenRoot func(root, path string, mounts []string) (pathguard.Name, bool)

// Recover is Settle, and then removes what is too old.
func (l *Log) Recover(ctx context.Context, open OpenRoot) error {
	return l.recover(ctx, open, l.tidy)
}

// Settle looks after the changes of processes that ended in the midst of one: it
// finds out what is there, finishes moving what was displaced, removes the
// unfinished file, and writes down how it ended. Nothing that is kept is removed.
func (l *Log) Settle(ctx context.Context, open OpenRoot) error {
	return l.recover(ctx, open, func(*Index) error { return nil })
}

func (l *Log) recover(ctx context.Context, open OpenRoot, then func(*Index) error) error {
	if _, err := os.Lstat(l.join()); errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	release, err := l.lock.Lock(ctx, journalsKey)
	if err != nil {
		return err
	}
	defer release()
	alive, err := l.alive()
	if err != nil {
		return err
	}
	x, err := Read(l.dir)
	if err != nil {
		return err
	}
	store, err := l.images()
	if err != nil {
		return err
	}
	for _, t := range x.Txns {
		if err := ctx.Err(); err != nil {
			return &fault.Error{Code: fault.Cancelled, Op: "undo", Retry: true, Err: err}
		}
		if alive[prefix(t.ID)] {
			continue
		}
		if err := l.finish(store, t, open); err != nil {
			return err
		}
	}
	return then(x)
}

func prefix(id string) string {
	p, _, _ := strings.Cut(id, "-")
	return p
}

// finish settles every group of a change whose end is not written.
func (l *Log) finish(store *pathguard.Store, t *Txn, open OpenRoot) error {
	for _, first := range t.open() {
		if t.away(first, open) {
			continue // its root may be back at the next start
		}
		end := line{Kind: kindEnd, ID: t.ID, First: first, State: Committed}
		for _, e := range t.groups[first] {
			if e.known {
				continue
			}
			state, now, why := l.settle(store, e, open)
			switch state {
			case Committed:
				d := Done{N: e.N, Now: now}
				if e.Image != "" {
					d.Image = store.Facts(e.Image)
				}
				end.Done = append(end.Done, d)
			case Attention:
				end.State, end.Why = Attention, why
			case Aborted, Prepared:
				if end.State == Committed {
					end.State = Aborted
				}
			}
		}
		if _, err := l.write(appendLine(nil, end)); err != nil {
			return err
		}
	}
	return nil
}

// open is the groups without an end, by their first steps.
func (t *Txn) open() (groups []int) {
	for _, e := range t.Steps {
		if e.State == Prepared && !slices.Contains(groups, e.group) {
			groups = append(groups, e.group)
		}
	}
	return groups
}

// away reports a group beneath a root that is not there now: it is on a disk
// that is not mounted, say, or another folder stands in its place.
func (t *Txn) away(first int, open OpenRoot) bool {
	for _, e := range t.groups[first] {
		for _, p := range e.Places() {
			top, ok := open(p.Root, p.Path, e.Mounts)
			if !ok || top.Root().Missing() {
				return true
			}
			if why := e.Astray(p, top); why != "" && why != RuleUntold {
				return true
			}
		}
		if e.unmounted(open) {
			return true
		}
	}
	return false
}

// unmounted reports a name beneath a mount point whose folder is not the one that
// it was in: what was mounted there may be back at the next start.
func (s *Step) unmounted(open OpenRoot) bool {
	if len(s.Mounts) == 0 || s.Up == (Folder{}) {
		return false
	}
	n, ok := s.resolve(open, s.Place)
	up, beneath := n.Parent()
	return !ok || !beneath || !s.Up.same(FolderOf(up))
}

// scene is what is there now of a step.
type scene struct {
	l        *Log
	store    *pathguard.Store
	e        *Entered
	name     pathguard.Name
	temp     pathguard.Name
	cur      pathguard.Facts // at its name
	to       pathguard.Facts // at the other name of a rename
	beside   pathguard.Facts // at the name of the unfinished file
	image    pathguard.Facts
	leftover pathguard.Facts
}

// settle finds out which of two states it is, and never guesses.
func (l *Log) settle(store *pathguard.Store, e *Entered, open OpenRoot) (State, pathguard.Facts, string) {
	s := scene{l: l, store: store, e: e}
	if !s.look(open) {
		return Attention, s.cur, RuleUnread
	}
	state := Attention
	switch e.Do {
	case Replace:
		state = s.replaced()
	case Create:
		state = s.created()
	case Remove:
		state = s.removed()
	case Rename:
		state = s.renamed()
		s.cur = s.to
	case Append:
		state = s.resized(e.Was.Size + e.Added)
	case Truncate:
		state = s.resized(e.Was.Size - e.Added)
	case Mkdir:
		state = s.made()
	}
	switch {
	case state == Attention && e.Do == Mkdir:
		return state, s.cur, whyMade
	case state == Attention:
		return state, s.cur, whyOther
	}
	s.clean(state)
	return state, s.left(), ""
}

// left is what the step left, where it can be told from what somebody wrote
// since; what is not known can't be taken back.
func (s *scene) left() pathguard.Facts {
	made := s.e.Filled
	switch {
	case s.e.Do == Remove:
		return pathguard.Facts{}
	case s.e.Do != Replace && s.e.Do != Create:
		return s.cur
	case s.e.How == Exchanged || s.e.How == Adopted:
		made = s.e.Held
	}
	if made.Moved(s.cur) {
		return s.cur
	}
	return pathguard.Facts{}
}

// look is false where something can't be seen.
func (s *scene) look(open OpenRoot) (ok bool) {
	if s.name, ok = s.e.resolve(open, s.e.Place); !ok {
		return false
	}
	var err error
	if s.cur, err = FactsOf(s.name); err != nil {
		return false
	}
	up, ok := s.name.Parent()
	if f := FolderOf(up); ok && f != (Folder{}) && s.e.Up != (Folder{}) && !s.e.Up.same(f) {
		return false
	}
	if s.e.To != nil {
		to, ok := s.e.resolve(open, *s.e.To)
		if !ok {
			return false
		}
		if s.to, err = FactsOf(to); err != nil {
			return false
		}
	}
	if ok && strings.HasPrefix(s.e.Temp, ".postern-tmp-") {
		if s.temp, _ = up.Join(s.e.Temp); s.temp != (pathguard.Name{}) {
			if s.beside, err = FactsOf(s.temp); err != nil {
				return false
			}
		}
	}
	if s.e.Image != "" {
		s.image, s.leftover = s.store.Facts(s.e.Image), s.store.Facts(s.e.Image+pathguard.OldSuffix)
	}
	return true
}

func none(f pathguard.Facts) bool { return f == (pathguard.Facts{}) }

func (s *scene) unchanged() bool { return s.cur == s.e.Was || s.e.Was.Moved(s.cur) }

// finished reports whether the new file has the name.
func (s *scene) finished() bool { return s.e.File != 0 && s.cur.Ino == s.e.File }

func (s *scene) replaced() State {
	was := s.e.Was
	if s.e.How == Exchanged {
		return s.exchanged()
	}
	switch {
	case s.e.How == Moved && was.Moved(s.beside):
		return s.shelve()
	case s.e.How == Moved && was.Moved(s.image) && !s.unchanged(), s.finished():
		return Committed
	case s.unchanged():
		return Aborted
	}
	return Attention
}

// shelve finishes what the exchange began: the displaced file lies beside.
func (s *scene) shelve() State {
	t, err := s.temp.PinEntry()
	if err != nil {
		return Attention
	}
	defer t.Close()
	if t.Remove(pathguard.WriteOptions{Into: s.store, As: s.e.Image}) != nil {
		return Attention
	}
	s.beside = pathguard.Facts{}
	return Committed
}

func (s *scene) exchanged() State {
	switch {
	case s.e.Was.Moved(s.image):
		return Committed
	case s.e.Was.Moved(s.leftover) && none(s.image):
		if os.Rename(s.l.join(imagesName, s.e.Image+pathguard.OldSuffix), s.l.join(imagesName, s.e.Image)) == nil {
			return Committed
		}
	case s.e.Held.Moved(s.image) && !s.e.Held.Moved(s.cur): // else it has both names
		return Aborted
	}
	return Attention
}

func (s *scene) created() State {
	switch {
	case s.e.How == Adopted && s.e.Held.Moved(s.image):
		return Aborted
	case s.e.How == Adopted && s.e.Held.Moved(s.cur), s.finished():
		return Committed
	case none(s.cur):
		return Aborted
	}
	return Attention
}

func (s *scene) removed() State {
	switch {
	case s.e.How == Moved && s.e.Was.Moved(s.image):
		return Committed
	case s.unchanged() && !none(s.cur):
		return Aborted
	case s.e.How == Copied && s.e.Was.Moved(s.beside) && none(s.cur):
		return s.putBack()
	case none(s.cur) && s.e.How != Moved:
		return Committed
	}
	return Attention
}

// putBack gives a file its name again that lost it first and was to be removed.
func (s *scene) putBack() State {
	from, err := s.temp.PinEntry()
	if err != nil {
		return Attention
	}
	defer from.Close()
	to, err := s.name.PinEntry()
	if err != nil {
		return Attention
	}
	defer to.Close()
	if pathguard.Rename(from, to) != nil {
		return Attention
	}
	s.beside = pathguard.Facts{}
	return Aborted
}

func (s *scene) renamed() State {
	switch {
	case s.e.Was.Moved(s.to) && none(s.cur):
		return Committed
	case s.unchanged() && none(s.to):
		return Aborted
	}
	return Attention
}

// resized is for what is changed in place: it has the old or the new length.
func (s *scene) resized(size int64) State {
	switch {
	case s.cur == s.e.Was:
		return Aborted
	case s.cur.Ino == s.e.Was.Ino && s.cur.Mode == s.e.Was.Mode && s.cur.Size == size:
		return Committed
	}
	return Attention
}

// made is for a directory. What was noted after it was made is known; else one
// that is there may be somebody's who came after the crash.
func (s *scene) made() State {
	if none(s.cur) {
		return Aborted
	}
	return Attention
}

// clean removes the unfinished file, and the copy of what was not displaced.
func (s *scene) clean(state State) {
	ours := s.e.File == 0 || s.beside.Ino == s.e.File
	copied := s.e.How == Copied && state == Committed && s.e.Was.Moved(s.beside) && s.image.Size == s.e.Was.Size
	if s.beside.Kind() == pathguard.KindFile && (ours || copied) {
		if t, err := s.temp.PinEntry(); err == nil {
			_ = t.Remove(pathguard.WriteOptions{}) // tried again by hand: it is named in docs/undo.md
			_ = t.Close()
		}
	}
	if state == Aborted && s.e.How == Copied {
		_ = os.Remove(s.l.join(imagesName, s.e.Image))
	}
}
