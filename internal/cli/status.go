// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/postern-gate/postern/core/textsafe"
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
	Envelope string     `json:"envelope"`
	Undo     bool       `json:"undo"`
	Approver bool       `json:"approver"`
	Levels   []string   `json:"levels"`
	Gaps     []string   `json:"gaps"`
}

func newStatus(env *Env) *cobra.Command {
	var o options
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "status [DIR...]",
		Short: "Show roots, policy and what is enforced",
		Long: `status shows what serve would guard from here: the roots, the policy files in
force, the state directory, and at which level each part is enforced. Weaker
levels are named, never assumed.`,
		Example: `  postern status
  postern status --json ~/notes`,
		RunE: func(_ *cobra.Command, dirs []string) error { return o.status(env, dirs, asJSON) },
	}
	o.flags(cmd)
	cmd.Flags().BoolVar(&asJSON, "json", false, "print one JSON document")
	return cmd
}

func (o *options) status(env *Env, dirs []string, asJSON bool) error {
	w, err := o.openDirs(env, dirs)
	if err != nil {
		return err
	}
	cfg := w.live.Current()
	s := statusJSON{
		document: newDocument("status"), Files: cfg.Files, Policy: cfg.Policy.Version(),
		State: w.stateDir, Envelope: "on",
		Levels: []string{"sdk: files through postern serve, by handle"},
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

func (o *options) openDirs(env *Env, dirs []string) (*workspace, error) {
	if len(dirs) == 0 {
		return o.openHere(env)
	}
	return o.open(env, dirs)
}

func (s statusJSON) print(w io.Writer) {
	for _, r := range s.Roots {
		missing := ""
		if !r.Present {
			missing = ", missing"
		}
		fmt.Fprintf(w, "root      %s:// %s (%s%s)\n", r.Name, textsafe.Name(r.Path), r.Access, missing)
	}
	if len(s.Files) == 0 {
		fmt.Fprintln(w, "policy    the shipped default, no file")
	}
	for _, f := range s.Files {
		fmt.Fprintf(w, "policy    %s\n", textsafe.Name(f))
	}
	fmt.Fprintf(w, "version   %s\nstate     %s\nenvelope  %s\n", s.Policy, textsafe.Name(s.State), s.Envelope)
	for _, l := range s.Levels {
		fmt.Fprintf(w, "enforced  %s\n", l)
	}
	for _, g := range s.Gaps {
		fmt.Fprintf(w, "not       %s\n", g)
	}
}
