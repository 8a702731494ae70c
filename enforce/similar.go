// SPDX-License-Identifier: Apache-2.0

package enforce

import (
	"errors"
	"slices"
	"strings"

	"github.com/postern-gate/postern/core/pathguard"
	"github.com/postern-gate/postern/internal/state/grant"
	"github.com/postern-gate/postern/internal/state/undo"
)

// mostLooked bounds how many names of one question are looked at again.
const mostLooked = 100

// Since returns the names of a question that don't lead any more to what was
// there when it was asked, so that a yes for once could serve no call: of a
// folder that is another directory now, all of them. What is beneath a folder is
// not looked at, nor is a name whose folder the question doesn't have.
func (s *State) Since(b *grant.Binding) (changed []string) {
	folders := map[string]*pathguard.Workspace{}
	defer func() {
		for _, ws := range folders {
			if ws != nil {
				_ = ws.Roots()[0].Close()
			}
		}
	}()
	for _, o := range b.Objects[:min(len(b.Objects), mostLooked)] {
		name, _, _ := strings.Cut(o.Name, "://")
		i := slices.IndexFunc(b.Roots, func(r grant.Root) bool { return r.Name == name })
		if i < 0 {
			continue
		}
		folder, known := folders[name]
		if !known {
			folder, _ = s.reopen(b.Roots[i], b.Mounts[name]) // nil is another one
			folders[name] = folder
		}
		if folder == nil || !stillIs(folder, o) {
			changed = append(changed, o.Name)
		}
	}
	return changed
}

var errAnother = errors.New("the folder is another one now")

// reopen opens the folder of a question, if it is the directory that it was, for
// all names in it.
func (s *State) reopen(was grant.Root, mounts []string) (*pathguard.Workspace, error) {
	r, err := pathguard.OpenRoot(was.Path, pathguard.Options{Name: was.Name, Mounts: mounts, Forbidden: []string{s.Path()}})
	if err != nil {
		return nil, err
	}
	if identity(undo.FolderOf(r.Top())) != was.ID {
		return nil, errors.Join(errAnother, r.Close())
	}
	return pathguard.NewWorkspace(r)
}

// stillIs opens the name in the ways that it may have been opened for the
// question, and compares what it finds.
func stillIs(ws *pathguard.Workspace, was grant.Object) bool {
	names, err := ws.Parse(was.Name)
	if err != nil || len(names) != 1 {
		return false
	}
	ways := []use{useFacts}
	switch {
	case strings.HasPrefix(was.State, asFolder):
		ways = []use{useDir}
	case strings.Contains(was.State, " in "):
		ways = []use{useEntry, useNewDirs}
	}
	for _, w := range ways {
		o := operand{name: names[0], use: w}
		if o.open() != nil {
			continue
		}
		now := o.object().State
		o.close()
		if now == was.State {
			return true
		}
	}
	return false
}

// Undoable returns which of these changes are kept and not taken back yet. What
// is there now is not looked at: the plan of each tells that.
func (s *State) Undoable(ids []string) (map[string]bool, error) {
	x, err := s.undo.Read()
	if err != nil {
		return nil, err
	}
	kept := map[string]bool{}
	for _, id := range ids {
		if t := x.Find(id); t != nil {
			kept[id] = slices.ContainsFunc(t.Steps, func(e *undo.Entered) bool { return e.State != undo.Aborted && e.Current() != nil })
		}
	}
	return kept, nil
}
