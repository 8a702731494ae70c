// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/postern-gate/postern/core"
	"github.com/postern-gate/postern/core/fault"
	"github.com/postern-gate/postern/core/textsafe"
	"github.com/postern-gate/postern/internal/config"
	"github.com/postern-gate/postern/internal/state/disk"
)

// checkPolicy: every layer, its owner and mode, and its own examples, all as a
// start would read them.
func checkPolicy(_ context.Context, l *look) []Result {
	var invalid *config.Invalid
	switch {
	case errors.As(l.problem, &invalid):
		var all []Result
		for _, p := range invalid.Problems {
			all = append(all, fail(fault.As(l.problem).Next(), "%s: %s", p.Pos, p.Message))
		}
		return all
	case l.folder() != "":
		return one(l.noPolicy())
	case l.problem != nil:
		return one(failure(l.problem))
	}
	var all []Result
	for _, w := range l.cfg.Warnings {
		all = append(all, warn("postern status", "%s", w))
	}
	if len(l.cfg.Files) == 0 {
		return append(all, pass("the shipped default, no file"))
	}
	for _, f := range l.cfg.Files {
		if e := changeable(f, l.Policy.Accounts); e.how != "" { // a start refuses only what is sure, and not of a project's own
			all = append(all, warn(e.hint(), "%s is valid and its examples hold, but %s", f, e.how))
			continue
		}
		all = append(all, pass("%s is valid, its examples hold, and nobody else can change it", f))
	}
	return all
}

// checkProjectPolicy finds what a project's policy allows in vain: somebody
// means it to loosen something, or doesn't know that it can't.
func checkProjectPolicy(_ context.Context, l *look) []Result {
	if l.cfg == nil {
		return one(l.noPolicy())
	}
	var all []Result
	for _, r := range l.cfg.Roots {
		file := filepath.Join(r.Path, ".postern", "policy.yaml")
		if !slices.Contains(l.cfg.Files, file) {
			continue
		}
		alone := l.Policy
		alone.PolicyFile, alone.Dirs = file, []string{r.Path}
		cfg, err := config.Load(alone)
		if err != nil || len(cfg.Roots) == 0 {
			all = append(all, pass("%s can only tighten", file))
			continue
		}
		if loose := l.looser(cfg, r.Name); len(loose) > 0 {
			all = append(all, warn("ask who wrote it; what you want allowed belongs in your own policy",
				"%s allows without effect: %s", file, strings.Join(loose, ", ")))
			continue
		}
		all = append(all, pass("%s can only tighten, and tries nothing else", file))
	}
	if all == nil {
		return one(skip("no project has one"))
	}
	return all
}

// looser are the actions that the project alone would allow, and all layers
// together don't.
func (l *look) looser(alone *config.Config, root string) (names []string) {
	for _, a := range core.Actions() {
		if !a.IsFile() {
			continue
		}
		ask := func(cfg *config.Config, root string) core.Decision {
			return cfg.Policy.Evaluate(core.Request{Action: a, Resource: core.File(root, "postern-doctor/any.txt")}).Decision
		}
		if ask(alone, alone.Roots[0].Name) == core.Allow && ask(l.cfg, root) != core.Allow {
			names = append(names, a.String())
		}
	}
	return names
}

// checkRoots: a guard over the home folder or over everything guards little.
func checkRoots(_ context.Context, l *look) []Result {
	if folder := l.folder(); folder != "" {
		f := fault.As(l.problem)
		return one(fail(f.Next(), "folder %s: %s", textsafe.Word(folder), f.Because()))
	}
	if l.cfg == nil {
		return one(l.noPolicy())
	}
	var all []Result
	for _, r := range l.cfg.Roots {
		at := r.Name + ":// " + r.Path
		info, err := os.Stat(r.Path)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			all = append(all, warn("make it, or take it out of the policy", "%s is not there", at))
		case err != nil || !info.IsDir():
			all = append(all, fail("name a folder in the policy", "%s is not a folder that can be opened", at))
		case sameFile(r.Path, string(filepath.Separator)):
			all = append(all, warn("serve the folder of the project", "%s is everything on this machine", at))
		case l.World.Home != "" && sameFile(r.Path, l.World.Home):
			all = append(all, warn("serve the folder of the project", "%s is the home folder: all that programs keep there is within reach of a rule that fails", at))
		default:
			all = append(all, l.openable(r, at))
		}
	}
	return all
}

// openable tries what a start does with a root that is there.
func (l *look) openable(r config.Root, at string) Result {
	root, err := r.Open(l.Policy.StateDir)
	if err != nil {
		f := fault.As(err)
		return fail(f.Next(), "%s can't be served: %s", at, f.Because())
	}
	_ = root.Close() // nothing was written
	return pass("%s", at)
}

// checkKernel: by which calls a root is guarded, and on what it lies.
func checkKernel(_ context.Context, l *look) []Result {
	if l.cfg == nil {
		return one(l.noPolicy())
	}
	var all []Result
	for _, r := range l.cfg.Roots {
		kind, err := disk.Of(r.Path)
		switch {
		case errors.Is(err, disk.ErrUnknown):
			return one(skip("what a folder lies on can't be told on this system: postern selftest DIR tries it"))
		case err != nil:
			all = append(all, skip("%s:// can't be looked at", r.Name))
			continue
		}
		text := r.Name + ":// lies on " + kind.Name
		if !kind.Exact {
			text += ", where each name is compared with the folder's entries"
		}
		call := ", opened in one call (openat2)"
		if !disk.OpensBeneath(r.Path) {
			call = ", opened component by component, since openat2 is not available"
		}
		if kind.Remote {
			all = append(all, warn("postern selftest "+r.Path, "%s%s: locks and times are only as good as what is behind it", text, call))
			continue
		}
		all = append(all, pass("%s%s", text, call))
	}
	return all
}
