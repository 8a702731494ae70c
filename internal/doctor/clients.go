// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/postern-gate/postern/core/fault"
	"github.com/postern-gate/postern/internal/attach"
)

// label names an entry for a person.
func label(a attach.Attachment) string { return a.Client.Name + ", " + a.Entry + " in " + a.File }

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
	if all == nil {
		return one(skip("no client is attached here: postern init does that"))
	}
	return all
}

func (l *look) checkClient(ctx context.Context, a attach.Attachment) Result {
	if a.Foreign {
		return warn("look at it; postern init leaves it as it is", "%s has our name and runs something else", label(a))
	}
	program, err := l.program(a)
	switch {
	case err != nil:
		return fail("postern init", "%s: its program %s can't be found", label(a), a.Command)
	case !filepath.IsAbs(a.Command):
		return warn("postern init", "%s: its program is named without a path, so PATH decides which one runs: %s", label(a), program)
	case attach.Installed(program) != nil:
		return fail("install it, then: postern init", "%s: its program was made by go run and will be gone", label(a))
	}
	if who := changeable(program); who != "" {
		return fail("put it where only you and root can write, then: postern init", "%s: %s: %s", label(a), program, who)
	}
	if sameFile(program, l.Self) {
		return pass("%s runs this program", label(a))
	}
	if !l.trusted(program) {
		return warn("look at it", "%s runs %s, which is not this program", label(a), program)
	}
	switch version, ok := l.versionOf(ctx, program); {
	case !ok:
		return fail("postern init", "%s: %s doesn't tell its version", label(a), program)
	case version != l.Version:
		return warn("postern init", "%s runs %s, which is version %s, and this is %s", label(a), program, version, l.Version)
	}
	return pass("%s runs %s, of the same version", label(a), program)
}

// program is the file that an entry's command means.
func (l *look) program(a attach.Attachment) (string, error) {
	if filepath.IsAbs(a.Command) {
		return exec.LookPath(a.Command)
	}
	return l.lookPath(a.Command)
}

// trusted reports whether a program may be started: it is this one, or has its
// name and can be changed by this user and root alone. One that lies in a
// project came with it, or was written by an agent.
func (l *look) trusted(program string) bool {
	if sameFile(program, l.Self) {
		return true
	}
	name := func(path string) string { return strings.TrimSuffix(filepath.Base(path), ".exe") }
	return name(program) == "postern" && changeable(program) == "" && !l.inProject(program)
}

func (l *look) inProject(program string) bool {
	places := []string{l.World.Project}
	if l.cfg == nil {
		return true // nobody knows what is served
	}
	for _, r := range l.cfg.Roots {
		places = append(places, r.Path)
	}
	real, err := filepath.EvalSymlinks(program)
	for dir := filepath.Dir(real); err == nil && dir != filepath.Dir(dir); dir = filepath.Dir(dir) {
		for _, p := range places {
			if p != "" && sameFile(dir, p) {
				return true
			}
		}
	}
	return err != nil
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
	cmd.Env = os.Environ()
	out, err := cmd.Output()
	var v struct{ Postern string }
	return v.Postern, err == nil && json.Unmarshal(out, &v) == nil && v.Postern != ""
}

// checkClientLines starts the line of each entry as its client would, and asks
// for something that no policy allows.
func checkClientLines(ctx context.Context, l *look) []Result {
	var all []Result
	for _, a := range l.entries {
		if a.Foreign {
			continue
		}
		program, err := l.program(a)
		switch {
		case err != nil:
			all = append(all, skip("%s: there is no such program", label(a)))
		case !l.trusted(program):
			all = append(all, skip("%s: %s is not started from here", label(a), program))
		case !onlyReads(a.Args):
			all = append(all, skip("%s does more than serve on stdio, and is not started from here", label(a)))
		default:
			all = append(all, l.tryLine(ctx, a, program))
		}
	}
	if all == nil {
		return one(skip("no client is attached here"))
	}
	return all
}

// checkOwnTools says what of a client postern never sees.
func checkOwnTools(_ context.Context, l *look) []Result {
	seen := map[string]bool{}
	var all []Result
	for _, a := range l.entries {
		if !seen[a.Client.ID] && a.Client.Own != "" {
			seen[a.Client.ID] = true
			all = append(all, warn("turn them off in it, or run it confined: docs/deploy.md", "%s: %s", a.Client.Name, a.Client.Own))
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
	if err != nil {
		return one(skip("there is no git"))
	}
	cmd := exec.CommandContext(ctx, git, "config", "--get", "safe.bareRepository")
	cmd.Dir = string(filepath.Separator)
	out, err := cmd.Output()
	if err == nil && strings.TrimSpace(string(out)) == "explicit" {
		return one(pass("git obeys no repository that hides in a folder (safe.bareRepository is explicit)"))
	}
	r := pass("git obeys a repository without .git that an agent writes into a folder, once you run git there")
	r.Hint = "git config --global safe.bareRepository explicit"
	return one(r)
}
