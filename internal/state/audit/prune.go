// SPDX-License-Identifier: Apache-2.0

package audit

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/postern-gate/postern/core/fault"
	"github.com/postern-gate/postern/internal/state/audit/seal"
	"github.com/postern-gate/postern/internal/state/audit/segment"
	"github.com/postern-gate/postern/internal/state/regular"
)

// PrunedSegment is a segment whose lines were removed, or would be.
type PrunedSegment struct {
	Number  int
	Records int64
	Newest  time.Time // no record of it is newer
	Bytes   int64     // that its lines take
}

// Prune removes the lines of the segments that ended longer than keep ago and
// leaves the hashes of their records, so that the tree, every later checkpoint
// and every anchor can still be checked. A segment that isn't what was signed
// stays, and is the error audit.broken: it is evidence. With dryRun nothing is
// changed. What was done before an error is returned with it.
func (l *Log) Prune(keep time.Duration, dryRun bool) ([]PrunedSegment, error) {
	all, err := segment.List(l.segments())
	if err != nil {
		if errors.Is(err, fs.ErrNotExist) {
			return nil, nil
		}
		return nil, unwritable("the log can't be read", err)
	}
	var pruned []PrunedSegment
	for i := range all[:max(0, len(all)-1)] {
		if all[i].Pruned {
			continue
		}
		p, ended, err := l.pruneOne(all[i], all[i+1], l.wall().Add(-keep), dryRun)
		if err != nil || !ended {
			return pruned, err
		}
		pruned = append(pruned, p)
	}
	return pruned, nil
}

func (l *Log) pruneOne(f, next segment.File, before time.Time, dryRun bool) (p PrunedSegment, ended bool, err error) {
	after, err := headOf(next)
	if err != nil {
		return p, false, err
	}
	if after.Time.After(before) { // saves reading it; what counts are its records
		return p, false, nil
	}
	p.Number = f.Number
	tmp, err := os.CreateTemp(l.segments(), ".new-*")
	if err != nil {
		return p, false, unwritable("the hashes of a segment can't be written", err)
	}
	defer os.Remove(tmp.Name())
	err = p.hash(f, after, tmp)
	if err := errors.Join(err, tmp.Sync(), tmp.Close()); err != nil {
		if doubtful(err) {
			return p, false, err
		}
		return p, false, unwritable("the hashes of a segment can't be written", err)
	}
	if dryRun || p.Newest.After(before) {
		return p, !p.Newest.After(before), nil
	}
	return p, true, l.replaceByHashes(f, tmp.Name(), p)
}

func headOf(f segment.File) (seal.Head, error) {
	if f.Pruned {
		return seal.Head{}, broken(fault.AuditBroken, segment.Name(f.Number)+" is missing")
	}
	line, err := firstLine(f.Path)
	if err != nil {
		return seal.Head{}, missing(f.Number, err)
	}
	h, err := seal.ParseHead(line)
	if err != nil {
		return h, broken(fault.AuditBroken, segment.Name(f.Number)+" has no head")
	}
	return h, nil
}

// hash writes the hashes of the segment's records, which must make the tree
// that the next segment goes on from.
func (p *PrunedSegment) hash(f segment.File, next seal.Head, to io.Writer) error {
	head, err := headOf(f)
	if err != nil {
		return err
	}
	file, err := regular.Open(f.Path)
	if err != nil {
		return err
	}
	defer file.Close()
	w, r, edge := bufio.NewWriter(to), segment.NewReader(file, 0, 0), head.Edge
	for edge.Size() < next.Edge.Size() {
		line, err := r.Next()
		if err != nil {
			break
		}
		if r.Line() == 1 || seal.KindOf(line) == seal.KindCheckpoint {
			continue
		}
		if at, ok := timeOf(line); ok && at.After(p.Newest) {
			p.Newest = at
		}
		leaf := seal.Leaf(line)
		edge.Add(leaf)
		_, _ = w.Write(leaf[:]) // Flush tells
	}
	if edge.Size() != next.Edge.Size() || edge.Root() != next.Edge.Root() {
		return broken(fault.AuditBroken, fmt.Sprintf("%s is not what was signed; it is kept", segment.Name(f.Number)))
	}
	info, err := file.Stat()
	if err != nil {
		return err
	}
	p.Records, p.Bytes = edge.Size()-head.Edge.Size(), info.Size()
	return w.Flush()
}

// replaceByHashes puts the hashes in the place of the lines and records that,
// unless another process did so meanwhile.
func (l *Log) replaceByHashes(f segment.File, hashes string, p PrunedSegment) error {
	l.lead <- struct{}{}
	defer func() { <-l.lead }()
	if err := l.acquire(); err != nil {
		return err
	}
	defer unlockFile(l.lock)
	for _, step := range []func() error{l.enter, l.reserve, l.repairTail, l.seal} {
		if err := step(); err != nil {
			l.suspect = doubtful(err)
			return err
		}
	}
	if _, err := os.Lstat(f.Path); err != nil {
		return nil // somebody else has pruned it
	}
	if err := l.say(own{event: Pruned, resource: segment.Name(f.Number), n: p.Records}); err != nil {
		return err
	}
	if err := l.sync(); err != nil {
		return err
	}
	err := os.Rename(hashes, segment.Path(l.segments(), f.Number, segment.Hashes))
	if err == nil {
		err = errors.Join(syncDir(l.segments()), os.Remove(f.Path))
	}
	if err != nil {
		return unwritable("a segment can't be pruned", err)
	}
	return l.seal()
}

// leftover is the age of a temporary file whose maker must be dead.
const leftover = time.Hour

// removeLeftovers removes what killed processes had not yet put in its place;
// a key that never became one is a secret too many.
func (l *Log) removeLeftovers() {
	for dir, prefixes := range map[string][]string{
		l.dir: {".new-", ".version-"}, l.segments(): {".new-"}, filepath.Join(l.dir, "keys"): {".key-"},
	} {
		entries, _ := os.ReadDir(dir) // what can't be read is left
		for _, e := range entries {
			info, err := e.Info()
			ours := slices.ContainsFunc(prefixes, func(p string) bool { return strings.HasPrefix(e.Name(), p) })
			if err == nil && ours && info.Mode().IsRegular() && time.Since(info.ModTime()) > leftover {
				_ = os.Remove(filepath.Join(dir, e.Name()))
			}
		}
	}
}
