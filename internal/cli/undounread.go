// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"time"

	"github.com/postern-gate/postern/core"
	"github.com/postern-gate/postern/core/fault"
	"github.com/postern-gate/postern/core/policy"
	"github.com/postern-gate/postern/core/textsafe"
	"github.com/postern-gate/postern/enforce"
	"github.com/postern-gate/postern/internal/config"
)

// unread is a policy that is not valid. What was changed can be taken back all the
// same: servers that run go on with the last good one, and so do agents.
type unread struct {
	where   string // FILE:LINE
	places  []string
	self    string
	shipped *policy.Policy
}

// unreadPolicy is what undo works with beside a policy that is not valid, and the
// problem that loading had for every other one.
func (o *options) unreadPolicy(env *Env, problem error) (*unread, string, error) {
	if fault.CodeOf(problem) != fault.ConfigInvalid {
		return nil, "", problem
	}
	stateDir, err1 := enforce.LocateState(env.Getenv)
	here, err2 := env.Getwd()
	self, err3 := os.Executable()
	fallback := policy.Default()
	shipped, err4 := policy.Compile(policy.Config{Fallback: &fallback})
	if errors.Join(err1, err2, err3, err4) != nil {
		return nil, "", problem
	}
	opts := config.Options{PolicyFile: o.policy, WorkDir: here, StateDir: stateDir, Env: env.Getenv, Binary: self}
	cfg, err := config.Load(opts)
	if fault.CodeOf(err) == fault.RequestInvalid {
		opts.Dirs = []string{"."}
		cfg, _ = config.Load(opts) // what is wrong with it is known
	}
	u := &unread{where: whereInvalid(problem), self: self, shipped: shipped}
	u.places = append(cfg.Places(), filepath.Join(here, ".postern", "policy.yaml"))
	fmt.Fprintln(env.Err, "warning: the policy can't be read: "+textsafe.Clean(u.where).String()+": postern status tells more")
	return u, stateDir, nil
}

// whereInvalid is where the first problem of a policy lies.
func whereInvalid(problem error) string {
	var invalid *config.Invalid
	if errors.As(problem, &invalid) {
		return invalid.Problems[0].Pos.String()
	}
	return fault.As(problem).Because()
}

// stateOptions keep the log and what can be undone for as long as any policy may
// want: nothing is removed by bounds that can't be read, and no name is told that the
// policy may want hashed.
func (*unread) stateOptions() enforce.StateOptions {
	const huge = 1 << 40
	return enforce.StateOptions{
		HashedPaths: true,
		Undo:        enforce.UndoOptions{MaxEntries: math.MaxInt32, PerFile: huge, Total: huge, Keep: 100 * 365 * 24 * time.Hour},
	}
}

// person takes back what needs no judging. What gets a name back is judged by the
// policy of its folder, which another folder may have a valid one of.
func (u *unread) person(o *options, env *Env) enforce.Person {
	return enforce.Person{
		Subject: core.Subject{Source: "undo", Level: core.LevelSDK}, Decider: u.shipped, Protect: append([]string{u.self}, u.places...),
		Policy: func(root, path string) (enforce.Decider, error) { return o.policyThere(env, root, path) },
	}
}
