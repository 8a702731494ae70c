// SPDX-License-Identifier: Apache-2.0

package pathguard

import (
	"errors"
	"io/fs"
	"os"
	"slices"
	"strings"

	"golang.org/x/sys/windows"

	"github.com/postern-gate/postern/core/fault"
)

// On Windows every access walks from the root's os.Root, one component at a
// time: each must be spelled as its directory spells it, and none may be a
// link, a junction or another reparse point. Links are refused, not followed.

var (
	errLink   = errors.New("a link or another reparse point")
	errNotDir = errors.New("not a directory")
)

// What a Target and a File hold open.
type (
	dirHandle  = *os.Root
	fileHandle = *os.File
)

// handle is an open directory.
type handle struct{ *os.Root }

func (h handle) close() { _ = h.Close() }

type fsTraits struct{ kernel, folds bool }

// seam is where tests would make the system fail; there are none here yet that
// could run.
type seam struct{}

func realSeam() seam { return seam{} }

func openRootDir(resolved string) (handle, fsTraits, error) {
	r, err := os.OpenRoot(resolved)
	return handle{r}, fsTraits{folds: true}, err
}

func identify(path string) (ident, bool) {
	f, err := os.Open(path)
	if err != nil {
		return ident{}, false
	}
	defer f.Close()
	st, err := statFile(f)
	return st.ident, err == nil
}

// statFile asks by handle; there is no change time, no owner and no mount.
func statFile(f *os.File) (stat, error) {
	fi, err := f.Stat()
	if err != nil {
		return stat{}, err
	}
	var by windows.ByHandleFileInformation
	if err := windows.GetFileInformationByHandle(windows.Handle(f.Fd()), &by); err != nil {
		return stat{}, err
	}
	st := statInfo(fi)
	st.ident = ident{uint64(by.VolumeSerialNumber), uint64(by.FileIndexHigh)<<32 | uint64(by.FileIndexLow)}
	st.nlink = by.NumberOfLinks
	st.atime, st.btime = by.LastAccessTime.Nanoseconds(), by.CreationTime.Nanoseconds()
	return st, nil
}

func statInfo(fi fs.FileInfo) stat {
	st := stat{size: fi.Size(), mode: uint32(fi.Mode().Perm()), mtime: fi.ModTime().UnixNano(), nlink: 1}
	switch {
	case fi.Mode().IsRegular():
		st.mode |= modeRegular
	case fi.IsDir():
		st.mode |= modeDir
	case fi.Mode()&fs.ModeSymlink != 0:
		st.mode |= modeLink
	}
	return st
}

// lookAt looks at an entry itself; a file or directory is opened and compared,
// so that its identity is known.
func lookAt(dir *os.Root, entry string) (stat, error) {
	fi, err := dir.Lstat(entry)
	if err != nil {
		return stat{}, err
	}
	if !fi.IsDir() && !fi.Mode().IsRegular() {
		return statInfo(fi), nil
	}
	f, err := dir.Open(entry)
	if err != nil {
		return stat{}, err
	}
	defer f.Close()
	now, err := f.Stat()
	if err != nil {
		return stat{}, err
	}
	if !os.SameFile(fi, now) {
		return stat{}, errLink
	}
	return statFile(f)
}

// hasEntry reports an error unless an entry has exactly this spelling.
func hasEntry(dir *os.Root, entry string) error {
	f, err := dir.Open(".")
	if err != nil {
		return err
	}
	defer f.Close()
	names, err := f.Readdirnames(-1)
	if err == nil && !slices.Contains(names, entry) {
		err = fs.ErrNotExist
	}
	return err
}

// walk opens the directory rel; the caller closes it.
func (r *Root) walk(rel string) (*os.Root, error) {
	top, err := r.hold()
	if err != nil {
		return nil, err
	}
	defer r.mu.RUnlock()
	dir, err := top.OpenRoot(".")
	for part := range strings.SplitSeq(rel, "/") {
		if err != nil || part == "" {
			break
		}
		var next *os.Root
		next, err = stepInto(dir, part)
		_ = dir.Close()
		dir = next
	}
	return dir, err
}

func stepInto(dir *os.Root, part string) (*os.Root, error) {
	if err := hasEntry(dir, part); err != nil {
		return nil, err
	}
	fi, err := dir.Lstat(part)
	switch {
	case err != nil:
		return nil, err
	case fi.Mode()&fs.ModeSymlink != 0 || fi.Mode()&fs.ModeIrregular != 0:
		return nil, errLink
	case !fi.IsDir():
		return nil, errNotDir
	}
	next, err := dir.OpenRoot(part)
	if err != nil {
		return nil, err
	}
	if now, err := next.Stat("."); err != nil || !os.SameFile(fi, now) {
		_ = next.Close()
		return nil, errLink
	}
	return next, nil
}

// failure turns an error of the system into a fault that says no more than
// its code.
func (n Name) failure(err error) error {
	if err := told(err); err != nil {
		return err
	}
	switch {
	case errors.Is(err, errLink):
		return n.fault(fault.PathSymlink, "", errLink)
	case errors.Is(err, errNotDir):
		return n.fault(fault.PathMissing, "a part of the name is not a directory", errNotDir)
	case errors.Is(err, fs.ErrNotExist):
		return n.fault(fault.PathMissing, "", fs.ErrNotExist)
	case errors.Is(err, windows.ERROR_SHARING_VIOLATION):
		return n.fault(fault.LockHeld, "another program holds the file", windows.ERROR_SHARING_VIOLATION)
	case errors.Is(err, fs.ErrPermission):
		return n.fault(fault.IOFailed, "the operating system gives no permission", fs.ErrPermission)
	}
	return n.fault(fault.IOFailed, "", nil)
}
