// SPDX-License-Identifier: Apache-2.0

package attach

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"path/filepath"
	"strings"
	"unicode/utf8"

	"github.com/postern-gate/postern/core/fault"
	"github.com/postern-gate/postern/internal/fsserver/edit"
)

// Change is what becomes of one file.
type Change struct {
	Client string // its ID, "" for a policy
	Entry  string // the name of the entry, "" for a policy
	Path   string // absolute, as the client looks it up
	// InProject says that the file is one of the project's.
	InProject bool
	// Before is nil for a file that is absent, After for one that goes.
	Before, After []byte
	New, Remove   bool

	spot *spot
	made made
	runs string // what the entry runs
}

// Plan is everything that is to be changed, computed and checked.
type Plan struct {
	Changes []Change
	// Kept says of what undoing leaves since init didn't add it or a person made
	// it theirs, Left of what it should have taken out and can't, and why, one
	// line each. What is left stays remembered. The lines name files: draw them
	// safely.
	Kept, Left []string
	// Attached are the clients that have their entry once the plan is applied.
	Attached []Attachment

	world World
	disk  *disk
	done  []record // of the journal, to be dropped
	undo  bool
	last  bool // no other folder was attached, so the user's policy goes too
}

// Close lets the folders of the plan go.
func (p *Plan) Close() { p.disk.close() }

// File is a file that is made where it is absent, and left as it is elsewhere.
type File struct {
	Path      string // absolute
	InProject bool
	Text      []byte
}

// NewPlan computes what attaches the clients, and makes the files. Nothing is
// written. The first thing that can't be done is the error; then there is no plan.
func NewPlan(w World, s Server, clients []Client, files []File) (*Plan, error) {
	for _, text := range []string{w.Project, s.Command} {
		if !utf8.ValidString(text) {
			return nil, &fault.Error{Code: fault.RequestInvalid, Op: op, Resource: text, Rule: "the name is not UTF-8, which no client's file can hold", Hint: "rename it"}
		}
	}
	p := &Plan{world: w, disk: newDisk(w)}
	for _, f := range files {
		if err := p.make(f); err != nil {
			p.Close()
			return nil, err
		}
	}
	for _, c := range clients {
		if err := p.attach(c, s); err != nil {
			p.Close()
			return nil, err
		}
	}
	return p, nil
}

func (p *Plan) make(f File) error {
	s, err := p.disk.read(file{f.Path, f.InProject, true})
	if err != nil || s.exists {
		return err
	}
	p.Changes = append(p.Changes, Change{Path: f.Path, InProject: f.InProject, After: f.Text, New: true, spot: s})
	return nil
}

// place is the file that the client's entry goes into: the project's where it
// has one, that which is there of several.
func (c Client) place(w World) (file, error) {
	all := c.files(w)
	if len(all) == 0 {
		return file{}, &fault.Error{
			Code: fault.RequestInvalid, Op: op, Resource: c.ID, Rule: "where its file is can't be told: HOME is not set", Hint: "set HOME",
		}
	}
	for _, f := range all {
		if f.project && there(f.path) {
			return f, nil
		}
	}
	return all[0], nil
}

func (p *Plan) attach(c Client, s Server) error {
	f, err := c.place(p.world)
	if err != nil {
		return err
	}
	at, old, err := p.disk.entries(c, f)
	if err != nil {
		return err
	}
	e := entry{name: s.pick(p.world, f.project, old), command: s.Command, args: s.args(p.world, c)}
	for _, o := range old {
		if !f.project && o.name == e.name && o.another(p.world.Project) {
			return unfit(at, &problem{at: -1, text: fmt.Sprintf("the entry %q is another folder's, and it is not overwritten", e.name), hint: "rename that entry"})
		}
	}
	if err := c.literal(p.world, e); err != nil {
		return err
	}
	after, made, prob := c.form.add(at.text, e)
	if prob != nil {
		return unfit(at, prob)
	}
	a := Attachment{Client: c, File: f.path, Entry: e.name, Command: e.command, Args: e.args, InProject: f.project, Everywhere: !f.project}
	a.Overrides = newSurvey(p.world, p.disk).overrides(a, e, false)
	p.Attached = append(p.Attached, a)
	if at.exists && string(after) == string(at.text) {
		return nil
	}
	p.Changes = append(p.Changes, Change{
		Client: c.ID, Entry: e.name, Path: f.path, InProject: f.project, Before: at.text, After: after, New: !at.exists,
		spot: at, made: made, runs: e.runs(),
	})
	return p.disk.canWrite(at, false)
}

// unfit is the refusal of a file that can't be edited, with its place.
func unfit(at *spot, prob *problem) error {
	hint := prob.hint
	if hint == "" {
		hint = leaveOut
	}
	return &fault.Error{Code: fault.ConfigInvalid, Op: op, Resource: at.path + prob.place(at.text), Rule: prob.text, Hint: hint}
}

// pick is the entry's name. In a file of the user another folder of the same
// name may have it; then a part of a hash tells them apart.
func (s Server) pick(w World, inProject bool, old []entry) string {
	name := s.serverName(w, inProject)
	if inProject {
		return name
	}
	second := name + "-" + shortHash(w.Project)
	for _, e := range old {
		switch {
		case e.name == second && e.plain() && e.args[3] == w.Project:
			return second
		case e.name == name && e.another(w.Project):
			name = second
		}
	}
	return name
}

// another reports whether an entry is a line of init for another folder, be it
// there in this moment or not: one that isn't mounted comes back.
func (e entry) another(project string) bool { return e.plain() && e.args[3] != project }

func shortHash(s string) string { return hash([]byte(s))[:6] }

func hash(b []byte) string {
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:])
}

// Label is how the change's file is named to a person: relative to the project,
// or absolute. Draw it safely.
func (p *Plan) Label(c Change) string {
	if rel, err := filepath.Rel(p.world.Project, c.Path); err == nil && c.InProject {
		return filepath.ToSlash(rel)
	}
	return c.Path
}

// Diff returns a change as a unified diff. It holds lines of the file: draw it
// safely.
func (p *Plan) Diff(c Change) string {
	text, shown := edit.Diff(p.Label(c), c.Before, c.After)
	if text == "" {
		return p.Label(c) + ": a file without content\n"
	}
	if !shown { // a line may be the whole file
		return p.Label(c) + ": " + text + differing(c.Before, c.After)
	}
	return text
}

// mostRemoved bounds what is shown of a text that goes: it may be anybody's. What
// comes is ours, and shown whole.
const mostRemoved = 4096

// differing shows what is between the parts that two texts have in common.
func differing(before, after []byte) string {
	most := min(len(before), len(after))
	lo := 0
	for lo < most && before[lo] == after[lo] {
		lo++
	}
	hi := 0
	for hi < most-lo && before[len(before)-1-hi] == after[len(after)-1-hi] {
		hi++
	}
	for lo > 0 && lo < most && (!utf8.RuneStart(before[lo]) || !utf8.RuneStart(after[lo])) {
		lo--
	}
	for hi > 0 && !utf8.RuneStart(before[len(before)-hi]) {
		hi--
	}
	old, now := string(before[lo:len(before)-hi]), string(after[lo:len(after)-hi])
	if len(old) > mostRemoved {
		old = strings.ToValidUTF8(old[:mostRemoved], "") + "..."
	}
	at := "at" + wrong(lo, "").place(before) + ", line and column\n"
	for _, part := range []struct{ sign, text string }{{"-", old}, {"+", now}} {
		if part.text == "" {
			continue
		}
		for line := range strings.SplitSeq(part.text, "\n") {
			at += part.sign + line + "\n"
		}
	}
	return at
}

// Idle reports whether applying the plan would do nothing, not even forget
// something.
func (p *Plan) Idle() bool { return len(p.Changes) == 0 && len(p.done) == 0 }
