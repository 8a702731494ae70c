// SPDX-License-Identifier: Apache-2.0

package selftest

import (
	"context"
	"errors"
	"path/filepath"

	"github.com/postern-gate/postern/core/fault"
	"github.com/postern-gate/postern/internal/state/lock"
)

// locksHold: a range that one process has, another doesn't get.
func locksHold(l *lab, t *trial) {
	t.about = "the same number locked twice, through two handles of one file"
	file := filepath.Join(l.box, "locks")
	now, cancel := context.WithCancel(l.ctx)
	cancel() // a lock is tried once
	t.against("a held lock", func() error {
		release, err := lock.Open(file).Lock(now, 7)
		if err == nil {
			release()
		}
		return err
	}, func() error {
		release, err := lock.Open(file).Lock(now, 7)
		if err != nil {
			return err
		}
		defer release()
		again, err := lock.Open(file).Lock(now, 7)
		if err == nil {
			again()
		}
		if fault.CodeOf(err) != fault.LockHeld {
			return errors.New("both have it")
		}
		return nil
	})
}
