// SPDX-License-Identifier: Apache-2.0

package enforce

import (
	"path"
	"slices"
	"strings"

	"github.com/postern-gate/postern/core/pathguard"
	"github.com/postern-gate/postern/internal/state/undo"
)

// astray says why the step's folder is not the one that it was made in. One
// that an earlier step brings back is.
func (v *view) astray(e *undo.Entered) string {
	for _, p := range e.Places() {
		if top, ok := v.roots.top(p.Root, p.Path, e.Mounts); ok {
			if why := e.Astray(p, top); why != "" {
				return why
			}
		}
	}
	top, ok := v.roots.top(e.Root, e.Path, e.Mounts)
	if !ok {
		return ""
	}
	place := undo.Place{Root: e.Root, Path: e.Path, Rel: path.Dir(e.Rel)}
	up, err := beneathTop(top, place.Rel)
	if _, planned := v.states[place]; err != nil || planned || v.untold(place) {
		return ""
	}
	if now := undo.FolderOf(up); e.Up != (undo.Folder{}) && now != (undo.Folder{}) && !v.index.SameFolder(now, e.Up) {
		return undo.RuleFolder
	}
	return ""
}

// untold reports a place of which nothing can be told before it is done.
func (v *view) untold(p undo.Place) bool {
	return slices.ContainsFunc(v.unknown, func(top undo.Place) bool {
		return top.Root == p.Root && top.Path == p.Path && strings.HasPrefix(p.Rel, top.Rel+"/")
	})
}

func beneathTop(n pathguard.Name, rel string) (pathguard.Name, error) {
	if rel == "." {
		return n, nil
	}
	for entry := range strings.SplitSeq(rel, "/") {
		var err error
		if n, err = n.Join(entry); err != nil {
			return n, err
		}
	}
	return n, nil
}

// final says why what the step would take away can't be kept. What is not there
// yet is judged when it is done.
func (v *view) final(e *undo.Entered) string {
	do := undo.Remove
	switch {
	case e.Do == undo.Create || e.Do == undo.Mkdir:
	case e.Do == undo.Replace && e.How == undo.Copied:
		do = undo.Replace
	case e.Do == undo.Append:
		do = undo.Truncate
	default:
		return ""
	}
	top, ok := v.roots.top(e.Root, e.Path, e.Mounts)
	if _, planned := v.states[e.Place]; !ok || planned || v.untold(e.Place) {
		return ""
	}
	n, err := beneathTop(top, e.Rel)
	if err != nil {
		return ""
	}
	t, err := n.PinEntry()
	if err != nil {
		return ""
	}
	defer t.Close()
	p := planned(do, t)
	p.Entries, p.Tail = 1, e.Now.Size-e.Was.Size
	return v.log.Cover(&undo.Change{Undoes: true, Steps: []*undo.Planned{p}})
}
