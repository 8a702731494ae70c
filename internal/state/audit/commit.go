// SPDX-License-Identifier: Apache-2.0

package audit

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/postern-gate/postern/core/fault"
	"github.com/postern-gate/postern/internal/state/audit/segment"
	"github.com/postern-gate/postern/internal/state/regular"
)

// lockWait is how long a commit waits for other processes, each of which
// holds the lock for one write, or once a second for one sync.
const lockWait = 5 * time.Second

// commit writes a batch, and with sealed a checkpoint after it. What was
// written stands even when the checkpoint fails. The caller leads.
func (l *Log) commit(b *batch, lost int64, sealed bool) (err, sealErr error) {
	if err := l.acquire(); err != nil {
		return err, nil
	}
	synced := false
	if err = l.append(b, lost); err == nil && sealed {
		sealErr = l.seal()
		synced = sealErr == nil
	}
	l.suspect = doubtful(err) || doubtful(sealErr)
	unlockFile(l.lock)
	if err == nil && b.sync && !synced {
		err = l.sync()
	}
	return err, sealErr
}

// doubtful tells the errors after which everything is looked at anew.
func doubtful(err error) bool {
	code := fault.CodeOf(err)
	return code == fault.AuditBroken || code == fault.AuditTruncated
}

func (l *Log) append(b *batch, lost int64) error {
	for _, step := range []func() error{l.enter, l.reserve, l.repairTail} {
		if err := step(); err != nil {
			return err
		}
	}
	lines := l.lines(b, lost)
	if len(lines) == 0 {
		return nil
	}
	if err := l.rotate(int64(len(lines))); err != nil {
		return err
	}
	return l.write(lines)
}

// enter opens the log, or makes sure that it is still the one that is open.
// After a doubt it begins anew and reads up to the end first, so that nothing
// is added to a log that doesn't go on from its last checkpoint.
func (l *Log) enter() error {
	if l.suspect {
		l.forget()
	}
	if err := l.current(); err != nil {
		return err
	}
	if l.changed != nil || !l.suspect {
		return l.changed
	}
	return l.catchUp()
}

// forget closes what is open.
func (l *Log) forget() {
	_ = l.seg.close()
	l.seg, l.at, l.key = nil, nil, nil
}

// lines is the batch after what has to be told before it.
func (l *Log) lines(b *batch, lost int64) []byte {
	var first []byte
	if back := l.drift.step(l.wall(), time.Since(l.opened), l.at.newest); back > 0 {
		first = l.enc.appendOwn(first, l.wall(), own{event: ClockBack, n: back.Milliseconds()})
	}
	if lost > 0 {
		first = l.enc.appendOwn(first, l.wall(), own{event: ReadsUnrecorded, n: lost})
	}
	if first == nil {
		return b.buf
	}
	return append(first, b.buf...)
}

// say writes an event about the log itself.
func (l *Log) say(o own) error { return l.write(l.enc.appendOwn(nil, l.wall(), o)) }

// write appends whole lines or nothing. The caller holds the lock.
func (l *Log) write(lines []byte) error {
	end, err := l.size()
	if err != nil {
		return err
	}
	if _, err = l.seg.file.Write(lines); err == nil {
		return nil
	}
	cut := l.seg.file.Truncate(end)
	switch {
	case cut != nil:
		l.failed = true
	case isFull(err):
		l.tellFull()
		return unwritable("the disk that the log is on is full", err)
	}
	return unwritable("the log can't be written", errors.Join(err, cut))
}

func (l *Log) size() (int64, error) {
	info, err := l.seg.file.Stat()
	if err != nil {
		return 0, unwritable("the log can't be seen", err)
	}
	return info.Size(), nil
}

// sync waits for the disk. A sync that failed is never tried again: the kernel
// has then forgotten what was not written, so the segment is given up.
func (l *Log) sync() error {
	if l.failed {
		return unwritable("the disk did not take the log", nil)
	}
	if err := dataSync(l.seg.file); err != nil {
		l.failed = true
		return unwritable("the disk did not take the log", err)
	}
	return nil
}

// acquire takes the lock of the log. Its file is looked at by name, since a
// lock of a file that was removed keeps nobody else out.
func (l *Log) acquire() error {
	path := filepath.Join(l.dir, lockName)
	deadline := time.Now().Add(lockWait)
	for pause := 20 * time.Microsecond; ; pause = min(2*pause, 5*time.Millisecond) {
		held, err := l.tryLock(path)
		if held {
			return nil
		}
		if err == nil && time.Now().After(deadline) {
			err = errors.New("the lock was held for " + lockWait.String())
		}
		if err != nil {
			return unwritable("another process holds the log, or its lock can't be made", err)
		}
		time.Sleep(pause)
	}
}

func (l *Log) tryLock(path string) (bool, error) {
	if l.lock == nil {
		f, err := regular.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
		if err != nil {
			return false, err
		}
		l.lock = f
	}
	if err := tryLockFile(l.lock); err != nil {
		if errors.Is(err, errHeld) {
			return false, nil
		}
		return false, err
	}
	mine, err := l.lock.Stat()
	named, nameErr := os.Lstat(path)
	if err == nil && nameErr == nil && os.SameFile(mine, named) {
		return true, nil
	}
	_ = l.lock.Close()
	l.lock = nil
	if nameErr != nil && !errors.Is(nameErr, fs.ErrNotExist) {
		return false, nameErr
	}
	return false, err
}

// repairTail moves a line that a crash cut short out of the way, so that it
// can't swallow the next one. It is kept: it may be evidence.
func (l *Log) repairTail() error {
	end, err := l.size()
	if err != nil || end == 0 {
		return err
	}
	start, err := lastLineEnd(l.seg.file, end)
	if err != nil {
		return unwritable("the log can't be read", err)
	}
	if start == end {
		return nil
	}
	if start < l.at.offset && l.at.segment == l.seg.number {
		return damaged(l.seg.number)
	}
	name, err := moveAside(l.seg.file, start, l.segments(), fmt.Sprintf("torn-%06d-%d", l.seg.number, start))
	if err != nil {
		return unwritable("what a crash left in the log can't be moved aside", err)
	}
	return l.say(own{event: TornTail, resource: name, n: end - start, reason: "a line without its end in " + segment.Name(l.seg.number)})
}
