// SPDX-License-Identifier: Apache-2.0

package fsserver

import (
	"context"
	"runtime/debug"
	"slices"
	"strings"
	"time"

	"github.com/postern-gate/postern/core"
	"github.com/postern-gate/postern/core/fault"
	"github.com/postern-gate/postern/core/textsafe"
	"github.com/postern-gate/postern/enforce"
	"github.com/postern-gate/postern/internal/mcpserver"
	"github.com/postern-gate/postern/internal/safety"
)

// call is one call on its way through a tool.
type call struct {
	*server
	tool      *tool
	args      arguments
	spellings []string         // the caller's paths
	bad       map[string]error // those that the pre-filter refused, where each stands for itself
	gate      *enforce.Gate
	decider   enforce.Decider // within the client's roots
	message   *mcpserver.Call
	work      *workTime
	session   *mcpserver.Session
	progress  func(done, total float64, message textsafe.Line)
	wide      func(context.Context) (done func(), err error) // waits for a place of the large calls
	held      func()                                         // frees the place that the call has
	isLarge   bool
	roots     view
	found     harvest
	detail    string // what a failure shows of outside text
}

func (c *call) enforceCall() enforce.Call {
	return enforce.Call{DryRun: c.args.dryRun, Confirm: c.args.confirm, IfMatch: c.args.ifMatch}
}

// spelling is the first path of the call, "" without one.
func (c *call) spelling() string {
	if len(c.spellings) == 0 {
		return ""
	}
	return c.spellings[0]
}

// owns reports whether a name is one that the caller sent, in its own spelling
// or in the canonical one, or is above one.
func (c *call) owns(resource string) bool {
	if resource == "" || slices.Contains(c.spellings, resource) {
		return true
	}
	for _, s := range c.spellings {
		names, _ := c.o.Gate.Workspace.Parse(s)
		for _, n := range names {
			if own := n.String(); own == resource || strings.HasPrefix(own, strings.TrimSuffix(resource, "/")+"/") {
				return true
			}
		}
	}
	return false
}

// mayName reports whether a name that the caller didn't send may be told: one
// that listings hide stays hidden.
func (c *call) mayName(resource string) bool {
	names, err := c.o.Gate.Workspace.Parse(resource)
	if err != nil || len(names) != 1 || c.decider == nil {
		return false
	}
	r := core.Request{Subject: c.o.Gate.Subject, Action: core.FSList, Resource: names[0].Resource()}
	return c.decider.Evaluate(r).Decision != core.Deny
}

// canonical is a spelling of the caller's as ROOT://name, if it means one.
func (c *call) canonical(spelling string) string {
	if names, err := c.o.Gate.Workspace.Parse(spelling); err == nil && len(names) == 1 {
		return names[0].String()
	}
	return spelling
}

// call is the one place that every call of every tool goes through: its
// arguments, the pre-filter for each path, the deadline, the answer.
func (s *server) call(ctx context.Context, t *tool, m *mcpserver.Call) mcpserver.Result {
	c := &call{server: s, tool: t, message: m, session: m.Session, progress: m.Progress, wide: m.Large, held: func() {}}
	ctx, work, stop := working(ctx, s.o.CallTime)
	defer stop()
	c.work = work
	if len(m.Arguments.Raw()) > large {
		if err := c.large(ctx); err != nil {
			return s.late(c, false)
		}
	}
	var err error
	if c.args, err = t.read(m.Arguments); err != nil {
		f := *fault.As(err)
		f.Op, f.Resource = core.ToolCall.String(), t.name
		s.record(m.Session, core.ToolCall, core.Resource{Name: t.name, Resolved: true}, &f)
		res := mcpserver.Refusal(&f, f.ID)
		res.Content = []mcpserver.Content{own(f.Lines())}
		return res
	}
	c.spellings = t.spellings(&c.args)
	if f := s.prefilter(c); f != nil {
		c.held()
		return s.refusal(c, *f, enforce.Outcome{}, "")
	}
	return s.await(ctx, c)
}

// large is called before a call takes more than a little memory. It waits for
// one of the few places of such calls, in which the call keeps no small one
// waiting; another time it does nothing. The error is that of ctx.
func (c *call) large(ctx context.Context) error {
	if c.isLarge {
		return nil
	}
	c.held()
	c.held = func() {}
	done, err := c.wide(ctx)
	if err != nil {
		return &fault.Error{Code: fault.Cancelled, Op: c.tool.op().String(), Retry: true, Rule: "too many calls hold large contents", Err: err}
	}
	c.held, c.isLarge = done, true
	return nil
}

// prefilter refuses what no root could hold by its form alone. Of paths that
// stand each for themselves it notes which ones are refused.
func (s *server) prefilter(c *call) *fault.Error {
	for i := range c.tool.params {
		p := &c.tool.params[i]
		for _, path := range p.paths(&c.args) {
			err := s.precheck(path)
			if err == nil && p.file {
				err = s.namesFile(path)
			}
			if err == nil {
				continue
			}
			f := *fault.As(err)
			f.Op = p.use.String()
			s.record(c.session, p.use, core.Resource{Name: path}, &f)
			if !p.each {
				return &f
			}
			if c.bad == nil {
				c.bad = map[string]error{}
			}
			c.bad[path] = &f
		}
	}
	return nil
}

// namesFile refuses a spelling that can only be a directory's, where a file is
// meant: cleaned of its slash it would name one.
func (s *server) namesFile(path string) error {
	if !strings.HasSuffix(path, "/") {
		return nil
	}
	if _, err := s.o.Gate.Workspace.Parse(path); err != nil {
		return err // what is wrong with it beside that
	}
	return &fault.Error{
		Code: fault.RequestInvalid, Resource: path,
		Rule: "a name that ends in a slash is a directory's, and a file is meant", Hint: "leave the slash out",
	}
}

// await runs the call beside the caller, who has to answer at the deadline
// even when the file system doesn't.
func (s *server) await(ctx context.Context, c *call) mcpserver.Result {
	if !c.isLarge {
		place := s.places[c.tool.load]
		select {
		case place <- struct{}{}:
		case <-ctx.Done():
			return s.late(c, false)
		}
		c.held = func() { <-place }
	}
	done := make(chan mcpserver.Result, 1)
	c.session.Go(func() {
		defer func() { c.held() }()
		done <- s.invoke(ctx, c)
	})
	select {
	case res := <-done:
		return res
	case <-ctx.Done():
	}
	wait := callGrace
	if c.changes() {
		wait = changeGrace
	}
	grace := time.NewTimer(wait)
	defer grace.Stop()
	select {
	case res := <-done:
		return res
	case <-grace.C:
		return s.late(c, true)
	}
}

// late answers for a call that doesn't: with what it has found so far.
func (s *server) late(c *call, began bool) mcpserver.Result {
	if r, ok := c.found.reply(); ok {
		return s.result(r)
	}
	f := fault.Error{
		Code: fault.Cancelled, Op: "tool.call", Resource: c.spelling(), Retry: true,
		Rule: "the call ran out of time after " + s.o.CallTime.String(),
	}
	return s.refusal(c, f, enforce.Outcome{MayHaveApplied: began && c.changes()}, "")
}

// changes reports whether the tool may change something.
func (c *call) changes() bool {
	rating, _ := safety.OfCall(c.tool.name)
	return rating.Class != core.ReadOnly
}

// op is what the tool does with its first path, or the call of the tool.
func (t *tool) op() core.Action {
	for i := range t.params {
		if t.params[i].use != core.ActionUnknown {
			return t.params[i].use
		}
	}
	return core.ToolCall
}

// invoke opens the gate for the session and runs the tool. A panic is a bug of
// ours and must not end the process, since this goroutine is nobody else's.
func (s *server) invoke(ctx context.Context, c *call) (res mcpserver.Result) {
	defer func() {
		if p := recover(); p != nil {
			s.o.Log.Error("a tool panicked", "tool", c.tool.name, "panic", p, "stack", string(debug.Stack()))
			res = s.refusal(c, fault.Error{Code: fault.Bug, Op: "tool.call", Resource: c.spelling()}, enforce.Outcome{}, "")
		}
	}()
	c.roots = s.view(ctx, c.session)
	options := s.o.Gate
	options.Subject.Session = c.session.ID()
	options.Asking = func() enforce.Asking { return c.asking(ctx) }
	if options.Approver != nil {
		options.Approver = &sparing{Approver: options.Approver}
	}
	if !c.roots.all {
		options.Decider = narrowed{options.Decider, c.roots}
	}
	c.decider = options.Decider
	var r reply
	var err error
	if c.gate, err = enforce.New(options); err == nil {
		r, err = c.tool.run(ctx, c)
	}
	if err != nil {
		f := *fault.As(err)
		if f.Op == "" {
			f.Op = c.tool.op().String()
		}
		if f.Resource == "" {
			f.Resource = c.spelling()
		}
		if f.Code == fault.RequestInvalid && f.ID == "" {
			s.record(c.session, c.tool.op(), core.Resource{Name: f.Resource}, &f) // no gate has seen it
		}
		return s.refusal(c, f, r.outcome, c.detail)
	}
	return s.result(r)
}
