// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/postern-gate/postern/core"
	"github.com/postern-gate/postern/core/fault"
	"github.com/postern-gate/postern/core/pathguard"
	"github.com/postern-gate/postern/core/textsafe"
	"github.com/postern-gate/postern/enforce"
	"github.com/postern-gate/postern/internal/attach"
	"github.com/postern-gate/postern/internal/config"
	"github.com/postern-gate/postern/internal/links"
)

// options are the flags that verbs about a workspace share.
type options struct {
	agent    string
	policy   string
	readOnly bool
}

// workspace is what a verb works on: the policy and the roots that it guards.
type workspace struct {
	*pathguard.Workspace
	live     *config.Live
	stateDir string
	self     string
	door     string // by which options the policy was found
}

// load reads the policy. Nothing is served or answered before all of it is
// known to be valid.
func (o *options) load(env *Env, dirs []string) (*workspace, error) {
	for _, dir := range dirs {
		if dir == "" { // an unset variable in somebody's script, not this folder
			return nil, usage("postern", "the name of a folder is empty", "write . for this folder")
		}
	}
	where, err := enforce.LocateState(env.Getenv)
	if err != nil {
		return nil, err
	}
	here, err := env.Getwd()
	if err != nil {
		return nil, &fault.Error{Code: fault.IOFailed, Op: "start", Rule: "the working directory can't be told", Hint: "change into a folder that exists", Err: err}
	}
	self, err := os.Executable()
	if err != nil {
		return nil, &fault.Error{Code: fault.IOFailed, Op: "start", Rule: "the path of this program can't be told", Err: err}
	}
	live, err := config.OpenLive(config.Options{
		Dirs: dirs, PolicyFile: o.policy, WorkDir: here, StateDir: where, Env: env.Getenv, Binary: self,
		Entrusted: entrusted(env, where),
	}, time.Now, unwaited(func(err error) { complain(env, err) }))
	if err != nil {
		return nil, err
	}
	return &workspace{live: live, stateDir: where, self: self, door: doorOf(live.Current().UserFile, here, dirs)}, nil
}

// doorOf is the same for processes that take the policy from the same files, since
// they guard the same folders: those of the command line, or those that the policy
// names.
func doorOf(userFile, here string, dirs []string) string {
	h := sha256.New()
	fmt.Fprintf(h, "%q", userFile)
	for _, dir := range dirs {
		if !filepath.IsAbs(dir) {
			dir = filepath.Join(here, dir)
		}
		fmt.Fprintf(h, " %q", filepath.Clean(dir))
	}
	return hex.EncodeToString(h.Sum(nil))
}

// entrusted tells what clients take what they run from, by the surroundings and
// by what init remembers.
func entrusted(env *Env, stateDir string) func(*links.Look) config.Entrusted {
	world := attach.World{Home: statedHome(env), GOOS: runtime.GOOS, Getenv: env.Getenv}
	return func(look *links.Look) config.Entrusted {
		e := attach.Entrust(look, world, stateDir)
		out := config.Entrusted{Places: e.Places, Over: e.Over}
		for _, f := range e.Fronts {
			out.Fronts = append(out.Fronts, config.Front(f))
		}
		for _, path := range e.Unread {
			out.Warnings = append(out.Warnings, path+": what init remembers can't be read, so files of clients that it names may be open to change")
		}
		for _, path := range e.Beyond {
			out.Warnings = append(out.Warnings, path+": it holds more than is looked through for links, so what some of them lead to may be open to change")
		}
		for _, path := range e.Away {
			out.Warnings = append(out.Warnings, path+": it leads to a mount that may not answer and isn't asked, so what it leads to may be open to change")
		}
		return out
	}
}

// loadHere takes the roots of the policy, or this folder where it names none.
func (o *options) loadHere(env *Env) (*workspace, error) {
	w, err := o.load(env, nil)
	if fault.CodeOf(err) == fault.RequestInvalid {
		return o.load(env, []string{"."})
	}
	return w, err
}

// unwaited has somebody told who is waited for by nobody: a call whose policy changed goes
// on though nobody reads what is said of it.
func unwaited(tell func(error)) func(error) {
	var mu sync.Mutex
	var waiting []error
	told := true
	return func(err error) {
		mu.Lock()
		defer mu.Unlock()
		if waiting = append(waiting, err); !told {
			return
		}
		told = false
		go func() {
			for {
				mu.Lock()
				if told = len(waiting) == 0; told {
					mu.Unlock()
					return
				}
				next := waiting[0]
				waiting = waiting[1:]
				mu.Unlock()
				tell(next)
			}
		}()
	}
}

// complain says what is wrong with a policy file that was changed while the
// last good one is in force, and what is warned of since.
func complain(env *Env, err error) {
	if err == nil {
		fmt.Fprintln(env.Err, "the policy is valid again and in force")
		return
	}
	if w := config.Warning(""); errors.As(err, &w) {
		fmt.Fprintln(env.Err, "warning:", textsafe.Clean(string(w)))
		return
	}
	var b strings.Builder
	b.WriteString("the changed policy is not in force, the last good one is\n")
	report(&b, err, false)
	fmt.Fprint(env.Err, b.String())
}

// open opens the roots, and keeps postern's own files from everybody by
// identity too, under whatever name they are reached: the state directory, the
// program and the policy files.
func (w *workspace) open(env *Env) error {
	cfg := w.live.Current()
	if err := w.openRoots(cfg, cfg.Roots); err != nil {
		return err
	}
	w.live.OnLook(func(files []string) { _ = w.keep(files) }) // a path that is absolute is no error
	for _, warning := range cfg.Warnings {
		fmt.Fprintln(env.Err, "warning:", textsafe.Clean(warning))
	}
	return nil
}

// openRoots opens these as the roots.
func (w *workspace) openRoots(cfg *config.Config, as []config.Root) error {
	var roots []*pathguard.Root
	for _, r := range as {
		root, err := r.Open(w.stateDir)
		if err != nil {
			return err
		}
		roots = append(roots, root)
	}
	var err error
	if w.Workspace, err = pathguard.NewWorkspace(roots...); err != nil {
		return err
	}
	return w.keep(cfg.Places())
}

// keep protects postern's own files as they are now: one that was replaced is
// another file than the one of the start.
func (w *workspace) keep(policies []string) error {
	return w.Protect(append([]string{w.stateDir, w.self}, policies...)...)
}

// unknownAgent warns of a name that the policy's rules for agents don't know,
// since a slip of the pen there loses them without a word.
func (o *options) unknownAgent(env *Env, cfg *config.Config) {
	if o.agent != "" && len(cfg.Agents) > 0 && !slices.Contains(cfg.Agents, o.agent) {
		fmt.Fprintf(env.Err, "warning: the policy has rules for %s and none for %s\n",
			textsafe.Clean(strings.Join(cfg.Agents, ", ")), textsafe.Name(o.agent))
	}
}

func (o *options) subject(source string) core.Subject {
	return core.Subject{Agent: o.agent, Source: source, Level: core.LevelSDK, Proven: o.agent != ""}
}

// gate are the parts of a gate over the workspace.
// The approver may be nil: then nobody is asked.
func (o *options) gate(w *workspace, recorder enforce.Recorder, locker enforce.Locker, approver enforce.Approver) enforce.Options {
	cfg := w.live.Current()
	gate := enforce.Options{
		Workspace: w.Workspace, Decider: w.live, Recorder: recorder, Locker: locker, Approver: approver, Subject: o.subject("serve"),
		PolicyFile: policyFile(cfg), ReadsNeedAudit: cfg.Settings.Audit.DenyReads, Watcher: &enforce.Watcher{},
	}
	gate.Keeper, _ = recorder.(enforce.Keeper)
	if o.readOnly {
		gate.Decider = readOnly{w.live}
	}
	return gate
}

// askTimes is how long a call waits for a person and how long a question can be
// answered, by the policy in force.
func (w *workspace) askTimes() (wait, deadline time.Duration) {
	a := w.live.Current().Settings.Ask
	return a.Wait, a.Deadline
}

// stateOptions are how the policy wants the log to be kept.
func stateOptions(cfg *config.Config) enforce.StateOptions {
	a := cfg.Settings.Audit
	u := cfg.Settings.Undo
	return enforce.StateOptions{
		HashedPaths: !a.PlainPaths, SegmentSize: a.SegmentSize, Keep: a.Keep,
		Undo: enforce.UndoOptions{
			MaxEntries: orNone(u.MaxEntries), PerFile: orNone(u.PerFile), Total: orNone(u.Total), Keep: orNone(u.Keep),
		},
	}
}

// orNone is a bound of nothing, which for the state is not its zero value.
func orNone[T int | int64 | time.Duration](v T) T {
	if v == 0 {
		return -1
	}
	return v
}

// policyFile is where a person would allow something, as a refusal names it.
func policyFile(cfg *config.Config) string {
	if slices.Contains(cfg.Files, cfg.UserFile) {
		return cfg.UserFile
	}
	return cfg.UserFile + " (a new file, which begins with version: 1)"
}

// readOnlyFlag is the rule that records name for it.
const readOnlyFlag = "--read-only"

// readOnly denies every change, whatever the policy allows: --read-only holds
// in the gate, not only in the list of tools.
type readOnly struct{ enforce.Decider }

func (d readOnly) Evaluate(q core.Request) core.Verdict {
	if q.Action.Mutates() {
		return core.Verdict{
			Reason: core.Reason{Step: core.StepContainment, Rule: readOnlyFlag, Why: "nothing is changed"},
			Class:  d.Decider.Evaluate(q).Class,
		}
	}
	return d.Decider.Evaluate(q)
}
