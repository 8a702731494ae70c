// SPDX-License-Identifier: Apache-2.0

package fsserver

import (
	"context"
	"errors"
	"sync"
	"time"
)

// workTime ends the context of a call that has worked for as long as it may.
// While a person is asked it stands still.
type workTime struct {
	end context.CancelCauseFunc

	mu    sync.Mutex
	timer *time.Timer
	left  time.Duration
	since time.Time
}

// working returns a context that ends when the call has worked for most. stop
// must be called.
func working(ctx context.Context, most time.Duration) (_ context.Context, w *workTime, stop func()) {
	w = &workTime{left: most, since: time.Now()}
	ctx, w.end = context.WithCancelCause(ctx)
	w.timer = time.AfterFunc(most, w.over)
	return ctx, w, func() {
		w.timer.Stop()
		w.end(nil)
	}
}

func (w *workTime) over() { w.end(context.DeadlineExceeded) }

// pause stops the time until the function that it returns is called.
func (w *workTime) pause() (goOn func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.timer.Stop() {
		return func() {} // it is over
	}
	w.left = max(0, w.left-time.Since(w.since))
	return func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.since = time.Now()
		w.timer.Reset(w.left)
	}
}

// ranOut reports whether err comes from the end of a call's time.
func ranOut(ctx context.Context, err error) bool {
	return errors.Is(err, context.DeadlineExceeded) ||
		errors.Is(err, context.Canceled) && errors.Is(context.Cause(ctx), context.DeadlineExceeded)
}
