// SPDX-License-Identifier: Apache-2.0

package pathguard

import (
	"errors"
	"io"
	"io/fs"
	"os"

	"github.com/postern-gate/postern/core/fault"
)

// Open opens the regular file with exactly this name for reading.
func (n Name) Open() (*File, error) {
	if err := n.guarded(); err != nil {
		return nil, err
	}
	up, ok := n.Parent()
	if !ok {
		return nil, n.isDir()
	}
	dir, err := n.root.walk(up.rel)
	if err != nil {
		return nil, n.failure(err)
	}
	defer dir.Close()
	f, err := n.openIn(dir, os.O_RDONLY)
	if err != nil {
		return nil, n.failure(err)
	}
	return f, nil
}

// openIn opens the regular file of this name in its directory.
func (n Name) openIn(dir *os.Root, flags int) (*File, error) {
	if err := hasEntry(dir, n.Base()); err != nil {
		return nil, err
	}
	want, err := lookAt(dir, n.Base())
	switch {
	case err != nil:
		return nil, err
	case want.kind() == KindLink:
		return nil, errLink
	case want.kind() == KindDir:
		return nil, n.isDir()
	case want.kind() != KindFile:
		return nil, n.fault(fault.PathSpecial, "", nil)
	case want.nlink > 1 && n.root.opts.DenyHardlinks:
		return nil, n.fault(fault.PathDenied, "the file has more than one name, and the root denies hard links", nil)
	}
	if err := n.known(want.ident); err != nil {
		return nil, err
	}
	if err := n.fits(want.kind()); err != nil {
		return nil, err
	}
	f, err := dir.OpenFile(n.Base(), flags, 0)
	if err != nil {
		return nil, err
	}
	st, err := statFile(f)
	if err == nil && st.ident != want.ident {
		err = errLink
	}
	if err != nil {
		_ = f.Close()
		return nil, err
	}
	return &File{f, n, st}, nil
}

// Stat looks again.
func (f *File) Stat() (Info, error) {
	st, err := statFile(f.fd)
	if err != nil {
		return Info{}, f.name.failure(err)
	}
	return st.info(), nil
}

// Read reads from the current position, as io.Reader.
func (f *File) Read(p []byte) (int, error) { return f.result(f.fd.Read(p)) }

// ReadAt reads from an offset, as io.ReaderAt.
func (f *File) ReadAt(p []byte, off int64) (int, error) { return f.result(f.fd.ReadAt(p, off)) }

func (f *File) result(n int, err error) (int, error) {
	if err != nil && !errors.Is(err, io.EOF) {
		err = f.name.failure(err)
	}
	return n, err
}

// Close lets the file go.
func (f *File) Close() error {
	if err := f.fd.Close(); err != nil {
		return f.name.fault(fault.Bug, "closed twice", nil)
	}
	return nil
}

// Dir is a directory, open for listing under the name that was judged.
type Dir struct {
	root *os.Root
	f    *os.File
	name Name
	st   stat
}

// OpenDir opens the directory with exactly this name for listing.
func (n Name) OpenDir() (*Dir, error) {
	if err := n.guarded(); err != nil {
		return nil, err
	}
	dir, err := n.root.walk(n.rel)
	if err != nil {
		return nil, n.failure(err)
	}
	f, err := dir.Open(".")
	if err != nil {
		_ = dir.Close()
		return nil, n.failure(err)
	}
	st, err := statFile(f)
	if err == nil {
		err = n.known(st.ident)
	}
	d := &Dir{dir, f, n, st}
	if err != nil {
		_ = d.Close()
		return nil, n.failure(err)
	}
	return d, nil
}

// Name returns the canonical name it was opened with.
func (d *Dir) Name() Name { return d.name }

// Info returns what was found of it when it was opened.
func (d *Dir) Info() Info { return d.st.info() }

// Entries returns up to max further entries, and io.EOF after the last.
func (d *Dir) Entries(max int) ([]Entry, error) {
	if max < 1 {
		return nil, d.name.fault(fault.RequestInvalid, "a batch has at least one entry", nil)
	}
	list, err := d.f.ReadDir(max)
	if len(list) == 0 {
		if errors.Is(err, io.EOF) {
			return nil, io.EOF
		}
		return nil, d.name.failure(err)
	}
	out := make([]Entry, 0, len(list))
	for _, e := range list {
		kind := KindUnknown
		switch {
		case e.Type().IsRegular():
			kind = KindFile
		case e.IsDir():
			kind = KindDir
		case e.Type()&fs.ModeSymlink != 0:
			kind = KindLink
		}
		out = append(out, newEntry(e.Name(), kind))
	}
	return out, nil
}

// Lstat tells what an entry is, of a link the link's own facts.
func (d *Dir) Lstat(entry string) (Info, error) {
	n, err := d.name.Join(entry)
	if err != nil {
		return Info{}, err
	}
	return n.Lstat()
}

// Close lets the directory go.
func (d *Dir) Close() error {
	_ = d.f.Close()
	if err := d.root.Close(); err != nil {
		return d.name.fault(fault.Bug, "closed twice", nil)
	}
	return nil
}

// Stat tells what has exactly this name; a link is path.symlink.
func (n Name) Stat() (Info, error) {
	info, err := n.Lstat()
	if err == nil && info.Kind == KindLink {
		return Info{}, n.failure(errLink)
	}
	return info, err
}

// Lstat tells what has exactly this name; of a link, the link's own facts.
func (n Name) Lstat() (Info, error) {
	if err := n.guarded(); err != nil {
		return Info{}, err
	}
	up, ok := n.Parent()
	base := n.Base()
	if !ok {
		up, base = n, "."
	}
	dir, err := n.root.walk(up.rel)
	if err != nil {
		return Info{}, n.failure(err)
	}
	defer dir.Close()
	if ok {
		if err := hasEntry(dir, base); err != nil {
			return Info{}, n.failure(err)
		}
	}
	st, err := lookAt(dir, base)
	if err == nil {
		err = n.known(st.ident)
	}
	if err == nil {
		err = n.fits(st.kind())
	}
	if err != nil {
		return Info{}, n.failure(err)
	}
	return st.info(), nil
}
