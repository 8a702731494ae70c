// SPDX-License-Identifier: Apache-2.0

package config

import (
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/postern-gate/postern/core"
	"github.com/postern-gate/postern/core/policy"
	"github.com/postern-gate/postern/internal/state/regular"
)

const (
	// maxDepth and maxEntries bound where links are looked for beneath each root:
	// .claude/skills/x may be one.
	maxDepth   = 3
	maxEntries = 10_000
	// maxFound bounds what each decision compares with.
	maxFound = 256
	// maxOnWay is how many links the kernel follows.
	maxOnWay = 40
)

// way is a path as it is spelled, as each link on it leads on, and those links, each
// beneath folders that are none.
type way struct {
	spelled, links []string
}

func follow(path string) (w way) {
	at, todo := parts(path)
	w.spelled = append(w.spelled, path)
	for len(todo) > 0 {
		next := filepath.Join(at, todo[0])
		todo = todo[1:]
		target, err := os.Readlink(next)
		if err != nil || len(w.links) == maxOnWay { // what is missing has no links either
			at = next
			continue
		}
		w.links = append(w.links, next)
		top, more := parts(target)
		if top != "" {
			at = top
		}
		todo = append(more, todo...)
		w.spelled = append(w.spelled, filepath.Join(at, filepath.Join(todo...)))
	}
	w.spelled = append(w.spelled, at)
	return w
}

// parts splits a path, whose .. are meant beneath what a link led to; top is "" for
// a relative one.
func parts(path string) (top string, names []string) {
	volume := filepath.VolumeName(path)
	if filepath.IsAbs(path) {
		top = volume + string(filepath.Separator)
	}
	rest := filepath.ToSlash(path[len(volume):])
	return top, slices.DeleteFunc(strings.Split(rest, "/"), func(s string) bool { return s == "" })
}

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
		tops = append(tops, top{r.Name, slices.Compact([]string{r.Path, real(r.Path)})})
	}
	for place, entry := range own {
		w := follow(place)
		for _, t := range tops {
			for _, rel := range inside(t.dirs, w.spelled[1:]) {
				c.Protected = append(c.Protected, policy.Protected{Root: t.name, Path: rel, Entry: entry})
			}
			for _, rel := range inside(t.dirs, w.links) {
				c.Links = append(c.Links, policy.Link{Root: t.name, Path: rel})
			}
		}
	}
	l.out.find = finder(tops, l.lists(c.Protected))
	l.out.found = l.out.find()
	c.Links = append(c.Links, l.out.found.links...)
	for _, root := range l.out.found.short {
		l.out.Warnings = append(l.out.Warnings, "root "+root+": not every link with a name of the built-in lists is known: there are too many, or too much beside them")
	}
}

// found are the links with names that the built-in lists have or go on from, and the
// roots that have too many of them.
type found struct {
	links []policy.Link
	short []string
}

func finder(tops []top, lists *policy.Policy) func() found {
	return func() (all found) {
		for _, t := range tops {
			s := search{tops: tops, lists: lists, in: t, entries: maxEntries}
			if s.look("", maxDepth); s.more {
				all.short = append(all.short, t.name)
			}
			all.links = append(all.links, s.found...)
		}
		return all
	}
}

// lists is a policy of the built-in lists alone, nil where they can't be lifted so.
func (l *loader) lists(places []policy.Protected) *policy.Policy {
	fallback := policy.Default()
	c := policy.Config{Roots: l.roots, Fallback: &fallback, Protected: places}
	for _, d := range l.docs {
		c.Lift = append(c.Lift, d.lift...)
	}
	p, err := policy.Compile(c)
	if err != nil {
		return nil // which is told of the policy itself
	}
	return p
}

// top is a root by its spellings.
type top struct {
	name string
	dirs []string
}

// search looks for links beneath one root.
type search struct {
	tops    []top
	lists   *policy.Policy
	in      top
	entries int // that may still be looked at
	more    bool
	found   []policy.Link
}

// look finds the links of a folder, and after them those further down.
func (s *search) look(dir string, depth int) {
	f, err := regular.OpenDir(filepath.Join(s.in.dirs[0], dir)) // a FIFO would be waited for
	if err != nil {
		return
	}
	entries, _ := f.ReadDir(s.entries + 1)
	_ = f.Close()
	if s.entries -= len(entries); s.entries < 0 {
		s.entries, s.more = 0, true
	}
	var folders []string
	for _, e := range entries {
		rel := strings.TrimPrefix(dir+"/"+e.Name(), "/")
		if link := e.Type()&fs.ModeSymlink != 0; (link || e.IsDir() && depth > 1) && s.known(rel) && (!link || s.leads(rel)) {
			folders = append(folders, rel)
		}
	}
	for _, rel := range folders {
		if depth > 1 {
			s.look(rel, depth-1)
		}
	}
}

// known reports whether the lists have the name or go on from it.
func (s *search) known(rel string) bool {
	return s.lists.Evaluate(core.Request{Action: core.FSRead, Resource: core.File(s.in.name, rel), Link: true}).Reason.Builtin != ""
}

// leads notes where a link leads, and is true for a folder beneath a root that the
// link itself isn't in.
func (s *search) leads(rel string) bool {
	path := filepath.Join(s.in.dirs[0], rel)
	to := follow(path).spelled[1:]
	noted := len(s.found)
	for _, t := range s.tops {
		ends := inside(t.dirs, to)
		if slices.ContainsFunc(to, func(p string) bool { return slices.Contains(t.dirs, p) }) {
			ends = append(ends, "")
		}
		slices.Sort(ends)
		for _, end := range slices.Compact(ends) {
			s.found = append(s.found, policy.Link{Root: s.in.name, Path: rel, ToRoot: t.name, To: end})
		}
	}
	if len(s.found) > maxFound {
		s.found, s.more = s.found[:noted], true
		return false
	}
	_, around := beneath(path, filepath.Dir(path))
	info, err := os.Stat(path)
	return err == nil && info.IsDir() && len(s.found) > noted && !around
}
