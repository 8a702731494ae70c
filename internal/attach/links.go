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

	"github.com/postern-gate/postern/internal/state/regular"
)

// What is looked through for links is bounded, since it is at each start and
// again while a server runs; what lies beyond is told.
const (
	maxLinks   = 40   // of one path, as kernels bound it
	maxEntries = 1000 // of one folder and those in it
	maxWhole   = 4000 // of all of them
	maxLevels  = 6    // of folders in folders
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
	folders map[string][]string // how each may be spelled, the last without links
	targets map[string][]string // of the links within a folder
	left    int
	beyond  []string // folders that were not looked through whole
}

func newTrail() *trail {
	return &trail{folders: map[string][]string{}, targets: map[string][]string{}, left: maxWhole}
}

// follow returns each spelling of a path on the way to what its links lead to,
// that last, and whether it is there.
func (t *trail) follow(path string) (all []string, there bool) {
	for range maxLinks {
		for _, dir := range t.folder(filepath.Dir(path)) {
			all = append(all, filepath.Join(dir, filepath.Base(path)))
		}
		path = all[len(all)-1]
		target, err := os.Readlink(path)
		if err != nil {
			return all, !errors.Is(err, fs.ErrNotExist)
		}
		if !filepath.IsAbs(target) {
			target = filepath.Join(filepath.Dir(path), target)
		}
		path = filepath.Clean(target)
	}
	return all, false
}

// folder is follow for a folder, which many paths have in common.
func (t *trail) folder(dir string) []string {
	if all, ok := t.folders[dir]; ok {
		return all
	}
	t.folders[dir] = []string{dir} // a link that leads through itself ends here
	if filepath.Dir(dir) == dir {
		return t.folders[dir]
	}
	all, there := t.follow(dir)
	if there && (len(all) > 1 || runtime.GOOS == "windows") { // as the system spells it
		if real, err := filepath.EvalSymlinks(dir); err == nil && real != all[len(all)-1] {
			all = append(all, real)
		}
	}
	t.folders[dir] = all
	return all
}

// within returns what the links in a folder lead to, and those in folders that
// they lead to. The folder itself is held as a whole.
func (t *trail) within(top string) (found []string) {
	if done, ok := t.targets[top]; ok || !isDir(top) {
		return done
	}
	s := search{trail: t, held: []string{top}, left: min(maxEntries, t.left)}
	t.left -= s.left
	s.from(top)
	t.left += s.left
	if s.over {
		t.beyond = append(t.beyond, top)
	}
	t.targets[top] = s.found
	return s.found
}

// search looks through one folder, what is nearest to it first.
type search struct {
	*trail
	held  []string // folders that are held with all that is in them
	found []string
	left  int
	over  bool
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
	s.over = s.over || len(next) > 0
}

// one looks at the entries of a folder and returns the folders among them.
func (s *search) one(dir string) (below []string) {
	entries, more, err := entriesOf(dir, s.left)
	s.left -= len(entries)
	s.over = s.over || more || err != nil && !errors.Is(err, fs.ErrNotExist)
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
	spelled, there := s.follow(path)
	end := spelled[len(spelled)-1]
	for _, p := range spelled {
		if s.apart(p) {
			s.found = append(s.found, p)
		}
	}
	if !there || !s.apart(end) || !isDir(end) {
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
			s.over = true
			return false
		}
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
