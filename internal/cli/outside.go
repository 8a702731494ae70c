// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/postern-gate/postern/core/fault"
	"github.com/postern-gate/postern/enforce"
	"github.com/postern-gate/postern/internal/state/audit"
	"github.com/postern-gate/postern/internal/state/audit/records"
	"github.com/postern-gate/postern/internal/watch"
)

// notWatched is said where the system can't tell of changes beneath a folder.
const notWatched = "what other programs change beneath the roots is not watched on this system"

// outside records what other programs change beneath the roots, until stop. What
// is not seen is said, and nothing waits for it.
func (o *serveOptions) outside(ctx context.Context, env *Env, w *workspace, state *enforce.State) (stop func()) {
	seen, err := state.WatchOutside(ctx, enforce.OutsideOptions{Workspace: w.Workspace, Decider: w.live})
	switch {
	case errors.Is(err, watch.ErrNoTree):
		fmt.Fprintln(env.Err, notWatched)
		return func() {}
	case err != nil:
		f := *fault.As(err)
		f.Op = "watch the roots"
		report(env.Err, &f, false)
		return func() {}
	}
	ended := make(chan struct{})
	ctx, cancel := context.WithCancel(ctx)
	go func() {
		defer close(ended)
		select {
		case <-ctx.Done():
			return
		case <-seen.Ready():
		}
		_, limits := seen.Extent()
		text := "what other programs change in " + counted(len(w.Roots()), "folder") + " is counted: postern undo list"
		if limits != "" {
			text += "; " + limits
		}
		fmt.Fprintln(env.Err, text)
	}()
	return func() {
		cancel()
		<-ended
		seen.Close()
	}
}

// shownByUp reports whether up has a line for the record: an intent is told by
// its outcome, and what other programs change is no decision.
func (o *serveOptions) shownByUp(e *records.Entry) bool {
	return e.Err == nil && e.Record.Event != string(audit.Intent) && (o.json || e.Record.Source != enforce.WatcherSource)
}

type outsideJSON struct {
	Files   int64     `json:"files"`
	Since   time.Time `json:"since"`
	Watched bool      `json:"watched"` // a watcher ran at all
	Missed  bool      `json:"missed"`  // there may be more
}

// outsideOf counts what other programs changed since the listed changes began.
// A log that can't be read is not a reason to list nothing.
func outsideOf(ctx context.Context, state *enforce.State, listed []enforce.UndoEntry) (*outsideJSON, error) {
	c, err := state.OutsideOf(ctx, listed, time.Now())
	if err != nil {
		return nil, ctx.Err()
	}
	out := outsideJSON(c)
	return &out, nil
}

func (c *outsideJSON) print(w io.Writer) {
	if c == nil {
		fmt.Fprintln(w, "what changed outside the guard is not known: the log can't be read")
		return
	}
	since := " since " + c.Since.Local().Format(time.DateTime) + ", as far as postern up saw it"
	switch {
	case c.Files > 0 && c.Missed:
		fmt.Fprintln(w, "at least "+counted(int(c.Files), "file")+" changed outside the guard, in all folders,"+since)
	case c.Files > 0:
		fmt.Fprintln(w, counted(int(c.Files), "file")+" changed outside the guard, in all folders,"+since)
	case c.Missed:
		fmt.Fprintln(w, "files may have changed outside the guard, in all folders,"+since)
	}
}
