// SPDX-License-Identifier: Apache-2.0

// Package links tells where paths lead, name by name as the kernel follows them:
// what .. means is known only after the link before it.
package links

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
)

const (
	// most is how many links the kernel follows for one path.
	most = 40
	// mostNames bounds what a few links with very long targets cost.
	mostNames = 4096
	// longest is a path that a system takes.
	longest = 4096
)

// Way is where a path leads.
type Way struct {
	// Spelled is the path as each link on it leads on, last as it ends. What is
	// missing has no links. Where .. is still to come a spelling isn't told: as text
	// it would be another path.
	Spelled []string
	// Links are those on the way, each beneath folders that are none.
	Links []string
	// Over are what was left by a .., each without links: were it another link, the
	// way would go on from elsewhere.
	Over []string
	// End is the last of Spelled, "" where the path leads nowhere: too many links.
	End string
	// Names is how many names were looked at.
	Names int
	// Cut says that there are more than are looked at.
	Cut bool
}

// Follow returns where an absolute path leads.
func Follow(path string) Way {
	var w walk
	w.push(path)
	for len(w.todo) > 0 {
		if w.Cut = w.Names == mostNames; w.Cut || !w.step() {
			return w.Way
		}
	}
	w.Spelled, w.End = append(w.Spelled, w.at), w.at
	return w.Way
}

// walk is a way of which a part is gone, at without links.
type walk struct {
	Way
	at   string
	todo []string // names to come, the next one last
	up   int      // of these are ..
	size int      // their bytes
}

// step goes on by one name, and returns false where the kernel gives up.
func (w *walk) step() bool {
	last := len(w.todo) - 1
	name := w.todo[last]
	w.todo, w.size, w.Names = w.todo[:last], w.size-len(name)-1, w.Names+1
	if name == ".." {
		w.Over = append(w.Over, w.at)
		w.at, w.up = filepath.Dir(w.at), w.up-1
		w.spell()
		return true
	}
	next := filepath.Join(w.at, name)
	target, err := os.Readlink(next)
	if err != nil {
		w.at = next
		return true
	}
	if len(w.Links) == most {
		return false
	}
	w.Links = append(w.Links, next)
	w.push(target)
	w.spell()
	return true
}

// push puts a path before what is to come.
func (w *walk) push(path string) {
	volume := filepath.VolumeName(path)
	if filepath.IsAbs(path) {
		w.at = volume + string(filepath.Separator)
	}
	for _, name := range slices.Backward(strings.Split(filepath.ToSlash(path[len(volume):]), "/")) {
		if name == "" || name == "." {
			continue
		}
		if name == ".." {
			w.up++
		}
		w.todo, w.size = append(w.todo, name), w.size+len(name)+1
	}
}

// spell notes how the path is spelled from here.
func (w *walk) spell() {
	if w.up > 0 || len(w.at)+w.size > longest {
		return
	}
	rest := slices.Clone(w.todo)
	slices.Reverse(rest)
	w.Spelled = append(w.Spelled, filepath.Join(w.at, filepath.Join(rest...)))
}
