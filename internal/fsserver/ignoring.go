// SPDX-License-Identifier: Apache-2.0

package fsserver

import (
	"slices"
	"strings"

	"github.com/postern-gate/postern/core/pathguard"
	"github.com/postern-gate/postern/enforce"
	"github.com/postern-gate/postern/internal/fsserver/ignore"
)

// maxIgnoreFile is how large a .gitignore file may be to be heeded.
const maxIgnoreFile = 256 << 10

const (
	gitDir     = ".git"
	gitIgnore  = ".gitignore"
	gitExclude = ".git/info/exclude"
)

// ignoring applies the .gitignore files on the way of a walk and above it, up
// to the repository or the root. They are read over the gate like any other
// file; one that may not be read, or is too large, says nothing.
type ignoring struct {
	walk *enforce.Walk
	// prefix leads from the outermost directory whose list counts to where the
	// walk began.
	prefix string
	n      int // names left out
}

// scope is the lists that hold in a directory: its own, and those of the
// directories above it.
type scope struct {
	up    *scope
	base  string // of its names: the way to it from the outermost, with a slash
	lists []ignore.List
	repo  bool // a repository begins here, so nothing above it counts
}

// around returns what the directories above the walk say.
func (g *ignoring) around(top pathguard.Name) *scope {
	var dirs []pathguard.Name
	repo := g.repository(top)
	for dir := top; !repo; {
		up, inside := dir.Parent()
		if !inside {
			break
		}
		dirs, dir, repo = append(dirs, up), up, g.repository(up)
	}
	var s *scope
	for i, dir := range slices.Backward(dirs) {
		s = g.open(dir, g.prefix, g.repository(dir), true, s)
		next := top
		if i > 0 {
			next = dirs[i-1]
		}
		g.prefix += next.Base() + "/"
	}
	return s
}

func (g *ignoring) repository(dir pathguard.Name) bool {
	kind := g.kind(dir, gitDir)
	return kind == pathguard.KindDir || kind == pathguard.KindFile
}

func (g *ignoring) kind(dir pathguard.Name, entry string) pathguard.Kind {
	name, err := dir.Join(entry)
	if err != nil {
		return pathguard.KindUnknown
	}
	return g.walk.Kind(name)
}

// enter returns what holds in a directory of the walk.
func (g *ignoring) enter(dir pathguard.Name, rel string, items []enforce.Item, up *scope) *scope {
	var repo, list bool
	for _, item := range items {
		switch item.Name {
		case gitDir:
			repo = item.Kind == pathguard.KindDir || item.Kind == pathguard.KindFile
		case gitIgnore:
			list = item.Kind == pathguard.KindFile
		}
	}
	if !repo && !list {
		return up
	}
	base := g.prefix
	if rel != "" {
		base += rel + "/"
	}
	return g.open(dir, base, repo, list, up)
}

func (g *ignoring) open(dir pathguard.Name, base string, repo, list bool, up *scope) *scope {
	s := &scope{up: up, base: base, repo: repo}
	if list {
		s.add(g.read(dir, gitIgnore))
	}
	if repo {
		s.add(g.read(dir, gitExclude))
	}
	return s
}

func (s *scope) add(l ignore.List) {
	if !l.Empty() {
		s.lists = append(s.lists, l)
	}
}

// read is what the file says, nothing if it can't be read.
func (g *ignoring) read(dir pathguard.Name, file string) (l ignore.List) {
	name := dir
	for part := range strings.SplitSeq(file, "/") {
		var err error
		if name, err = name.Join(part); err != nil {
			return l
		}
	}
	f, err := g.walk.Open(name)
	if err != nil {
		return l
	}
	defer f.Close()
	if f.Size() > maxIgnoreFile {
		return l
	}
	content, err := section(f, 0, f.Size())
	if err != nil {
		return l
	}
	return ignore.Parse(content)
}

// ignored reports whether an entry is left out, and counts it.
func (g *ignoring) ignored(rules *scope, path string, item enforce.Item) bool {
	dir := item.Kind == pathguard.KindDir
	if item.Name == gitDir && dir {
		return true // git's own: not counted
	}
	for s := rules; s != nil; s = s.up {
		name := (g.prefix + path)[len(s.base):]
		for _, l := range s.lists {
			switch l.Match(name, dir) {
			case ignore.Ignored:
				g.n++
				return true
			case ignore.Kept:
				return false
			case ignore.Silent:
			}
		}
		if s.repo {
			break
		}
	}
	return false
}
