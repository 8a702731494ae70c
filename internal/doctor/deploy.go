// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"context"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/postern-gate/postern/core"
	"github.com/postern-gate/postern/internal/attach"
)

// Point is one point of the deployment checklist. docs/deploy.md has the same
// ones in the same order.
type Point struct {
	Number  int    `json:"number"`
	Title   string `json:"title"`
	Command string `json:"command"` // "" where there is none
	// Checked is false where nothing about it can be told from here; Status and
	// Text then say why.
	Checked bool   `json:"checked"`
	Status  Status `json:"status"`
	Text    string `json:"text"`
	ByHand  string `json:"by_hand"` // what a person does
}

// point is one of the list, with its check.
type point struct {
	title, command, byHand string
	run                    func(context.Context, *look) Result // Skipped: it can't be checked
}

func points() []point {
	return []point{
		{
			"the agent's own sandbox and questions stay on", "",
			"look at the agent's settings: its sandbox on, its permission mode not one that never asks", agentsOwn,
		},
		{
			"credentials lie outside the folders of agents", "",
			"move keys and .env files out of the project, or load them from a store when a program starts", credentials,
		},
		{
			"every tool that reaches files is guarded", "postern doctor",
			"list the servers of each client and take out those that reach files and are not postern's; its own tools too where it can do without them", everyTool,
		},
		{
			"outside is refused, and so is deleting", "postern check fs.delete README.md",
			"take fs.delete: allow out of your policy", outsideAndDeleting,
		},
		{
			"running programs is a risk of its own", "postern check proc.exec /bin/sh",
			"allow the agent's shell only what you would run unseen, or run it in a container", shells,
		},
		{
			"what works unattended has an account or a container of its own", "id",
			"give it a user, a container or a virtual machine that holds the project and nothing else", account,
		},
		{
			"policies and hooks are changed by review only", "postern check fs.write .postern/policy.yaml",
			"let a second person review .postern/, .git hooks and agents' settings, as with a CODEOWNERS file", review,
		},
		{
			"refusals are looked at, without collecting contents", "postern log --decision deny --since 7d",
			"read the refusals now and then; send them on with postern log export", monitoring,
		},
		{
			"the attacks are run again after every change of the machine", "postern selftest",
			"run it after an update of postern, of the kernel, and on each kind of machine", attacks,
		},
	}
}

// Deploy goes through the checklist.
func Deploy(ctx context.Context, o Options) []Point {
	l := newLook(o)
	var all []Point
	for i, p := range points() {
		run := check{p.title, func(ctx context.Context, l *look) []Result { return one(p.run(ctx, l)) }}
		if o.Selftest != nil && i == len(points())-1 {
			l.CheckTime = 10 * l.CheckTime // it takes some seconds by itself
		}
		r := l.timed(ctx, run)[0]
		all = append(all, Point{i + 1, p.title, p.command, r.Status != Skipped, r.Status, r.Text, p.byHand})
	}
	return all
}

// Results are the points as findings, for Err.
func Results(all []Point) (out []Result) {
	for _, p := range all {
		out = append(out, Result{Name: fmt.Sprintf("point %d", p.Number), Status: p.Status})
	}
	return out
}

func agentsOwn(_ context.Context, l *look) Result {
	if found := names(attach.Find(l.World)); found != "" {
		return skip("how each is set can't be seen from here: %s", found)
	}
	return skip("no agent is found here")
}

func names(found []attach.Found) string {
	var all []string
	for _, f := range found {
		all = append(all, f.Client.Name)
	}
	return strings.Join(all, ", ")
}

// credentials looks for files that the built-in list of secrets names.
func credentials(ctx context.Context, l *look) Result {
	if l.cfg == nil {
		return l.noPolicy()
	}
	var s private
	for _, r := range l.cfg.Roots {
		_ = filepath.WalkDir(r.Path, func(path string, d fs.DirEntry, err error) error { // what can't be read is not told
			if s.looked++; s.looked > mostLooked || ctx.Err() != nil {
				return fs.SkipAll
			}
			rel, rerr := filepath.Rel(r.Path, path)
			if err == nil && rerr == nil && d.Type().IsRegular() {
				s.add(path, l.cfg.Policy.Evaluate(core.Request{Action: core.FSRead, Resource: core.File(r.Name, filepath.ToSlash(rel))}))
			}
			return nil // the walk goes on beside what it can't read
		})
	}
	switch {
	case s.open != "":
		return fail("", "%s is private by its name, and your policy lets agents read it", s.open)
	case s.n > 0:
		what := "1 file that holds secrets by its name lies there: " + s.first
		if s.n > 1 {
			what = fmt.Sprintf("%d files that hold secrets by their names lie there, the first is %s", s.n, s.first)
		}
		return warn("", "%s; agents can't read them through postern", what)
	case s.looked > mostLooked:
		return pass("none by its name among the first %d entries", mostLooked)
	}
	return pass("none by its name in %d entries", s.looked)
}

// private are files that are secrets by their names, and the first of them that
// may be read.
type private struct {
	looked, n   int
	first, open string
}

func (s *private) add(path string, v core.Verdict) {
	switch {
	case v.Class == "":
	case v.Decision != core.Deny && s.open == "":
		s.open = path
	default:
		if s.n++; s.first == "" {
			s.first = path
		}
	}
}

func everyTool(_ context.Context, l *look) Result {
	var without []string
	for _, f := range attach.Find(l.World) {
		if !slices.ContainsFunc(l.entries, func(a attach.Attachment) bool { return a.Client.ID == f.Client.ID && !a.Foreign }) {
			without = append(without, f.Client.Name)
		}
	}
	if len(without) > 0 {
		return warn("", "not attached: %s; other servers of a client, and its own tools, can't be seen from here", strings.Join(without, ", "))
	}
	return skip("other servers of a client, and its own tools, can't be seen from here")
}

func outsideAndDeleting(_ context.Context, l *look) Result {
	if l.cfg == nil {
		return l.noPolicy()
	}
	text := "outside is always refused, and so is deleting"
	for _, r := range l.cfg.Roots {
		v := l.cfg.Policy.Evaluate(core.Request{Action: core.FSDelete, Resource: core.File(r.Name, "postern-doctor/any.txt")})
		switch v.Decision {
		case core.Allow:
			return warn("", "outside is always refused; in %s:// deleting is allowed: %s", r.Name, v.Reason)
		case core.Ask:
			text = "outside is always refused, and deleting asks a person: postern approve, or the page"
		default:
		}
	}
	return pass("%s", text)
}

func shells(_ context.Context, l *look) Result {
	if l.cfg == nil {
		return l.noPolicy()
	}
	v := l.cfg.Policy.Evaluate(core.Request{Action: core.ProcExec, Resource: core.File("", "/bin/sh")})
	if v.Decision == core.Allow {
		return warn("", "the policy allows it: %s; this release starts no programs, and an agent's own shell doesn't ask it", v.Reason)
	}
	return skip("the policy doesn't allow it, but this release has no hook that an agent's own shell would ask")
}

func account(_ context.Context, l *look) Result {
	switch {
	case isRoot():
		return warn("", "this is root: what an agent starts may do everything; this release has no sandbox")
	case inContainer():
		return skip("this is in a container; whether it holds more than the project can't be seen; this release has no sandbox")
	}
	return skip("whether this account holds more than the project can't be seen; this release has no sandbox")
}

func inContainer() bool {
	for _, sign := range []string{"/.dockerenv", "/run/.containerenv"} {
		if _, err := os.Stat(sign); err == nil {
			return true
		}
	}
	return false
}

func review(_ context.Context, l *look) Result {
	if l.cfg == nil {
		return l.noPolicy()
	}
	for _, r := range l.cfg.Roots {
		for _, name := range []string{".postern/policy.yaml", ".git/hooks/pre-commit", ".claude/settings.json", ".mcp.json"} {
			v := l.cfg.Policy.Evaluate(core.Request{Action: core.FSWrite, Resource: core.File(r.Name, name)})
			if v.Decision != core.Deny {
				return fail("", "agents may write %s://%s: %s", r.Name, name, v.Reason)
			}
		}
	}
	return pass("no agent writes them through postern; who reviews a person's changes can't be seen from here")
}

func monitoring(ctx context.Context, l *look) Result {
	if !l.made() {
		return skip("nothing is recorded yet; records never hold contents")
	}
	switch r := checkLog(ctx, l)[0]; r.Status {
	case Fail:
		return fail("", "%s; %s tells more", r.Text, verify)
	case Pass, Warn:
		return Result{Status: r.Status, Text: r.Text + "; records never hold contents; whether somebody reads them can't be seen"}
	default:
		return skip("%s; records never hold contents", r.Text)
	}
}

func attacks(ctx context.Context, l *look) Result {
	if l.Selftest == nil {
		return skip("it was not run")
	}
	if err := l.Selftest(ctx); err != nil {
		r := failure(err)
		r.Hint = ""
		return r
	}
	return pass("every mechanism holds on this machine now")
}
