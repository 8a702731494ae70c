// SPDX-License-Identifier: Apache-2.0

//go:build unix

package pathguard

import (
	"errors"

	"golang.org/x/sys/unix"
)

// Append adds to the end of an existing regular file, in place: readers may
// see a part of it. A file with more than one name is refused, since the
// others may lie outside, and so is a read-only one. A failure takes back what
// was added, where the file has not grown otherwise.
func (t *Target) Append(content []byte, o WriteOptions) (Written, error) {
	if err := t.CanAppend(); err != nil {
		return Written{}, err
	}
	f, err := t.openOld(unix.O_RDWR | unix.O_APPEND)
	if err != nil {
		return Written{}, err
	}
	defer f.Close()
	if err := o.keep(f); err != nil {
		return Written{}, err
	}
	err = t.writeAll(f.fd, content)
	if err == nil {
		err = verify(f, t.st.size, content, make([]byte, copyBuffer))
	}
	if err != nil {
		return Written{}, t.takeBack(f, len(content), err)
	}
	if err := t.sync(f.fd); err != nil {
		return Written{}, t.name.halfway(err, "the content could not be written to the disk")
	}
	info, err := t.arrived(f.st.ident)
	return Written{Info: info}, err
}

// takeBack shortens a file to its old length unless somebody else wrote too.
func (t *Target) takeBack(f *File, added int, why error) error {
	st, err := statFD(f.fd)
	if err == nil && st.size >= t.st.size && st.size <= t.st.size+int64(added) {
		if err = unix.Ftruncate(f.fd, t.st.size); err == nil {
			return t.name.failure(why)
		}
	}
	return t.name.halfway(errors.Join(why, err), "the file could not be taken back to its old length")
}

// sync makes the content durable: a data sync, so that a power failure never
// shows a file whose name came before its content.
func (t *Target) sync(fd int) error {
	return again(func() error { return t.name.root.seam.sync(fd) })
}
