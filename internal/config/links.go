// SPDX-License-Identifier: Apache-2.0

package config

import (
	"cmp"
	"path/filepath"
	"slices"
	"strconv"

	"github.com/postern-gate/postern/core/policy"
	"github.com/postern-gate/postern/core/textsafe"
	"github.com/postern-gate/postern/internal/links"
)

// top is a root by its spellings.
type top struct {
	name  string
	dirs  []string
	moved bool // another folder lies there now, or none
}

// Shut are the mount points beneath the root that no call enters, as names in it,
// sorted. None of them is asked: one may not answer.
func (r Root) Shut() []string {
	shut := inside(slices.Compact([]string{r.Path, real(r.Path)}), links.Mounts())
	slices.Sort(shut)
	return slices.DeleteFunc(slices.Compact(shut), func(rel string) bool { return slices.Contains(r.Mounts, rel) })
}

// leads notes where a link leads, by each step, and what it leads over, and returns
// the folder to look into: one beneath a root that the link itself isn't in. Of one
// that it is in only the link is noted: all in it would be judged by the link's name,
// as in a project with .claude/skills/all -> ../..
func (s *search) leads(rel string, folder, w links.Way) string {
	above := []string{filepath.Dir(filepath.Join(s.in.dirs[0], rel)), folder.End}
	holds := func(p string) bool { return slices.Contains(above, p) || inside([]string{p}, above) != nil }
	loop, to := slices.ContainsFunc(w.Spelled, holds), slices.DeleteFunc(slices.Clone(w.Spelled), holds)
	var all []policy.Link
	for _, t := range s.tops {
		all = append(all, s.into(t, rel, to, w)...)
	}
	switch {
	case loop: // it is held all the same
		s.loops.add(rel)
	case w.Mount != "":
		s.away.add(rel)
	case w.Cut:
		s.more.add(rel)
	}
	if loop || w.Cut {
		all = append(all, policy.Link{Root: s.in.name, Path: rel})
	}
	if !s.note(rel, all) || len(all) == 0 || loop || w.Cut {
		return ""
	}
	return w.End
}

// into are the places in a root that a link leads to or over, and the name that the
// root has by a link to a folder above it.
func (s *search) into(t top, rel string, to []string, w links.Way) (all []policy.Link) {
	for _, end := range ends(t.dirs, to) {
		all = append(all, policy.Link{Root: s.in.name, Path: rel, ToRoot: t.name, To: end})
	}
	for _, p := range to {
		for _, rest := range inside([]string{p}, t.dirs) {
			all = append(all, policy.Link{Root: s.in.name, Path: rel + "/" + rest, ToRoot: t.name})
		}
	}
	for _, over := range ends(t.dirs, w.Stays()) {
		if over != "" && (t.name != s.in.name || over != rel) {
			all = append(all, policy.Link{Root: s.in.name, Path: rel, ToRoot: t.name, To: over, Over: true})
		}
	}
	return all
}

// ends are the places that lie in a folder by one of its spellings, "" for itself.
func ends(dirs, places []string) []string {
	rels := inside(dirs, places)
	if slices.ContainsFunc(places, func(p string) bool { return slices.Contains(dirs, p) }) {
		rels = append(rels, "")
	}
	slices.Sort(rels)
	return slices.Compact(rels)
}

// some are links that a person is told of together.
type some struct {
	first string
	n     int
}

func (s *some) add(rel string) { s.first, s.n = cmp.Or(s.first, rel), s.n+1 }

// warn tells of them: what the first does, and how many more do.
func (s *some) warn(all *[]string, root, does, next string) {
	if s.n == 0 {
		return
	}
	text := "root " + root + ": the link " + textsafe.Word(s.first) + " leads to " + does
	if s.n > 1 {
		text += "; " + strconv.Itoa(s.n-1) + " more do"
	}
	*all = append(*all, text+": "+next)
}

// warn tells a person what isn't known.
func (s *search) warn(all *[]string) {
	name := s.in.name
	if s.more.n > 0 || s.many {
		text := "root " + name + ": not every link with a name of the built-in lists is known or followed to its end"
		if s.more.n > 0 {
			text += ", the first is " + textsafe.Word(s.more.first)
		}
		*all = append(*all, text+": there are too many links or folders, their ways are too long, or it takes too long: remove what you don't need, or serve a smaller folder")
	}
	s.away.warn(all, name, "a mount that may not answer and isn't asked, so its name protects nothing there", "remove it, or list the mount in a root's mounts in your own policy")
	s.loops.warn(all, name, "a folder that it lies in, so its name protects nothing there", "remove what you don't need")
}
