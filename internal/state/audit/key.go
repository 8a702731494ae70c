// SPDX-License-Identifier: Apache-2.0

package audit

import (
	"crypto/rand"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
)

const keySize = 32

// loadKey returns the key at path, made at first use with the folder that it is
// in, though not with the state directory. Of several processes
// that make it at once the first link wins and all read that one.
func loadKey(path string) ([]byte, error) {
	key, err := os.ReadFile(path)
	if err == nil && len(key) != keySize {
		return nil, errors.New("the key file has the wrong size")
	}
	if !errors.Is(err, fs.ErrNotExist) {
		return key, err
	}
	if err := os.Mkdir(filepath.Dir(path), 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return nil, err
	}
	fresh := make([]byte, keySize)
	_, _ = rand.Read(fresh) // never fails: crypto/rand ends the program instead
	if err := linkNew(path, fresh); err != nil && !errors.Is(err, fs.ErrExist) {
		return nil, err
	}
	return os.ReadFile(path)
}

func linkNew(path string, data []byte) error {
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
