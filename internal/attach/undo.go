// SPDX-License-Identifier: Apache-2.0

package attach

import (
	"bytes"
	"fmt"
	"path/filepath"
	"slices"

	"github.com/postern-gate/postern/core/fault"
)

// PlanUndo computes what takes out again what init is remembered to have added
// for the project: the clients' entries, and with clients nil also the files
// that it made. Of clients that are named it also takes out an entry of the name
// and form that init writes, without it being remembered. What can't be taken
// out is in Left, and keeps nothing else from it.
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
			p.detach(c, s, f, j, clients != nil)
		}
	}
	if clients != nil {
		return p, nil
	}
	p.unmakeAll(j, journalPath(stateDir, w.Project))
	return p, nil
}

// unmakeAll removes the policies that init made for the folder. That of the user
// holds for the other folders, those of the journals beside: it goes with the last.
func (p *Plan) unmakeAll(j journal, path string) {
	holds := still(path)
	p.last = holds == ""
	for _, r := range j.Files {
		switch {
		case !r.fits(p.world.Project):
			p.Left = append(p.Left, r.Path+": init is remembered to have written to it in this folder, and it isn't there")
		case r.Client == "" && !r.InProject && !p.last:
			p.Kept = append(p.Kept, r.Path+": "+holds)
		case r.Client == "":
			p.unmake(r)
		}
	}
	for _, r := range others(path) {
		if p.last && len(j.Files) > 0 && r.Client == "" && !r.InProject && filepath.IsAbs(r.Path) && !j.has(r.Path) {
			p.unmake(r) // the journal beside names a file then that is gone
		}
	}
}

// attaches reports whether an entry of a client is among the records.
func attaches(all []record) bool {
	return slices.ContainsFunc(all, func(r record) bool { return r.Client != "" })
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
		known := slices.ContainsFunc(all, func(f file) bool { return f.path == r.Path })
		if r.Client == c.ID && !known && r.fits(w.Project) {
			all = append(all, file{r.Path, r.InProject, false})
		}
	}
	return all
}

// fits reports whether a remembered file is where it says. One of the user's may
// be anywhere, also beneath the project.
func (r record) fits(project string) bool {
	rel, err := filepath.Rel(project, r.Path)
	return filepath.IsAbs(r.Path) && (!r.InProject || err == nil && filepath.IsLocal(rel))
}

// detach takes our entries out of one file: those that are remembered, and with
// named those that look like init's.
func (p *Plan) detach(c Client, s Server, f file, j journal, named bool) {
	at, old, err := p.disk.entries(c, f)
	if err != nil {
		why := undone(err)
		if j.has(f.path) {
			p.Left = append(p.Left, why)
		} else { // nothing of ours is known to be there
			p.Kept = append(p.Kept, why)
		}
		return
	}
	change := Change{Client: c.ID, Path: f.path, InProject: f.project, Before: at.text, After: at.text, spot: at}
	left := len(p.Left)
	for _, e := range old {
		p.takeOut(&change, c, s, f, e, j, named)
	}
	if !change.Remove && bytes.Equal(change.After, at.text) {
		if len(p.Left) == left {
			p.forget(c, f, j)
		}
		return
	}
	if err := p.disk.canWrite(at, change.Remove); err != nil {
		p.Left = append(p.Left, undone(err))
		return
	}
	p.Changes = append(p.Changes, change)
	if len(p.Left) == left {
		p.forget(c, f, j)
	}
}

// takeOut takes an entry out of the changed text if it is ours and as init wrote
// it, or reads so and its client is named.
func (p *Plan) takeOut(change *Change, c Client, s Server, f file, e entry, j journal, named bool) {
	r, known := j.find(f.path, e.name)
	if known && !f.project && e.another(p.world.Project) { // ours was removed, and the name was free
		p.Kept = append(p.Kept, fmt.Sprintf("%s: the entry %q is another folder's now", f.path, e.name))
		return
	}
	if known && r.Runs != nil && !slices.Contains(r.Runs, e.runs()) { // a journal of before has none
		if e.runs() == r.Made.WasRuns { // what init would have displaced was never written over
			return
		}
		if known = false; !named || !s.own(p.world, f.project, e) {
			p.Left = append(p.Left, c.form.theirs(f.path, change.Before, e.name))
			return
		}
	}
	if known || p.takes(c, s, f, e, named) {
		p.cut(change, c, e, r, known)
	}
}

// theirs says that an entry was changed since init wrote it, and where if it
// isn't even one that init could have written.
func (f form) theirs(path string, text []byte, name string) string {
	if _, prob := f.remove(text, name, nil); prob != nil {
		return path + prob.place(text) + ": " + prob.text
	}
	return fmt.Sprintf("%s: the entry %q was changed since init wrote it", path, name)
}

// takes reports whether an entry that isn't remembered is taken out. One that
// stays and runs postern for the folder is told.
func (p *Plan) takes(c Client, s Server, f file, e entry, named bool) bool {
	own := s.own(p.world, f.project, e)
	if own && named {
		return true
	}
	const unknown = "%s: init is not remembered to have added the entry %q"
	switch {
	case own:
		p.Kept = append(p.Kept, fmt.Sprintf(unknown+"; postern init --undo --client %s takes it out", f.path, e.name, c.ID))
	case e.serves() && slices.Contains(e.args, p.world.Project):
		p.Kept = append(p.Kept, fmt.Sprintf(unknown+", which runs postern for this folder", f.path, e.name))
	}
	return false
}

// cut takes an entry out of the changed text; the file goes too if init made it
// and nothing else is in it.
func (p *Plan) cut(change *Change, c Client, e entry, r record, known bool) {
	var m *made
	if known {
		m = &r.Made
	}
	after, prob := c.form.remove(change.After, e.name, m)
	if prob != nil {
		p.Left = append(p.Left, change.Path+prob.place(change.After)+": "+prob.text)
		return
	}
	change.After, change.Entry = after, e.name
	if known && r.New && c.form.nothing(after) {
		change.After, change.Remove = nil, true
	}
}

// undone is an error as a line, since undoing goes on without the file.
func undone(err error) string {
	f := fault.As(err)
	return f.Resource + ": " + f.Because()
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

// stillRead is what a policy that is kept means, valid or not.
const stillRead = "; servers go on reading it: delete it if they shouldn't"

// unmake removes a file that init made, if it is as it was written.
func (p *Plan) unmake(r record) {
	at, err := p.disk.read(file{r.Path, r.InProject, true})
	if err == nil && at.exists && hash(at.text) != r.Sum {
		p.Kept = append(p.Kept, r.Path+": it was changed since init wrote it, so it is yours now"+stillRead)
		p.done = append(p.done, record{Path: r.Path})
		return
	}
	if err == nil && at.exists && r.Print != "" && at.print.String() != r.Print {
		p.Kept = append(p.Kept, r.Path+": it reads as init wrote it, and is another file or was touched since"+stillRead)
		p.done = append(p.done, record{Path: r.Path})
		return
	}
	if err == nil {
		err = p.disk.canWrite(at, true)
	}
	if err != nil {
		p.Left = append(p.Left, undone(err))
		return
	}
	if at.exists {
		p.Changes = append(p.Changes, Change{Path: r.Path, InProject: r.InProject, Before: at.text, Remove: true, spot: at})
	}
	p.done = append(p.done, r)
}
