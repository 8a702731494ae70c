// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"errors"
	"io/fs"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/postern-gate/postern/core"
	"github.com/postern-gate/postern/core/fault"
	"github.com/postern-gate/postern/core/pathguard"
	"github.com/postern-gate/postern/core/textsafe"
	"github.com/postern-gate/postern/enforce"
	"github.com/postern-gate/postern/internal/config"
	"github.com/postern-gate/postern/internal/config/advice"
)

// again judges the call once more, by the policy in force, as far as the
// record has what it was about.
func (x *explanation) again(ctx context.Context, env *Env, w *workspace) {
	w, err := x.load(env, w)
	if err != nil {
		x.unread(err)
		return
	}
	x.w = w
	action, ok := core.ParseAction(x.told.Op)
	if !ok {
		x.why = "the record is about no action that a policy decides"
		return
	}
	if action == core.ToolCall && x.failed() {
		x.why = "no rule was asked: the call failed before it came to a name"
		return
	}
	if x.why = x.ruledElsewhere(); x.why != "" {
		x.foreign = true
		return
	}
	if x.why = x.cannot(action); x.why == "" {
		x.now = x.judged(ctx, action, w, nil)
	}
}

// unread notes why there is no policy to judge by; one that is not valid has to
// be mended first, whatever the call was about.
func (x *explanation) unread(err error) {
	var invalid *config.Invalid
	if errors.As(err, &invalid) && len(invalid.Problems) > 0 {
		p := invalid.Problems[0]
		x.why = "the policy is not valid: " + p.Pos.String() + ": " + p.Message
		if n := len(invalid.Problems) - 1; n > 0 {
			x.why += ", and " + counted(n, "problem") + " more"
		}
		x.mend = &advice.Step{Kind: advice.InPolicy, Text: "mend the policy, then ask again", File: p.Pos.File, Line: p.Pos.Line, Column: p.Pos.Column}
		return
	}
	if x.told.Folder != "" && fault.CodeOf(err) == fault.PathMissing {
		x.why = "it was " + x.where() + ": " + fault.As(err).Because()
		return
	}
	x.why = "the policy and the roots " + x.where() + " can't be read: " + fault.As(err).Because() + "; postern status there tells more"
}

// hashed is a name that the log doesn't spell out, and cut one that it doesn't
// spell out whole.
const (
	hashed = `^[a-z][a-z-]*:[0-9a-f]{24}$`
	cut    = `\.\.\.#[0-9a-f]{24}$`
)

// cannot says why the names can't be judged, "" when they can.
func (x *explanation) cannot(action core.Action) string {
	names := x.names()
	if len(names) == 0 {
		return "the record names nothing: the call never came to a decision"
	}
	for _, name := range names {
		if matched(hashed, name) || matched(cut, name) {
			x.private = true
			return "the log has only a class and a hash of the name, or a part of it; by its name: postern check " + x.told.Op + " NAME"
		}
		root, _, ok := strings.Cut(name, "://")
		if action.IsFile() && (!ok || !slices.ContainsFunc(x.w.Roots(), func(r *pathguard.Root) bool { return r.Name() == root })) {
			return x.noRoot(root)
		}
		if why := x.moved(name); why != "" {
			return why
		}
	}
	return ""
}

// noRoot says what is there in the place of a root that no name leads to.
func (x *explanation) noRoot(root string) string {
	why := "there is no root " + textsafe.Name(root) + " " + x.where() + ", only " + x.roots()
	if x.told.Folder == "" {
		why += ": run it where that folder is served"
	}
	return why
}

func matched(pattern, s string) bool { return regexp.MustCompile(pattern).MatchString(s) }

func (x *explanation) roots() string {
	var names []string
	for _, r := range x.w.Roots() {
		names = append(names, r.Name())
	}
	return strings.Join(names, ", ")
}

// judged asks again about all that the call was about: of several names the
// strictest decision holds, as it does in a call.
func (x *explanation) judged(ctx context.Context, action core.Action, w *workspace, other enforce.Decider) *judge {
	agent := options{agent: x.told.Agent}
	j := &judge{w: w, other: other, request: core.Request{Subject: agent.subject(x.told.Source), Action: action}}
	names := x.names()
	find := func(a core.Action, name string, to ...string) {
		if a == core.FSWrite && x.code() != fault.PathMissing && !there(w, name) {
			a = core.FSCreate // which is what it asks for then
		}
		j.request.Action = a
		if err := j.find(ctx, &agent, name, to...); err != nil {
			j.refuse(err)
		}
	}
	switch two := len(names) == 2; {
	case two && action == core.FSRename:
		find(action, names[0], names[1])
	case two && action == core.FSCreate: // a copy, whose new name is told first
		find(core.FSRead, names[1])
		find(action, names[0])
	default:
		for _, name := range names {
			find(action, name)
		}
	}
	x.beside(j)
	j.request.Action = action
	return j
}

// there reports whether the name leads to something.
func there(w *workspace, name string) bool {
	names, err := w.Parse(name)
	if err != nil || len(names) != 1 {
		return true
	}
	_, err = names[0].Lstat()
	return !errors.Is(err, fs.ErrNotExist)
}

// beside looks whether another action decided, as an edit also reads: the
// record has its reason.
func (x *explanation) beside(j *judge) {
	if !j.judged || j.guard || j.verdict.Decision != core.Allow || x.told.Decision == core.Allow.String() || !j.request.Action.IsFile() {
		return
	}
	for _, name := range x.names() {
		root, rest, _ := strings.Cut(name, "://")
		for _, a := range core.Actions() {
			q := j.request
			q.Action, q.Resource = a, core.File(root, rest)
			if a.IsFile() && x.w.live.Evaluate(q).Reason.String() == x.told.Reason {
				j.request.Action = a
				j.beside(q.Resource)
				return
			}
		}
	}
}

// differs reports whether the call would end in another way now.
func (x *explanation) differs() bool {
	switch {
	case x.now == nil:
		return false
	case x.byServer() != "", x.elsewhere(), x.failed() && x.told.Policy == x.w.live.Version():
		return false
	case x.persons.no != nil && x.now.verdict.Decision == core.Ask:
		return false
	case x.code() == fault.ConfirmMissing: // a deny comes before it, an ask after it
		return x.now.verdict.Decision == core.Deny || !x.w.live.ConfirmRequired(x.now.request.Action)
	case !x.judgedByName():
		told, _ := core.ParseDecision(x.told.Decision)
		return x.now.verdict.Decision < told
	}
	return x.now.verdict.Decision.String() != x.told.Decision
}

// failed reports whether what ended the call is no decision: something could not
// be done.
func (x *explanation) failed() bool {
	code := x.code()
	return code != fault.OK && code.Kind() == fault.KindFailure
}

// judgedByName reports whether the name and the policy alone decided: anything
// else depends on what the call said or on what was there.
func (x *explanation) judgedByName() bool {
	code := x.code()
	return code == fault.OK || code.Kind() == fault.KindDenial && (strings.HasPrefix(code.String(), "policy.") || strings.HasPrefix(code.String(), "path."))
}

// elsewhere reports whether it was decided by what the record doesn't name, as
// a file beneath a folder: the policy is the same, and allows what is named.
func (x *explanation) elsewhere() bool {
	return x.now != nil && x.now.verdict.Decision == core.Allow && x.told.Policy == x.w.live.Version() &&
		(x.code() == fault.PolicyDenied || x.code() == fault.PolicyAsk)
}

// byServer is how a server or its client narrows what a policy allows.
func (x *explanation) byServer() string {
	switch {
	case strings.HasPrefix(x.told.Reason, readOnlyFlag+":"):
		return "start the server without " + readOnlyFlag
	case strings.HasPrefix(x.told.Reason, "the client's roots "), strings.HasPrefix(x.told.Reason, "a root of the client "):
		return "let the client give that folder as a root, or one around it"
	}
	return ""
}

// noting is a policy, and what it was asked and did not allow.
type noting struct {
	enforce.Decider
	asked *[]core.Request
}

func (n noting) Evaluate(q core.Request) core.Verdict {
	v := n.Decider.Evaluate(q)
	if v.Decision != core.Allow && !slices.Contains(*n.asked, q) {
		*n.asked = append(*n.asked, q)
	}
	return v
}

// rounds bounds how often what was proposed leads to something new.
const rounds = 8

// advise is what would change how the call ended, and whether it suffices.
func (x *explanation) advise(ctx context.Context) (steps []advice.Step, enough bool) {
	code := x.code()
	base := x.ofCode(code)
	if step, ok := x.byPerson(); ok && x.mend == nil {
		return []advice.Step{step}, step.Kind != advice.InNothing
	}
	switch what := x.byServer(); {
	case what != "":
		steps = append(steps, advice.Step{Kind: advice.InServer, Text: what})
	case x.mend != nil && base.Kind == advice.InPolicy:
		return []advice.Step{*x.mend}, false
	case x.now == nil && base.Kind == advice.InPolicy:
		return x.fromRecord(base), false
	case x.elsewhere():
		return []advice.Step{{Kind: advice.InPolicy, Text: "the names above are allowed: another name or action of the call met " + x.told.Reason}}, false
	case base.Kind != advice.InPolicy:
		steps = append(steps, base)
	}
	if x.free(len(steps) > 0) {
		if len(steps) == 0 {
			steps = append(steps, advice.Step{Kind: advice.InCall, Text: "call again: it is allowed now"})
		}
		return steps, base.Kind != advice.InNothing && !x.foreign
	}
	if x.now.guard && strings.HasSuffix(x.now.verdict.Reason.Why, "(built-in: postern)") {
		return []advice.Step{{Kind: advice.InNothing, Text: "what guards postern and its roots can't be lifted"}}, false
	}
	return x.amend(ctx, steps)
}

// free reports whether no rule is in the way of the call now, nor was, where it
// failed of itself.
func (x *explanation) free(failed bool) bool {
	if x.now == nil || x.now.verdict.Decision == core.Allow {
		return true
	}
	return failed && x.failed() && x.now.verdict.Decision == core.Ask
}

// amend changes a copy of the policy until the call would be allowed, and leaves
// out what that doesn't need: a move also compares what holds under both names.
func (x *explanation) amend(ctx context.Context, steps []advice.Step) ([]advice.Step, bool) {
	var asked []core.Request
	for range rounds {
		e, more, ok := x.edited(asked)
		if !ok {
			return append(steps, more...), false
		}
		var now []core.Request
		j := x.judged(ctx, x.now.request.Action, x.w, noting{e.Policy(), &now})
		switch {
		case j.verdict.Decision == core.Allow:
			return append(steps, x.needed(ctx, asked)...), true
		case len(now) == 0: // a guard
			step, ok := x.reroot(ctx, e, j.code)
			return append(append(steps, more...), step), ok
		}
		asked = append(asked, now...)
	}
	return steps, false
}

// edited is the policy changed so that it allows these.
func (x *explanation) edited(asked []core.Request) (e *advice.Editor, steps []advice.Step, ok bool) {
	e = advice.NewEditor(x.w.live.Current())
	for _, q := range asked {
		more, ok := e.Allow(q, x.whole(q))
		if steps = append(steps, more...); !ok {
			return e, steps, false
		}
	}
	return e, steps, true
}

// mostTried bounds how many questions are left out for a trial.
const mostTried = 64

// needed are the steps for those questions without which the call is refused.
func (x *explanation) needed(ctx context.Context, asked []core.Request) []advice.Step {
	for i := min(len(asked), mostTried) - 1; i >= 0 && len(asked) > 1; i-- {
		without := slices.Delete(slices.Clone(asked), i, i+1)
		e, _, ok := x.edited(without)
		if ok && x.judged(ctx, x.now.request.Action, x.w, e.Policy()).verdict.Decision == core.Allow {
			asked = without
		}
	}
	e, steps, _ := x.edited(asked)
	return append(steps, e.Examples()...)
}

// whole reports whether a call about that name is about all beneath it.
func (x *explanation) whole(q core.Request) bool {
	if q.Action != core.FSRename && q.Action != core.FSDelete {
		return false
	}
	names, err := x.w.Parse(q.Resource.String())
	if err != nil || len(names) != 1 {
		return false
	}
	info, err := names[0].Lstat()
	return err == nil && info.Kind == pathguard.KindDir
}

// reroot looks whether the root could be opened in another way.
func (x *explanation) reroot(ctx context.Context, e *advice.Editor, code fault.Code) (advice.Step, bool) {
	base := advice.For(code)
	cfg := x.w.live.Current()
	root, name, _ := strings.Cut(x.now.request.Resource.String(), "://")
	i := slices.IndexFunc(cfg.Roots, func(r config.Root) bool { return r.Name == root })
	if i < 0 {
		return base, false
	}
	try := func(change func(*config.Root)) bool {
		as := slices.Clone(cfg.Roots)
		change(&as[i])
		w := *x.w
		return w.openRoots(cfg, as) == nil && x.judged(ctx, x.now.request.Action, &w, e.Policy()).verdict.Decision == core.Allow
	}
	r := cfg.Roots[i]
	step := advice.Step{Kind: advice.InPolicy, File: r.Pos.File, Line: r.Pos.Line, Column: r.Pos.Column, Under: []string{"roots", root}}
	if code == fault.PathDenied && r.DenyHardlinks && try(func(r *config.Root) { r.DenyHardlinks = false }) {
		step.Text, step.Lines = "let files of this root have several names", []string{"hardlinks: allow"}
		return step, true
	}
	for at := name; code == fault.PathMount && at != "" && at != "."; at = path.Dir(at) {
		if !try(func(r *config.Root) { r.Mounts = append(slices.Clone(r.Mounts), at) }) {
			continue
		}
		line := "mounts: [" + strconv.Quote(at) + "]"
		step.Text, step.Lines = "name the mount point, beside those that are named", []string{line}
		if r.Pos.Line == 0 {
			step = advice.Step{
				Kind: advice.InPolicy, Text: "name the folder as a root, with the mount point", File: cfg.UserFile, Under: []string{"roots"},
				New: !slices.Contains(cfg.Files, cfg.UserFile), Lines: []string{root + ": { path: " + strconv.Quote(r.Path) + ", " + line + " }"},
			}
			if !slices.ContainsFunc(cfg.Roots, func(r config.Root) bool { return r.Pos.File == cfg.UserFile }) {
				step.Make = step.Under
			}
		}
		return step, true
	}
	return base, false
}
