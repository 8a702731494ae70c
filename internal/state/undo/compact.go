// SPDX-License-Identifier: Apache-2.0

package undo

import (
	"bufio"
	"bytes"
	"errors"
	"os"

	"github.com/postern-gate/postern/core/pathguard"
	"github.com/postern-gate/postern/internal/state/regular"
)

// compactName is the journal that is being made smaller, until it takes the
// place of the old one. Who makes it holds the lock of the journals.
const compactName = "compact.new"

// compact makes the journals smaller that nobody writes to. An image goes before
// the lines about it, and what begins a change before what ended it: a crash in
// between leaves a change that is no longer kept, or lines about none. The
// caller holds the lock of the journals.
func (l *Log) compact() error {
	names, err := journals(l.join())
	if err != nil {
		return err
	}
	s := shrinking{
		closed: closed(names), images: map[string]bool{}, pinned: map[string]bool{}, old: l.now().Add(-l.o.Keep),
		over: total(names) - l.o.Journals/4*3, held: map[string]int64{}, gone: map[*cluster]bool{},
	}
	x, err := Read(l.dir)
	if err != nil {
		return err
	}
	found, err := os.ReadDir(l.join(imagesName))
	if err != nil {
		return unusable("the images can't be listed", err)
	}
	for _, f := range found {
		s.images[f.Name()] = true
	}
	alive, err := l.alive()
	if err != nil {
		return err
	}
	newest := map[string]string{}
	for _, t := range x.Txns {
		newest[prefix(t.ID)] = t.ID
	}
	for p, id := range newest {
		s.pinned[id] = alive[p]
	}
	return l.shrink(x, &s, names)
}

// shrink does away with what is chosen.
func (l *Log) shrink(x *Index, s *shrinking, names []string) error {
	r := rewriting{l: l, index: x, begins: map[string]int{}}
	images := false
	for _, c := range s.choose(x.clusters()) {
		if removed, err := l.dropImages(c, s.images); err != nil {
			continue // what is kept of it stays known
		} else if removed {
			images = true
		}
		for _, t := range c.txns {
			r.begins[t.ID] = t.begins
		}
	}
	for _, name := range names {
		if !s.closed[name] {
			continue
		}
		if err := r.file(name); err != nil {
			return err
		}
	}
	if images {
		return l.recount()
	}
	return nil
}

func (l *Log) dropImages(c *cluster, there map[string]bool) (removed bool, err error) {
	for _, t := range c.txns {
		for _, e := range t.Steps {
			for _, name := range []string{e.Image, e.Image + pathguard.OldSuffix} {
				if there[name] {
					removed, err = true, errors.Join(err, remove(l.join(imagesName, name)))
				}
			}
		}
	}
	return removed, err
}

// rewriting leaves lines out of journals.
type rewriting struct {
	l      *Log
	index  *Index
	begins map[string]int // of what goes: how many lines begin it that are still there
}

// goes reports a line that is left out: one of a change that goes, which comes
// after all that begin it, or of one that nothing begins.
func (r *rewriting) goes(b []byte) bool {
	l, ok := parseLine(b)
	if !ok {
		return true
	}
	left, chosen := r.begins[l.ID]
	if chosen && l.Kind == kindBegin {
		r.begins[l.ID] = left - 1
		return true
	}
	return chosen && left <= 0 || l.Kind != kindBegin && r.index.byID[l.ID] == nil
}

// file writes a journal anew without what goes, in one step for whoever reads.
func (r *rewriting) file(name string) error {
	text, err := regular.Read(name)
	if err != nil {
		return unusable("a journal can't be read", err)
	}
	info, err := os.Lstat(name)
	if err != nil {
		return unusable("a journal can't be read", err)
	}
	var out bytes.Buffer
	in := bufio.NewScanner(bytes.NewReader(text))
	in.Buffer(make([]byte, 64<<10), maxLine)
	for in.Scan() {
		if !r.goes(in.Bytes()) {
			out.Write(in.Bytes())
			out.WriteByte('\n')
		}
	}
	switch {
	case in.Err() != nil:
		return unusable("a journal can't be read", in.Err())
	case out.Len() == len(text):
		return nil
	case out.Len() == 0:
		err = os.Remove(name)
	default:
		err = r.replace(name, out.Bytes(), info)
	}
	if err = errors.Join(err, syncDir(r.l.join())); err != nil {
		return unusable("a journal can't be made smaller", err)
	}
	return nil
}

// replace keeps the time of the journal, by which its age is told.
func (r *rewriting) replace(name string, text []byte, was os.FileInfo) error {
	temp := r.l.join(compactName)
	f, err := regular.OpenFile(temp, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(text)
	if err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err != nil {
		return err
	}
	if err := os.Chtimes(temp, was.ModTime(), was.ModTime()); err != nil {
		return err
	}
	return os.Rename(temp, name)
}
