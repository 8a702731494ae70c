// SPDX-License-Identifier: Apache-2.0

//go:build unix

package pathguard

import (
	"crypto/sha256"
	"errors"
	"io"
)

// errDiffers is a write layer that lost something without an error.
var errDiffers = errors.New("what is on the disk differs from what was written")

// verify reads back what was written at the end of a file, from an offset.
func verify(f *File, from, size int64, sum [sha256.Size]byte) error {
	st, err := statFD(f.fd)
	if err != nil || st.size != from+size {
		return errors.Join(errDiffers, err)
	}
	h := sha256.New()
	n, err := io.CopyBuffer(struct{ io.Writer }{h}, io.NewSectionReader(f, from, size), make([]byte, copyBuffer))
	if err != nil || n != size || [sha256.Size]byte(h.Sum(nil)) != sum {
		return errors.Join(errDiffers, err)
	}
	return nil
}

// copyTo writes everything in bounded memory and returns what it was.
func (t *Target) copyTo(fd int, content io.Reader) (sum [sha256.Size]byte, size int64, err error) {
	h, buf := sha256.New(), make([]byte, copyBuffer)
	for {
		n, err := content.Read(buf)
		if n > 0 {
			h.Write(buf[:n])
			size += int64(n)
			if err := t.writeAll(fd, buf[:n]); err != nil {
				return sum, size, err
			}
		}
		if err == io.EOF {
			return [sha256.Size]byte(h.Sum(nil)), size, nil
		}
		if err != nil {
			return sum, size, err
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
