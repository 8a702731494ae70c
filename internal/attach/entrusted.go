// SPDX-License-Identifier: Apache-2.0

package attach

import (
	"errors"
	"io/fs"
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
	// Clients are files of clients, and folders of them: those of the user by
	// these surroundings and by none, and those that init has written to.
	Clients []string
	// Policies are those that init has made.
	Policies []string
	// Unread are journals of init that can't be read: what they name is missing.
	Unread []string
}

// Entrust finds them. What init wrote is known from the state directory, so that
// it is found too where a variable that led there isn't set any more. Files in
// projects have names that the built-in lists know.
func Entrust(w World, stateDir string) Entrusted {
	var e Entrusted
	bare := w
	bare.Getenv = func(string) string { return "" }
	for _, c := range Clients() {
		for _, place := range append([]string{c.user}, c.more...) {
			e.Clients = append(e.Clients, w.path(place), bare.path(place))
		}
	}
	e.remembered(stateDir)
	e.Clients, e.Policies = spellings(e.Clients), spellings(e.Policies)
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
			switch {
			case r.InProject:
			case r.Client == "":
				e.Policies = append(e.Policies, r.Path)
			default:
				e.Clients = append(e.Clients, r.Path)
			}
		}
	}
}

// spellings are the paths and what their links lead to, sorted.
func spellings(paths []string) []string {
	var all []string
	for _, p := range paths {
		if p == "" || !filepath.IsAbs(p) {
			continue
		}
		all = append(all, filepath.Clean(p))
		if real, err := resolve(p); err == nil {
			all = append(all, real)
		}
	}
	slices.Sort(all)
	return slices.Compact(all)
}
