// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

// byHand is what a careful program does without a guard: a temporary file,
// fdatasync, rename.
func byHand(path string, content []byte) error {
	f, err := os.OpenFile(path+".tmp", os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(content)
	if err = errors.Join(err, unix.Fdatasync(int(f.Fd())), f.Close()); err != nil {
		return err
	}
	return os.Rename(path+".tmp", path)
}
