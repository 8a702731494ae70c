// SPDX-License-Identifier: Apache-2.0

package attach

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"github.com/postern-gate/postern/internal/links"
	"github.com/postern-gate/postern/internal/state/regular"
)

// What is looked through for links is bounded, since it is at each start and
// again while a server runs; what lies beyond is told.
const (
	maxEntries = 1000    // of one folder and those in it
	maxWhole   = 4000    // of all of them
	maxLevels  = 6       // of folders in folders
	maxFound   = 4000    // places that each decision compares with, in all folders
	maxNames   = 100_000 // on the ways to them
)

// kept are folders in which programs keep what they fetched or recorded. A link
// that lies beside them or is one is followed, none within.
func kept(name string) bool {
	return slices.Contains([]string{
		".git", "node_modules", "extensions", "marketplaces", "worktrees", "servers", "elpa", "straight", "plugged", "bundle", "pack",
		"cache", "caches", ".cache", "code cache", "gpucache", "service worker", "indexeddb", "local storage", "session storage", "blob_storage", "crashpad",
		"log", "logs", "tmp", ".tmp", "debug", "telemetry", "statsig", "backups", "history", "file-history", "todos", "shell-snapshots", "paste-cache",
		"projects", "sessions", "archived_sessions", "session-state", "session-env", "chats", "workspacestorage", "globalstorage",
	}, strings.ToLower(name))
}

// trail finds how paths are spelled and where their links lead.
type trail struct {
	look    *links.Look
	targets map[string]reach // of the links within a folder
	left    int              // entries that may be looked at
	found   int              // places that may be found
	names   int
	beyond  []string // folders that were not looked through whole
	away    []string // what leads to mounts that may not answer
}

// reach is what paths lead to, by each step, and what must stay for that.
type reach struct{ places, over []string }

func (r *reach) add(more reach) {
	r.places, r.over = append(r.places, more.places...), append(r.over, more.over...)
}

func newTrail(look *links.Look) *trail {
	return &trail{look: look, targets: map[string]reach{}, left: maxWhole, found: maxFound, names: maxNames}
}

// hold returns what is held of a top: itself, what it leads to, and what the links
// within do.
func (t *trail) hold(p top) (all reach) {
	if p.of != "" && (t.names <= 0 || t.found <= 0) {
		t.beyond = append(t.beyond, p.of)
		return all
	}
	spelled, end, way := t.follow(p.path)
	if p.of != "" {
		t.names, t.found = t.names-way.Cost, t.found-len(spelled)
	}
	if way.Cut && way.Mount == "" {
		t.beyond = append(t.beyond, p.path)
	}
	listed := func(path string) bool { return p.known != "" && filepath.Base(path) == p.known }
	all = reach{slices.DeleteFunc(spelled, listed), way.Stays()}
	if end != "" {
		all.add(t.within(end, listed(end)))
	}
	return all
}

// follow returns the spellings of a path, and notes where they end at a mount.
func (t *trail) follow(path string) (all []string, end string, way links.Way) {
	if all, end, way = spellings(t.look, path); way.Mount != "" {
		t.away = append(t.away, path)
	}
	return all, end, way
}

// spellings are a path, tidied up, and each of its spellings on the way to its end, "" where
// it leads nowhere.
func spellings(look *links.Look, path string) (all []string, end string, way links.Way) {
	way = look.Follow(path)
	all, end = append([]string{filepath.Clean(path)}, way.Spelled...), way.End
	if runtime.GOOS == "windows" && end != "" { // as the system spells it
		if real, err := filepath.EvalSymlinks(filepath.Dir(end)); err == nil {
			end = filepath.Join(real, filepath.Base(end))
			all = append(all, end)
		}
	}
	return all, end, way
}

// within returns what the links in a folder lead to, and those in folders that
// they lead to. The folder itself is held as a whole, but for one that is listed.
func (t *trail) within(top string, listed bool) reach {
	if done, ok := t.targets[top]; ok || !isDir(top) {
		return done
	}
	s := search{trail: t, held: []string{top}, seen: map[string]bool{}, left: min(maxEntries, t.left)}
	if listed {
		s.held, s.listed = nil, top
	}
	t.left -= s.left
	s.from(top)
	t.left += s.left
	if s.past {
		t.beyond = append(t.beyond, top)
	}
	t.targets[top] = s.reach
	return s.reach
}

// search looks through one folder, what is nearest to it first.
type search struct {
	*trail
	held   []string // folders that are held with all that is in them
	listed string   // the top where the built-in lists hold a part of it
	reach
	seen map[string]bool // its places
	left int
	past bool // there is more
}

func (s *search) from(top string) {
	next := []string{top}
	for range maxLevels {
		var below []string
		for _, dir := range next {
			below = append(below, s.one(dir)...)
		}
		next = below
	}
	s.past = s.past || len(next) > 0
}

// one looks at the entries of a folder and returns the folders among them.
func (s *search) one(dir string) (below []string) {
	if s.look.Late() || !s.look.Answers(dir) {
		s.past = true
		return nil
	}
	entries, more, err := entriesOf(dir, s.left)
	s.left -= len(entries)
	s.past = s.past || more || err != nil && !errors.Is(err, fs.ErrNotExist)
	for _, e := range entries {
		switch {
		case e.Type()&fs.ModeSymlink != 0:
			below = append(below, s.link(filepath.Join(dir, e.Name()))...)
		case e.IsDir() && !kept(e.Name()):
			below = append(below, filepath.Join(dir, e.Name()))
		}
	}
	return below
}

// link holds what a link leads to, by each step, and returns that if it is
// another folder.
func (s *search) link(path string) []string {
	if s.names <= 0 {
		s.past = true
		return nil
	}
	spelled, end, way := s.follow(path)
	s.names -= way.Cost
	s.past = s.past || way.Cut && way.Mount == ""
	s.over = append(s.over, way.Stays()...)
	for _, p := range spelled {
		switch {
		case !s.apart(p) || s.seen[p]:
		case s.found == 0:
			s.past = true
		default:
			s.found--
			s.seen[p], s.places = true, append(s.places, p)
		}
	}
	if end == "" || !s.apart(end) || !isDir(end) {
		return nil
	}
	s.held = append(s.held, end)
	return []string{end}
}

// apart reports whether a path is to be held by itself: not what lies in a folder
// that is held, nor one above, which would hold everything.
func (s *search) apart(path string) bool {
	for _, dir := range s.held {
		if beneath(dir, path) {
			return false
		}
		if beneath(path, dir) {
			s.past = true
			return false
		}
	}
	if s.listed != "" && beneath(path, s.listed) {
		s.past = s.past || path != s.listed
		return false
	}
	return true
}

// entriesOf returns the first entries of a folder and whether there are more. Nothing
// but a folder is opened: a FIFO would be waited for.
func entriesOf(dir string, n int) (entries []fs.DirEntry, more bool, err error) {
	f, err := regular.OpenDir(dir)
	if err != nil {
		return nil, false, err
	}
	defer f.Close()
	entries, err = f.ReadDir(n + 1)
	if errors.Is(err, io.EOF) {
		err = nil
	}
	if more = len(entries) > n; more {
		entries = entries[:n]
	}
	return entries, more, err
}

func isDir(path string) bool {
	info, err := os.Lstat(path)
	return err == nil && info.IsDir()
}

// beneath reports whether a path is a folder or in it, both without links.
func beneath(dir, path string) bool {
	rest, ok := strings.CutPrefix(path, dir)
	return ok && (rest == "" || os.IsPathSeparator(rest[0]) || os.IsPathSeparator(dir[len(dir)-1]))
}
