// SPDX-License-Identifier: Apache-2.0

package lock

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/postern-gate/postern/core/fault"
)

// briefly is long enough for a lock that is free and short for one that isn't.
func briefly(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	t.Cleanup(cancel)
	return ctx
}

func take(t *testing.T, f File, keys ...int64) func() {
	t.Helper()
	release, err := f.Lock(t.Context(), keys...)
	if err != nil {
		t.Fatal(err)
	}
	return release
}

func refused(t *testing.T, f File, keys ...int64) {
	t.Helper()
	release, err := f.Lock(briefly(t), keys...)
	if err == nil {
		release()
		t.Fatal("a held lock was had twice")
	}
	if fault.CodeOf(err) != fault.LockHeld || !errors.Is(err, fault.ErrLocked) {
		t.Fatalf("error %v", err)
	}
}

// TestWithinOneProcess: two handles of one process exclude each other, and
// closing one that failed does not free the other's (SEP-1708 on fcntl locks).
func TestWithinOneProcess(t *testing.T) {
	f := Open(filepath.Join(t.TempDir(), "locks"))
	release := take(t, f, 7, 9)
	refused(t, f, 9)
	refused(t, f, 8, 9)
	refused(t, f, 7) // still held after the failed ones were closed
	take(t, f, 8)()
	release()
	take(t, f, 9, 7, 7)()
}

// TestKilledHolder: a lock is gone with its process.
func TestKilledHolder(t *testing.T) {
	if path := os.Getenv("POSTERN_TEST_LOCK"); path != "" {
		if _, err := Open(path).Lock(context.Background(), 42); err == nil {
			fmt.Println("held")
			time.Sleep(time.Minute) // until the test kills it
		}
		return
	}
	path := filepath.Join(t.TempDir(), "locks")
	cmd := exec.Command(os.Args[0], "-test.run=^TestKilledHolder$")
	cmd.Env = append(os.Environ(), "POSTERN_TEST_LOCK="+path)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = cmd.Wait() }()
	scan := bufio.NewScanner(out)
	for scan.Scan() && scan.Text() != "held" {
	}
	refused(t, Open(path), 42)
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	release, err := Open(path).Lock(ctx, 42)
	if err != nil {
		t.Fatalf("the lock outlived its process: %v", err)
	}
	release()
}

// TestShared: many share a key, nobody has it for its own meanwhile, and whoever waits
// for that isn't passed by others that would share it.
func TestShared(t *testing.T) {
	f := Open(filepath.Join(t.TempDir(), "locks"))
	share := func(ctx context.Context, keys ...int64) (func(), error) { return f.LockWith(ctx, nil, keys) }
	first, err := share(t.Context(), 7)
	if err != nil {
		t.Fatal(err)
	}
	second, err := share(briefly(t), 7, 8)
	if err != nil {
		t.Fatalf("not shared: %v", err)
	}
	refused(t, f, 7)
	second()
	refused(t, f, 7)
	if release, err := f.LockWith(briefly(t), []int64{7}, []int64{7}); err == nil {
		release()
		t.Error("a key of both was shared")
	}
	owned := make(chan func())
	go func() { owned <- take(t, f, 7) }()
	for passed := 0; ; passed++ { // until the one that waits stands in the queue
		release, err := share(briefly(t), 7)
		if err != nil {
			break
		}
		release()
		if passed > 1000 {
			t.Fatal("whoever waits is passed for ever")
		}
		time.Sleep(time.Millisecond)
	}
	first()
	release := <-owned
	if got, err := share(briefly(t), 7); err == nil {
		got()
		t.Error("a key that is owned was shared")
	}
	release()
	if got, err := share(briefly(t), 7); err != nil {
		t.Error(err)
	} else {
		got()
	}
}

// TestNoCircle: callers that name the same keys in any order all get through,
// one at a time.
func TestNoCircle(t *testing.T) {
	f := Open(filepath.Join(t.TempDir(), "locks"))
	var wg sync.WaitGroup
	var inside, through atomic.Int32 // the kernel's order is not one that the race detector knows
	for i := range 16 {
		keys := []int64{1, 2, 3}
		if i%2 == 1 {
			keys = []int64{3, 2, 1}
		}
		wg.Add(1)
		go func() {
			defer wg.Done()
			release, err := f.Lock(t.Context(), keys...)
			if err != nil {
				t.Error(err)
				return
			}
			if inside.Add(1) != 1 {
				t.Error("two held the same lock")
			}
			through.Add(1)
			inside.Add(-1)
			release()
		}()
	}
	wg.Wait()
	if got := through.Load(); got != 16 {
		t.Errorf("%d of 16 got through", got)
	}
}

func TestUnusableFile(t *testing.T) {
	_, err := Open(filepath.Join(t.TempDir(), "missing", "locks")).Lock(t.Context(), 1)
	if fault.CodeOf(err) != fault.IOFailed {
		t.Errorf("error %v", err)
	}
}

// TestTry: what is held is told at once, and what is free is held then.
func TestTry(t *testing.T) {
	f := Open(filepath.Join(t.TempDir(), "locks"))
	release, err := f.Try(7)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.Try(7); fault.CodeOf(err) != fault.LockHeld {
		t.Errorf("%v", err)
	}
	refused(t, f, 7)
	release()
	if release, err = f.Try(7); err != nil {
		t.Fatal(err)
	}
	release()
}
