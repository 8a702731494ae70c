// SPDX-License-Identifier: Apache-2.0

package links

import (
	"os"
	"path/filepath"
	"strings"
	"time"
)

// Look follows paths at one time. What a name is it asks once; it ends when its time
// is over, and asks no mount that may never answer: one of a network, or of a program
// that runs or doesn't. The zero Look asks everything.
type Look struct {
	shut  map[string]bool // mount points
	until time.Time       // the zero time for as long as it takes
	tops  map[string]*node
}

// NewLook returns one that takes as long as it says. The mounts that own places lie
// on are asked whatever they are: without them nothing goes on anyway.
func NewLook(takes time.Duration, own ...string) *Look {
	l := &Look{until: time.Now().Add(takes), shut: map[string]bool{}}
	for _, m := range mounted() { // of several at one point the last is on top
		if m.answers {
			delete(l.shut, m.point)
		} else {
			l.shut[m.point] = true
		}
	}
	if len(l.shut) == 0 {
		return l
	}
	for _, path := range own {
		if !filepath.IsAbs(path) {
			continue
		}
		way := Follow(path)
		for _, at := range append(append(way.Spelled, way.Links...), filepath.Clean(path)) {
			above(at, func(dir string) bool { delete(l.shut, dir); return false })
		}
	}
	return l
}

// Mounts are the mount points of this process that are known, none of which is asked.
func Mounts() (points []string) {
	for _, m := range mounted() {
		points = append(points, m.point)
	}
	return points
}

// Late reports whether its time is over.
func (l *Look) Late() bool { return !l.until.IsZero() && time.Now().After(l.until) }

// Answers reports whether a path without links may be asked.
func (l *Look) Answers(path string) bool {
	return len(l.shut) == 0 || !above(path, func(dir string) bool { return l.shut[dir] })
}

// above reports whether it is so for a clean path or a folder that it lies in.
func above(path string, is func(string) bool) bool {
	for !is(path) {
		up := strings.LastIndexByte(path, filepath.Separator)
		if up <= len(filepath.VolumeName(path)) { // the top keeps its separator
			return up >= 0 && up+1 < len(path) && is(path[:up+1])
		}
		path = path[:up]
	}
	return true
}

// node is a name without links before it.
type node struct {
	up     *node
	path   string
	depth  int
	names  map[string]*node
	asked  bool
	target string // "" for what is no link
}

// perDepth is how many names a system goes through in the time that it takes to ask
// for one.
const perDepth = 16

func (l *Look) top(path string) *node {
	n := l.tops[path]
	if n == nil {
		n = &node{path: path, asked: true}
		n.up = n
		if l.tops == nil {
			l.tops = map[string]*node{}
		}
		l.tops[path] = n
	}
	return n
}

func (n *node) name(name string) *node {
	next := n.names[name]
	if next == nil {
		separator := string(filepath.Separator)
		next = &node{up: n, path: strings.TrimSuffix(n.path, separator) + separator + name, depth: n.depth + 1}
		if n.names == nil {
			n.names = map[string]*node{}
		}
		n.names[name] = next
	}
	return next
}

// ask finds out what it is, once, and returns what that cost: a system goes through
// all the names before it.
func (n *node) ask() int {
	if n.asked {
		return 0
	}
	n.asked = true
	n.target, _ = os.Readlink(n.path)
	return n.depth / perDepth
}
