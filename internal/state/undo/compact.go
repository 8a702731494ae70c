// SPDX-License-Identifier: Apache-2.0

package undo

import (
	"bufio"
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
	names, _, err := journals(l.join())
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
	in, err := regular.Open(name)
	if err != nil {
		return unusable("a journal can't be read", err)
	}
	defer in.Close()
	info, err := in.Stat()
	if err != nil {
		return unusable("a journal can't be read", err)
	}
	left, gone, err := r.copy(in)
	temp := r.l.join(compactName)
	switch {
	case err != nil:
	case gone == 0:
		return os.Remove(temp)
	case left == 0:
		err = errors.Join(os.Remove(name), os.Remove(temp))
	default: // its time stays, by which its age is told
		if err = os.Chtimes(temp, info.ModTime(), info.ModTime()); err == nil {
			err = os.Rename(temp, name)
		}
	}
	if err = errors.Join(err, syncDir(r.l.join())); err != nil {
		return unusable("a journal can't be made smaller", err)
	}
	return nil
}

// copy writes what stays to compactName, and tells how many lines that is, and
// how many go.
func (r *rewriting) copy(in *os.File) (left, gone int, err error) {
	f, err := regular.OpenFile(r.l.join(compactName), os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return 0, 0, err
	}
	out := bufio.NewWriter(f)
	err = eachLine(in, func(b []byte) {
		if r.goes(b) {
			gone++
			return
		}
		left++
		_, _ = out.Write(b) // Flush tells
		_ = out.WriteByte('\n')
	})
	if err = errors.Join(err, out.Flush()); err == nil && gone > 0 && left > 0 {
		err = f.Sync()
	}
	return left, gone, errors.Join(err, f.Close())
}
