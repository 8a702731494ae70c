// SPDX-License-Identifier: Apache-2.0

package fsserver

import (
	"context"
	"encoding/hex"
	"strconv"
	"strings"
	"time"

	"github.com/postern-gate/postern/core/fault"
	"github.com/postern-gate/postern/core/textsafe"
	"github.com/postern-gate/postern/enforce"
	"github.com/postern-gate/postern/internal/fsserver/edit"
	"github.com/postern-gate/postern/internal/mcpwire"
	"github.com/postern-gate/postern/internal/safety"
)

// ownServer is what approvals call this server: its tools are built in, so
// that no other program can have its name.
const ownServer = "postern"

// asking is what a person is shown of the call, and a yes bound to, beside its
// paths and what it writes.
func (c *call) asking(ctx context.Context) enforce.Asking {
	rating, _ := safety.OfCall(c.tool.name)
	a := enforce.Asking{
		Server: ownServer, Tool: c.tool.name, Class: rating.Class, HostSession: c.message.HostSession, Diff: edit.Diff,
		NoWait: c.isLarge, Aside: func() func() error { return c.aside(ctx) }, Progress: c.personAsked,
		Digest: func() string {
			sum := mcpwire.Digest(c.message.Arguments, safety.ShownOnly(ownServer, c.tool.name)...)
			return hex.EncodeToString(sum[:])
		},
	}
	client := c.session.Client()
	if says := strings.TrimSpace(client.Name.String() + " " + client.Version.String()); says != "" {
		a.Says = []enforce.Detail{{Name: "client", Text: says}}
	}
	return a
}

// aside takes the call out of work while a person is asked: its time stands
// still, and it keeps no other call waiting.
func (c *call) aside(ctx context.Context) (back func() error) {
	goOn := c.work.pause()
	c.held()
	c.held = func() {}
	again := c.message.Aside(ctx)
	return func() error {
		err := again()
		goOn()
		if err != nil {
			return err
		}
		place := c.places[c.tool.load]
		select {
		case place <- struct{}{}:
			c.held = func() { <-place }
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// personAsked tells the client what a person is asked, and for how long.
func (c *call) personAsked(waited, most time.Duration, what textsafe.Line) {
	c.progress(waited.Seconds(), most.Seconds(), what)
}

// maxUnanswered is how many of its questions one call may leave to be answered
// later, so that it leaves room for others.
const maxUnanswered = 8

// sparing is the approver of one call. Its crossings come one after the other.
type sparing struct {
	enforce.Approver

	unanswered int
}

// Approve asks until there are enough questions.
func (s *sparing) Approve(ctx context.Context, q *enforce.Question) (enforce.Permission, error) {
	if s.unanswered == maxUnanswered {
		return nil, &fault.Error{
			Code: fault.PolicyAsk, Op: q.Request.Action.String(), Resource: q.Request.Resource.String(), Retry: true,
			Rule: q.Verdict.Reason.String() + ", and one call asks about " + strconv.Itoa(maxUnanswered) + " things at most",
			Hint: "ask about fewer at a time, or call again when a person has answered",
		}
	}
	yes, err := s.Approver.Approve(ctx, q)
	if err != nil {
		s.unanswered++
	}
	return yes, err
}
