// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/postern-gate/postern/core/fault"
	"github.com/postern-gate/postern/core/textsafe"
	"github.com/postern-gate/postern/internal/attach"
)

// label names an entry for a person.
func label(a attach.Attachment) string {
	return a.Client.Name + ", " + attach.Brief(a.Entry) + " in " + textsafe.Word(a.File)
}

// mostEntries is how many entries of one file are looked at.
const mostEntries = 20

// bounded leaves out what a file has more of, and says so: a file with thousands
// of entries hides none of another one.
func bounded(all []attach.Attachment) (some []attach.Attachment, more []Result) {
	type source struct{ client, file string }
	seen := map[source]int{}
	for _, a := range all {
		s := source{a.Client.ID, a.File}
		if seen[s]++; seen[s] <= mostEntries {
			some = append(some, a)
		}
		if seen[s] == mostEntries+1 {
			more = append(more, warn("look at the file", "%s, %s: it has more than %d entries that run postern; the others are not looked at", a.Client.Name, textsafe.Word(a.File), mostEntries))
		}
	}
	return some, more
}

// checkClients: the entry of each attached client, and the program in it.
func checkClients(ctx context.Context, l *look) []Result {
	var all []Result
	for _, err := range l.unread {
		f := fault.As(err)
		all = append(all, warn(f.Next(), "%s: %s", f.Resource, f.Because()))
	}
	for _, a := range l.entries {
		all = append(all, l.checkClient(ctx, a))
	}
	all = append(all, l.more...)
	if all == nil {
		return one(skip("no client is attached here: postern init does that"))
	}
	return all
}

func (l *look) checkClient(ctx context.Context, a attach.Attachment) Result {
	if a.Foreign {
		return warn("look at it; postern init leaves it as it is", "%s has our name and runs something else", label(a))
	}
	t := l.trust()
	program, err := t.Program(a)
	doubt := a.Doubt(l.World.Project)
	switch {
	case errors.Is(err, fs.ErrInvalid):
		return fail("look at it, then: postern init", "%s: its program %s is a relative path, which means another file in each folder", label(a), attach.Brief(a.Command))
	case err != nil:
		return fail("postern init", "%s: its program %s can't be found", label(a), attach.Brief(a.Command))
	case doubt != "":
		return warn(cmp.Or(a.Step(), "look at it"), "%s %s: the client may start something else than a guard of this folder", label(a), doubt)
	case !filepath.IsAbs(a.Command):
		return warn("postern init", "%s: its program is named without a path, so PATH decides which one runs: %s", label(a), attach.Brief(program))
	case attach.Installed(program) != nil:
		return fail("install it, then: postern init", "%s: its program was made by go run and will be gone", label(a))
	}
	if e := changeable(program, t.Accounts); e.how != "" {
		return e.finding("put it where only you and root can write, then: postern init", "%s: %s: %s", label(a), attach.Brief(program), e.how)
	}
	if t.self(program) {
		return pass("%s runs this program", label(a))
	}
	if !t.Of(a, program) {
		return warn("look at it", "%s runs %s, which is not this program, and is not started from here", label(a), attach.Brief(program))
	}
	return l.checkVersion(ctx, a, program)
}

func (l *look) checkVersion(ctx context.Context, a attach.Attachment, program string) Result {
	switch version, ok := l.versionOf(ctx, program); {
	case !ok:
		return fail("postern init", "%s: %s doesn't tell its version", label(a), attach.Brief(program))
	case version != l.Version:
		return warn("postern init", "%s runs %s, which is version %s, and this is %s", label(a), attach.Brief(program), attach.Brief(version), l.Version)
	}
	return pass("%s runs %s, of the same version", label(a), attach.Brief(program))
}

// onlyReads reports whether a line does nothing but serve on stdio: what stands
// in a project's file could be any other verb.
func onlyReads(args []string) bool {
	if len(args) == 0 || args[0] != "serve" {
		return false
	}
	for _, a := range args[1:] {
		name, _, _ := strings.Cut(a, "=")
		if strings.HasPrefix(a, "-") && name != "--agent" && name != "--policy" && name != "--read-only" && name != "--envelope" {
			return false
		}
	}
	return true
}

func (l *look) versionOf(ctx context.Context, program string) (string, bool) {
	cmd := exec.CommandContext(ctx, program, "version", "--json")
	cmd.Env = environment()
	out, err := cmd.Output()
	var v struct{ Postern string }
	return v.Postern, err == nil && json.Unmarshal(out, &v) == nil && v.Postern != ""
}

// checkClientLines starts the line of each entry as its client would, and asks
// for something that no policy allows.
func checkClientLines(ctx context.Context, l *look) []Result {
	ctx, stop := context.WithTimeout(ctx, l.CheckTime*4/5) // so that what was found by then is told
	defer stop()
	var all []Result
	for _, a := range l.entries {
		switch {
		case a.Foreign:
		case l.cfg == nil: // which each of them would only repeat
			return one(l.noPolicy())
		default:
			all = append(all, l.checkClientLine(ctx, a))
		}
	}
	if all == nil {
		return one(skip("no client is attached here"))
	}
	return all
}

func (l *look) checkClientLine(ctx context.Context, a attach.Attachment) Result {
	t := l.trust()
	program, err := t.Program(a)
	doubt := a.Doubt(l.World.Project)
	switch {
	case errors.Is(err, fs.ErrInvalid):
		return skip("%s: a relative path is not started from here", label(a))
	case err != nil:
		return skip("%s: there is no such program", label(a))
	case !t.Of(a, program):
		return skip("%s: %s is not started from here", label(a), attach.Brief(program))
	case doubt != "":
		return skip("%s %s, and is not started from here", label(a), doubt)
	case !onlyReads(a.Args):
		return skip("%s does more than serve on stdio, and is not started from here", label(a))
	case ctx.Err() != nil:
		return skip("%s: there was no time to start it", label(a))
	case t.self(program): // and nothing that is put in its place in the meantime
		program = l.Self
	}
	return l.tryLine(ctx, a, program)
}

// checkOwnTools says what of a client postern never sees.
func checkOwnTools(_ context.Context, l *look) []Result {
	seen := map[string]bool{}
	var all []Result
	for _, a := range l.entries {
		if !seen[a.Client.ID] && a.Client.Own != "" {
			seen[a.Client.ID] = true
			all = append(all, warn("turn them off in it, or run it confined: "+attach.DeployPage, "%s: %s", a.Client.Name, a.Client.Own))
		}
	}
	if all == nil {
		return one(skip("no client is attached here"))
	}
	return all
}

// checkGit: a repository can lie hidden in any folder, with settings that git
// obeys; writing its files is writing ordinary ones.
func checkGit(ctx context.Context, l *look) []Result {
	git, err := l.lookPath("git")
	t := l.trust()
	switch {
	case err != nil:
		return one(skip("there is no git"))
	case t.Unknown:
		return one(skip("git is not asked: %s, so which folders agents change isn't known", l.noPolicy().Text))
	case !t.outside(git):
		return one(skip("git is %s, which somebody else could have put there, and is not started from here", attach.Brief(git)))
	}
	program, err := filepath.EvalSymlinks(git) // and no link that leads elsewhere in the meantime
	if err != nil {
		return one(skip("there is no git"))
	}
	cmd := exec.CommandContext(ctx, program, "config", "--get", "safe.bareRepository")
	cmd.Args[0], cmd.Dir, cmd.Env = "git", string(filepath.Separator), environment()
	out, err := cmd.Output()
	if err == nil && strings.TrimSpace(string(out)) == "explicit" {
		return one(pass("git obeys no repository that hides in a folder (safe.bareRepository is explicit)"))
	}
	return one(warn("git config --global safe.bareRepository explicit",
		"git obeys a repository without .git that an agent writes into a folder, once you run git there"))
}
