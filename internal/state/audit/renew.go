// SPDX-License-Identifier: Apache-2.0

package audit

import (
	"bufio"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/postern-gate/postern/internal/state/audit/seal"
	"github.com/postern-gate/postern/internal/state/audit/segment"
	"github.com/postern-gate/postern/internal/state/regular"
)

// endedPrefix begins the names of the folders of logs that were put aside.
const endedPrefix = "ended-"

// Renewal is a log that was put aside and the one that goes on.
type Renewal struct {
	OldOrigin string // "" where nothing was left that tells
	OldSize   int64  // records that were signed
	OldRoot   string
	Found     int64  // records that were there
	Aside     string // the folder that the old log is in now
	Note      string // the first checkpoint of the new log
}

// Renew puts the log aside as it is and begins another one, with a key and an
// origin of its own, whose first record names the old size and root. It is for
// a person to do, after a break that was looked into: every process then goes
// on with the new log. Errors are audit.unwritable.
func Renew(stateDir string) (Renewal, error) {
	l, err := Open(stateDir, Options{})
	if err != nil {
		return Renewal{}, err
	}
	r, err := l.renew()
	return r, errors.Join(err, l.Close())
}

func (l *Log) renew() (r Renewal, err error) {
	l.lead <- struct{}{}
	defer func() { <-l.lead }()
	if err := l.acquire(); err != nil {
		return r, err
	}
	defer unlockFile(l.lock)
	if err := os.Mkdir(filepath.Dir(l.keyFile(logKey)), 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return r, unwritable("the folder of keys can't be made", err)
	}
	line := l.describe(&r)
	if r.Aside, err = l.putAside(r.OldOrigin, line); err != nil {
		return r, unwritable("the old log can't be put aside", err)
	}
	if err := l.create(); err != nil {
		return r, err
	}
	r.Note = l.at.last.Note
	reason := fmt.Sprintf("%d records were found of a log that nothing tells of", r.Found)
	if r.OldOrigin != "" {
		reason = fmt.Sprintf("after %s: %d records signed, root %s; %d found", r.OldOrigin, r.OldSize, r.OldRoot, r.Found)
	}
	if err := l.say(own{event: Renewed, reason: reason, resource: filepath.Base(r.Aside), n: r.OldSize}); err != nil {
		return r, err
	}
	return r, l.seal()
}

// describe tells what there is of the old log and returns its verifier's line.
func (l *Log) describe(r *Renewal) (line string) {
	line, _ = VerifierLine(l.dir)
	if v, err := seal.ParseVerifier(line); err == nil {
		r.OldOrigin = v.Origin()
	}
	if s, err := LastSigned(l.dir); err == nil && s != nil {
		r.OldOrigin, r.OldSize, r.OldRoot = s.Origin, s.Size, s.Root.String()
	}
	all, err := segment.List(l.segments())
	if err != nil {
		return line
	}
	for _, f := range all {
		r.Found += countRecords(f)
	}
	return line
}

func countRecords(f segment.File) (n int64) {
	file, err := regular.Open(f.Path)
	if err != nil {
		return 0
	}
	defer file.Close()
	if info, err := file.Stat(); err == nil && f.Pruned {
		return info.Size() / seal.HashSize
	}
	for r := segment.NewReader(bufio.NewReader(file), 0, 0); ; {
		line, err := r.Next()
		if err != nil {
			return n
		}
		if seal.KindOf(line) == seal.KindLeaf {
			n++
		}
	}
}

// putAside moves everything of the old log into a folder beside the new one,
// and its key last: a crash before that leaves a log that is gone, which asks
// for another renewal.
func (l *Log) putAside(origin, line string) (string, error) {
	if err := os.Mkdir(l.segments(), 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return "", err
	}
	entries, err := os.ReadDir(l.segments())
	if err != nil {
		return "", err
	}
	aside, err := makeAside(filepath.Join(l.segments(), endedPrefix+logID(origin)))
	if err != nil {
		return "", err
	}
	for _, e := range entries {
		if e.IsDir() {
			continue
		}
		if err := os.Rename(filepath.Join(l.segments(), e.Name()), filepath.Join(aside, e.Name())); err != nil {
			return "", err
		}
	}
	err = os.Rename(filepath.Join(l.dir, signedFile), filepath.Join(aside, signedFile))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return "", err
	}
	if err := replaceFile(filepath.Join(aside, "key"), []byte(line+"\n")); err != nil {
		return "", err
	}
	err = os.Remove(l.keyFile(logKey))
	if errors.Is(err, fs.ErrNotExist) {
		err = nil
	}
	return aside, err
}

// logID is the random part of an origin, which names a folder only when it is
// one that a key of ours could have.
func logID(origin string) string {
	_, id, _ := strings.Cut(origin, "/")
	if b, err := hex.DecodeString(id); err != nil || len(b) == 0 {
		return "unknown"
	}
	return id
}

// makeAside makes the folder, or one beside it where a renewal was cut short.
func makeAside(path string) (string, error) {
	for n := 1; ; n++ {
		name := path
		if n > 1 {
			name = fmt.Sprintf("%s-%d", path, n)
		}
		if err := os.Mkdir(name, 0o700); !errors.Is(err, fs.ErrExist) {
			return name, err
		}
	}
}
