// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/postern-gate/postern/core/textsafe"
	"github.com/postern-gate/postern/internal/attach"
	"github.com/postern-gate/postern/internal/state/grant"
)

// initJSON is what init found, planned and did.
type initJSON struct {
	document
	Project string           `json:"project"`
	Program string           `json:"program"`
	Undo    bool             `json:"undo"`
	DryRun  bool             `json:"dry_run"`
	Applied bool             `json:"applied"`
	Clients []initClientJSON `json:"clients"`
	Changes []initChangeJSON `json:"changes"`
	Kept    []string         `json:"kept"` // by undoing, since init didn't add it
	Left    []string         `json:"left"` // that undoing couldn't take out
	Ignore  []string         `json:"gitignore"`
	Warns   []string         `json:"warnings"`
	Stays   []string         `json:"stays"` // of postern, once it is taken out of the last folder

	git bool // the folder is in a repository
}

// inRepository reports whether git would know the folder for one of its own.
func inRepository(folder string) bool {
	for {
		if _, err := os.Lstat(filepath.Join(folder, ".git")); err == nil {
			return true
		}
		above := filepath.Dir(folder)
		if above == folder {
			return false
		}
		folder = above
	}
}

type initClientJSON struct {
	ID       string   `json:"id"`
	Name     string   `json:"name"`
	Found    string   `json:"found"` // what of it was found, "" for nothing
	File     string   `json:"file"`
	Entry    string   `json:"entry"`
	Command  string   `json:"command"`
	Args     []string `json:"args"`
	Next     string   `json:"next"`
	NotGuard string   `json:"not_guarded"`
	// Everywhere: every session of the client is offered it, in whatever folder.
	Everywhere bool `json:"everywhere"`
}

type initChangeJSON struct {
	Client string `json:"client"` // "" for a policy
	File   string `json:"file"`
	Entry  string `json:"entry"`
	Action string `json:"action"` // make, edit or remove
	Diff   string `json:"diff"`
}

// report is what is known before anything is written.
func (r *initRun) report() *initJSON {
	out := &initJSON{
		document: newDocument("init"), Project: r.world.Project, Program: r.server.Command, Undo: r.undo, DryRun: r.dry,
		Clients: []initClientJSON{}, Changes: []initChangeJSON{}, Kept: append([]string{}, r.plan.Kept...),
		Left: append([]string{}, r.plan.Left...), Ignore: []string{}, Warns: []string{}, Stays: []string{}, git: inRepository(r.world.Project),
	}
	if !r.undo && r.replaceable() {
		out.Warns = append(out.Warns, "the program "+textsafe.Name(r.server.Command)+" lies in the folder, where the agent's own shell could replace it: install it elsewhere")
	}
	if why := beneathOther(r.stateDir, r.world.Project, nil); why != "" && !r.undo {
		out.Warns = append(out.Warns, "the folder: "+why+"; a server here has another policy")
	}
	for _, a := range r.plan.Attached {
		if doubt := doubted(r.world.Project, a); doubt != "" {
			out.Warns = append(out.Warns, a.Client.Name+": "+doubt)
		}
		c := initClientJSON{
			ID: a.Client.ID, Name: a.Client.Name, File: a.File, Entry: a.Entry, Command: a.Command, Args: a.Args,
			Next: a.Client.Next, NotGuard: a.Client.Own, Everywhere: a.Everywhere,
		}
		for _, f := range r.found {
			if f.Client.ID == c.ID {
				c.Found = f.Why
			}
		}
		out.Clients = append(out.Clients, c)
		if a.InProject {
			rel, err := filepath.Rel(r.world.Project, a.File)
			if err == nil {
				out.Ignore = append(out.Ignore, "/"+filepath.ToSlash(rel))
			}
		}
	}
	for _, c := range r.plan.Changes {
		action := "edit"
		if c.New {
			action = "make"
		} else if c.Remove {
			action = "remove"
		}
		out.Changes = append(out.Changes, initChangeJSON{c.Client, c.Path, c.Entry, action, r.plan.Diff(c)})
	}
	return out
}

// idle says that there is nothing to change.
func (j *initJSON) idle() bool { return len(j.Changes) == 0 }

// intro says which clients are here, and how that is known.
func (j *initJSON) intro() string {
	var b strings.Builder
	fmt.Fprintf(&b, "folder: %s\n", textsafe.Name(j.Project))
	if j.Undo {
		return b.String()
	}
	for _, c := range j.Clients {
		why := "not found here, attached as you asked"
		if c.Found != "" {
			why = textsafe.Name(c.Found)
		}
		fmt.Fprintf(&b, "client: %s (%s)\n", c.Name, why)
	}
	for _, w := range j.Warns {
		fmt.Fprintf(&b, "warning: %s\n", textsafe.Clean(w))
	}
	if len(j.Clients) == 0 {
		b.WriteString("client: none found; postern up . prints what to paste, --client attaches one all the same\n")
	}
	return b.String()
}

// changes are the diffs. Their lines are those of files that may be anybody's.
func (j *initJSON) changes() string {
	var b strings.Builder
	for _, c := range j.Changes {
		b.WriteString("\n" + textsafe.Block(c.Diff).String())
	}
	if len(j.Changes) > 0 {
		b.WriteString("\n")
	}
	for _, k := range j.Kept {
		fmt.Fprintf(&b, "kept: %s\n", textsafe.Clean(k))
	}
	for _, l := range j.Left {
		fmt.Fprintf(&b, "left: %s\n", textsafe.Clean(l))
	}
	return b.String()
}

func (j *initJSON) question() string {
	if j.Undo {
		return "take it out of " + counted(len(j.Changes), "file") + "?"
	}
	return "write " + counted(len(j.Changes), "file") + "?"
}

// after says what was done and what comes next.
func (j *initJSON) after() string {
	var b strings.Builder
	switch {
	case j.idle() && j.Undo && len(j.Left) > 0:
		return "nothing was changed\n"
	case j.idle() && j.Undo:
		return "nothing that init added is there, nothing was changed\n" + j.stays()
	case j.idle():
		return "everything is there already, nothing was changed\n"
	case !j.Applied:
		return fmt.Sprintf("nothing was written; without --dry-run it asks, and writes %s\n", counted(len(j.Changes), "file"))
	}
	for _, c := range j.Changes {
		fmt.Fprintf(&b, "%s: %s\n", map[string]string{"make": "made", "edit": "edited", "remove": "removed"}[c.Action], textsafe.Name(c.File))
	}
	if j.Undo {
		b.WriteString("clients that run now go on until they are started again\n" + j.stays())
		return b.String()
	}
	b.WriteString("\n" + j.clients())
	if len(j.Ignore) > 0 && j.git {
		fmt.Fprintf(&b, "git, ignore what names a path of this machine: %s\n", textsafe.Clean(strings.Join(j.Ignore, ", ")))
	}
	if j.git {
		b.WriteString("git, add what holds for everybody: /.postern/policy.yaml\n")
	}
	if len(j.Clients) > 0 {
		b.WriteString("try: ask the agent: with postern, write \"exit 0\" to .git/hooks/pre-commit; then postern explain\n")
	}
	b.WriteString("undo: postern init --undo\n")
	return b.String()
}

// remains is what stays of postern where no folder is attached any more: what a
// person may still want to know, and what no init made.
func (r *initRun) remains() []string {
	stays := []string{}
	if !r.undo || r.clients != nil || len(attach.Folders(r.stateDir)) > 0 {
		return stays
	}
	if n := len(grant.Open(r.stateDir, grant.Options{}).Grants()); n > 0 {
		stays = append(stays, counted(n, "approval")+" in force, also for agents that are attached again: postern grants shows, postern revoke --all takes back")
	}
	if _, err := os.Stat(r.stateDir); err == nil {
		stays = append(stays, r.stateDir+", which holds the log, its keys, and copies of contents for undo: end what runs, then remove the folder if you need none of it")
	}
	if self, err := os.Executable(); err == nil {
		stays = append(stays, self+", the program: remove the file, or its package")
	}
	return stays
}

func (j *initJSON) stays() string {
	var b strings.Builder
	for _, s := range j.Stays {
		fmt.Fprintf(&b, "stays: %s\n", textsafe.Clean(s))
	}
	return b.String()
}

// clients says of each client what is to be done in it, and what of it is not
// guarded or is wider than this folder.
func (j *initJSON) clients() string {
	var b strings.Builder
	for _, c := range j.Clients {
		fmt.Fprintf(&b, "next, %s: %s\n", c.Name, c.Next)
	}
	for _, c := range j.Clients {
		fmt.Fprintf(&b, "not guarded, %s: %s\n", c.Name, c.NotGuard)
	}
	for _, c := range j.Clients {
		if c.Everywhere {
			fmt.Fprintf(&b, "wider, %s: its entry is in your own file, so each of its sessions, in any folder, can use this folder's server\n", c.Name)
		}
	}
	if len(j.Clients) > 0 {
		fmt.Fprintf(&b, "how to turn off what is not guarded: %s\n", attach.ClientsPage)
	}
	return b.String()
}
