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
	"github.com/postern-gate/postern/internal/links"
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
	// maxFollowed and maxCost bound what each look costs: links, and names on the
	// ways that they lead.
	maxFollowed = 1000
	maxCost     = 100_000
	// settles is how old a change must be for the times of a folder to tell the next:
	// the coarsest clock of a file system has two seconds.
	settles = 3 * time.Second
)

// found are the links with names that the built-in lists have or go on from, and what
// a person is told of each root.
type found struct {
	links    []policy.Link
	warnings []string
}

// place is a name beneath a root.
type place struct{ root, rel string }

// finder looks for links, again and again: what it has found it looks at first, and
// a folder that is as it was isn't read again.
type finder struct {
	now    func() time.Time
	of     policy.Config // what the lists are made from
	lists  func(root, rel string) bool
	judged map[place]bool // what the lists say of names: they don't change
	read   map[place]*folder
	last   []led
}

// led is what is known of the link at a place.
type led struct {
	at place
	policy.Link
}

func newFinder(now func() time.Time, lists func(root, rel string) bool) *finder {
	if now == nil {
		now = time.Now
	}
	return &finder{now: now, lists: lists, judged: map[place]bool{}}
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

func (f *finder) find(tops []top, look *links.Look) (all found) {
	before, last := f.read, []led(nil)
	f.read = make(map[place]*folder, len(before))
	for _, t := range tops {
		s := search{finder: f, tops: tops, ask: look, before: before, in: t, left: maxEntries, cost: maxCost, done: map[string]string{}}
		if !t.moved {
			s.again()
			s.look()
		}
		s.keep()
		s.warn(&all.warnings)
		last = append(last, s.found...)
	}
	for _, l := range last {
		all.links = append(all.links, l.Link)
	}
	f.last = last
	return all
}

// search looks for links beneath one root.
type search struct {
	*finder
	tops   []top
	ask    *links.Look
	before map[place]*folder
	in     top
	left   int               // links and folders that may still be looked at
	cost   int               // of ways that may still be followed
	done   map[string]string // links that are noted, to the folder to look into, "" for none
	found  []led
	// What a person is told: links to folders that hold them, to mounts that may not
	// answer, and that there are too many of, and that there are too many folders.
	loops, away, more some
	many              bool
}

// spent reports whether no more is looked at.
func (s *search) spent() bool { return s.cost <= 0 || s.ask.Late() }

// again notes where the links lead now that are known already, so that nothing that
// is made beside them takes their place. One that can't be told stays known.
func (s *search) again() {
	for _, l := range s.last {
		if _, ok := s.done[l.at.rel]; !ok && l.at.root == s.in.name {
			s.enters(l.at.rel, true)
		}
	}
}

// enters notes a link, once, and returns the folder to look into, "" for none. One that
// is known was a link before.
func (s *search) enters(rel string, known bool) string {
	if to, ok := s.done[rel]; ok {
		return to
	}
	if s.spent() || !known && (len(s.found) >= maxFound || len(s.done) >= maxFollowed) {
		if s.more.add(rel); known {
			s.done[rel] = ""
		}
		return ""
	}
	at := filepath.Join(s.in.dirs[0], filepath.FromSlash(rel))
	folder, way := s.ask.Follow(filepath.Dir(at)), s.ask.Follow(at)
	s.cost -= folder.Cost + way.Cost
	if !folder.Cut && !slices.Contains(way.Links, filepath.Join(folder.End, filepath.Base(at))) {
		return "" // it is none any more
	}
	s.done[rel] = ""
	s.done[rel] = s.leads(rel, folder, way)
	return s.done[rel]
}

// keep adds where known links led before: whoever could cut their way would have
// what they led to.
func (s *search) keep() {
	have := make(map[led]bool, len(s.found))
	for _, l := range s.found {
		have[l] = true
	}
	for _, l := range s.last {
		if _, ok := s.done[l.at.rel]; (ok || s.in.moved) && l.at.root == s.in.name && !have[l] {
			s.note(l.at.rel, []policy.Link{l.Link})
		}
	}
}

// note adds what is known of a link, all or none.
func (s *search) note(rel string, all []policy.Link) bool {
	if len(s.found)+len(all) > maxFound {
		s.more.add(rel)
		return false
	}
	for _, l := range all {
		s.found = append(s.found, led{place{s.in.name, rel}, l})
	}
	return true
}

// spot is a folder by its name beneath the root, and without links.
type spot struct{ rel, full string }

func (s spot) in(name string) spot { return spot{path.Join(s.rel, name), filepath.Join(s.full, name)} }

// look goes through the folders, level by level, those with names of the lists
// first.
func (s *search) look() {
	now := []spot{{"", s.in.dirs[len(s.in.dirs)-1]}}
	for depth := maxDepth; depth > 0; depth-- {
		var first, rest []spot
		for _, dir := range now {
			if s.left <= 0 || s.ask.Late() {
				s.many = true
				return
			}
			f := s.open(dir, depth > 1)
			if f == nil {
				continue
			}
			s.left -= f.many
			for _, name := range f.links {
				rel := path.Join(dir.rel, name)
				if to := s.enters(rel, false); to != "" {
					first = append(first, spot{rel, to})
				}
			}
			first, rest = appendIn(first, dir, f.first), appendIn(rest, dir, f.rest)
		}
		now = append(first, rest...)
	}
}

func appendIn(all []spot, dir spot, names []string) []spot {
	for _, name := range names {
		all = append(all, dir.in(name))
	}
	return all
}

// open returns what is in a folder, as it was read before if nothing has changed.
func (s *search) open(dir spot, deeper bool) *folder {
	if !s.ask.Answers(dir.full) {
		return nil
	}
	at := place{s.in.name, dir.rel}
	old := s.before[at]
	info, err := os.Lstat(dir.full)
	if err != nil || !info.IsDir() {
		return nil
	}
	if old == nil || !old.settled || !os.SameFile(info, old.info) || !info.ModTime().Equal(old.info.ModTime()) || !changeTime(info).Equal(changeTime(old.info)) {
		if old = s.readDir(dir, deeper); old == nil {
			return nil
		}
	}
	s.read[at] = old
	return old
}

func (s *search) readDir(dir spot, deeper bool) *folder {
	f, err := regular.OpenDir(dir.full) // a FIFO would be waited for
	if err != nil {
		return nil
	}
	defer f.Close()
	out := folder{many: 1}
	now := s.now()
	if out.info, err = f.Stat(); err != nil {
		return nil
	}
	old := func(t time.Time) bool { return now.Sub(t).Abs() > settles } // one to come is told from the next change too
	out.settled = old(out.info.ModTime()) && old(changeTime(out.info))
	for {
		entries, err := f.ReadDir(1024)
		for _, e := range entries {
			s.sort(&out, dir.rel, e, deeper)
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
