// SPDX-License-Identifier: Apache-2.0

package attach

import (
	"errors"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/postern-gate/postern/core/fault"
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
	// Unread are journals of init that can't be read: what they name is missing.
	Unread []string
	// Beyond are folders that hold more than is looked through for links.
	Beyond []string
}

// policies is the built-in entry of what init has made.
const policies = "postern"

// Entrust finds them. What init wrote is known from the state directory, so that
// it is found too where a variable that led there isn't set any more. Files in
// projects have names that the built-in lists know.
func Entrust(w World, stateDir string) Entrusted {
	e := Entrusted{Places: map[string][]string{}}
	now, bare := w.surroundings(), World{Home: w.Home, GOOS: w.GOOS, Getenv: func(string) string { return "" }}.surroundings()
	for entry, places := range now.places() {
		for _, place := range places {
			e.Places[entry] = append(e.Places[entry], now.paths(place)...)
			if now.path(place) != bare.path(place) {
				e.Places[entry] = append(e.Places[entry], bare.paths(place)...)
			}
		}
	}
	e.remembered(stateDir)
	e.follow()
	return e
}

// remembered adds what the journals of all projects name.
func (e *Entrusted) remembered(stateDir string) {
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
				e.Places[entry] = append(e.Places[entry], r.Path)
			}
		}
	}
}

// follow adds what links lead to, and sorts.
func (e *Entrusted) follow() {
	t := newTrail()
	for _, entry := range slices.Sorted(maps.Keys(e.Places)) { // the bound of all is met in one order
		paths := e.Places[entry]
		slices.Sort(paths)
		var all []string
		for _, p := range slices.Compact(paths) {
			if filepath.IsAbs(p) {
				spelled, there := t.follow(filepath.Clean(p))
				if all = append(all, spelled...); there {
					all = append(all, t.within(spelled[len(spelled)-1])...)
				}
			}
		}
		slices.Sort(all)
		e.Places[entry] = slices.Compact(all)
	}
	e.Beyond = t.beyond
}
