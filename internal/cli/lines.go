// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"time"

	"github.com/postern-gate/postern/core/fault"
	"github.com/postern-gate/postern/enforce"
	"github.com/postern-gate/postern/internal/prompt"
)

// maxHeld bounds what is kept while a question is on the terminal, in bytes.
const maxHeld = 256 << 10

// turns says whose turn it is on a terminal: a question's, or that of lines,
// which are kept meanwhile. Nobody who writes a line waits for a person.
type turns struct {
	mu   sync.Mutex
	held bool
	kept []line
	size int
	lost int
}

type line struct {
	to   io.Writer
	text string
}

// lines are what is written to a terminal between questions.
type lines struct {
	to    io.Writer
	turns *turns
}

func (l *lines) Write(p []byte) (int, error) {
	t := l.turns
	t.mu.Lock()
	defer t.mu.Unlock()
	switch {
	case !t.held:
		return l.to.Write(p)
	case t.size+len(p) > maxHeld:
		t.lost += len(p)
	default:
		t.size += len(p)
		t.kept = append(t.kept, line{l.to, string(p)})
	}
	return len(p), nil
}

// hold keeps lines back until release.
func (t *turns) hold() (release func()) {
	t.mu.Lock()
	t.held = true
	t.mu.Unlock()
	return func() {
		t.mu.Lock()
		defer t.mu.Unlock()
		for _, l := range t.kept {
			_, _ = io.WriteString(l.to, l.text)
		}
		if t.lost > 0 && len(t.kept) > 0 {
			fmt.Fprintf(t.kept[0].to, "%d bytes are not shown; postern log has every record\n", t.lost)
		}
		t.held, t.kept, t.size, t.lost = false, nil, 0, 0
	}
}

// aside is env with lines that step aside for questions, where there can be any.
func (o *serveOptions) aside(env *Env) *Env {
	if o.json || env.Terminal == nil || !onTerminal(env.Err) || agentMark(env) != "" {
		return env
	}
	with, t := *env, new(turns)
	with.Err = &lines{env.Err, t}
	if onTerminal(env.Out) {
		with.Out = &lines{env.Out, t}
	}
	return &with
}

// beside is what up has on a terminal beside its lines: the page, and the
// questions of agents. It goes on until stop.
func (o *serveOptions) beside(ctx context.Context, env *Env, w *workspace, state *enforce.State, interrupt func()) (stop func()) {
	l, ok := env.Err.(*lines)
	if !ok {
		return func() {}
	}
	closePage := func() {}
	if p, err := o.openPage(ctx, env, w, state); err == nil {
		p.say(env)
		closePage = func() { p.close(ctx) }
	} else {
		report(env.Err, err, false)
	}
	ctx, cancel := context.WithCancel(ctx)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		err := deskOf(state).Beside(ctx, env.Terminal, l.turns.hold)
		switch {
		case errors.Is(err, prompt.ErrInterrupted):
			interrupt()
		case err != nil && ctx.Err() == nil:
			fmt.Fprintln(env.Err, "questions are not shown here any more: "+strings.ReplaceAll(fault.As(err).Lines(), "\n", ", "))
		}
	}()
	return func() {
		cancel()
		select {
		case <-ended:
		case <-time.After(lastWords): // the terminal takes no more lines
		}
		closePage()
	}
}
