// SPDX-License-Identifier: Apache-2.0

package audit

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/postern-gate/postern/core/fault"
	"github.com/postern-gate/postern/internal/state/audit/seal"
	"github.com/postern-gate/postern/internal/state/audit/segment"
	"github.com/postern-gate/postern/internal/state/regular"
	"github.com/postern-gate/postern/internal/state/secret"
)

const logKey = "log"

// loadOrCreate reads the key of the log, or makes both. The key's file comes
// last: a key without a log is then always a log that is gone, and never one
// whose making a crash cut short.
func (l *Log) loadOrCreate() (born bool, err error) {
	key, err := readKey(l.keyFile(logKey))
	if err == nil {
		l.take(key)
		return false, nil
	}
	if !errors.Is(err, fs.ErrNotExist) {
		return false, unwritable("the key of the log can't be used", err)
	}
	if err := l.clearUnfinished(); err != nil {
		return false, err
	}
	return true, l.create()
}

// take makes the key the one of the log. What was seen of another log says
// nothing about this one.
func (l *Log) take(key seal.Key) {
	if l.origin != key.Origin() {
		l.origin, l.highest, l.changed = key.Origin(), 0, nil
	}
	l.key = &key
}

func readKey(path string) (seal.Key, error) {
	b, err := regular.Read(path)
	if err != nil {
		return seal.Key{}, err
	}
	return seal.ParseKey(b)
}

// clearUnfinished removes what a crash left of a log that never had a record.
// Anything more is a log whose key is gone.
func (l *Log) clearUnfinished() error {
	if s, err := LastSigned(l.dir); err != nil || s != nil && s.Size > 0 {
		return broken(fault.AuditBroken, "the key of the log is gone")
	}
	all, err := segment.List(l.segments())
	switch {
	case errors.Is(err, fs.ErrNotExist) || err == nil && len(all) == 0:
		if aside, _ := filepath.Glob(filepath.Join(l.segments(), endedPrefix+"*")); len(aside) > 0 {
			return broken(fault.AuditTruncated, "a renewal of the log was cut short")
		}
		return nil
	case err != nil:
		return unwritable("the log can't be read", err)
	}
	line, err := firstLine(all[0].Path)
	info, statErr := os.Lstat(all[0].Path)
	if len(all) > 1 || err != nil || statErr != nil || info.Size() != int64(len(line))+1 {
		return broken(fault.AuditBroken, "the key of the log is gone")
	}
	if err := os.Remove(all[0].Path); err != nil {
		return unwritable("the log can't be made", err)
	}
	return nil
}

// create makes a log: its first segment, then its key.
func (l *Log) create() error {
	key, err := seal.NewKey()
	if err != nil {
		return unwritable("the key of the log can't be made", err)
	}
	first, err := key.Sign(&seal.Edge{}, nil)
	if err != nil {
		return unwritable("the log can't be signed", err)
	}
	l.take(key)
	err = os.Remove(filepath.Join(l.dir, signedFile)) // of a log that was never born
	if errors.Is(err, fs.ErrNotExist) {
		err = nil
	}
	if err != nil {
		return unwritable("the last checkpoint can't be written", err)
	}
	if err = l.begin(1, &cursor{last: first, open: map[string][]Pending{}}, nil); err == nil {
		err = l.placeKey(key)
	}
	if err != nil {
		_ = l.seg.close()
		l.key, l.seg, l.at = nil, nil, nil
	}
	return err
}

func (l *Log) placeKey(key seal.Key) error {
	path := l.keyFile(logKey)
	if err := secret.Write(path, key.Bytes()); err != nil {
		return unwritable("the key of the log can't be made", err)
	}
	if err := syncDir(filepath.Dir(path)); err != nil {
		return unwritable("the key of the log can't be made", err)
	}
	return nil
}

// VerifierLine returns what somebody needs to check the log. It is
// fs.ErrNotExist where there is no log yet.
func VerifierLine(stateDir string) (string, error) {
	key, err := readKey(filepath.Join(stateDir, "keys", logKey))
	if err != nil {
		return "", err
	}
	return key.Line(), nil
}
