// SPDX-License-Identifier: Apache-2.0

// Package audit appends what happened to a log that every postern process of
// one user shares: one JSON object a line, whole lines only, held in order by
// a lock of the file. What is recorded with Sync is on disk when it returns;
// the rest within FlushAfter.
//
// Not guaranteed: the log is not yet signed. A program of the same user can
// change it.
package audit

import (
	"errors"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/postern-gate/postern/core"
	"github.com/postern-gate/postern/core/fault"
)

const (
	// FlushAfter is the longest that a buffered line waits, in which a crash
	// loses it.
	FlushAfter = time.Second
	// flushAt is the size in bytes at which the buffer is written early.
	flushAt = 64 << 10
	// keep is what a failing log holds in memory before it drops reads.
	keepAtMost = 1 << 20
)

// Log is an open log. It is safe for concurrent use.
type Log struct {
	enc encoder

	mu      sync.Mutex
	file    *os.File
	buf     []byte
	timer   *time.Timer
	lastErr error
	dropped int
}

// Open opens the log beneath dir and its key for hashing sensitive names; both
// are made on first use, readable by this user alone.
func Open(dir, keys string) (*Log, error) {
	if err := errors.Join(os.MkdirAll(dir, 0o700), os.MkdirAll(keys, 0o700)); err != nil {
		return nil, unwritable(err)
	}
	key, err := loadKey(filepath.Join(keys, "paths"))
	if err != nil {
		return nil, unwritable(err)
	}
	file, err := os.OpenFile(filepath.Join(dir, "000001.jsonl"), os.O_RDWR|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		return nil, unwritable(err)
	}
	return &Log{enc: encoder{key: key}, file: file}, nil
}

// Record appends the event. With sync it returns once the line, and all before
// it, is on disk. Without, the line is written within FlushAfter and an
// earlier failure of the log is returned, so that the caller can apply its
// rule for reads. Errors are faults with code audit.unwritable.
func (l *Log) Record(e core.Event, sync bool) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	mark := len(l.buf)
	l.buf = l.enc.append(l.buf, e)
	if sync {
		if err := l.flush(true); err != nil {
			l.buf = l.buf[:min(mark, len(l.buf))]
			return err
		}
		return nil
	}
	if len(l.buf) >= flushAt {
		return l.flush(false)
	}
	l.schedule()
	return l.lastErr
}

// Dropped returns how many buffered bytes were given up because the log could
// not be written.
func (l *Log) Dropped() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.dropped
}

// Close writes what is buffered, synced, and closes the log.
func (l *Log) Close() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.timer != nil {
		l.timer.Stop()
	}
	err := l.flush(true)
	return errors.Join(err, l.file.Close())
}

func (l *Log) schedule() {
	if l.timer != nil {
		return
	}
	l.timer = time.AfterFunc(FlushAfter, func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.timer = nil
		_ = l.flush(false) // kept in lastErr, which the next Record returns
	})
}

// flush writes the buffer as whole lines under the lock of the file.
func (l *Log) flush(sync bool) error {
	if len(l.buf) > 0 {
		if err := appendLocked(l.file, l.buf); err != nil {
			l.lastErr = unwritable(err)
			l.bound()
			return l.lastErr
		}
		l.buf = l.buf[:0]
	}
	if sync {
		if err := dataSync(l.file); err != nil {
			l.lastErr = unwritable(err)
			return l.lastErr
		}
	}
	l.lastErr = nil
	return nil
}

// bound gives up the buffer of a log that stays unwritable.
func (l *Log) bound() {
	if len(l.buf) > keepAtMost {
		l.dropped += len(l.buf)
		l.buf = l.buf[:0]
	}
}

// appendLocked writes lines at the end of the file. A torn line that a crash
// left there is ended first, so that it can't swallow the next one; a write
// that fails half-way is cut off again.
func appendLocked(file *os.File, lines []byte) error {
	if err := lockFile(file); err != nil {
		return err
	}
	defer unlockFile(file)
	info, err := file.Stat()
	if err != nil {
		return err
	}
	end := info.Size()
	if end > 0 {
		var last [1]byte
		if _, err := file.ReadAt(last[:], end-1); err != nil {
			return err
		}
		if last[0] != '\n' {
			lines = append([]byte{'\n'}, lines...)
		}
	}
	if _, err := file.Write(lines); err != nil {
		return errors.Join(err, file.Truncate(end))
	}
	return nil
}

func unwritable(err error) error {
	return &fault.Error{Code: fault.AuditUnwritable, Op: "record", Err: err}
}
