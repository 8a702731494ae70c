// SPDX-License-Identifier: Apache-2.0

package undo

import (
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/postern-gate/postern/core/fault"
	"github.com/postern-gate/postern/core/pathguard"
	"github.com/postern-gate/postern/internal/state/lock"
)

const (
	dirName       = "undo"
	imagesName    = "images"
	lockName      = "undo.lock"
	journalSuffix = ".jsonl"

	kindBegin = "begin"
	kindFile  = "file"
	kindDone  = "done"
	kindEnd   = "end"

	// rotateDay is the age at which a process begins another journal, so that the
	// old one can be removed when its time has come.
	rotateDay = 24 * time.Hour
)

// Options bound what is kept.
type Options struct {
	MaxEntries int              // entries that one change may touch
	PerFile    int64            // bytes of one image
	Total      int64            // bytes of all images together
	Keep       time.Duration    // age at which a change can't be undone any more
	MaxImages  int              // entries of images in all, zero for MaxImages
	Journals   int64            // bytes of all journals together, zero for MaxJournals
	Now        func() time.Time // the clock, nil for the system's
}

// MaxImages bounds the entries of images, whatever their size.
const MaxImages = 20_000

// Log is the journal that a process writes, and the images that all share. It is
// safe for concurrent use.
type Log struct {
	dir   string // of the state
	o     Options
	alive func() (map[string]bool, error) // prefixes of ids of processes that act now
	now   func() time.Time
	lock  lock.File
	// counting takes the lock of the count.
	counting func() (release func(), err error)

	mu      sync.Mutex
	file    *os.File
	release func() // the journal is no longer written to
	size    int64
	begun   time.Time
	store   *pathguard.Store
	overlay bool
	closed  bool
}

// Open returns the log of a state directory. Nothing is made before the first
// change. alive tells which processes act now, by the first part of their ids.
func Open(stateDir string, o Options, alive func() (map[string]bool, error)) *Log {
	if o.MaxImages == 0 {
		o.MaxImages = MaxImages
	}
	if o.Journals == 0 {
		o.Journals = MaxJournals
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	l := &Log{dir: stateDir, o: o, alive: alive, now: o.Now, lock: lock.Open(filepath.Join(stateDir, lockName))}
	l.counting = countingLock(l.lock)
	return l
}

func (l *Log) join(name ...string) string {
	return filepath.Join(append([]string{l.dir, dirName}, name...)...)
}

// images opens the store, and makes it when it is missing.
func (l *Log) images() (*pathguard.Store, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	err := l.imagesLocked()
	return l.store, err
}

func (l *Log) imagesLocked() error {
	if l.store != nil && !l.store.Gone() {
		return nil
	}
	// One that somebody removed stays open: a change may be using it.
	l.store = nil
	if l.closed {
		return unusable("the journal is closed", nil)
	}
	if err := os.MkdirAll(l.join(imagesName), 0o700); err != nil {
		return unusable("the directory of the images can't be made", err)
	}
	store, err := pathguard.OpenStore(l.join(imagesName))
	if err != nil {
		return unusable("the directory of the images can't be opened", err)
	}
	l.store, l.overlay = store, overlay(l.join(imagesName))
	return nil
}

// write appends whole lines to this process's journal. Where that makes another
// one, the journals are brought to their bound.
func (l *Log) write(lines []byte) (*os.File, error) {
	f, another, err := l.append(lines)
	if another {
		l.bound()
	}
	return f, err
}

func (l *Log) append(lines []byte) (f *os.File, another bool, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if err := l.imagesLocked(); err != nil {
		return nil, false, err
	}
	if l.file == nil || removed(l.file) || l.size > l.o.Journals/rotateParts || l.now().Sub(l.begun) > rotateDay {
		if err := l.begin(); err != nil {
			return nil, false, err
		}
		another = true
	}
	if len(lines) > maxLine {
		return nil, another, unusable("the change is larger than a journal takes", nil)
	}
	n, err := l.file.Write(lines)
	if err != nil {
		// A cut line would swallow the next one.
		if n > 0 && l.file.Truncate(l.size) != nil {
			l.file = nil
		}
		return nil, another, unusable("the journal can't be written", err)
	}
	l.size += int64(n)
	return l.file, another, nil
}

// begin makes a journal, whose name is on the disk when it returns, and which is
// held before anything is in it. The former one stays open: somebody may wait
// for its sync.
func (l *Log) begin() error {
	f, err := os.CreateTemp(l.join(), stamp(l.now())+"-*"+journalSuffix)
	if err != nil {
		return unusable("the journal can't be made", err)
	}
	release, err := lock.Open(f.Name()).Try(heldKey)
	if err == nil {
		err = errors.Join(f.Chmod(0o600), syncDir(l.join()))
	}
	if err != nil {
		return unusable("the journal can't be made", errors.Join(err, f.Close(), os.Remove(f.Name())))
	}
	l.letGo()
	l.file, l.release, l.size, l.begun = f, release, 0, l.now()
	return nil
}

// letGo says that the journal is written to no more.
func (l *Log) letGo() {
	if l.release != nil {
		l.release()
		l.release = nil
	}
}

// Close lets the journal go.
func (l *Log) Close() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.closed = true
	l.letGo()
	if l.file != nil {
		_ = l.file.Close()
		l.file = nil
	}
	if l.store != nil {
		l.store.Close()
		l.store = nil
	}
}

// stamp is a time that sorts.
func stamp(t time.Time) string {
	s := strconv.FormatInt(t.UnixNano(), 16)
	return strings.Repeat("0", max(0, 16-len(s))) + s
}

// stamped is the time of a stamp, false for something else.
func stamped(name string) (time.Time, string, bool) {
	s, rest, ok := strings.Cut(name, "-")
	n, err := strconv.ParseInt(s, 16, 64)
	return time.Unix(0, n), rest, ok && err == nil && len(s) == 16
}

func unusable(rule string, err error) error {
	return &fault.Error{
		Code: fault.IOFailed, Op: "undo", Rule: rule,
		Hint: "free space or repair the state directory", Err: err,
	}
}
