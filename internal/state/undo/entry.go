// SPDX-License-Identifier: Apache-2.0

package undo

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"github.com/postern-gate/postern/core/pathguard"
)

// Planned is a step that is about to be made. The caller fills in what is known
// before; Begin decides how what it displaces is kept.
type Planned struct {
	Step
	Target *pathguard.Target // of what is there; nil for what is made beneath something new
	// Entries and Bytes are what a directory holds, itself included; Largest is
	// the size of its largest file.
	Entries, Bytes, Largest int64
	Linked                  bool // one of them has another name
	// Tail is how much of the end of the file is copied instead of all of it.
	Tail int64
	// Then is what will be there by then, where that isn't what the target has.
	Then *pathguard.Facts
	// Bring is an image that takes the place, and what it was when it was kept.
	Bring string
}

// Change is what a call is about to do.
type Change struct {
	ID      string
	Corr    string // what its records share, where a yes that was given to another call made it another id
	Time    time.Time
	Agent   string
	Session string
	Source  string
	Op      string
	Undoes  bool
	First   int // number of the first step
	Steps   []*Planned
	Needs   map[string]bool // images that don't give way to it
	Gone    map[string]bool // those that will have been given back
	Now     pathguard.Facts // of a change that is not kept: what it left
}

// Cover returns why the change could not be undone, "" if it could. It changes
// nothing.
func (l *Log) Cover(c *Change) string {
	if l.o.MaxEntries > 0 && len(c.Steps) > l.o.MaxEntries {
		return "it touches more entries than undo.max_entries (" + strconv.Itoa(l.o.MaxEntries) + ")"
	}
	store, err := l.images()
	if err != nil {
		return "nothing can be kept: " + err.Error()
	}
	var bytes, entries int64
	for _, s := range c.Steps {
		if why := l.plan(store, s, c.Undoes); why != "" {
			return why
		}
		if s.How == Moved || s.How == Copied {
			bytes, entries = bytes+s.Size, entries+max(1, s.Entries)
		}
	}
	if entries == 0 {
		return ""
	}
	if bytes > l.o.Total/2 && !c.Undoes {
		return "it displaces more than half of undo.total (" + size(l.o.Total) + ")"
	}
	why, err := l.reserve(claim{c.owner(), c.Needs, c.Gone, counters{bytes, entries}, true})
	if err != nil {
		return "nothing can be kept: " + err.Error()
	}
	return why
}

// Entry is a change that is in the journal.
type Entry struct {
	l              *Log
	c              *Change
	journal        *os.File
	store          *pathguard.Store
	bytes, entries int64
	done           []Done
	ended          bool
}

// Begin takes room and writes the change down; Sync makes that last. Cover must
// have said yes just before.
func (l *Log) Begin(c *Change) (*Entry, error) {
	e := &Entry{l: l, c: c}
	out := line{
		Kind: kindBegin, ID: c.ID, Time: c.Time.UTC(), Agent: c.Agent, Session: c.Session,
		Source: c.Source, Op: c.Op, Undoes: c.Undoes,
	}
	for i, s := range c.Steps {
		s.N = c.First + i
		switch s.How {
		case Moved, Copied:
			s.Image = stamp(c.Time) + "-" + c.ID + "." + strconv.Itoa(s.N) + "." + c.owner() + "." + digest(s.String())
			e.bytes, e.entries = e.bytes+s.Size, e.entries+max(1, s.Entries)
		case Exchanged, Adopted:
			s.Image = s.Bring
			if s.Held.Kind() != pathguard.KindDir { // of which only a count tells the size
				l.free(s.Held.Size-s.Was.Size, 0) // the image is another one then
			}
		}
		if err := s.describe(); err != nil {
			return nil, err
		}
		out.Steps = append(out.Steps, s.Step)
	}
	if e.entries > 0 {
		why, err := l.reserve(claim{c.owner(), c.Needs, nil, counters{e.bytes, e.entries}, false})
		if err == nil && why != "" {
			err = unusable(why, nil)
		}
		if err != nil {
			return nil, err
		}
	}
	var err error
	if e.store, err = l.images(); err == nil {
		e.journal, err = l.write(appendLine(nil, out))
	}
	if err != nil {
		l.free(e.bytes, e.entries)
		return nil, err
	}
	return e, nil
}

// Lost notes a change that can't be undone, and why, for the list. It is not
// synced, and without it the change is in the audit log alone.
func (l *Log) Lost(c *Change, why string) error {
	out := line{
		Kind: kindBegin, ID: c.ID, Time: c.Time.UTC(), Agent: c.Agent, Session: c.Session,
		Source: c.Source, Op: c.Op, Undoes: c.Undoes, Lost: why,
	}
	if len(c.Steps) > 0 {
		s := c.Steps[0].Step
		s.How, s.Temp, s.Stood = "", "", nil
		out.Steps = []Step{s}
	}
	lines := appendLine(nil, out)
	end := line{Kind: kindEnd, ID: c.ID, State: Committed, Corr: c.Corr}
	if len(out.Steps) > 0 {
		end.First = out.Steps[0].N
		if len(c.Steps) == 1 {
			end.Done = []Done{{N: end.First, Now: c.Now}}
		}
	}
	_, err := l.write(appendLine(lines, end))
	return err
}

// describe notes what a copied image can't hold itself.
func (s *Planned) describe() error {
	if s.How != Copied || s.Do == Truncate {
		return nil
	}
	src, err := s.Target.Source()
	if err != nil {
		return err
	}
	defer src.Close()
	like, err := src.Like()
	s.Like = &like
	return err
}

// Sync returns when the change is in the journal, and every copy in its place,
// on disk. Nothing may be changed before.
func (e *Entry) Sync() error {
	for _, s := range e.c.Steps {
		if s.How != Copied {
			continue
		}
		if err := e.copy(s); err != nil {
			return err
		}
	}
	if err := dataSync(e.journal); err != nil {
		e.l.giveUp(e.journal)
		return unusable("the disk did not take the journal", err)
	}
	return nil
}

// giveUp begins another journal: the kernel has forgotten what it could not
// write to this one.
func (l *Log) giveUp(f *os.File) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.file == f {
		l.file = nil
	}
}

// copy keeps the content of a file, or its tail, as it is now.
func (e *Entry) copy(s *Planned) error {
	src, err := s.Target.Source()
	if err != nil {
		return err
	}
	defer src.Close()
	path := e.l.join(imagesName, s.Image)
	to, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return unusable("the image can't be made", err)
	}
	if s.Do == Truncate {
		err = copyTail(to, src, s.Tail)
	} else {
		err = src.CopyTo(to)
	}
	if err == nil {
		err = dataSync(to)
	}
	info, statErr := to.Stat()
	now, lookErr := src.Stat()
	err = errors.Join(err, statErr, lookErr, to.Close())
	switch {
	case err != nil:
		return unusable("what would be displaced can't be copied to the images", err)
	case now.Fingerprint != src.Fingerprint() || info.Size() != s.Size:
		return unusable("the file changed while it was copied to the images", nil)
	}
	return syncDir(e.l.join(imagesName))
}

func copyTail(to *os.File, src *pathguard.File, n int64) error {
	buf := make([]byte, min(n, 1<<20))
	for at := src.Size() - n; at < src.Size(); {
		part := buf[:min(int64(len(buf)), src.Size()-at)]
		if _, err := src.ReadAt(part, at); err != nil {
			return err
		}
		if _, err := to.Write(part); err != nil {
			return err
		}
		at += int64(len(part))
	}
	return nil
}

// Options say where a step's displaced file goes.
func (e *Entry) Options(i int) (o pathguard.WriteOptions) {
	switch s := e.c.Steps[i]; s.How {
	case Moved:
		o.Into, o.As = e.store, s.Image
	case Copied:
		o.As = s.Temp
	case Exchanged, Adopted:
	}
	return o
}

// Store is where the images are.
func (e *Entry) Store() *pathguard.Store { return e.store }

// File notes which file, filled, a step is about to give its name. It is not
// synced: where a power cut takes it, nobody takes what is there for ours.
func (e *Entry) File(i int, filled pathguard.Facts) error {
	_, err := e.l.write(appendLine(nil, line{Kind: kindFile, ID: e.c.ID, N: e.c.Steps[i].N, File: filled.Ino, Filled: filled}))
	return err
}

// Done notes that a step was made and what is there now. With more to come it
// is written at once, so that a crash knows it.
func (e *Entry) Done(i int, now pathguard.Facts) error {
	s := e.c.Steps[i]
	d := Done{N: s.N, Now: now}
	if s.Image != "" {
		d.Image = e.store.Facts(s.Image)
	}
	e.done = append(e.done, d)
	if len(e.c.Steps) == 1 {
		return nil
	}
	_, err := e.l.write(appendLine(nil, line{Kind: kindDone, ID: e.c.ID, Done: []Done{d}}))
	return err
}

// End says how the change ended. What was kept of one that did not happen is
// removed. It is not synced: after a power cut Recover finds out.
func (e *Entry) End(state State, why string) error {
	if e.ended {
		return nil
	}
	e.ended = true
	end := line{Kind: kindEnd, ID: e.c.ID, First: e.c.First, State: state, Why: why, Corr: e.c.Corr}
	if len(e.c.Steps) == 1 {
		end.Done = e.done
	}
	_, err := e.l.write(appendLine(nil, end))
	if state == Aborted && len(e.done) == 0 {
		e.drop()
	}
	return err
}

// drop removes the copies of a change that was not made. What was moved is the
// only one of its kind and stays.
func (e *Entry) drop() {
	for _, s := range e.c.Steps {
		if s.How == Copied {
			_ = os.Remove(e.l.join(imagesName, s.Image))
		}
	}
	for _, s := range e.c.Steps {
		if _, err := os.Lstat(filepath.Join(e.l.join(imagesName), s.Image)); s.How == Moved && !errors.Is(err, fs.ErrNotExist) {
			return // it is counted still
		}
	}
	e.l.free(e.bytes, e.entries)
}
