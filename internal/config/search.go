// SPDX-License-Identifier: Apache-2.0

package config

import (
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"time"

	"github.com/postern-gate/postern/core/policy"
	"github.com/postern-gate/postern/internal/state/regular"
)

const (
	// maxDepth and maxEntries bound where links are looked for beneath each root:
	// .claude/skills/x may be one. Links and folders count, for files an agent makes
	// as many as it likes.
	maxDepth   = 3
	maxEntries = 10_000
	// maxFound bounds what each decision compares with.
	maxFound = 512
	// maxFollowed and maxNames bound what each look costs: links, and names on the
	// ways that they lead.
	maxFollowed = 1000
	maxNames    = 100_000
	// settles is how old a change must be for the times of a folder to tell the next:
	// the coarsest clock of a file system has two seconds.
	settles = 3 * time.Second
)

// found are the links with names that the built-in lists have or go on from, and what
// a person is told of each root: that it has too many, or which say nothing.
type found struct {
	links    []policy.Link
	warnings []string
}

// place is a name beneath a root.
type place struct{ root, rel string }

// finder looks for links, again and again: what it has found it looks at first, and
// a folder that is as it was isn't read again.
type finder struct {
	tops   []top
	now    func() time.Time
	of     policy.Config // what the lists are made from
	lists  func(root, rel string) bool
	judged map[place]bool // what the lists say of names: they don't change
	read   map[place]*folder
	last   []policy.Link
}

func newFinder(tops []top, now func() time.Time, lists func(root, rel string) bool) *finder {
	if now == nil {
		now = time.Now
	}
	return &finder{tops: tops, now: now, lists: lists, judged: map[place]bool{}}
}

// folder is what was read of one.
type folder struct {
	info    fs.FileInfo
	settled bool
	links   []string // with names of the lists
	first   []string // folders with names of the lists
	rest    []string // other folders
	many    int      // links, and itself
}

func (f *finder) find() (all found) {
	before := f.read
	f.read = make(map[place]*folder, len(before))
	points := mounted()
	for _, t := range f.tops {
		s := search{finder: f, before: before, in: t, left: maxEntries, names: maxNames, done: map[string]bool{}, shut: t.shut(points)}
		s.again()
		s.look()
		s.keep()
		if s.more {
			all.warnings = append(all.warnings, "root "+t.name+": not every link with a name of the built-in lists is known: there are too many, or too many folders")
		}
		if s.loops > 0 {
			all.warnings = append(all.warnings, "root "+t.name+": "+s.looping())
		}
		all.links = append(all.links, s.found...)
	}
	f.last = all.links
	return all
}

// search looks for links beneath one root.
type search struct {
	*finder
	before map[place]*folder
	in     top
	left   int // links and folders that may still be looked at
	names  int // on the ways of links that may still be looked at
	more   bool
	done   map[string]bool // links that are noted, true for folders to look into
	shut   map[string]bool // mount points that are not entered
	found  []policy.Link
	loops  int // links to folders that hold them, and one of these
	loop   string
}

// again notes where the links lead now that are known already, so that nothing that
// is made beside them takes their place.
func (s *search) again() {
	for _, l := range s.last {
		if _, ok := s.done[l.Path]; !ok && l.Root == s.in.name && s.isLink(l.Path) {
			s.done[l.Path] = s.leads(l.Path)
		}
	}
}

func (s *search) isLink(rel string) bool {
	if s.away(rel) {
		return false
	}
	info, err := os.Lstat(filepath.Join(s.in.dirs[0], rel))
	return err == nil && info.Mode()&fs.ModeSymlink != 0
}

// keep adds where known links led before: whoever could cut their way would have
// what they led to.
func (s *search) keep() {
	have := make(map[policy.Link]bool, len(s.found))
	for _, l := range s.found {
		have[l] = true
	}
	for _, l := range s.last {
		if _, ok := s.done[l.Path]; ok && l.Root == s.in.name && !have[l] {
			s.note([]policy.Link{l})
		}
	}
}

// note adds links, all or none.
func (s *search) note(all []policy.Link) bool {
	if len(s.found)+len(all) > maxFound {
		s.more = true
		return false
	}
	s.found = append(s.found, all...)
	return true
}

// look goes through the folders, level by level, those with names of the lists
// first.
func (s *search) look() {
	now := []string{""}
	for depth := maxDepth; depth > 0; depth-- {
		var first, rest []string
		for _, dir := range now {
			if s.left <= 0 {
				s.more = true
				return
			}
			f := s.open(dir, depth > 1)
			if f == nil {
				continue
			}
			s.left -= f.many
			for _, name := range f.links {
				if rel := path.Join(dir, name); s.enters(rel) {
					first = append(first, rel)
				}
			}
			first, rest = appendIn(first, dir, f.first), appendIn(rest, dir, f.rest)
		}
		now = append(first, rest...)
	}
}

func appendIn(all []string, dir string, names []string) []string {
	for _, name := range names {
		all = append(all, path.Join(dir, name))
	}
	return all
}

// enters notes a link, once, and reports whether it is a folder to look into.
func (s *search) enters(rel string) bool {
	if _, ok := s.done[rel]; !ok {
		if len(s.found) >= maxFound || len(s.done) >= maxFollowed || s.names <= 0 {
			s.more = true
			return false
		}
		s.done[rel] = !s.away(rel) && s.leads(rel)
	}
	return s.done[rel]
}

// open returns what is in a folder, as it was read before if nothing has changed.
func (s *search) open(dir string, deeper bool) *folder {
	at, full := place{s.in.name, dir}, filepath.Join(s.in.dirs[0], dir)
	if s.shut[dir] {
		return nil
	}
	old := s.before[at]
	info, err := os.Stat(full)
	if err != nil {
		return nil
	}
	if old == nil || !old.settled || !os.SameFile(info, old.info) || !info.ModTime().Equal(old.info.ModTime()) || !changeTime(info).Equal(changeTime(old.info)) {
		if old = s.readDir(dir, full, deeper); old == nil {
			return nil
		}
	}
	s.read[at] = old
	return old
}

func (s *search) readDir(dir, full string, deeper bool) *folder {
	f, err := regular.OpenDir(full) // a FIFO would be waited for
	if err != nil {
		return nil
	}
	defer f.Close()
	out := folder{many: 1}
	now := s.now()
	if out.info, err = f.Stat(); err != nil {
		return nil
	}
	out.settled = now.Sub(out.info.ModTime()) > settles && now.Sub(changeTime(out.info)) > settles
	for {
		entries, err := f.ReadDir(1024)
		for _, e := range entries {
			s.sort(&out, dir, e, deeper)
		}
		if err != nil {
			break
		}
	}
	slices.Sort(out.links)
	return &out
}

// sort puts an entry of a folder where it belongs. What is installed is no place
// of links that the lists are about, and there is much of it.
func (s *search) sort(out *folder, dir string, e fs.DirEntry, deeper bool) {
	link := e.Type()&fs.ModeSymlink != 0
	if !link && (!e.IsDir() || !deeper || e.Name() == "node_modules") {
		return
	}
	known := s.known(path.Join(dir, e.Name()))
	switch {
	case link:
		out.many++
		if known {
			out.links = append(out.links, e.Name())
		}
	case known:
		out.first = append(out.first, e.Name())
	case len(out.rest) <= maxEntries: // beyond them none is looked into
		out.rest = append(out.rest, e.Name())
	}
}

// known reports whether the lists have the name or go on from it.
func (s *search) known(rel string) bool {
	at := place{s.in.name, rel}
	is, ok := s.judged[at]
	if !ok {
		is = s.lists(s.in.name, rel)
		if len(s.judged) >= 4*maxEntries { // of which many are gone
			clear(s.judged)
		}
		s.judged[at] = is
	}
	return is
}
