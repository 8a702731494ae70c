// SPDX-License-Identifier: Apache-2.0

package audit

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/postern-gate/postern/core/fault"
	"github.com/postern-gate/postern/internal/state"
	"github.com/postern-gate/postern/internal/state/audit/seal"
	"github.com/postern-gate/postern/internal/state/audit/segment"
	"github.com/postern-gate/postern/internal/state/regular"
)

func (l *Log) segments() string { return filepath.Join(l.dir, segmentsDir) }

func (l *Log) keyFile(name string) string { return filepath.Join(l.dir, "keys", name) }

// handle is the open newest segment.
type handle struct {
	file   *os.File
	info   fs.FileInfo
	number int
	path   string
	next   string // what the segment after it will be called
}

func openHandle(dir string, number int) (*handle, error) {
	path := segment.Path(dir, number, segment.Lines)
	file, err := regular.OpenFile(path, os.O_RDWR|os.O_APPEND, 0)
	if err != nil {
		return nil, unwritable("the log can't be opened", err)
	}
	info, err := file.Stat()
	if err != nil || !info.Mode().IsRegular() {
		_ = file.Close()
		return nil, unwritable("the log can't be opened", err)
	}
	return &handle{file, info, number, path, segment.Path(dir, number+1, segment.Lines)}, nil
}

func (h *handle) close() error {
	if h == nil {
		return nil
	}
	return h.file.Close()
}

// current makes sure that seg is the newest segment under its name, so that
// nothing is written where nobody can read it. The caller holds the lock of
// the log, under which alone segments begin.
func (l *Log) current() error {
	if err := l.takenOver(); err != nil {
		return err
	}
	if l.seg == nil {
		return l.openNewest()
	}
	if _, err := os.Lstat(l.seg.next); err == nil {
		return l.openNewest()
	}
	info, err := os.Lstat(l.seg.path)
	if lost := errors.Is(err, fs.ErrNotExist) || err == nil && !os.SameFile(info, l.seg.info); lost && l.renewed() {
		return l.openNewest()
	}
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return l.beginAfterLoss(SegmentVanished)
	case err != nil:
		return unwritable("the log can't be seen", err)
	case !os.SameFile(info, l.seg.info):
		return l.beginAfterLoss(SegmentReplaced)
	case l.at != nil && l.at.segment == l.seg.number && info.Size() < l.at.offset:
		return broken(fault.AuditTruncated, fmt.Sprintf("%d records were signed, and the log is shorter", l.at.last.Size))
	case l.failed:
		return l.beginAfterLoss(SegmentAbandoned)
	}
	return nil
}

// renewed reports whether a person has begun another log meanwhile.
func (l *Log) renewed() bool {
	key, err := readKey(l.keyFile(logKey))
	return err == nil && key.Origin() != l.key.Origin()
}

// sameVersion notices another version of postern, which may keep the log
// differently, when the log isn't as this process left it.
func (l *Log) sameVersion() error {
	if err := state.CheckVersion(l.dir); err != nil {
		return &fault.Error{
			Code: fault.AuditUnwritable, Rule: "another version of postern has taken over: " + fault.As(err).Because(),
			Hint: "end this postern and start it again as the version that is installed now", Err: err,
		}
	}
	return nil
}

// takenOver looks before each commit whether the version file is still the one
// that this process knows. One that is gone says nothing.
func (l *Log) takenOver() error {
	info, err := os.Stat(filepath.Join(l.dir, "version"))
	if err != nil {
		return nil //nolint:nilerr // as it says
	}
	if was := l.version; was != nil && os.SameFile(info, was) && info.ModTime().Equal(was.ModTime()) && info.Size() == was.Size() {
		return nil
	}
	if l.seg != nil { // else openNewest asks
		if err := l.sameVersion(); err != nil {
			return err
		}
	}
	l.version = info
	return nil
}

// openNewest opens the newest segment, or makes the log.
func (l *Log) openNewest() error {
	if err := l.sameVersion(); err != nil {
		return err
	}
	if l.key != nil && l.renewed() {
		l.forget()
	}
	_ = l.seg.close()
	l.seg, l.failed, l.due = nil, false, true
	if l.key == nil {
		born, err := l.loadOrCreate()
		if err != nil || born {
			return err
		}
	}
	newest, err := l.newestNumber()
	if err != nil {
		return err
	}
	if l.at == nil {
		if l.at, err = l.resume(newest); err != nil {
			return err
		}
	}
	l.seg, err = openHandle(l.segments(), newest)
	return err
}

// newestNumber returns the number of the newest segment. That there is none
// although the log has a key means that it is gone.
func (l *Log) newestNumber() (int, error) {
	all, err := segment.List(l.segments())
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return 0, unwritable("the log can't be read", err)
	}
	if len(all) == 0 || all[len(all)-1].Pruned {
		return 0, broken(fault.AuditTruncated, "the log is gone")
	}
	return all[len(all)-1].Number, nil
}

// beginAfterLoss goes on in a new segment from the last checkpoint. Its first
// record tells why; what was recorded after that checkpoint, and can still be
// read, is moved there, so that nothing that was acknowledged leaves the tree.
func (l *Log) beginAfterLoss(why Event) error {
	if err := l.sameVersion(); err != nil {
		return err
	}
	c, err := l.lastKnown()
	if err != nil {
		return err
	}
	gone := l.seg.number
	number := gone + 1
	if newest, err := l.newestNumber(); err == nil {
		number = max(number, newest+1)
	}
	told := l.enc.appendOwn(nil, l.wall(), own{event: why, resource: segment.Name(gone)})
	old := l.seg
	tail := old.tail(c)
	l.seg = nil // begin would close it
	if err := l.begin(number, c, append(told, tail...)); err != nil {
		l.seg = old
		return err
	}
	if why == SegmentAbandoned && len(tail) > 0 {
		_ = old.file.Truncate(c.sealedAt) // else the lines are there twice, and verify counts them once
	}
	return old.close()
}

// mostMoved bounds what is moved from a segment that is lost.
const mostMoved = 64 << 20

// tail is the whole records after the cursor's checkpoint that can be read.
func (h *handle) tail(c *cursor) (lines []byte) {
	if h.number != c.segment {
		return nil
	}
	r := segment.NewReader(io.NewSectionReader(h.file, c.sealedAt, mostMoved), 0, 0)
	for {
		line, err := r.Next()
		if err != nil {
			return lines
		}
		if isRecord(line) {
			lines = append(append(lines, line...), '\n')
		}
	}
}

// lastKnown is the last checkpoint of the log, by what is remembered and by
// what this process has read.
func (l *Log) lastKnown() (*cursor, error) {
	c, err := l.remembered()
	forgotten := errors.Is(err, errForgotten)
	switch {
	case forgotten && l.at == nil:
		return nil, broken(fault.AuditTruncated, "the log and its last checkpoint are gone")
	case err != nil && !forgotten:
		return nil, err
	case forgotten || l.at != nil && l.at.last.Size > c.last.Size:
		return l.at, nil
	}
	return c, nil
}

// begin makes the segment that goes on from the cursor's last checkpoint, with
// these lines after its head.
func (l *Log) begin(number int, from *cursor, lines []byte) error {
	h := seal.Head{Segment: number, Time: l.wall().UTC(), Note: from.last.Note, Edge: from.base.Clone()}
	line := h.Line()
	if err := l.place(number, append(append(bytes.Clone(line), '\n'), lines...)); err != nil {
		return err
	}
	seg, err := openHandle(l.segments(), number)
	if err != nil {
		return err
	}
	_ = l.seg.close()
	l.seg, l.failed = seg, false
	l.at = &cursor{
		segment: number, offset: int64(len(line)) + 1, lines: 1, begun: h.Time, sealedAt: int64(len(line)) + 1,
		last: from.last, base: from.base.Clone(), edge: from.base.Clone(), open: from.open, newest: from.newest,
	}
	l.remember()
	return nil
}

// place puts a segment with its first lines under its name, all of it or
// nothing. The state directory itself is never made again: if it is gone, so
// are the keys, and going on would be another log.
func (l *Log) place(number int, content []byte) error {
	dir := l.segments()
	if err := os.Mkdir(dir, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return unwritable("the folder of the log can't be made", err)
	}
	tmp, err := os.CreateTemp(dir, ".new-*")
	if err != nil {
		return unwritable("a segment of the log can't be made", err)
	}
	defer os.Remove(tmp.Name())
	_, err = tmp.Write(content)
	err = errors.Join(err, tmp.Sync(), tmp.Close())
	if err == nil {
		err = os.Link(tmp.Name(), segment.Path(dir, number, segment.Lines))
	}
	if err == nil {
		err = syncDir(dir)
	}
	if err != nil {
		return unwritable("a segment of the log can't be made", err)
	}
	return nil
}
