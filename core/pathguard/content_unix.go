// SPDX-License-Identifier: Apache-2.0

//go:build unix

package pathguard

import (
	"bytes"
	"errors"
	"io"
)

// errDiffers is a write layer that lost something without an error.
var errDiffers = errors.New("what is on the disk differs from what was written")

// verify reads back what was written last, from an offset, into buf.
func verify(f *File, from int64, content, buf []byte) error {
	for len(content) > 0 {
		part := buf[:min(len(buf), len(content))]
		if _, err := f.ReadAt(part, from); err != nil || !bytes.Equal(part, content[:len(part)]) {
			return errors.Join(errDiffers, err)
		}
		from, content = from+int64(len(part)), content[len(part):]
	}
	return f.ends(from)
}

// ends proves the length of a file.
func (f *File) ends(at int64) error {
	st, err := statFD(f.fd)
	if err != nil || st.size != at {
		return errors.Join(errDiffers, err)
	}
	return nil
}

// copyTo writes everything in bounded memory, and reads each part back before it
// takes the next, so that a content which ends early ends both.
func (t *Target) copyTo(f *File, content io.Reader) error {
	buf, back := make([]byte, copyBuffer), make([]byte, copyBuffer)
	for size := int64(0); ; {
		n, err := content.Read(buf)
		if n > 0 {
			if err := t.writeAll(f.fd, buf[:n]); err != nil {
				return err
			}
			if err := verify(f, size, buf[:n], back); err != nil {
				return err
			}
			size += int64(n)
		}
		if err == io.EOF {
			return f.ends(size)
		}
		if err != nil {
			return err
		}
	}
}

func (t *Target) writeAll(fd int, p []byte) error {
	for len(p) > 0 {
		n, err := retry(func() (int, error) { return t.name.root.seam.write(fd, p) })
		if err != nil {
			return err
		}
		if n == 0 {
			return io.ErrShortWrite
		}
		p = p[n:]
	}
	return nil
}
