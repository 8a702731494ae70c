// SPDX-License-Identifier: Apache-2.0

//go:build unix

package pathguard

import (
	"io"

	"golang.org/x/sys/unix"

	"github.com/postern-gate/postern/core/fault"
)

// Stat looks again. Content that was read in between is one state of the file
// only if the fingerprint is still that of the opening.
func (f *File) Stat() (Info, error) {
	st, err := statFD(f.fd)
	if err != nil {
		return Info{}, f.name.failure(err)
	}
	return st.info(), nil
}

// Read reads from the current position, as io.Reader.
func (f *File) Read(p []byte) (int, error) {
	return f.result(p, func() (int, error) { return unix.Read(f.fd, p) })
}

// ReadAt reads from an offset, as io.ReaderAt.
func (f *File) ReadAt(p []byte, off int64) (int, error) {
	for done := 0; ; {
		n, err := f.result(p[done:], func() (int, error) { return unix.Pread(f.fd, p[done:], off+int64(done)) })
		if done += n; err != nil || done == len(p) {
			return done, err
		}
	}
}

func (f *File) result(p []byte, read func() (int, error)) (int, error) {
	if len(p) == 0 {
		return 0, nil
	}
	n, err := retry(read)
	if err == unix.EAGAIN {
		// Only file systems that honour O_NONBLOCK on files say so; it has
		// done its work at the opening.
		if err = unix.SetNonblock(f.fd, false); err == nil {
			n, err = retry(read)
		}
	}
	switch {
	case err != nil:
		return 0, f.name.failure(err)
	case n == 0:
		return 0, io.EOF
	}
	return n, nil
}

// Close lets the file go. A second Close is a bug.
func (f *File) Close() error {
	if f.fd < 0 {
		return f.name.fault(fault.Bug, "closed twice", nil)
	}
	fd := f.fd
	f.fd = -1
	unix.Close(fd) // an error after reading means nothing
	return nil
}
