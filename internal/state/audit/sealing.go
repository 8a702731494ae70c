// SPDX-License-Identifier: Apache-2.0

package audit

import (
	"errors"
	"fmt"
	"os"

	"github.com/postern-gate/postern/core/fault"
	"github.com/postern-gate/postern/internal/state/audit/segment"
)

// seal reads what was written since the last checkpoint, by whomever, and puts
// a checkpoint after it. Everything is on disk when it returns. The caller
// holds the lock.
func (l *Log) seal() error {
	if err := l.catchUp(); err != nil {
		return err
	}
	if err := l.tellGarbage(); err != nil {
		return err
	}
	if l.at.fresh() == 0 {
		return l.sync()
	}
	cp, err := l.key.Sign(&l.at.edge, &l.at.last)
	if err != nil {
		return unwritable("the log can't be signed", err)
	}
	if err := l.write(append(cp.Line(), '\n')); err != nil {
		return err
	}
	if err := l.sync(); err != nil {
		return err
	}
	if err := l.at.advance(l.segments(), l.seg.number, l.key); err != nil {
		return err
	}
	l.highest = l.at.last.Size
	l.remember()
	return nil
}

// catchUp reads to the end of the log and makes sure that it still holds the
// last checkpoint that anybody signed. A cursor that finds its segment gone
// begins again with what is remembered, as a new process would.
func (l *Log) catchUp() error {
	err := l.at.advance(l.segments(), l.seg.number, l.key)
	if err != nil {
		again, resumeErr := l.resume(l.seg.number)
		if resumeErr != nil {
			return resumeErr
		}
		if err := again.advance(l.segments(), l.seg.number, l.key); err != nil {
			return err
		}
		l.at = again
	}
	if l.at.last.Size < l.highest {
		return broken(fault.AuditTruncated, fmt.Sprintf("%d records were signed, and the log has checkpoints for %d", l.highest, l.at.last.Size))
	}
	l.highest = l.at.last.Size
	s, err := LastSigned(l.dir)
	if err != nil {
		return unwritable("the last checkpoint can't be read", err)
	}
	if s != nil && s.Size > l.at.last.Size {
		return broken(fault.AuditTruncated, fmt.Sprintf("%d records were signed, and the log has checkpoints for %d", s.Size, l.at.last.Size))
	}
	return nil
}

// mostGarbage is how many lines that are no records a log may have at its end:
// more than a crash leaves.
const mostGarbage = 10_000

// tellGarbage names the lines that are no records and that nobody has named,
// before a checkpoint covers them.
func (l *Log) tellGarbage() error {
	if len(l.at.garbage) == 0 {
		return nil
	}
	if len(l.at.garbage) > mostGarbage {
		return broken(fault.AuditBroken, segment.Name(l.at.segment)+" has too many lines that are no records")
	}
	var lines []byte
	for _, place := range l.at.garbage {
		lines = l.enc.appendOwn(lines, l.wall(), own{event: Garbage, resource: place, reason: "a line that is not a record"})
	}
	if err := l.write(lines); err != nil {
		return err
	}
	return l.at.advance(l.segments(), l.seg.number, l.key)
}

// rotate closes a segment that is full or old and begins the next one. The
// caller holds the lock.
func (l *Log) rotate(more int64) error {
	if l.at.segment != l.seg.number {
		if err := l.catchUp(); err != nil {
			return err
		}
	}
	size, err := l.size()
	if err != nil {
		return err
	}
	onlyHead := l.at.lines <= 1 && size <= l.at.offset
	old := l.wall().Sub(l.at.begun) > segmentTime
	if onlyHead || size+more <= l.o.SegmentSize && !old {
		return nil
	}
	if err := l.seal(); err != nil {
		return err
	}
	l.due = true
	return l.begin(l.seg.number+1, l.at, nil)
}

// Unfinished returns the intents that no outcome follows, of this and every
// other process, the oldest first.
func (l *Log) Unfinished() ([]Pending, error) {
	l.lead <- struct{}{}
	defer func() { <-l.lead }()
	if _, err := os.Lstat(l.keyFile(logKey)); errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	if err := l.acquire(); err != nil {
		return nil, err
	}
	defer unlockFile(l.lock)
	err := l.enter()
	if err == nil {
		err = l.catchUp()
	}
	l.suspect = doubtful(err)
	if err != nil {
		return nil, err
	}
	return l.at.pendings(), nil
}
