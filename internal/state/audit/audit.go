// SPDX-License-Identifier: Apache-2.0

// Package audit is the log that every postern process of one user shares:
// what was asked, what was decided and what came of it, one JSON object a
// line, in segments whose lines are the leaves of one signed tree (package
// seal). docs/audit-log.md is the format.
//
// Guaranteed: what is recorded with sync is on disk when Record returns, whole
// and once, whoever else writes or is killed; the rest within FlushAfter. No
// checkpoint is signed for a log that doesn't go on from the last signed one.
// A log that can't be written makes Record fail; it is never only a warning.
//
// Not guaranteed: anything against a program of the same user, which can
// rewrite the log and has the key. Against it a checkpoint that was kept
// elsewhere shows every change of what came before it.
package audit

import (
	"cmp"
	"errors"
	"io/fs"
	"os"
	"sync"
	"time"

	"github.com/postern-gate/postern/core"
	"github.com/postern-gate/postern/core/fault"
	"github.com/postern-gate/postern/internal/state/audit/seal"
	"github.com/postern-gate/postern/internal/state/secret"
)

const (
	// FlushAfter is the longest that a buffered line waits, in which a crash
	// loses it, and that a line on disk waits for a checkpoint.
	FlushAfter = time.Second
	// flushAt is the size in bytes at which the buffer is written early.
	flushAt = 64 << 10
	// keepAtMost is what a failing log holds in memory of what can't be told
	// again: the outcomes of changes. Beyond it they are counted like reads.
	keepAtMost = 1 << 20
	// defaultSegment is the size in bytes at which a segment ends.
	defaultSegment = 64 << 20
	// segmentTime is the age at which a segment ends, so that a quiet log can
	// be pruned too.
	segmentTime = 24 * time.Hour
)

// Options are how a log is kept. Every process of a state directory should
// have the same; where they differ each holds for what that process does.
type Options struct {
	HashedPaths bool          // no name of a file is told, only a keyed hash
	SegmentSize int64         // bytes at which a segment ends; zero means 64 MiB
	Keep        time.Duration // age at which a segment is pruned; zero means never
}

// Log is an open log. It is safe for concurrent use.
type Log struct {
	dir string // the state directory
	o   Options

	mu      sync.Mutex
	enc     encoder
	pending *batch
	spare   *batch // its memory is for the next batch
	timer   *time.Timer
	early   *time.Timer
	earlyAt time.Time // no early write before
	problem error     // why the last commit failed
	lost    int64     // calls that change nothing and could not be recorded
	closed  bool

	// lead is held by the one goroutine that commits; it guards the rest.
	lead    chan struct{}
	lock    *os.File
	key     *seal.Key
	seg     *handle
	at      *cursor
	origin  string
	highest int64       // size of the largest checkpoint that this process has seen
	failed  bool        // the disk failed the segment: the next commit begins another
	suspect bool        // the log did not go on from its last checkpoint
	version fs.FileInfo // of the version file when it was read last, nil before
	due     bool        // there may be something to prune or to tidy up
	changed error       // what Examine found, until another log is begun
	opened  time.Time
	drift   drift
	wall    func() time.Time
}

// Open returns the log of a state directory. It is made by the first record.
// A log that can't be read or written now is no error here: Record then fails
// until that is mended, and Problem tells why.
func Open(stateDir string, o Options) (*Log, error) {
	if o.SegmentSize == 0 {
		o.SegmentSize = defaultSegment
	}
	if o.SegmentSize < 0 || o.Keep < 0 {
		return nil, &fault.Error{Code: fault.ConfigInvalid, Op: "start", Rule: "the log's segment size or age is negative"}
	}
	return &Log{
		dir: stateDir, o: o, enc: encoder{hashed: o.HashedPaths}, pending: newBatch(),
		lead: make(chan struct{}, 1), opened: time.Now(), wall: time.Now,
	}, nil
}

// fate is what becomes of a line that could not be written.
type fate uint8

const (
	counted fate = iota // a call that changed nothing: its number is told later
	kept                // what happened can't be told again: tried later
	refused             // the caller is told: of an intent it does nothing, a watcher says it later
)

// batch is lines that are written together.
type batch struct {
	buf   []byte
	lines []pendingLine
	sync  bool
	done  chan struct{} // closed when err is set
	err   error
}

type pendingLine struct {
	end  int
	fate fate
}

func newBatch() *batch { return &batch{done: make(chan struct{})} }

// again is an empty batch in the memory of one that was written. Those who wait
// for that one still hold it, so only its buffers are taken.
func (b *batch) again() *batch {
	fresh := newBatch()
	if b != nil && cap(b.buf) <= 2*flushAt {
		fresh.buf, fresh.lines = b.buf[:0], b.lines[:0]
	}
	return fresh
}

func (b *batch) add(line []byte, f fate) {
	b.buf = append(b.buf, line...)
	b.lines = append(b.lines, pendingLine{len(b.buf), f})
}

// Record appends the event. With sync it returns once the line, and all before
// it, is on disk. Without, the line is written within FlushAfter, and that of a
// refusal or a failure within earlyEvery; while the log can't be written, which
// is tried again each second, it returns why not, so that the caller can apply
// its rule for reads.
//
// Errors are faults: audit.unwritable, or audit.broken and audit.truncated for
// a log that doesn't go on from its last checkpoint.
func (l *Log) Record(e core.Event, sync bool) error {
	l.mu.Lock()
	if err := l.ready(); err != nil {
		l.mu.Unlock()
		return err
	}
	b := l.pending
	b.buf = l.enc.append(b.buf, e)
	b.lines = append(b.lines, pendingLine{len(b.buf), fateOf(e)})
	b.sync = b.sync || sync
	full, problem := len(b.buf) >= flushAt, l.problem
	if problem != nil && len(b.buf) > keepAtMost {
		l.giveUp(b)
	}
	l.schedule()
	if e.Code != "" && !sync {
		l.hurry()
	}
	l.mu.Unlock()
	if sync || full && problem == nil {
		return l.flush(b)
	}
	return problem
}

func fateOf(e core.Event) fate {
	switch {
	case e.Phase == core.PhaseIntent, e.Phase == core.PhaseOutside:
		return refused
	case e.Phase == core.PhaseDecision && e.Code == "":
		return counted
	default:
		return kept
	}
}

// ready makes or reads the key for names, again while that fails. The caller
// holds mu.
func (l *Log) ready() error {
	if l.closed {
		return unwritable("the log is closed", nil)
	}
	if l.enc.key != nil {
		return nil
	}
	key, err := secret.Load(l.keyFile("paths"))
	if err != nil {
		l.lost++
		l.problem = unwritable("the key for names can't be used", err)
		return l.problem
	}
	l.enc.key = key
	return nil
}

// flush commits the batch, unless somebody else does so first.
func (l *Log) flush(b *batch) error {
	select {
	case <-b.done:
		return b.err
	case l.lead <- struct{}{}:
	}
	defer func() { <-l.lead }()
	select {
	case <-b.done:
		return b.err
	default:
	}
	return l.commitPending(false)
}

// commitPending takes what is pending and commits it. The caller leads.
func (l *Log) commitPending(sealed bool) error {
	l.mu.Lock()
	b, lost := l.pending, l.lost
	l.pending, l.spare = l.spare.again(), nil
	l.mu.Unlock()
	if len(b.buf) == 0 && !sealed {
		lost = 0 // told with the next record, or when the second ends
	}
	err, sealErr := l.commit(b, lost, sealed)

	l.mu.Lock()
	defer l.mu.Unlock()
	b.err, l.problem = err, cmp.Or(err, sealErr)
	if err == nil {
		l.lost -= lost
	} else {
		l.giveUp(b)
	}
	close(b.done) // tells everybody who waits for the batch how it ended
	if err == nil {
		l.spare = b
	}
	return l.problem
}

// giveUp keeps what must be told from a batch that could not be written, and
// counts the rest. The caller holds mu.
func (l *Log) giveUp(b *batch) {
	again, start := newBatch(), 0
	for _, line := range b.lines {
		switch {
		case line.fate == kept && len(again.buf)+line.end-start <= keepAtMost/2:
			again.add(b.buf[start:line.end], kept)
		case line.fate != refused:
			l.lost++
		}
		start = line.end
	}
	if b != l.pending { // what came meanwhile comes after
		start = 0
		for _, line := range l.pending.lines {
			again.add(l.pending.buf[start:line.end], line.fate)
			start = line.end
		}
	}
	l.pending.buf, l.pending.lines = again.buf, again.lines
	if len(again.lines) > 0 {
		l.schedule()
	}
}

// schedule sees to it that what is pending is written and what is written is
// sealed. The caller holds mu.
func (l *Log) schedule() {
	if l.timer != nil {
		return
	}
	l.timer = time.AfterFunc(FlushAfter, l.tick)
}

// tick is what happens a second after a record.
func (l *Log) tick() {
	l.lead <- struct{}{}
	l.mu.Lock()
	l.timer = nil
	closed := l.closed
	l.mu.Unlock()
	due := false
	if !closed {
		_ = l.commitPending(true) // kept as the problem, which the next Record sees
		due, l.due = l.due, false
	}
	<-l.lead
	if due {
		l.removeLeftovers()
		if l.o.Keep > 0 {
			_, _ = l.Prune(l.o.Keep, false) // tried again after the next segment
		}
	}
}

// Problem returns why nothing can be recorded now, nil when something can.
func (l *Log) Problem() error {
	l.lead <- struct{}{}
	defer func() { <-l.lead }()
	l.mu.Lock()
	err := l.ready()
	l.mu.Unlock()
	if err != nil {
		return err
	}
	return l.commitPending(false)
}

// Anchor writes and seals everything and returns the newest checkpoint, to be
// kept where no program of this user can change it.
func (l *Log) Anchor() (string, error) {
	l.lead <- struct{}{}
	defer func() { <-l.lead }()
	if err := l.commitPending(true); err != nil {
		return "", err
	}
	return l.at.last.Note, nil
}

// Close writes what is buffered, seals it and closes the log.
func (l *Log) Close() error {
	l.lead <- struct{}{}
	defer func() { <-l.lead }()
	l.mu.Lock()
	idle := l.closed || l.timer == nil && len(l.pending.buf) == 0
	l.closed = true
	if l.timer != nil {
		l.timer.Stop()
	}
	if l.early != nil {
		l.early.Stop()
	}
	l.mu.Unlock()
	var err error
	if !idle {
		err = l.commitPending(true)
	}
	err = errors.Join(err, l.seg.close(), closeFile(l.lock))
	l.seg, l.lock = nil, nil
	return err
}

func closeFile(f *os.File) error {
	if f == nil {
		return nil
	}
	return f.Close()
}

func unwritable(rule string, err error) error {
	return &fault.Error{Code: fault.AuditUnwritable, Rule: rule, Err: err}
}

// broken is the refusal to go on from something else than the last checkpoint.
func broken(code fault.Code, rule string) error {
	return &fault.Error{
		Code: code, Rule: rule,
		Hint: "postern log verify tells what is wrong; a person goes on with: postern log anchor --renew",
	}
}
