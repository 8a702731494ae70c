// SPDX-License-Identifier: Apache-2.0

package attach

import (
	"cmp"
	"errors"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/postern-gate/postern/core/fault"
	"github.com/postern-gate/postern/internal/links"
)

// Entrusted are paths that no agent may change, wherever they lie: by them it
// could take postern out of a client, or make one start what it likes. Each is
// there as it is spelled and as its links lead now.
type Entrusted struct {
	// Places are files and folders, by the built-in entry that they belong to:
	// those of clients, and what runs by itself in the home folder, by these
	// surroundings and by none; what the links in such folders lead to; and what
	// init has written to.
	Places map[string][]string
	// Over are links and folders, by the same, that must stay for these to lead there.
	Over map[string][]string
	// Fronts are folders of which a part belongs to an entry, so that what isn't there
	// yet is known.
	Fronts []Front
	// Unread are journals of init that can't be read: what they name is missing.
	Unread []string
	// Beyond are folders that hold more than is looked through for links.
	Beyond []string
	// Away are those that lead to a mount that may not answer, so that it isn't asked.
	Away []string
}

// Front is a folder, and the pattern for the part of it that belongs to the entry.
type Front struct{ Entry, Dir, Below string }

// top is where to look for links.
type top struct {
	path  string
	known string // under this name the built-in lists hold it without us
	of    string // the folder that holds many such
}

// policies is the built-in entry of what init has made.
const policies = "postern"

// Entrust finds them. What init wrote is known from the state directory, so that
// it is found too where a variable that led there isn't set any more. Files in
// projects have names that the built-in lists know.
func Entrust(look *links.Look, w World, stateDir string) Entrusted {
	var e Entrusted
	tops := map[string][]top{}
	now, bare := w.surroundings(), World{Home: w.Home, GOOS: w.GOOS, Getenv: func(string) string { return "" }}.surroundings()
	for entry, places := range now.places() {
		for _, place := range places {
			for _, s := range [...]surroundings{now, bare} {
				tops[entry] = append(tops[entry], s.tops(look, place)...)
				dirs, pattern := s.fronts(look, place)
				for _, dir := range dirs {
					e.Fronts = append(e.Fronts, Front{entry, dir, pattern})
				}
			}
		}
	}
	slices.SortFunc(e.Fronts, func(a, b Front) int {
		return cmp.Or(cmp.Compare(a.Entry, b.Entry), cmp.Compare(a.Dir, b.Dir), cmp.Compare(a.Below, b.Below))
	})
	e.Fronts = slices.Compact(e.Fronts)
	e.remembered(stateDir, tops)
	e.follow(look, tops)
	return e
}

// remembered adds what the journals of all projects name.
func (e *Entrusted) remembered(stateDir string, tops map[string][]top) {
	dir := filepath.Join(stateDir, "attached")
	entries, err := os.ReadDir(dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		e.Unread = append(e.Unread, dir)
	}
	for _, f := range entries {
		path := filepath.Join(dir, f.Name())
		if strings.HasPrefix(f.Name(), ".") || filepath.Ext(path) != ".json" {
			continue
		}
		var j journal
		if err := j.read(path); fault.CodeOf(err) != fault.OK {
			e.Unread = append(e.Unread, path)
			continue
		}
		for _, r := range j.Files {
			entry := agents
			if r.Client == "" {
				entry = policies
			}
			if !r.InProject {
				tops[entry] = append(tops[entry], readings(top{path: r.Path})...)
			}
		}
	}
}

// follow holds these, what their links lead to and the links in them, and sorts.
func (e *Entrusted) follow(look *links.Look, tops map[string][]top) {
	e.Places, e.Over = map[string][]string{}, map[string][]string{}
	t := newTrail(look)
	for _, entry := range slices.Sorted(maps.Keys(tops)) { // the bound of all is met in one order
		paths := tops[entry]
		slices.SortFunc(paths, func(a, b top) int {
			return cmp.Or(cmp.Compare(a.path, b.path), cmp.Compare(a.known, b.known), cmp.Compare(a.of, b.of))
		})
		var all reach
		for _, p := range slices.Compact(paths) {
			all.add(t.hold(p))
		}
		places := once(all.places)
		e.Places[entry], e.Over[entry] = places, slices.DeleteFunc(once(all.over), func(path string) bool {
			_, is := slices.BinarySearch(places, path)
			return is
		})
	}
	e.Beyond = once(t.beyond)
	for _, path := range once(t.away) {
		if n := len(e.Away); n == 0 || !beneath(e.Away[n-1], path) { // of what goes there together one is told
			e.Away = append(e.Away, path)
		}
	}
}

// once are these, each once and sorted.
func once(all []string) []string {
	slices.Sort(all)
	return slices.Compact(all)
}
