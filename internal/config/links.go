// SPDX-License-Identifier: Apache-2.0

package config

import (
	"cmp"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/postern-gate/postern/core"
	"github.com/postern-gate/postern/core/policy"
	"github.com/postern-gate/postern/core/textsafe"
	"github.com/postern-gate/postern/internal/links"
	"github.com/postern-gate/postern/internal/state/regular"
)

const (
	// maxDepth and maxEntries bound where links are looked for beneath each root:
	// .claude/skills/x may be one.
	maxDepth   = 3
	maxEntries = 10_000
	// maxFound bounds what each decision compares with.
	maxFound = 256
	// maxFollowed bounds what each look costs.
	maxFollowed = 1000
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
		tops = append(tops, top{r.Name, slices.Compact([]string{r.Path, real(r.Path)})})
	}
	for place, entry := range own {
		w := links.Follow(place)
		for _, t := range tops {
			for _, rel := range inside(t.dirs, w.Spelled) {
				c.Protected = append(c.Protected, policy.Protected{Root: t.name, Path: rel, Entry: entry})
			}
			for _, rel := range inside(t.dirs, w.Links) {
				c.Links = append(c.Links, policy.Link{Root: t.name, Path: rel})
			}
		}
	}
	lists := l.lists(c.Protected)
	l.out.find = finder(tops, func(root, rel string) bool {
		return lists.Evaluate(core.Request{Action: core.FSRead, Resource: core.File(root, rel), Link: true}).Reason.Builtin != ""
	})
	l.out.found = l.out.find()
	c.Links = append(c.Links, l.out.found.links...)
	l.out.Warnings = append(l.out.Warnings, l.out.found.warnings...)
}

// found are the links with names that the built-in lists have or go on from, and what
// a person is told of each root: that it has too many, or which say nothing.
type found struct {
	links    []policy.Link
	warnings []string
}

// finder looks for links with names that are known, of which each is asked about once
// as long as there are not too many.
func finder(tops []top, known func(root, rel string) bool) func() found {
	judged := make([]map[string]bool, len(tops))
	for i := range judged {
		judged[i] = map[string]bool{}
	}
	return func() (all found) {
		for i, t := range tops {
			s := search{tops: tops, lists: known, judged: judged[i], in: t, entries: maxEntries}
			if s.look("", maxDepth); s.more {
				all.warnings = append(all.warnings, "root "+t.name+": not every link with a name of the built-in lists is known: there are too many, or too much beside them")
			}
			if s.loops > 0 {
				all.warnings = append(all.warnings, "root "+t.name+": "+s.looping())
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
	lists   func(root, rel string) bool
	judged  map[string]bool // what the lists say of names: they don't change
	in      top
	entries int // that may still be looked at
	more    bool
	found   []policy.Link
	folder  []string // that is looked at, by its spellings
	links   int      // that were followed
	loops   int      // links to folders that hold them, and one of these
	loop    string
}

// look finds the links of a folder, and after them those further down.
func (s *search) look(dir string, depth int) {
	path := filepath.Join(s.in.dirs[0], dir)
	f, err := regular.OpenDir(path) // a FIFO would be waited for
	if err != nil {
		return
	}
	entries, _ := f.ReadDir(s.entries + 1)
	_ = f.Close()
	if s.entries -= len(entries); s.entries < 0 {
		s.entries, s.more = 0, true
	}
	s.folder = []string{path, real(path)}
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
	is, ok := s.judged[rel]
	if !ok {
		is = s.lists(s.in.name, rel)
		if len(s.judged) == maxEntries { // of which many are gone
			clear(s.judged)
		}
		s.judged[rel] = is
	}
	return is
}

// leads notes where a link leads, and is true for a folder beneath a root that the
// link itself isn't in. One that it is in isn't noted: all in it would be judged by
// the link's name, as in a project with .claude/skills/all -> ../..
func (s *search) leads(rel string) bool {
	if s.links++; s.links > maxFollowed {
		s.more = true
		return false
	}
	path := filepath.Join(s.in.dirs[0], rel)
	to := links.Follow(path).Spelled
	noted, loop := len(s.found), false
	holds := func(p string) bool { return slices.Contains(s.folder, p) || inside([]string{p}, s.folder) != nil }
	for _, t := range s.tops {
		for _, end := range ends(t.dirs, slices.DeleteFunc(slices.Clone(to), holds)) {
			s.found = append(s.found, policy.Link{Root: s.in.name, Path: rel, ToRoot: t.name, To: end})
		}
		loop = loop || ends(t.dirs, slices.DeleteFunc(slices.Clone(to), func(p string) bool { return !holds(p) })) != nil
	}
	if loop { // it is held all the same
		s.found, s.loop, s.loops = append(s.found, policy.Link{Root: s.in.name, Path: rel}), cmp.Or(s.loop, rel), s.loops+1
	}
	if len(s.found) > maxFound {
		s.found, s.more = s.found[:noted], true
		return false
	}
	if len(s.found) == noted || loop {
		return false
	}
	info, err := os.Stat(path)
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

// looping is what a person is told of links to folders that hold them.
func (s *search) looping() string {
	text := "the link " + textsafe.Word(s.loop) + " leads to a folder that it lies in, so its name protects nothing there"
	if s.loops > 1 {
		text += "; " + strconv.Itoa(s.loops-1) + " more do"
	}
	return text + ": remove what you don't need"
}
