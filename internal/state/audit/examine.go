// SPDX-License-Identifier: Apache-2.0

package audit

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"os"

	"github.com/postern-gate/postern/core/fault"
	"github.com/postern-gate/postern/internal/state/audit/seal"
	"github.com/postern-gate/postern/internal/state/audit/segment"
	"github.com/postern-gate/postern/internal/state/regular"
)

// Examine reads the newest segment up to the last checkpoint and compares it
// with what was signed, which a start does not do, since it takes time: about
// a second for 64 MiB. A segment that was changed is audit.broken; then
// nothing is recorded by this process any more, until a person renews the log.
// Older segments are not looked at: verify does that.
func (l *Log) Examine(ctx context.Context) error {
	l.lead <- struct{}{}
	at, err := l.signedPlace()
	key := l.key // which a commit may forget meanwhile
	<-l.lead
	if err != nil || at == nil {
		return err
	}
	err = l.compare(ctx, at, key)
	if doubtful(err) {
		l.lead <- struct{}{}
		defer func() { <-l.lead }()
		if l.key != nil && l.key.Origin() == at.last.Origin {
			l.changed = err
		}
	}
	return err
}

// signedPlace is where the last checkpoint stands, nil without a log.
func (l *Log) signedPlace() (*cursor, error) {
	if _, err := os.Lstat(l.keyFile(logKey)); errors.Is(err, fs.ErrNotExist) {
		return nil, nil //nolint:nilnil // there is nothing to examine
	}
	if err := l.acquire(); err != nil {
		return nil, err
	}
	defer unlockFile(l.lock)
	if err := l.enter(); err != nil {
		return nil, err
	}
	at, err := l.remembered()
	if errors.Is(err, errForgotten) {
		return nil, nil //nolint:nilnil // then the start has read the segment from its head
	}
	return at, err
}

// compare reads the segment from its head to the checkpoint.
func (l *Log) compare(ctx context.Context, at *cursor, key *seal.Key) error {
	path := segment.Path(l.segments(), at.segment, segment.Lines)
	line, err := firstLine(path)
	if err != nil {
		return missing(at.segment, err)
	}
	c, err := atHead(line, key)
	if err != nil || c.segment != at.segment {
		return damaged(at.segment)
	}
	f, err := regular.Open(path)
	if err != nil {
		return missing(at.segment, err)
	}
	defer f.Close()
	r := segment.NewReader(io.NewSectionReader(f, c.offset, at.offset-c.offset), c.offset, c.lines)
	for r.Offset() < at.offset {
		if r.Line()%1024 == 0 && ctx.Err() != nil {
			return &fault.Error{Code: fault.Cancelled, Rule: "the log was not examined to its end", Err: ctx.Err()}
		}
		line, err := r.Next()
		if err != nil || c.take(line, r.Line(), key) != nil {
			return damaged(at.segment)
		}
	}
	if c.last.Note != at.last.Note || c.fresh() != 0 {
		return damaged(at.segment)
	}
	return nil
}

// Look returns the refusal that a start would meet, and makes nothing: nil
// also where there is no log yet. It takes no lock, so while somebody renews
// the log it may find it gone. What was signed and changed since in the middle
// of a segment it doesn't see: that is for Inspect.
func Look(stateDir string) error {
	_, err := look(stateDir)
	return err
}

// Inspect is Look, and then what Examine compares: the newest segment up to the
// last checkpoint, byte for byte with what was signed. It makes nothing and
// takes no lock. Older segments are not looked at: verify does that. Ended by
// ctx it is call.cancelled.
func Inspect(ctx context.Context, stateDir string) error {
	l, err := look(stateDir)
	if err != nil || l.key == nil {
		return err
	}
	at, err := l.remembered()
	if errors.Is(err, errForgotten) {
		return nil // then the look has read the segment from its head
	}
	if err != nil {
		return err
	}
	return l.compare(ctx, at, l.key)
}

// look opens the log as a start would, without its lock; one that isn't there
// has no key.
func look(stateDir string) (*Log, error) {
	l, err := Open(stateDir, Options{})
	if err != nil {
		return nil, err
	}
	key, err := readKey(l.keyFile(logKey))
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return l, l.lookKeyless()
	case err != nil:
		return nil, unwritable("the key of the log can't be used", err)
	}
	l.take(key)
	newest, err := l.newestNumber()
	if err != nil {
		return nil, err
	}
	if l.at, err = l.resume(newest); err != nil {
		return nil, err
	}
	return l, l.at.advance(l.segments(), newest, l.key)
}

// lookKeyless tells a log whose key is gone from none.
func (l *Log) lookKeyless() error {
	all, err := segment.List(l.segments())
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return unwritable("the log can't be read", err)
	}
	s, err := LastSigned(l.dir)
	if err == nil && s == nil && len(all) == 0 {
		return nil
	}
	return broken(fault.AuditBroken, "the key of the log is gone")
}
