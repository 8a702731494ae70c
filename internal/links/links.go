// SPDX-License-Identifier: Apache-2.0

// Package links tells where paths lead, name by name as the kernel follows them:
// what .. means is known only after the link before it.
package links

import (
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
	// Cost is how many names were looked at, and more for those that lie deep and for
	// what is read and spelled at length.
	Cost int
	// Cut says that the way goes on, further than is looked at.
	Cut bool
	// Mount is the mount point that it is cut at since it may not answer, "" where
	// it is cut because it is long.
	Mount string
}

// Follow returns where an absolute path leads, whatever it takes to ask.
func Follow(path string) Way { return (&Look{}).Follow(path) }

// Follow returns where an absolute path leads, as it was when this look first asked.
func (l *Look) Follow(path string) Way {
	w := walk{look: l}
	w.push(path)
	for names := 0; len(w.todo) > 0; names++ {
		if w.Cut = names == mostNames || l.Late(); w.Cut || !w.step() {
			return w.Way
		}
	}
	w.Spelled, w.End = append(w.Spelled, w.at.path), w.at.path
	return w.Way
}

// Stays are what must stay where it is for the path to lead there: the links on the
// way, and what it leaves by .., but for folders that a link on it lies in.
func (w *Way) Stays() []string {
	over := slices.DeleteFunc(slices.Clone(w.Over), func(dir string) bool {
		return slices.ContainsFunc(w.Links, func(link string) bool {
			rel, err := filepath.Rel(dir, link)
			return err == nil && rel != "." && filepath.IsLocal(rel)
		})
	})
	return append(slices.Clone(w.Links), over...)
}

// walk is a way of which a part is gone, at without links.
type walk struct {
	Way
	look *Look
	at   *node
	todo []string // names to come, the next one last
	up   int      // of these are ..
	size int      // their bytes
}

// step goes on by one name, and returns false where the way ends early.
func (w *walk) step() bool {
	last := len(w.todo) - 1
	name := w.todo[last]
	w.todo, w.size, w.Cost = w.todo[:last], w.size-len(name)-1, w.Cost+1
	if name == ".." {
		w.Over = append(w.Over, w.at.path)
		w.at, w.up = w.at.up, w.up-1
		w.spell()
		return true
	}
	next := w.at.name(name)
	if w.look.shut[next.path] {
		w.Cut, w.Mount = true, next.path
		return false
	}
	w.Cost += next.ask()
	if next.target == "" {
		w.at = next
		return true
	}
	if len(w.Links) == most {
		return false
	}
	w.Links = append(w.Links, next.path)
	w.push(next.target)
	w.spell()
	return true
}

// perByte is how many bytes are taken apart, or put together, in the time of a name.
const perByte = 64

// push puts a path before what is to come.
func (w *walk) push(path string) {
	w.Cost += len(path) / perByte
	volume := filepath.VolumeName(path)
	if filepath.IsAbs(path) {
		w.at = w.look.top(volume + string(filepath.Separator))
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
	if w.up > 0 || len(w.at.path)+w.size > longest {
		return
	}
	w.Cost += (len(w.at.path) + w.size) / perByte
	rest := slices.Clone(w.todo)
	slices.Reverse(rest)
	w.Spelled = append(w.Spelled, filepath.Join(w.at.path, filepath.Join(rest...)))
}
