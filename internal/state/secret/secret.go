// SPDX-License-Identifier: Apache-2.0

// Package secret keeps the keys of the state directory: random files that are
// made at first use, whole or not at all, by whichever process is first.
package secret

import (
	"crypto/rand"
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/postern-gate/postern/internal/state/regular"
)

// Size is the length of a key in bytes.
const Size = 32

// Load returns the key at path, made at first use with the folder that it is
// in, though not with the state directory. Of several processes
// that make it at once the first link wins and all read that one.
func Load(path string) ([]byte, error) {
	key, err := regular.Read(path)
	if err == nil && len(key) != Size {
		return nil, errors.New("the key file has the wrong size")
	}
	if !errors.Is(err, fs.ErrNotExist) {
		return key, err
	}
	if err := os.Mkdir(filepath.Dir(path), 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return nil, err
	}
	fresh := make([]byte, Size)
	_, _ = rand.Read(fresh) // never fails: crypto/rand ends the program instead
	if err := Write(path, fresh); err != nil && !errors.Is(err, fs.ErrExist) {
		return nil, err
	}
	return regular.Read(path)
}

// Write makes the file at path, whole or not at all, readable by this user
// alone; the error is fs.ErrExist where there is one.
func Write(path string, data []byte) error {
	tmp, err := os.CreateTemp(filepath.Dir(path), ".key-*")
	if err != nil {
		return err
	}
	defer os.Remove(tmp.Name())
	_, werr := tmp.Write(data)
	if err := errors.Join(werr, tmp.Sync(), tmp.Close()); err != nil {
		return err
	}
	return os.Link(tmp.Name(), path)
}
