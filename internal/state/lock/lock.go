// SPDX-License-Identifier: Apache-2.0

// Package lock gives advisory locks between postern processes: byte ranges of
// one file, held by the kernel for an open file description. A lock is gone
// with its process; there is nothing to unlink and no pid to believe.
//
// A lock is a number that the caller derives from what it locks. Two things
// that share a number wait for each other, which costs time and never safety.
// It is held by one, or shared by many; who waits to hold it is not passed by
// those that come to share it meanwhile.
package lock

import (
	"context"
	"errors"
	"os"
	"slices"
	"time"

	"github.com/postern-gate/postern/core/fault"
	"github.com/postern-gate/postern/internal/state/regular"
)

// Polling starts at pollMin and doubles up to pollMax: kernel range locks can
// be waited for only by blocking a thread that no context can wake.
const (
	pollMin = 200 * time.Microsecond
	pollMax = 20 * time.Millisecond
)

// errHeld is what the platform functions return for a range that is taken.
var errHeld = errors.New("range is locked")

// File is the lock file of a state directory.
type File struct{ path string }

// Open returns the lock file at path; it is made at the first lock.
func Open(path string) File { return File{path} }

// Lock is LockWith of nothing that is shared.
func (f File) Lock(ctx context.Context, keys ...int64) (release func(), err error) {
	return f.LockWith(ctx, keys, nil)
}

// LockWith takes every key (0 ≤ key < 2⁶²), those of own for itself and the others to be
// shared, in an order that all processes have, so that no callers wait for each other in
// a circle. A key of both is its own. It waits until ctx ends and then fails with
// lock.held. The returned function releases them.
func (f File) LockWith(ctx context.Context, own, shared []int64) (release func(), err error) {
	file, err := f.open()
	if err != nil {
		return nil, err
	}
	keys := slices.Sorted(slices.Values(slices.Concat(own, shared)))
	for _, k := range slices.Compact(keys) {
		if err := acquire(ctx, file, k, !slices.Contains(own, k)); err != nil {
			_ = file.Close()
			return nil, err
		}
	}
	// Closing the description releases its ranges, those of no other handle.
	return func() { _ = file.Close() }, nil
}

// queue is the range where those stand that wait for a key: whoever waits for it
// alone is not passed there by others that would share it, one after another.
const queue = 1 << 62

func acquire(ctx context.Context, file *os.File, key int64, share bool) error {
	if !share {
		if err := try(file, key, false); err == nil {
			return nil
		}
	}
	if err := wait(ctx, file, key|queue, share); err != nil {
		return err
	}
	if err := wait(ctx, file, key, share); err != nil {
		return err
	}
	if err := unlock(file, key|queue); err != nil {
		return byKernel(err)
	}
	return nil
}

// Try takes one key if nobody holds it, and fails with lock.held at once if
// somebody does.
func (f File) Try(key int64) (release func(), err error) {
	file, err := f.open()
	if err != nil {
		return nil, err
	}
	if err := try(file, key, false); err != nil {
		_ = file.Close()
		if errors.Is(err, errHeld) {
			return nil, &fault.Error{Code: fault.LockHeld, Op: "lock", Rule: "another call holds it, or a folder above it", Retry: true}
		}
		return nil, byKernel(err)
	}
	return func() { _ = file.Close() }, nil
}

func (f File) open() (*os.File, error) {
	file, err := regular.OpenFile(f.path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, &fault.Error{
			Code: fault.IOFailed, Op: "lock", Rule: "the lock file can't be opened",
			Hint: "free space or repair the state directory", Err: err,
		}
	}
	return file, nil
}

func byKernel(err error) error {
	return &fault.Error{Code: fault.IOFailed, Op: "lock", Rule: "the kernel refused the lock", Err: err}
}

func wait(ctx context.Context, file *os.File, key int64, share bool) error {
	for pause := pollMin; ; pause = min(2*pause, pollMax) {
		err := try(file, key, share)
		if err == nil {
			return nil
		}
		if !errors.Is(err, errHeld) {
			return byKernel(err)
		}
		timer := time.NewTimer(pause)
		select {
		case <-ctx.Done():
			timer.Stop()
			return &fault.Error{Code: fault.LockHeld, Op: "lock", Rule: "another call holds it, or a folder above it", Retry: true, Err: ctx.Err()}
		case <-timer.C:
		}
	}
}
