// SPDX-License-Identifier: Apache-2.0

package enforce

import (
	"context"
	"slices"
	"strings"

	"github.com/postern-gate/postern/core"
	"github.com/postern-gate/postern/core/fault"
	"github.com/postern-gate/postern/core/pathguard"
	"github.com/postern-gate/postern/internal/state/undo"
)

// Person is who takes changes back. Their undo isn't decided by the policy: it
// brings back what was there before. It goes through the same crossing, with
// the same locks, journal and records, stays beneath the roots that the changes
// were made in, follows no link, and touches no file of postern's own.
//
// Subject is what the records say of them. It is the door's own: its source, and
// an agent only where the door is one's by its configuration. Nothing that came
// with a call belongs in it.
type Person struct {
	Subject core.Subject
	Decider Decider  // names what a record may not spell out
	Protect []string // postern's own files
	// Policy finds the policy of the folder where a root lies, which is asked about
	// the names that something gets back. Nil is the Decider for every folder. It has
	// to name the agents that it has rules of their own for, by Agents() []string: one
	// that doesn't gives no name back. One that has Ruled(agent, core.Action) bool as
	// policy.Policy does is asked about an agent only where that is true.
	Policy func(root, path string) (Decider, error)
}

// Undo carries out a plan, the newest change first, and returns what became of
// each step. It is a change itself, under the returned id. A step that can't be
// made is left out, and the others are made.
func (s *State) Undo(ctx context.Context, p *UndoPlan, by Person) (id string, err error) {
	done, err := s.undo.Alone(ctx)
	if err != nil {
		return "", err
	}
	defer done()
	shown := map[undo.Ref]UndoStep{}
	for _, step := range p.Steps {
		shown[step.ref()] = step
	}
	// Somebody else may have undone it meanwhile.
	if err := s.again(ctx, p); err != nil {
		return "", err
	}
	r := undoRun{state: s, by: by, id: newID(), index: p.index, gates: map[opening]*Gate{}, left: map[pathguard.Facts]bool{}, found: map[undo.Place]found{}, needs: p.needs()}
	defer r.close()
	for i := range p.Steps {
		step := &p.Steps[i]
		if was := shown[step.ref()]; was.Problem == UndoFinal { // nobody said yes to more
			step.Problem, step.Why = was.Problem, was.Why
			continue
		}
		if step.Problem != "" && step.Problem != UndoConflict && step.Problem != UndoFinal {
			continue
		}
		if err := ctx.Err(); err != nil {
			return r.used, &fault.Error{Code: fault.Cancelled, Op: "undo", Retry: true, Err: err}
		}
		step.Problem, step.Why = r.step(ctx, i, step.entered)
		step.Done = step.Problem == ""
	}
	return r.used, nil
}

// undoRun is one undo on its way.
type undoRun struct {
	state *State
	by    Person
	id    string
	used  string // the id once something was done under it
	index *undo.Index
	gates map[opening]*Gate
	left  map[pathguard.Facts]bool // what its own steps left
	needs map[string]bool          // images of steps that are not done yet, and what was kept since
	found map[undo.Place]found     // the policy of each root
}

// leave notes what a step left, and what that made of the folders above: none
// of it is a change that somebody made since.
func (r *undoRun) leave(g *Gate, e *undo.Entered, now pathguard.Facts) {
	r.left[now] = true
	for _, p := range e.Places() {
		names, err := g.o.Workspace.Parse(p.String())
		if err != nil || len(names) == 0 {
			continue
		}
		for n, ok := names[0].Parent(); ok; n, ok = n.Parent() {
			r.left[facts(n)] = true
		}
	}
}

func (r *undoRun) close() {
	for _, g := range r.gates {
		closeAll(g.o.Workspace.Roots())
	}
}

// step takes one step back and says what was in the way.
func (r *undoRun) step(ctx context.Context, n int, e *undo.Entered) (problem, why string) {
	g, err := r.gate(e)
	if err != nil {
		return UndoFailed, fault.As(err).Because()
	}
	for _, p := range e.Places() {
		if top, ok := g.top(p.Root); !ok {
			return UndoFailed, "its root can't be named"
		} else if why := e.Astray(p, top); why != "" {
			return UndoConflict, why
		}
	}
	b := takeBack{gate: g, log: r.state.undo, index: r.index, e: e, id: r.id, n: n, left: r.left, needs: r.needs}
	now, err := b.run(ctx)
	if err != nil {
		return inTheWay(e, err, b.lost)
	}
	r.used = r.id
	if !holdsOn(e) {
		delete(r.needs, e.Image)
	}
	for _, image := range b.made {
		r.needs[image] = true
	}
	r.index.Equate(now, e.Was)
	if e.Do == undo.Remove && e.How == "" {
		r.index.Remade(now, e.Was)
	}
	r.leave(g, e, now)
	return "", ""
}

// inTheWay is what an error says of a step; of a name that is not given back with
// what is next.
func inTheWay(e *undo.Entered, err error, lost string) (problem, why string) {
	switch f := fault.As(err); {
	case f.Code == fault.PreconditionFailed && f.Op == opReturn:
		return UndoConflict, f.Because() + "; next: " + f.Next()
	case f.Code == fault.PreconditionFailed:
		return UndoConflict, f.Because()
	case f.Code == fault.PathSymlink, f.Code == fault.PathEscape:
		return UndoConflict, ruleLink
	case f.Code == fault.PathMissing:
		return UndoConflict, missed(e, f.Resource)
	case lost != "":
		return UndoFinal, lost
	default:
		return UndoFailed, f.Because()
	}
}

// missed is why a name of the step leads to nothing.
func missed(e *undo.Entered, name string) string {
	switch {
	case !slices.ContainsFunc(e.Places(), func(p undo.Place) bool { return p.String() == name }):
		return ruleLink // which leads to nothing
	case e.Do == undo.Remove, e.Do == undo.Rename && name == e.String():
		return ruleNoFolder
	}
	return ruleGone
}

// opening is what the gate of a step opens: its root, that of the name it moved
// to, and the mount points that they may enter.
type opening struct {
	root, to undo.Place
	mounts   string
}

func openingOf(e *undo.Entered) opening {
	places := e.Places()
	return opening{rootOf(places[0]), rootOf(places[len(places)-1]), strings.Join(e.Mounts, "\x00")}
}

// gate is one over the roots that a step was made in.
func (r *undoRun) gate(e *undo.Entered) (g *Gate, err error) {
	key := openingOf(e)
	if g := r.gates[key]; g != nil {
		return g, nil
	}
	var roots []*pathguard.Root
	defer func() {
		if err != nil {
			closeAll(roots)
		}
	}()
	for _, at := range slices.Compact([]undo.Place{key.root, key.to}) {
		root, err := pathguard.OpenRoot(at.Path, pathguard.Options{Name: at.Root, Mounts: e.Mounts, Forbidden: []string{r.state.Path()}})
		if err != nil {
			return nil, err
		}
		roots = append(roots, root)
	}
	ws, err := pathguard.NewWorkspace(roots...)
	if err != nil {
		return nil, err
	}
	if err := ws.Protect(append([]string{r.state.Path()}, r.by.Protect...)...); err != nil {
		return nil, err
	}
	g, err = New(Options{
		Workspace: ws, Decider: byPerson{r.by.Decider, r.by.why(), r.policyIn(key)}, Recorder: r.state, Locker: r.state, Keeper: r.state, Subject: r.by.Subject,
	})
	if err != nil {
		return nil, err
	}
	r.gates[key] = g
	return g, nil
}

func closeAll(roots []*pathguard.Root) {
	for _, root := range roots {
		_ = root.Close()
	}
}

// top is the name of a root itself.
func (g *Gate) top(root string) (pathguard.Name, bool) {
	tops, err := g.o.Workspace.Parse(root + "://")
	if err != nil || len(tops) != 1 {
		return pathguard.Name{}, false
	}
	return tops[0], true
}

// byPerson allows what a person does, and knows which names are not told.
type byPerson struct {
	Decider

	why string
	of  policies
}

// why is the reason that the records give.
func (p *Person) why() string {
	if p.Subject.Agent != "" {
		return "a change is taken back, as the door of this agent offers it"
	}
	return "a person takes a change back"
}

func (d byPerson) Evaluate(q core.Request) core.Verdict {
	return core.Verdict{
		Decision: core.Allow,
		Reason:   core.Reason{Decision: core.Allow, Step: core.StepRule, Rule: "undo", Why: d.why},
		Class:    d.Decider.Evaluate(q).Class,
	}
}

func (byPerson) ConfirmRequired(core.Action) bool { return false }
func (byPerson) IfMatchRequired(core.Action) bool { return false }
