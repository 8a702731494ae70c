// SPDX-License-Identifier: Apache-2.0

package undo

import (
	"cmp"
	"errors"
	"io/fs"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/postern-gate/postern/core/pathguard"
	"github.com/postern-gate/postern/internal/state/regular"
)

// Txn is one change, or one run of undo, as the journals tell it.
type Txn struct {
	ID      string
	Corr    string // what its records share
	Time    time.Time
	Agent   string
	Session string
	Source  string
	Op      string
	Undoes  bool   // it is itself an undo
	Lost    string // why it can't be undone, "" for what could when it was made
	Steps   []*Entered
	byN     map[int]*Entered
	groups  map[int][]*Entered // by the numbers of their first steps

	begins   int      // lines that begin it
	journals []string // in which those are
	bytes    int64    // of all lines about it
}

// Entered is a step with what became of it.
type Entered struct {
	Step
	Txn      *Txn
	State    State
	Why      string
	Now      pathguard.Facts // zero for nothing, or where it is not known
	Kept     pathguard.Facts // the image
	UndoneBy *Entered
	Filled   pathguard.Facts // the new file before it got its name
	Began    time.Time       // of its group
	known    bool            // a done line tells Now
	group    int
}

// Current is the step that has to be taken back to take this one back: itself,
// or the one that has done it again since. It is nil for a step that is not in
// effect.
func (e *Entered) Current() *Entered {
	for e.UndoneBy != nil {
		if e = e.UndoneBy.UndoneBy; e == nil {
			return nil
		}
	}
	return e
}

// Index is what all journals tell together.
type Index struct {
	Txns    []*Txn // the oldest first
	Damaged int    // lines that can't be read, the torn end of a killed writer's among them, and what Log.Odd names
	byID    map[string]*Txn
	byCorr  map[string]*Txn // those whose records share another id
	same    map[pathguard.Facts]pathguard.Facts
	remade  map[Folder]Folder // directories that an undo made anew, without their devices
}

// Read reads the journals of a state directory. None is an empty index.
func Read(stateDir string) (*Index, error) {
	x := &Index{byID: map[string]*Txn{}, byCorr: map[string]*Txn{}, same: map[pathguard.Facts]pathguard.Facts{}, remade: map[Folder]Folder{}}
	names, odd, err := journals(filepath.Join(stateDir, dirName))
	if err != nil {
		return nil, err
	}
	x.Damaged = len(odd)
	var later []sized
	err = readAll(names, func(name string, t text) {
		x.Damaged += t.damaged
		for _, l := range t.lines {
			if l.line.Kind == kindBegin {
				x.begin(l.line, l.bytes, name)
			} else { // it may be about what another journal begins
				later = append(later, l)
			}
		}
	})
	if err != nil {
		return nil, err
	}
	for _, l := range later {
		x.finish(l.line, l.bytes)
	}
	slices.SortStableFunc(x.Txns, func(a, b *Txn) int {
		return cmp.Or(a.Time.Compare(b.Time), strings.Compare(a.ID, b.ID))
	})
	x.relate()
	return x, nil
}

// text is what one journal says.
type text struct {
	lines   []sized
	damaged int
	err     error
}

// readAll reads journals at the same time, in parts that fit into memory: to
// make sense of the lines takes longer than to read them.
func readAll(names []string, each func(name string, t text)) error {
	for part := range slices.Chunk(names, 4*runtime.GOMAXPROCS(0)) {
		texts := make([]text, len(part))
		var wg sync.WaitGroup
		turn := make(chan struct{}, runtime.GOMAXPROCS(0))
		for i, name := range part {
			wg.Go(func() {
				turn <- struct{}{}
				texts[i] = readFile(name)
				<-turn
			})
		}
		wg.Wait()
		for i, t := range texts {
			if t.err != nil {
				return t.err
			}
			each(part[i], t)
		}
	}
	return nil
}

func readFile(name string) (t text) {
	f, err := regular.Open(name)
	if errors.Is(err, fs.ErrNotExist) {
		return t // pruned meanwhile
	}
	if err != nil {
		return text{err: unusable("a journal can't be read: "+strconv.Quote(filepath.Base(name)), err)}
	}
	defer f.Close()
	err = eachLine(f, func(b []byte) {
		if l, ok := parseLine(b); ok {
			t.lines = append(t.lines, sized{l, int64(len(b) + 1)})
		} else {
			t.damaged++
		}
	})
	if err != nil {
		t.damaged++
	}
	return t
}

// sized is a line with how long it is.
type sized struct {
	line  line
	bytes int64
}

func (x *Index) begin(l line, bytes int64, journal string) {
	t := x.byID[l.ID]
	if t == nil {
		t = &Txn{ID: l.ID, Corr: l.ID, Time: l.Time, Agent: l.Agent, Session: l.Session, Source: l.Source, Op: l.Op, Undoes: l.Undoes, Lost: l.Lost}
		t.byN, t.groups = map[int]*Entered{}, map[int][]*Entered{}
		x.byID[l.ID] = t
		x.Txns = append(x.Txns, t)
	}
	t.begins, t.bytes = t.begins+1, t.bytes+bytes
	if !slices.Contains(t.journals, journal) {
		t.journals = append(t.journals, journal)
	}
	for _, s := range l.Steps {
		e := &Entered{Step: s, Txn: t, State: Prepared, Began: l.Time, group: l.Steps[0].N}
		t.Steps = append(t.Steps, e)
		t.groups[e.group] = append(t.groups[e.group], e)
		if t.byN[s.N] == nil {
			t.byN[s.N] = e
		}
	}
}

func (x *Index) finish(l line, bytes int64) {
	t := x.byID[l.ID]
	if t == nil {
		return // of a journal that was pruned
	}
	t.bytes += bytes
	for _, d := range l.Done {
		if e := t.byN[d.N]; e != nil && e.may(d.Now) {
			e.Now, e.Kept, e.known = d.Now, d.Image, true
		}
	}
	if e := t.byN[l.N]; l.Kind == kindFile && e != nil {
		e.File, e.Filled = l.File, l.Filled
	}
	if l.Kind != kindEnd {
		return
	}
	if l.Corr != "" {
		t.Corr = l.Corr
		if x.byID[l.Corr] == nil {
			x.byCorr[l.Corr] = t
		}
	}
	for _, e := range t.groups[l.First] {
		switch {
		case e.State == Committed:
		case l.State != Committed && e.known:
			e.State = Committed // a batch that ended early has done this much
		default:
			e.State, e.Why = l.State, l.Why
		}
	}
}

// relate finds what was taken back by what, and which states are the same: an
// undo brings back a state under another inode or time of change.
func (x *Index) relate() {
	for _, t := range x.Txns {
		for _, e := range t.Steps {
			if e.Of == nil || e.State != Committed {
				continue
			}
			of := x.byID[e.Of.ID]
			if of == nil {
				continue
			}
			if s := of.byN[e.Of.N]; s != nil && !e.follows(s) {
				s.UndoneBy = e
				x.Equate(e.Now, s.Was)
				if e.Do == Mkdir {
					x.Remade(e.Now, s.Was)
				}
			}
		}
	}
}

// follows reports whether a step is itself taken back, at last, by the other:
// what a journal that somebody wrote could say.
func (e *Entered) follows(s *Entered) bool {
	for ; e != nil; e = e.UndoneBy {
		if e == s {
			return true
		}
	}
	return false
}

// Equate notes that a state came back under other facts.
func (x *Index) Equate(now, was pathguard.Facts) {
	if a, b := x.Canonical(now), x.Canonical(was); a != b && now != (pathguard.Facts{}) && was != (pathguard.Facts{}) {
		x.same[a] = b
	}
}

// Canonical is the first facts of a state that came back under other ones. The
// device is left out: it may be numbered anew at each start of the machine.
func (x *Index) Canonical(f pathguard.Facts) pathguard.Facts {
	f.Dev = 0
	for range len(x.same) + 1 {
		next, ok := x.same[f]
		if !ok {
			return f
		}
		f = next
	}
	return f
}

// Find returns the change with this id, or whose records share it; nil for none.
func (x *Index) Find(id string) *Txn { return cmp.Or(x.byID[id], x.byCorr[id]) }

// Left reports whether what is there now is what a step left. Of a directory
// that would be removed the mode counts too.
func (x *Index) Left(e *Entered, now pathguard.Facts) bool {
	made := (e.Do == Mkdir || e.Do == Create) && e.Now.Kind() == pathguard.KindDir
	return x.Same(now, e.Now) && (!made || now.Mode == e.Now.Mode)
}

// Same reports whether what is there now is a recorded state. A directory is
// known by its identity alone, or as what an undo made in its place.
func (x *Index) Same(now, want pathguard.Facts) bool {
	if want.Kind() == pathguard.KindDir {
		return want.Moved(now) || now.Kind() == pathguard.KindDir && x.instead(folderIn(now), folderIn(want))
	}
	return x.Canonical(now) == x.Canonical(want)
}
