// SPDX-License-Identifier: Apache-2.0

package audit

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/postern-gate/postern/core/fault"
	"github.com/postern-gate/postern/internal/state/audit/seal"
	"github.com/postern-gate/postern/internal/state/audit/segment"
	"github.com/postern-gate/postern/internal/state/regular"
)

// The names of what belongs to a log, beneath the state directory.
const (
	segmentsDir = "audit"
	signedFile  = "checkpoint"
	lockName    = "audit.lock"
	reserveName = "reserve"
)

// signed is the file that remembers the last checkpoint outside the folder of
// the segments: where it stands and the tree there, so that nobody has to read
// the log from its beginning, and so that a log that was cut off is found out.
// It is written after the checkpoint is on disk, so it is never ahead of it.
type signed struct {
	Segment int         `json:"segment"`
	Offset  int64       `json:"offset"` // after the checkpoint's line
	Lines   int         `json:"lines"`  // before Offset
	Begun   time.Time   `json:"begun"`  // of the segment
	Newest  time.Time   `json:"newest"` // record's time
	Note    string      `json:"note"`
	Edge    []seal.Hash `json:"edge"`
	Open    []Pending   `json:"open"`
}

// errForgotten is a file that is missing or was not written whole, which a
// power cut can leave: the segments then tell.
var errForgotten = errors.New("no checkpoint is remembered")

func readSigned(stateDir string) (s signed, err error) {
	b, err := regular.Read(filepath.Join(stateDir, signedFile))
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return s, errForgotten
	case err != nil:
		return s, err
	case json.Unmarshal(b, &s) != nil || s.Note == "":
		return s, errForgotten
	}
	return s, nil
}

// LastSigned returns the last checkpoint that was signed, nil where none is
// remembered.
func LastSigned(stateDir string) (last *seal.Checkpoint, err error) {
	s, err := readSigned(stateDir)
	switch {
	case errors.Is(err, errForgotten):
		return last, nil
	case err != nil:
		return nil, err
	}
	c, err := seal.Peek(s.Note)
	return &c, err
}

// remember writes the file. An old one is as safe as none, so a failure only
// costs time later.
func (l *Log) remember() {
	c := l.at
	b, err := json.Marshal(signed{
		Segment: c.segment, Offset: c.offset, Lines: c.lines, Begun: c.begun, Newest: c.newest.UTC(),
		Note: c.last.Note, Edge: c.edge.Hashes(), Open: c.pendings(),
	})
	if err != nil {
		return
	}
	_ = replaceFile(filepath.Join(l.dir, signedFile), b)
}

// replaceFile puts a whole file in the place of another one.
func replaceFile(path string, data []byte) error {
	tmp, err := os.CreateTemp(filepath.Dir(path), ".new-*")
	if err != nil {
		return err
	}
	_, werr := tmp.Write(data)
	err = errors.Join(werr, tmp.Close())
	if err == nil {
		err = os.Rename(tmp.Name(), path)
	}
	if err != nil {
		_ = os.Remove(tmp.Name())
	}
	return err
}

// resume returns a cursor at the last checkpoint, after comparing it with the
// log: the same line must still end where it was written.
func (l *Log) resume(newest int) (*cursor, error) {
	c, err := l.remembered()
	if errors.Is(err, errForgotten) {
		return l.resumeAtHead(newest)
	}
	if err != nil {
		return nil, err
	}
	if newest < c.segment {
		return nil, broken(fault.AuditTruncated, fmt.Sprintf("%d records were signed, and the segment with the last of them is gone", c.last.Size))
	}
	return c, l.stillThere(c)
}

// remembered is the cursor at the last checkpoint by the signed file alone, or
// errForgotten.
func (l *Log) remembered() (*cursor, error) {
	s, err := readSigned(l.dir)
	if errors.Is(err, errForgotten) {
		return nil, err
	}
	if err != nil {
		return nil, unwritable("the last checkpoint can't be read", err)
	}
	last, err := l.key.Verifier().Open(s.Note)
	if err != nil {
		return nil, broken(fault.AuditBroken, "the checkpoint that is remembered is not one of this log")
	}
	edge, err := seal.NewEdge(last.Size, s.Edge)
	if err != nil || edge.Root() != last.Root {
		return nil, errForgotten
	}
	c := &cursor{
		segment: s.Segment, offset: s.Offset, lines: s.Lines, begun: s.Begun, sealedAt: s.Offset,
		last: last, base: edge.Clone(), edge: edge, open: map[string][]Pending{}, newest: s.Newest,
	}
	for _, p := range s.Open {
		c.open[p.Corr] = append(c.open[p.Corr], p)
	}
	return c, nil
}

// stillThere compares the bytes before the cursor with the checkpoint.
func (l *Log) stillThere(c *cursor) error {
	f, err := regular.Open(segment.Path(l.segments(), c.segment, segment.Lines))
	if err != nil {
		return missing(c.segment, err)
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return unwritable("the log can't be read", err)
	}
	if info.Size() < c.offset {
		return broken(fault.AuditTruncated, fmt.Sprintf("%d records were signed, and the log is shorter", c.last.Size))
	}
	want := append(c.last.Line(), '\n')
	if c.lines == 1 { // the head itself holds the checkpoint
		h := seal.Head{Segment: c.segment, Time: c.begun, Note: c.last.Note, Edge: c.edge}
		want = append(h.Line(), '\n')
	}
	got := make([]byte, len(want))
	if _, err := f.ReadAt(got, c.offset-int64(len(want))); err != nil || !bytes.Equal(got, want) {
		return broken(fault.AuditBroken, fmt.Sprintf("%d records were signed, and their checkpoint is not where it was written", c.last.Size))
	}
	return nil
}

// resumeAtHead begins with the newest segment, when nothing is remembered.
func (l *Log) resumeAtHead(newest int) (*cursor, error) {
	line, err := firstLine(segment.Path(l.segments(), newest, segment.Lines))
	if err != nil {
		return nil, missing(newest, err)
	}
	c, err := atHead(line, l.key)
	if err != nil || c.segment != newest {
		return nil, broken(fault.AuditBroken, fmt.Sprintf("the log's segment %d has no head of this log", newest))
	}
	return c, nil
}
