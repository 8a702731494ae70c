// SPDX-License-Identifier: Apache-2.0

package audit

import (
	"errors"
	"os"
	"path/filepath"

	"github.com/postern-gate/postern/internal/state/regular"
)

// reserveSize is what is kept free for the event that the disk is full.
const reserveSize = 256 << 10

// reserve makes sure that the reserve is there. Without it nothing is written:
// the room that it gave up is for the one event that says so, and everybody
// who finds it missing knows that the disk was full and tries to get it back.
func (l *Log) reserve() error {
	path := filepath.Join(l.dir, reserveName)
	if info, err := os.Lstat(path); err == nil && info.Size() == reserveSize {
		return nil
	}
	f, err := regular.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return unwritable("the reserve of the log can't be made", err)
	}
	err = errors.Join(allocate(f, reserveSize), f.Close())
	if err == nil {
		return nil
	}
	_ = os.Remove(path)
	return unwritable("the disk that the log is on is full", err)
}

// tellFull gives the reserve up for the event, if nobody did so yet. The
// refusal stands whether or not this can be written.
func (l *Log) tellFull() {
	if os.Remove(filepath.Join(l.dir, reserveName)) != nil {
		return
	}
	line := l.enc.appendOwn(nil, l.wall(), own{event: AuditFull})
	end, err := l.size()
	if err != nil {
		return
	}
	if _, err := l.seg.file.Write(line); err != nil {
		_ = l.seg.file.Truncate(end)
		return
	}
	_ = l.sync()
}

// fill writes zeros, where the system can't set space aside.
func fill(f *os.File, size int) error {
	_, err := f.Write(make([]byte, size))
	return err
}
