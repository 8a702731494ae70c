// SPDX-License-Identifier: Apache-2.0

package attach

import (
	"bytes"
	"path/filepath"
	"slices"

	"github.com/postern-gate/postern/core/fault"
)

// PlanUndo computes what takes the clients' entries for the project out again,
// and with clients nil also the files that init made. It goes by what is
// remembered and by what is there, so that it also works where nothing is.
func PlanUndo(w World, s Server, stateDir string, clients []Client) (*Plan, error) {
	j, err := readJournal(stateDir, w.Project)
	if err != nil {
		return nil, err
	}
	p := &Plan{world: w, disk: newDisk(w), undo: true}
	all := clients
	if clients == nil {
		all = Clients()
	}
	for _, c := range all {
		for _, f := range c.where(w, j) {
			if err := p.detach(c, s, f, j); err != nil {
				p.Close()
				return nil, err
			}
		}
	}
	if clients == nil {
		for _, r := range j.Files {
			if err := p.unmake(r); err != nil {
				p.Close()
				return nil, err
			}
		}
	}
	return p, nil
}

// where are the files that init writes for the client, those of today's settings
// and those that are remembered.
func (c Client) where(w World, j journal) []file {
	var all []file
	for _, f := range c.files(w) {
		if f.project || c.project == nil {
			all = append(all, f)
		}
	}
	for _, r := range j.Files {
		if f := (file{r.Path, r.InProject}); r.Client == c.ID && !slices.Contains(all, f) && r.fits(w.Project) {
			all = append(all, f)
		}
	}
	return all
}

// fits reports whether a remembered file is where it says: nothing beneath the
// project passes for one outside, where links are followed.
func (r record) fits(project string) bool {
	rel, err := filepath.Rel(project, r.Path)
	return filepath.IsAbs(r.Path) && (err == nil && filepath.IsLocal(rel)) == r.InProject
}

// detach takes our entries out of one file.
func (p *Plan) detach(c Client, s Server, f file, j journal) error {
	at, old, err := p.disk.entries(c, f)
	if err != nil {
		if j.has(f.path) {
			return err
		}
		p.Kept = append(p.Kept, fault.As(err).Error()) // nothing of ours is known to be there
		return nil
	}
	if !at.exists {
		p.forget(c, f, j)
		return nil
	}
	text, change := at.text, Change{Client: c.ID, Path: f.path, InProject: f.project, Before: at.text, spot: at}
	var isNew bool
	for _, e := range old {
		r, known := j.find(f.path, e.name)
		if !known && !s.own(p.world, f.project, e) {
			continue
		}
		var m *made
		if known {
			m, isNew = &r.Made, isNew || r.New
		}
		after, prob := c.form.remove(text, e.name, m)
		if prob != nil {
			p.Kept = append(p.Kept, f.path+prob.place(at.text)+": "+prob.text)
			continue
		}
		text, change.Entry = after, e.name
	}
	p.forget(c, f, j)
	if bytes.Equal(text, at.text) {
		return nil
	}
	change.After = text
	if isNew && c.form.nothing(text) {
		change.After, change.Remove = nil, true
	}
	p.Changes = append(p.Changes, change)
	return p.disk.canWrite(at, change.Remove)
}

// own reports whether an entry is one that init writes for this project.
func (s Server) own(w World, inProject bool, e entry) bool {
	name := s.serverName(w, inProject)
	if inProject {
		return e.name == name && e.plain()
	}
	return (e.name == name || e.name == name+"-"+shortHash(w.Project)) && e.plain() && e.args[3] == w.Project
}

// nothing reports whether a text says nothing any more.
func (f form) nothing(text []byte) bool {
	text = bytes.Trim(bytes.TrimPrefix(text, bom), " \t\r\n")
	return len(text) == 0 || !f.toml && len(text) > 1 && text[0] == '{' && blank(string(text[1:len(text)-1]))
}

// forget drops what is remembered of the client's entries in a file, once the
// plan is applied.
func (p *Plan) forget(c Client, f file, j journal) {
	for _, r := range j.Files {
		if r.Client == c.ID && r.Path == f.path {
			p.done = append(p.done, r)
		}
	}
}

// has reports whether something is remembered of the file.
func (j journal) has(path string) bool {
	return slices.ContainsFunc(j.Files, func(r record) bool { return r.Path == path })
}

func (j journal) find(path, entry string) (record, bool) {
	i := slices.IndexFunc(j.Files, func(r record) bool { return r.Path == path && r.Entry == entry })
	if i < 0 {
		return record{}, false
	}
	return j.Files[i], true
}

// unmake removes a file that init made, if it is as it was written.
func (p *Plan) unmake(r record) error {
	if r.Client != "" || !r.fits(p.world.Project) {
		return nil
	}
	at, err := p.disk.read(file{r.Path, r.InProject})
	if err != nil {
		return err
	}
	switch {
	case at.exists && hash(at.text) != r.Sum:
		p.Kept = append(p.Kept, r.Path+": it was changed since init wrote it")
		p.done = append(p.done, record{Path: r.Path})
		return nil
	case at.exists:
		p.Changes = append(p.Changes, Change{Path: r.Path, InProject: r.InProject, Before: at.text, Remove: true, spot: at})
	}
	p.done = append(p.done, r)
	return p.disk.canWrite(at, true)
}
