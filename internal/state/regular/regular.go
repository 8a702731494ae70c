// SPDX-License-Identifier: Apache-2.0

// Package regular opens files of the state directory: regular ones, and without
// waiting. A FIFO that lies under such a name would hold whoever opens it, or
// reads from it, for good.
package regular

import (
	"errors"
	"io"
	"os"
)

// Err is about what lies there and is no regular file.
var Err = errors.New("not a regular file")

// Open opens a file for reading.
func Open(path string) (*os.File, error) { return OpenFile(path, os.O_RDONLY, 0) }

// OpenFile is os.OpenFile for a regular file.
func OpenFile(path string, flag int, perm os.FileMode) (*os.File, error) {
	f, err := os.OpenFile(path, flag|noWait, perm)
	if err != nil {
		return nil, err
	}
	info, err := f.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = &os.PathError{Op: "open", Path: path, Err: Err}
	}
	if err != nil {
		_ = f.Close()
		return nil, err
	}
	return f, nil
}

// Read returns the content of a file.
func Read(path string) ([]byte, error) {
	f, err := Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return io.ReadAll(f)
}

// OpenDir opens a folder, to have its names on the disk.
func OpenDir(path string) (*os.File, error) {
	return os.OpenFile(path, os.O_RDONLY|folder, 0)
}
