// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"

	"github.com/postern-gate/postern/core/textsafe"
	"github.com/postern-gate/postern/enforce"
)

type rootJSON struct {
	Name    string `json:"name"`
	Path    string `json:"path"`
	Access  string `json:"access"`
	Present bool   `json:"present"`
}

type statusJSON struct {
	document
	Roots    []rootJSON `json:"roots"`
	Files    []string   `json:"policy_files"`
	Policy   string     `json:"policy"`
	State    string     `json:"state"`
	Made     bool       `json:"state_made"`
	Envelope string     `json:"envelope"`
	Undo     bool       `json:"undo"`
	Approver bool       `json:"approver"`
	Levels   []string   `json:"levels"`
	Gaps     []string   `json:"gaps"`
	Warnings []string   `json:"warnings"`
}

func newStatus(env *Env) *cobra.Command {
	var o options
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "status [flags] [DIR...]",
		Short: "show roots, policy, and what is enforced",
		Example: `  postern status
  postern status --json ~/notes`,
		Long: `what serve would guard from here: the roots, the policy files in force, the
state directory, and how each part is enforced. what is weaker or missing is
named. without DIR the roots are those that the policy names, or this folder

a policy that is not valid is reported with exit 5; a server that already runs
keeps the last good one`,
		DisableFlagsInUseLine: true,
		RunE:                  func(_ *cobra.Command, dirs []string) error { return o.status(env, dirs, asJSON) },
		ValidArgsFunction: func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
			return nil, cobra.ShellCompDirectiveFilterDirs
		},
	}
	policyFlag(cmd, &o)
	jsonFlag(cmd, &asJSON)
	return cmd
}

func (o *options) status(env *Env, dirs []string, asJSON bool) error {
	load := o.load
	if len(dirs) == 0 {
		load = func(env *Env, _ []string) (*workspace, error) { return o.loadHere(env) }
	}
	w, err := load(env, dirs)
	if err == nil {
		err = w.open(env)
	}
	if err == nil {
		err = enforce.CheckState(w.stateDir)
	}
	if err != nil {
		return err
	}
	cfg := w.live.Current()
	_, stateErr := os.Stat(w.stateDir)
	s := statusJSON{
		document: newDocument("status"), Roots: []rootJSON{}, Files: append([]string{}, cfg.Files...),
		Policy: cfg.Policy.Version(), State: w.stateDir, Made: stateErr == nil, Envelope: "on",
		Warnings: append([]string{}, cfg.Warnings...),
		Levels:   []string{"sdk: files through postern serve, by handle"},
		Gaps: []string{
			"programs that don't go through postern are not confined",
			"nobody can be asked yet: what the policy asks about is refused",
			"nothing can be undone yet",
			"the audit log is not signed yet",
		},
	}
	if !cfg.Settings.Envelope {
		s.Envelope = "off"
	}
	for i, r := range w.Roots() {
		access := "write"
		if cfg.Roots[i].ReadOnly {
			access = "read"
		}
		s.Roots = append(s.Roots, rootJSON{r.Name(), r.Given(), access, !r.Missing()})
	}
	return answer(env.Out, asJSON, s, s.print)
}

func (s statusJSON) print(w io.Writer) {
	line := func(what, text string) { fmt.Fprintf(w, "%-9s %s\n", what, text) }
	for _, r := range s.Roots {
		missing := ""
		if !r.Present {
			missing = ", missing"
		}
		line("root", r.Name+":// "+textsafe.Name(r.Path)+" ("+r.Access+missing+")")
	}
	if len(s.Files) == 0 {
		line("policy", "the shipped default, no file")
	}
	for _, f := range s.Files {
		line("policy", textsafe.Name(f))
	}
	line("version", s.Policy)
	state := textsafe.Name(s.State)
	if !s.Made {
		state += " (not made yet)"
	}
	line("state", state)
	line("envelope", s.Envelope)
	for _, l := range s.Levels {
		line("enforced", l)
	}
	for _, g := range s.Gaps {
		line("not", g)
	}
}
