// SPDX-License-Identifier: Apache-2.0

package fsserver

import (
	"context"
	"slices"
	"strings"

	"github.com/postern-gate/postern/core/pathguard"
	"github.com/postern-gate/postern/enforce"
	"github.com/postern-gate/postern/internal/fsserver/ignore"
)

// Bounds of the .gitignore files that are heeded. What is beyond is counted: it
// shows more and hides nothing.
const (
	maxIgnoreFile = 256 << 10
	// maxIgnoreBytes and maxIgnoreRules are of all that are held at once, which
	// are those on the way to where the walk is.
	maxIgnoreBytes = 1 << 20
	maxIgnoreRules = 20_000
	// maxIgnoreName is how many steps one list may take for one name, and
	// maxIgnoreSteps how many all may take in a walk, where a byte that is parsed
	// is one too.
	maxIgnoreName  = 1 << 20
	maxIgnoreSteps = 200_000_000
)

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
	prefix   string
	steps    int // taken
	n        int // names left out
	unheeded int // lists
}

// heeded is the list of one file. One that takes too long is not heeded any more.
type heeded struct {
	ignore.List
	unheeded bool
}

// scope is the lists that hold in a directory: its own, and those of the
// directories above it.
type scope struct {
	up    *scope
	base  int // how much of a name is the way to it from the outermost
	lists []*heeded
	room  ignore.Budget // what it and those above leave
	repo  bool          // a repository begins here, so nothing above it counts
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
		s = g.open(dir, len(g.prefix), g.repository(dir), true, s)
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
	base := len(g.prefix)
	if rel != "" {
		base += len(rel) + len("/")
	}
	return g.open(dir, base, repo, list, up)
}

func (g *ignoring) open(dir pathguard.Name, base int, repo, list bool, up *scope) *scope {
	s := &scope{up: up, base: base, repo: repo, room: ignore.Budget{Bytes: maxIgnoreBytes, Rules: maxIgnoreRules}}
	if up != nil {
		s.room = up.room
	}
	if list {
		g.read(s, dir, gitIgnore)
	}
	if repo {
		g.read(s, dir, gitExclude)
	}
	return s
}

// read adds what the file says, nothing if it can't be read.
func (g *ignoring) read(s *scope, dir pathguard.Name, file string) {
	name := dir
	for part := range strings.SplitSeq(file, "/") {
		var err error
		if name, err = name.Join(part); err != nil {
			return
		}
	}
	f, err := g.walk.Open(name)
	if err != nil {
		return
	}
	defer f.Close()
	if f.Size() > min(maxIgnoreFile, int64(s.room.Bytes)) || g.steps > maxIgnoreSteps {
		g.unheeded++
		return
	}
	content, err := section(f, 0, f.Size())
	if err != nil {
		return
	}
	g.steps += len(content)
	l, ok := s.room.Parse(string(content))
	switch {
	case !ok:
		g.unheeded++
	case !l.Empty():
		s.lists = append(s.lists, &heeded{List: l})
	}
}

// ignored reports whether an entry is left out, and counts it. It ends early
// with the context, which is the caller's to look at.
func (g *ignoring) ignored(ctx context.Context, rules *scope, path string, item enforce.Item) bool {
	dir := item.Kind == pathguard.KindDir
	if item.Name == gitDir && dir {
		return true // git's own: not counted
	}
	if rules == nil {
		return false
	}
	path = g.prefix + path
	for s := rules; s != nil && ctx.Err() == nil; s = s.up {
		for _, l := range s.lists {
			switch g.match(l, path[s.base:], dir) {
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

// match is what a list says of a name, for as many steps as there may be.
func (g *ignoring) match(l *heeded, name string, dir bool) ignore.Verdict {
	if l.unheeded {
		return ignore.Silent
	}
	room := min(maxIgnoreName, maxIgnoreSteps-g.steps)
	left := room
	verdict := l.Match(name, dir, &left)
	g.steps += room - left
	if left < 0 {
		l.unheeded = true
		g.unheeded++
	}
	return verdict
}
