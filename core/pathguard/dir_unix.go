// SPDX-License-Identifier: Apache-2.0

//go:build unix

package pathguard

import (
	"io"

	"golang.org/x/sys/unix"

	"github.com/postern-gate/postern/core/fault"
)

// listBuffer bytes hold some hundred entries; memory does not grow with the
// directory.
const listBuffer = 16 << 10

// Dir is a directory, open for listing under the name that was judged. It is
// not for use by several goroutines at once.
type Dir struct {
	fd    int
	buf   []byte
	ready []Entry
	name  Name
	st    stat
}

// Name returns the canonical name it was opened with.
func (d *Dir) Name() Name { return d.name }

// Info returns what was found of it when it was opened.
func (d *Dir) Info() Info { return d.st.info() }

// Entries returns up to max further entries in the file system's order, and
// io.EOF after the last. Memory is bounded by max, not by the directory. What
// is added or removed meanwhile may or may not show.
func (d *Dir) Entries(max int) ([]Entry, error) {
	if max < 1 {
		return nil, d.name.fault(fault.RequestInvalid, "a batch has at least one entry", nil)
	}
	for len(d.ready) < max {
		batch, err := readEntries(d.fd, d.buf)
		if err != nil {
			return nil, d.name.failure(err)
		}
		if len(batch) == 0 {
			break
		}
		d.ready = append(d.ready, batch...)
	}
	if len(d.ready) == 0 {
		return nil, io.EOF
	}
	n := min(max, len(d.ready))
	out := make([]Entry, n)
	copy(out, d.ready)
	d.ready = d.ready[:copy(d.ready, d.ready[n:])]
	for i := range out {
		d.settle(&out[i])
	}
	return out, nil
}

// settle asks for the kind where the file system does not list it.
func (d *Dir) settle(e *Entry) {
	if e.Kind == KindUnknown {
		if st, err := statAt(d.fd, e.Name); err == nil {
			e.Kind = st.kind()
		}
	}
}

// Lstat tells what an entry is, of a link the link's own facts. A mount point
// that the root does not list is path.mount: it is another directory.
func (d *Dir) Lstat(entry string) (Info, error) {
	n, err := d.name.Join(entry)
	if err != nil {
		return Info{}, err
	}
	if n.root != d.name.root {
		return n.Lstat()
	}
	if err := n.guarded(); err != nil {
		return Info{}, err
	}
	st, err := statAt(d.fd, entry)
	switch {
	case err != nil:
		return Info{}, n.failure(err)
	case !(mount{d.st.mnt, d.st.dev}).holds(&st):
		return n.Lstat()
	}
	if err := n.known(st.ident); err != nil {
		return Info{}, err
	}
	return st.info(), nil
}

// Close lets the directory go. A second Close is a bug.
func (d *Dir) Close() error {
	if d.fd < 0 {
		return d.name.fault(fault.Bug, "closed twice", nil)
	}
	unix.Close(d.fd)
	d.fd = -1
	return nil
}
