// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"slices"

	"github.com/postern-gate/postern/core"
	"github.com/postern-gate/postern/core/fault"
	"github.com/postern-gate/postern/enforce"
	"github.com/postern-gate/postern/internal/config"
)

// person is who takes changes back, at the command line or on the page.
func (o *options) person(env *Env, w *workspace, source string) enforce.Person {
	return enforce.Person{
		Subject: core.Subject{Source: source, Level: core.LevelSDK}, Decider: w.live,
		Protect: append([]string{w.self}, w.live.Current().Places()...),
		Policy:  func(root, path string) (enforce.Decider, error) { return o.policyIn(env, w, root, path) },
	}
}

// policyIn is the policy that names beneath a root are judged by: what is here, where
// that guards the folder, else as if this ran there.
func (o *options) policyIn(env *Env, w *workspace, root, path string) (enforce.Decider, error) {
	if d := w.guards(root, path); d != nil {
		return d, nil
	}
	return o.policyThere(env, root, path)
}

// policyThere is the policy that a root is judged by, as if this ran there.
func (o *options) policyThere(env *Env, root, path string) (enforce.Decider, error) {
	at, there := *o, *env
	var err error
	if at.policy, err = absoluteFrom(env, o.policy); err != nil {
		return nil, err
	}
	there.Getwd = func() (string, error) { return path, nil }
	w, err := at.loadHere(&there)
	if err != nil {
		f := *fault.As(err)
		if f.Code == fault.ConfigInvalid {
			f.Rule = "the policy there can't be read: " + whereInvalid(err)
		}
		f.Hint = "run postern status there, and mend what it names"
		return nil, &f
	}
	if d := w.guards(root, path); d != nil {
		return d, nil
	}
	return nil, &fault.Error{
		Code: fault.RequestInvalid, Op: "undo", Resource: path, Rule: "the policy names the roots, and this folder is none of them",
		Hint: "name it there under roots, or give the policy that it was served by with --policy",
	}
}

// guards is the policy for a root that lies there, nil where none does. Of several
// folders that were served at once each had its own name, which this one is not bound to.
func (w *workspace) guards(root, path string) enforce.Decider {
	roots := w.live.Current().Roots
	i := slices.IndexFunc(roots, func(r config.Root) bool { return resolved(r.Path) == path })
	switch {
	case i < 0:
		return nil
	case roots[i].Name == root:
		return w.live
	}
	return underName{w.live, root, roots[i].Name}
}

// underName decides about a root by the name that it has in a policy.
type underName struct {
	*config.Live

	as, is string
}

func (d underName) Evaluate(q core.Request) core.Verdict {
	if q.Resource.Root == d.as {
		q.Resource.Root = d.is
	}
	return d.Live.Evaluate(q)
}
