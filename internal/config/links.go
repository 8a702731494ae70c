// SPDX-License-Identifier: Apache-2.0

package config

import (
	"cmp"
	"maps"
	"os"
	"path"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"

	"github.com/postern-gate/postern/core"
	"github.com/postern-gate/postern/core/policy"
	"github.com/postern-gate/postern/core/textsafe"
	"github.com/postern-gate/postern/internal/links"
)

// addLinks adds where links lead that are on the way to our own places, and those
// beneath the roots whose names the built-in lists have or go on from.
func (l *loader) addLinks(c *policy.Config) {
	own := map[string]string{l.StateDir: "postern-state"}
	for _, s := range l.out.sources {
		own[s.path] = "postern"
	}
	delete(own, "")
	var tops []top
	for _, r := range l.out.Roots {
		tops = append(tops, r.top())
	}
	for path, entry := range own {
		addWay(c, tops, links.Follow(path), entry)
	}
	l.out.finder = l.finder(tops, c.Protected)
	l.out.found = l.out.finder.find()
	c.Links = append(c.Links, l.out.found.links...)
	l.out.Warnings = append(l.out.Warnings, l.out.found.warnings...)
}

// addWay adds the way to a place of our own: what it is called, and what it goes by.
func addWay(c *policy.Config, tops []top, w links.Way, entry string) {
	var called []policy.Protected
	for _, t := range tops {
		for _, rel := range inside(t.dirs, w.Spelled) {
			called = append(called, policy.Protected{Root: t.name, Path: rel, Entry: entry})
		}
		for _, rel := range inside(t.dirs, w.Links) {
			c.Links = append(c.Links, policy.Link{Root: t.name, Path: rel})
		}
	}
	c.Protected = append(c.Protected, called...)
	for _, t := range tops {
		for _, rel := range inside(t.dirs, left(w)) {
			if len(called) > 0 {
				c.Links = append(c.Links, policy.Link{Root: called[0].Root, Path: called[0].Path, ToRoot: t.name, To: rel, Over: true})
			}
		}
	}
}

// finder is that of the policy before as long as it looks for the same, and else one
// that knows what that one has found.
func (l *loader) finder(tops []top, places []policy.Protected) *finder {
	fallback := policy.Default()
	// Lifted or not: what belongs to an entry that is lifted is known by links too.
	of := policy.Config{Roots: l.roots, Fallback: &fallback, Protected: sorted(places)}
	same := func(a, b top) bool {
		return a.name == b.name && slices.Equal(a.dirs, b.dirs) && slices.Equal(a.mounts, b.mounts)
	}
	if l.before != nil && reflect.DeepEqual(l.before.of, of) && slices.EqualFunc(l.before.tops, tops, same) {
		return l.before
	}
	lists, _ := policy.Compile(of) // an error is told of the policy itself
	f := newFinder(tops, l.now, func(root, rel string) bool {
		return lists.Evaluate(core.Request{Action: core.FSRead, Resource: core.File(root, rel), Link: true}).Reason.Builtin != ""
	})
	if f.of = of; l.before != nil {
		f.last = l.before.last
	}
	return f
}

func sorted(places []policy.Protected) []policy.Protected {
	return slices.SortedFunc(slices.Values(places), func(a, b policy.Protected) int {
		return cmp.Or(cmp.Compare(a.Root, b.Root), cmp.Compare(a.Path, b.Path), cmp.Compare(a.Entry, b.Entry), cmp.Compare(a.Below, b.Below))
	})
}

// top is a root by its spellings, and the mount points beneath it that may be entered.
type top struct {
	name         string
	dirs, mounts []string
}

// Shut are the mount points beneath the root that no call enters, as names in it,
// sorted. None of them is asked: one may not answer.
func (r Root) Shut() []string { return slices.Sorted(maps.Keys(r.top().shut(mounted()))) }

func (r Root) top() top {
	return top{r.Name, slices.Compact([]string{r.Path, real(r.Path)}), r.Mounts}
}

// shut are the other mount points beneath it: nothing is reached there, and whoever
// looks may wait for ever.
func (t top) shut(mounted []string) map[string]bool {
	all := map[string]bool{}
	for _, rel := range inside(t.dirs, mounted) {
		if rel = filepath.ToSlash(rel); !slices.Contains(t.mounts, rel) {
			all[rel] = true
		}
	}
	return all
}

// away reports whether the name lies where a mount is shut, or the link of that
// name leads there.
func (s *search) away(rel string) bool {
	for dir := rel; dir != "." && dir != "/"; dir = path.Dir(dir) {
		if s.shut[dir] {
			return true
		}
	}
	at := filepath.Join(s.in.dirs[0], rel)
	to, err := os.Readlink(at)
	if err != nil || len(s.shut) == 0 {
		return false
	}
	if !filepath.IsAbs(to) {
		to = filepath.Join(filepath.Dir(at), to)
	}
	for _, end := range inside(s.in.dirs, []string{to}) {
		for dir := filepath.ToSlash(end); dir != "." && dir != "/"; dir = path.Dir(dir) {
			if s.shut[dir] {
				return true
			}
		}
	}
	return false
}

// leads notes where a link leads, by each step, and what it leads over. It is true
// for a folder beneath a root that the link itself isn't in. Of one that it is in
// only the link is noted: all in it would be judged by the link's name, as in a
// project with .claude/skills/all -> ../..
func (s *search) leads(rel string) bool {
	at := filepath.Join(s.in.dirs[0], rel)
	w := links.Follow(at)
	s.names -= w.Names
	folder := []string{filepath.Dir(at), real(filepath.Dir(at))}
	holds := func(p string) bool { return slices.Contains(folder, p) || inside([]string{p}, folder) != nil }
	var all []policy.Link
	loop, to := false, slices.DeleteFunc(slices.Clone(w.Spelled), holds)
	for _, t := range s.tops {
		for _, end := range ends(t.dirs, to) {
			all = append(all, policy.Link{Root: s.in.name, Path: rel, ToRoot: t.name, To: end})
		}
		for _, over := range ends(t.dirs, append(slices.Clone(w.Links), left(w)...)) {
			if over != "" && (t.name != s.in.name || over != rel) {
				all = append(all, policy.Link{Root: s.in.name, Path: rel, ToRoot: t.name, To: over, Over: true})
			}
		}
		loop = loop || ends(t.dirs, slices.DeleteFunc(slices.Clone(w.Spelled), func(p string) bool { return !holds(p) })) != nil
	}
	if loop { // it is held all the same
		all, s.loop, s.loops = append(all, policy.Link{Root: s.in.name, Path: rel}), cmp.Or(s.loop, rel), s.loops+1
	}
	s.more = s.more || w.Cut
	if !s.note(all) || len(all) == 0 || loop {
		return false
	}
	info, err := os.Stat(at)
	return err == nil && info.IsDir()
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

// left are what the way leaves by .., but for folders that a link on it lies in: that
// one is noted, so they stay too.
func left(w links.Way) []string {
	return slices.DeleteFunc(slices.Clone(w.Over), func(dir string) bool { return inside([]string{dir}, w.Links) != nil })
}

// looping is what a person is told of links to folders that hold them.
func (s *search) looping() string {
	text := "the link " + textsafe.Word(s.loop) + " leads to a folder that it lies in, so its name protects nothing there"
	if s.loops > 1 {
		text += "; " + strconv.Itoa(s.loops-1) + " more do"
	}
	return text + ": remove what you don't need"
}
