// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"errors"
	"io/fs"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"github.com/postern-gate/postern/core"
	"github.com/postern-gate/postern/core/fault"
	"github.com/postern-gate/postern/core/pathguard"
	"github.com/postern-gate/postern/enforce"
)

// judge decides one request as the doors do: every name that it leads over,
// the strictest decision holds, and what a guard refuses is denied.
type judge struct {
	w       *workspace
	request core.Request // its resource is the canonical name once it is found
	verdict core.Verdict
	decided core.Request // the one that decided
	code    fault.Code
	judged  bool
	guard   bool // a guard refused, not the policy
	new     bool // nothing has the name that would be written
	file    bool // a file has it
	// other decides instead of the policy in force; nil for that.
	other enforce.Decider
}

func (j *judge) decider() enforce.Decider {
	if j.other != nil {
		return j.other
	}
	return j.w.live
}

// find looks the resource up and judges it. Its error is about a request that
// means nothing.
func (j *judge) find(ctx context.Context, o *options, spelling string, destination ...string) error {
	switch {
	case j.request.Action.IsFile():
		err := j.findFile(ctx, o, spelling)
		if err == nil && len(destination) > 0 {
			err = j.movable(ctx, o, spelling, destination[0])
		}
		return err
	case j.request.Action == core.ProcExec:
		path, err := findProgram(spelling)
		if err != nil {
			return err
		}
		j.add(core.Resource{Name: path, Resolved: true})
	case j.request.Action == core.ToolCall:
		server, tool, ok := strings.Cut(spelling, "/")
		if !ok || server == "" || tool == "" {
			return usage("postern check", "a tool is written as server/tool", "")
		}
		j.add(core.File(server, tool))
	default:
		j.add(core.Resource{Name: spelling, Resolved: spelling != ""})
	}
	return nil
}

// add judges one more name.
func (j *judge) add(r core.Resource) {
	j.request.Resource = r
	j.beside(r)
}

// beside judges a name that goes with the one asked about.
func (j *judge) beside(r core.Resource) {
	q := j.request
	q.Resource = r
	v := j.decider().Evaluate(q)
	if j.judged && v.Decision >= j.verdict.Decision {
		return
	}
	j.judged, j.verdict, j.decided = true, v, q
	switch v.Decision {
	case core.Allow:
		j.code = fault.OK
	case core.Ask:
		j.code = fault.PolicyAsk
	default:
		j.code = fault.PolicyDenied
	}
}

// refuse takes over what a guard or the crossing refuses beyond what is known.
// Their failures say nothing about what is allowed, but for a directory too
// large to be judged.
func (j *judge) refuse(err error) {
	f := fault.As(err)
	if f == nil || f.Code.Kind() != fault.KindDenial && f.Code != fault.LimitExceeded {
		return
	}
	v := core.Verdict{Reason: core.Reason{Step: core.StepContainment, Why: f.Because()}}
	if f.Code == fault.PolicyAsk {
		v.Decision, v.Reason.Decision = core.Ask, core.Ask
	}
	if j.judged && j.verdict.Decision <= v.Decision {
		return
	}
	j.judged, j.guard, j.code, j.decided, j.verdict = true, true, f.Code, j.request, v
}

// maxHops is that of the crossing.
const maxHops = 40

func (j *judge) findFile(ctx context.Context, o *options, spelling string) error {
	j.request.Resource = core.Resource{Name: spelling}
	names, err := j.w.Parse(spelling)
	if err != nil {
		j.refuse(err)
		return nil
	}
	name, err := j.choose(names)
	if err != nil {
		j.refuse(err)
		return nil
	}
	for range maxHops + 1 {
		j.add(name.Resource())
		err := j.reach(ctx, name)
		var link *pathguard.LinkError
		if !errors.As(err, &link) {
			j.refuse(err)
			return j.readable(ctx, o, name)
		}
		name = link.To
	}
	j.refuse(&fault.Error{Code: fault.PathSymlink, Rule: "too many links"})
	return nil
}

// choose picks the root of a relative name as the crossing does.
func (j *judge) choose(names []pathguard.Name) (pathguard.Name, error) {
	if len(names) == 1 {
		return names[0], nil
	}
	var hits []pathguard.Name
	before, barred := *j, false
	for _, n := range names {
		barred = barred || j.bars(n)
		j.beside(n.Resource())
		if _, err := n.Lstat(); !errors.Is(err, fs.ErrNotExist) {
			hits = append(hits, n)
		}
	}
	if len(hits) == 1 && !barred {
		*j = before // the others are not asked about; this one is judged again
	}
	if len(hits) != 1 {
		return pathguard.Name{}, &fault.Error{Code: fault.PathDenied, Rule: "several roots could have such a name: write it as ROOT://name"}
	}
	return hits[0], nil
}

// bars reports whether the crossing goes no further than this candidate. Whether a
// file would be written or made is not known yet.
func (j *judge) bars(n pathguard.Name) bool {
	q := j.request
	q.Resource = n.Resource()
	actions := []core.Action{q.Action}
	if q.Action == core.FSWrite || q.Action == core.FSCreate {
		actions = []core.Action{core.FSWrite, core.FSCreate}
	}
	return !slices.ContainsFunc(actions, func(a core.Action) bool {
		q.Action = a
		return j.decider().Evaluate(q).Decision != core.Deny
	})
}

// reach goes to the name as the action would, without effect.
func (j *judge) reach(ctx context.Context, name pathguard.Name) error {
	switch j.request.Action {
	case core.FSWrite:
		return j.pin(name)
	case core.FSCreate:
		err := j.pin(name)
		if errors.Is(err, fs.ErrNotExist) {
			j.above(name)
		}
		return err
	case core.FSRename, core.FSDelete:
		target, err := name.PinEntry()
		if err != nil {
			return err
		}
		defer target.Close()
		return target.Descendants(ctx, maxDescendants, func(n pathguard.Name, _ pathguard.Info) error {
			j.beside(n.Resource())
			return nil
		})
	default:
		_, err := name.Stat()
		return err
	}
}

// canHold reports whether the folders of a name are there or could be made.
func canHold(name pathguard.Name) bool {
	for up, ok := name.Parent(); ok; up, ok = up.Parent() {
		if info, err := up.Lstat(); !errors.Is(err, fs.ErrNotExist) {
			return err == nil && info.Kind == pathguard.KindDir
		}
	}
	return true
}

// maxDescendants is the crossing's default.
const maxDescendants = 10_000

func (j *judge) pin(name pathguard.Name) error {
	t, err := name.Pin()
	if err != nil {
		j.new = errors.Is(err, fs.ErrNotExist) && canHold(name)
		return err
	}
	j.new, j.file = !t.Exists(), t.Info().Kind == pathguard.KindFile
	return t.Close()
}

// above judges the directories that would have to be made first.
func (j *judge) above(name pathguard.Name) {
	for up, ok := name.Parent(); ok; up, ok = up.Parent() {
		if _, err := up.Lstat(); !errors.Is(err, fs.ErrNotExist) {
			return
		}
		j.beside(up.Resource())
	}
}

// readable lets the crossing open a file that would be read, since there are
// rules about what a file holds. A directory is asked about for all in it.
func (j *judge) readable(ctx context.Context, o *options, name pathguard.Name) error {
	if j.request.Action != core.FSRead || j.verdict.Decision == core.Deny {
		return nil
	}
	if info, err := name.Stat(); err != nil || info.Kind == pathguard.KindDir {
		return nil //nolint:nilerr // what is not there is judged by its name
	}
	gate, err := j.gate(o, nil)
	if err != nil {
		return err
	}
	file, err := gate.Open(ctx, name.String())
	if err != nil {
		j.refuse(err)
		return nil
	}
	return file.Close()
}

// movable lets the crossing try a move without effect: the new name is judged
// too, and with both all that lies beneath.
func (j *judge) movable(ctx context.Context, o *options, source, destination string) error {
	j.newName(destination)
	var asked noted
	gate, err := j.gate(o, &asked)
	if err != nil {
		return err
	}
	_, err = gate.Move(ctx, source, destination, enforce.Call{DryRun: true, Confirm: true})
	if q := asked.question; q != nil && j.verdict.Decision > core.Ask {
		j.verdict, j.code, j.decided = q.Verdict, fault.PolicyAsk, q.Request
		for _, op := range q.Operations {
			asks := q.Request
			asks.Action, asks.Resource = op.Action, op.Resource
			if j.decider().Evaluate(asks).Reason == q.Verdict.Reason {
				j.decided = asks
				break
			}
		}
		return nil
	}
	before := j.verdict
	j.refuse(err)
	if f := fault.As(err); f != nil && j.verdict != before && f.Resource != "" && f.Resource != j.request.Resource.String() {
		j.decided.Resource = core.Resource{Name: f.Resource}
	}
	return nil
}

// newName judges the other name of a move, which may be one that can't be made as
// things are.
func (j *judge) newName(destination string) {
	names, err := j.w.Parse(destination)
	if j.refuse(err); err != nil || len(names) != 1 {
		return
	}
	asked := j.request.Action
	for _, a := range []core.Action{core.FSRename, core.FSWrite, core.FSCreate} {
		j.request.Action = a
		j.beside(names[0].Resource())
	}
	j.request.Action = asked
}

// noted notes what a person would be asked.
type noted struct{ question *enforce.Question }

func (n *noted) Approve(_ context.Context, q *enforce.Question) (enforce.Permission, error) {
	n.question = q
	return nil, &fault.Error{Code: fault.PolicyAsk}
}

// gate is one behind which nothing is recorded or changed.
func (j *judge) gate(o *options, approver enforce.Approver) (*enforce.Gate, error) {
	parts := o.gate(j.w, unrecorded{}, unlocked{}, approver)
	parts.Subject, parts.Decider = j.request.Subject, j.decider()
	return enforce.New(parts)
}

// unrecorded and unlocked stand in where nothing is done.
type unrecorded struct{}

func (unrecorded) Record(core.Event, bool) error { return nil }

type unlocked struct{}

func (unlocked) LockWith(context.Context, []int64, []int64) (func(), error) {
	return func() {}, nil
}

// findProgram resolves as a shell would and then follows links: a rule is
// about the program that runs, not about a name for it.
func findProgram(spelling string) (string, error) {
	path, err := exec.LookPath(spelling)
	if err != nil {
		return "", &fault.Error{
			Code: fault.PathMissing, Op: core.ProcExec.String(), Resource: spelling,
			Rule: "there is no such program", Hint: "give its path, or set PATH",
		}
	}
	if path, err = filepath.Abs(path); err == nil {
		path, err = filepath.EvalSymlinks(path)
	}
	if err != nil {
		return "", &fault.Error{Code: fault.PathMissing, Op: core.ProcExec.String(), Resource: spelling, Err: err}
	}
	return path, nil
}
