// SPDX-License-Identifier: Apache-2.0

package attach

import (
	"path/filepath"
	"slices"
)

// inherit notes for a change what init made for another entry and this one lives
// in: the file, the object of entries, a folder. The entry that is taken out last
// then takes it with it, whichever that is. Both journals may say it, as nothing
// goes that still holds something, so that none has to be written when the other
// entry goes, and a kill loses nothing.
func (b *book) inherit(c Change) {
	i := slices.IndexFunc(b.Files, record{Path: c.Path, Entry: c.Entry}.same)
	r := &b.Files[i] // it was noted
	var before []entry
	if client, ok := ByID(c.Client); ok {
		before, _ = client.form.entries(c.Before) // it could be read when it was planned
	}
	for _, o := range append(others(b.path), b.Files...) {
		for _, dir := range o.Dirs {
			if rel, err := filepath.Rel(dir, r.Path); err == nil && filepath.IsLocal(rel) && !slices.Contains(r.Dirs, dir) {
				r.Dirs = append(r.Dirs, dir)
			}
		}
		stands := func(e entry) bool { return e.name == o.Entry && slices.Contains(o.Runs, e.runs()) }
		if o.Path == r.Path && o.Client == r.Client && o.Entry != r.Entry && slices.ContainsFunc(before, stands) {
			r.New, r.Made = r.New || o.New, r.Made.with(o.Made)
		}
	}
	slices.Sort(r.Dirs) // an outer one is shorter and the front of the inner one
}

// with is what was made for either of two entries of a file.
func (m made) with(o made) made {
	m.Root, m.Object = m.Root || o.Root, m.Object || o.Object
	m.Closed, m.ClosedRoot = m.Closed || o.Closed, m.ClosedRoot || o.ClosedRoot
	return m
}

// others is what the journals beside this one say. One that can't be read says
// nothing.
func others(path string) (all []record) {
	journals, _ := journals(filepath.Dir(path), path)
	for _, j := range journals {
		all = append(all, j.Files...)
	}
	return all
}
