// SPDX-License-Identifier: Apache-2.0

package enforce

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/postern-gate/postern/core"
	"github.com/postern-gate/postern/core/fault"
	"github.com/postern-gate/postern/core/policy"
	"github.com/postern-gate/postern/core/textsafe"
	"github.com/postern-gate/postern/internal/spell"
	"github.com/postern-gate/postern/internal/state/grant"
)

// maxWaits bounds how many calls of one process wait for a person at once. The
// next ones are refused with the command that approves them.
const maxWaits = 8

// ApprovalOptions say how people are asked.
type ApprovalOptions struct {
	// Times returns how long a call waits for a person who is there, and until
	// when a question can be answered and its yes be used. It is called for each
	// question.
	Times func() (wait, deadline time.Duration)
	// Policy, if set, returns the version of the policy in force, as the gate's
	// Decider does. When it is another one than before, every question and every yes
	// under that one ends that is about Folders alone (paths without links), and so does what an
	// earlier process with the same Door, unless that is "", has left of another
	// version.
	Policy  func() string
	Folders []string
	Door    string
	// Clock is for tests; the zero value is the system's.
	Clock grant.Clock
	// Step is for tests; see grant.Options.
	Step func(string)
}

// Approvals ask people through the state directory: whoever runs `postern
// pending --watch`, or answers later with `postern approve`. It is an Approver.
type Approvals struct {
	state  *State
	store  *grant.Store
	times  func() (wait, deadline time.Duration)
	waits  chan struct{}
	door   string
	policy *follower // nil where nobody says when it changes

	mu   sync.Mutex
	self *grant.Presence // once there was a question
}

var _ Approver = (*Approvals)(nil)

// Approvals returns the approver of this state directory. Close it before the
// state.
func (s *State) Approvals(o ApprovalOptions) *Approvals {
	a := &Approvals{
		state: s, times: o.Times, waits: make(chan struct{}, maxWaits), door: o.Door,
		store: grant.Open(s.Path(), grant.Options{Clock: o.Clock, Step: o.Step, Record: s.noteAs("")}),
	}
	if o.Policy != nil {
		a.policy = follow(a.store, &o)
	}
	return a
}

// Grants returns the questions and answers of this state directory, for a
// person's commands. source is the door that the records name.
func (s *State) Grants(source string) *grant.Store {
	return grant.Open(s.Path(), grant.Options{Record: s.noteAs(source)})
}

// Close ends the session of this process: its questions and yeses are over.
func (a *Approvals) Close() error {
	if a.policy != nil {
		a.policy.close()
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.self == nil {
		return nil
	}
	err := a.self.Leave()
	a.self = nil
	return errors.Join(err, a.store.Sweep(context.Background()))
}

// process is the name of the locked file that proves that this process lives.
func (a *Approvals) process(ctx context.Context) (string, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.self == nil {
		var err error
		if a.self, err = a.store.Appear(ctx); err != nil {
			return "", err
		}
	}
	return a.self.Name, nil
}

// permission is a yes that was found or given.
type permission struct {
	a *Approvals
	g *grant.Grant
}

// Approve looks for a yes, and else asks: it waits where somebody is there, and
// otherwise refuses with the command that approves it.
func (a *Approvals) Approve(ctx context.Context, q *Question) (Permission, error) {
	b, err := a.binding(ctx, q)
	if err != nil {
		return nil, err
	}
	found := a.store.Find(b)
	if found.Near && found.Grant == nil {
		if err := q.hash(b); err != nil {
			return nil, err
		}
		found = a.store.Find(b)
	}
	switch {
	case found.Paused:
		return nil, q.paused(b.Agent, grant.PausedRule)
	case found.Grant != nil:
		return &permission{a, found.Grant}, nil
	case found.No != nil:
		return nil, q.denied(found.No, "a person said no to the same question in this session at "+found.No.Given.Wall.Local().Format(time.TimeOnly))
	case q.DryRun:
		return nil, q.refused(fault.PolicyAsk, q.Verdict.Reason.String()+"; a dry run asks nobody", "call it without dry_run to ask")
	}
	return a.ask(ctx, q, b, found.Stale)
}

func (a *Approvals) ask(ctx context.Context, q *Question, b *grant.Binding, stale bool) (Permission, error) {
	if err := q.hash(b); err != nil {
		return nil, err
	}
	wait, life := a.times()
	asked, err := a.put(ctx, q, b, life)
	if err != nil {
		return nil, err
	}
	if !q.NoWait && wait > 0 {
		answer, err := a.wait(ctx, q, asked, wait)
		switch {
		case err != nil:
			return nil, err
		case answer == nil && a.store.Why(asked.ID) == grant.PolicyChanged:
			return nil, q.outdated(asked)
		case answer == nil:
			if asked, err = a.put(ctx, q, b, life); err != nil { // it may have been answered for another call
				return nil, err
			}
		case answer.Kind == grant.No && a.store.Find(b).Paused:
			return nil, q.paused(b.Agent, grant.NoPausedRule)
		case answer.Kind == grant.No:
			return nil, q.denied(answer, saidNo)
		default:
			return &permission{a, answer}, nil
		}
	}
	return nil, q.unanswered(asked, stale)
}

// put puts the question, unless it waits already.
func (a *Approvals) put(ctx context.Context, q *Question, b *grant.Binding, life time.Duration) (*grant.Question, error) {
	asked, err := a.store.Waiting(ctx, b)
	if asked == nil && err == nil {
		asked, err = a.store.Ask(ctx, *b, q.card(b), q.Corr, life)
	}
	if err != nil && a.store.Find(b).Paused { // meanwhile
		err = q.paused(b.Agent, grant.PausedRule)
	}
	if err == nil {
		err = a.policy.still(ctx, q, asked)
	}
	return asked, err
}

// wait waits for a person who is there. It returns nothing when nobody is, or
// nobody answers in time; a wait that is cancelled is told.
func (a *Approvals) wait(ctx context.Context, q *Question, asked *grant.Question, most time.Duration) (*grant.Grant, error) {
	if !a.store.Attended(ctx) {
		return nil, nil //nolint:nilnil // nobody answers
	}
	select {
	case a.waits <- struct{}{}:
		defer func() { <-a.waits }()
	default:
		return nil, nil //nolint:nilnil // too many wait already
	}
	back := func() error { return nil }
	if q.Aside != nil {
		back = q.Aside()
	}
	answer, err := a.await(ctx, q, asked, most)
	return answer, cmp.Or(err, back())
}

func (a *Approvals) await(ctx context.Context, q *Question, asked *grant.Question, most time.Duration) (*grant.Grant, error) {
	timed, cancel := context.WithTimeout(ctx, most)
	defer cancel()
	answer := a.store.Wait(timed, asked, q.telling(asked.ID, most))
	if answer == nil && ctx.Err() != nil {
		_ = a.state.noteAs("")(grant.Note{ // nothing happens for it, recorded or not
			Event: "withdrawn", ID: asked.ID, Corr: q.Corr, For: asked.For, Reason: "the call was cancelled while a person was asked",
		})
		return nil, &fault.Error{Code: fault.Cancelled, Rule: "the call was cancelled while a person was asked", Err: ctx.Err()}
	}
	return answer, nil
}

// tellEvery is how often a client hears that its call waits.
const tellEvery = time.Second

// telling tells the client that its call waits, and returns what goes on telling.
func (q *Question) telling(id string, most time.Duration) (tick func()) {
	if q.Progress == nil {
		return func() {}
	}
	what := textsafe.Clean("a person is asked, postern approve " + id + ": " + q.Request.Action.String() + " " + textsafe.Name(q.Request.Resource.String()))
	began := time.Now()
	told := began
	q.Progress(0, most, what)
	return func() {
		if now := time.Now(); now.Sub(told) >= tellEvery {
			told = now
			q.Progress(now.Sub(began), most, what)
		}
	}
}

// Spend uses the yes.
func (p *permission) Spend(ctx context.Context, now *Question) (string, error) {
	b, err := p.a.binding(ctx, now)
	if err == nil && p.g.Kind == grant.Once { // what the objects hold counts too
		err = now.hash(b)
	}
	if err != nil {
		return "", err
	}
	t, err := p.a.store.Spend(ctx, p.g.ID, b, now.Corr)
	return t.Corr(), err
}

// Reaches is no of what a pattern doesn't name.
func (p *permission) Reaches(r core.Resource) bool { return p.g.Reaches(r.String()) }

// binding is the question as the store keeps it, without what the objects hold.
func (a *Approvals) binding(ctx context.Context, q *Question) (*grant.Binding, error) {
	s := q.Request.Subject
	b := &grant.Binding{
		Asker:  grant.Asker{Agent: s.Agent, Session: q.HostSession, Host: q.HostSession != "", Source: s.Source},
		Server: q.Server, Tool: q.Tool, Class: q.Class.String(), Arguments: q.Arguments,
		More: q.More, Tree: q.Tree, Private: q.Listed, Policy: q.Policy, Door: a.door,
	}
	if !b.Host {
		var err error
		b.Session = s.Session
		if b.Process, err = a.process(ctx); err != nil {
			return nil, err
		}
	}
	b.Mounts = q.Mounts
	for _, r := range q.Roots {
		b.Roots = append(b.Roots, grant.Root(r))
	}
	for _, o := range q.Operations {
		b.Operations = append(b.Operations, grant.Operation{Action: o.Action.String(), Resource: o.Resource.String(), List: o.List})
	}
	for _, o := range q.Objects {
		b.Objects = append(b.Objects, grant.Object{Name: o.Resource.String(), State: o.State})
	}
	return b, nil
}

// hash completes a binding with what the objects hold.
func (q *Question) hash(b *grant.Binding) error {
	for i := range q.Objects {
		sum, err := q.Objects[i].Hash()
		if err != nil {
			return err
		}
		b.Objects[i].Hash = sum
	}
	return nil
}

// card is what is shown beside the binding; a change has the room that all else
// leaves.
func (q *Question) card(b *grant.Binding) grant.Card {
	c := grant.Card{Rule: q.Verdict.Reason.String(), Undo: q.Undo}
	spelled := func(all []Detail) (fields []grant.Field) {
		for _, d := range all {
			text, n := spell.Out(d.Text, false)
			fields, c.Hidden = append(fields, grant.Field{Name: d.Name, Text: text}), c.Hidden+n
		}
		return fields
	}
	c.Details, c.Says = spelled(q.Details), spelled(q.Says)
	if q.Change != nil {
		change, unshown := q.Change()
		text, n := spell.Out(change, true)
		text, cut := cutChange(text, grant.MaxQuestion-c.Size(b))
		c.Change, c.Unshown, c.Hidden = text, cmp.Or(unshown, cut), c.Hidden+n
	}
	return c
}

// noteAs records what happened to questions and answers. Where source is
// empty, it is that of who asked. A person's word is on disk when it returns.
func (s *State) noteAs(source string) func(grant.Note) error {
	return func(n grant.Note) error {
		e := core.Event{
			Time: time.Now(), Phase: core.PhaseApproval, Corr: n.Corr, Policy: n.For.Policy,
			Subject:  core.Subject{Agent: n.For.Agent, Session: n.For.Session, Source: n.For.Source, Level: core.LevelSDK},
			Approval: core.Approval{Event: string(n.Event), ID: n.ID, Kind: string(n.Kind), Approver: n.Approver, Shown: n.Shown},
			Verdict:  noteVerdict(n),
		}
		if source != "" {
			e.Subject.Source = source
		}
		if e.Corr == "" {
			e.Corr = newID()
		}
		if len(n.For.Operations) > 0 {
			o := n.For.Operations[0]
			e.Action, _ = core.ParseAction(o.Action)
			root, name, _ := strings.Cut(o.Resource, "://")
			e.Resource, e.File = core.File(root, name), e.Action.IsFile()
			if !policy.RunsByItself(o.List) { // such a name is no secret
				e.Class = o.List
			}
			if i := slices.IndexFunc(n.For.Roots, func(r grant.Root) bool { return r.Name == root }); i >= 0 {
				e.Folder = n.For.Roots[i].Path
			}
		}
		person := n.Event != grant.Asked && n.Event != grant.Spent && n.Event != grant.Expired && n.Event != "withdrawn"
		return s.Record(e, person)
	}
}

func noteVerdict(n grant.Note) core.Verdict {
	v := core.Verdict{Decision: core.Deny}
	switch n.Event {
	case grant.Asked:
		v.Decision = core.Ask
	case grant.Approved, grant.Spent, grant.Resumed:
		v.Decision = core.Allow
	default:
	}
	v.Reason = core.Reason{Decision: v.Decision, Why: n.Reason}
	if n.Reason == "" {
		v.Reason.Why = map[grant.Event]string{
			grant.Approved: "a person said yes", grant.Denied: "a person said no", grant.Spent: "a person's yes",
			grant.Revoked: "a person took it back", grant.Paused: "a person paused the agent", grant.Resumed: "a person resumed the agent",
		}[n.Event]
	}
	return v
}
