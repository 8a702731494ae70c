// SPDX-License-Identifier: Apache-2.0

//go:build unix

package selftest

import (
	"errors"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

func makeFIFO(path string) error { return unix.Mkfifo(path, 0o600) }

// readerWaits shows that opening the pipe as any file waits for a writer. The
// pipe lets a writer in only while somebody waits.
func readerWaits(path string) error {
	ended := make(chan error, 1)
	go func() {
		f, err := os.OpenFile(path, os.O_RDONLY, 0)
		if err == nil {
			err = f.Close()
		}
		ended <- err
	}()
	for range 2000 {
		w, err := os.OpenFile(path, os.O_WRONLY|unix.O_NONBLOCK, 0)
		if err == nil {
			return errors.Join(w.Close(), <-ended)
		}
		select {
		case err := <-ended:
			return errors.Join(errors.New("opening it did not wait"), err)
		case <-time.After(time.Millisecond):
		}
	}
	return errors.New("nobody waits for the pipe")
}
