// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/postern-gate/postern/core"
	"github.com/postern-gate/postern/core/fault"
	"github.com/postern-gate/postern/core/textsafe"
)

func newCheck(env *Env) *cobra.Command {
	var o options
	var asJSON bool
	var class string
	cmd := &cobra.Command{
		Use:   "check [flags] ACTION RESOURCE [DESTINATION]",
		Short: "say what would be decided, and why",
		Example: `  postern check fs.write .git/hooks/pre-commit
  postern check --agent codex fs.delete src/main.go
  postern check fs.rename src old
  postern check --class mutating tool.call github/create_issue
  postern check proc.exec git`,
		Long: `one request is judged as the doors judge it, with every link on its way and,
for fs.delete and fs.rename, all that lies beneath a directory. nothing is done
or recorded. the deciding rule comes first, then every other that matches

ACTION is one of
  ` + strings.Join(actionNames()[:7], " ") + `
  ` + strings.Join(actionNames()[7:], " ") + `

RESOURCE is a path, a tool as server/tool, a program, or a host. paths start at
the roots that the policy names, or else at this folder. what fs.rename is
about has two names; without DESTINATION only the old one is judged

what is decided otherwise is said too: for agents that have rules of their own,
unless --agent names one; without what allow_sensitive lifts; and of the other
action, since to write is fs.create where no file is yet, else fs.write

exit 0 allow, 3 deny, 4 ask`,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) > 2 && args[0] == core.FSRename.String() {
				return exactly("ACTION", "SOURCE", "DESTINATION")(cmd, args)
			}
			return exactly("ACTION", "RESOURCE")(cmd, args)
		},
		DisableFlagsInUseLine: true,
		RunE: func(cmd *cobra.Command, args []string) error {
			return o.check(cmd.Context(), env, args, class, asJSON)
		},
		ValidArgsFunction: func(_ *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
			if len(args) > 0 {
				return nil, cobra.ShellCompDirectiveDefault
			}
			return actionNames(), cobra.ShellCompDirectiveNoFileComp
		},
	}
	agentFlag(cmd, &o)
	policyFlag(cmd, &o)
	jsonFlag(cmd, &asJSON)
	textFlag(cmd, &class, "class", "CLASS", "of the tool: read_only, mutating, destructive or runtime",
		core.ReadOnly.String(), core.Mutating.String(), core.Destructive.String(), core.Runtime.String())
	return cmd
}

func actionNames() []string {
	var names []string
	for _, a := range core.Actions() {
		names = append(names, a.String())
	}
	return names
}

func (o *options) check(ctx context.Context, env *Env, args []string, className string, asJSON bool) error {
	action, ok := core.ParseAction(args[0])
	if !ok {
		return usage("postern check", "there is no action "+textsafe.Name(args[0]), "one of "+strings.Join(actionNames(), " "))
	}
	class, _ := core.ParseClass(className) // one of the flag's values, or none: unknown
	w, err := o.loadHere(env)
	if err == nil {
		err = w.open(env)
	}
	if err != nil {
		return err
	}
	o.unknownAgent(env, w.live.Current())
	w.warnWide(env)
	w.warnPaused(env, o.agent)
	j := judge{w: w, request: core.Request{Subject: o.subject("check"), Action: action, Class: class}}
	if err := j.find(ctx, o, args[1], args[2:]...); err != nil {
		return err
	}
	others, more, err := j.others(ctx, o, args[1:])
	if err != nil {
		return err
	}
	if err := j.print(env, asJSON, others, more); err != nil {
		return err
	}
	switch j.verdict.Decision {
	case core.Allow:
		return nil
	case core.Ask:
		return exitCode(fault.ExitAsk)
	default:
		return exitCode(fault.ExitDenied)
	}
}

type ruleJSON struct {
	Decision string `json:"decision"`
	Step     string `json:"step"`
	Rule     string `json:"rule"`
	Builtin  string `json:"builtin,omitempty"`
	File     string `json:"file,omitempty"`
	Line     int    `json:"line,omitempty"`
	Column   int    `json:"column,omitempty"`
	Why      string `json:"why,omitempty"`
}

func newRule(r core.Reason) ruleJSON {
	return ruleJSON{r.Decision.String(), r.Step.String(), r.Rule, r.Builtin, r.Pos.File, r.Pos.Line, r.Pos.Column, r.Why}
}

type checkJSON struct {
	document
	Action   string     `json:"action"`
	Resource string     `json:"resource"` // by its canonical name
	Agent    string     `json:"agent,omitempty"`
	Decision string     `json:"decision"`
	Code     string     `json:"code,omitempty"` // what a door would answer with
	Because  ruleJSON   `json:"because"`
	About    string     `json:"about,omitempty"` // the name that decided, where it is another one
	Rules    []ruleJSON `json:"rules"`
	Policy   string     `json:"policy"`
	// Otherwise is what is decided otherwise: of the action that is asked for instead,
	// for agents with rules of their own, and without what the policy lifts.
	Otherwise  []otherJSON `json:"otherwise,omitempty"`
	Warnings   []string    `json:"warnings,omitempty"`
	MoreAgents int         `json:"more_agents,omitempty"` // have rules of their own and were not asked about
}

func (j *judge) print(env *Env, asJSON bool, others []otherJSON, more int) error {
	var reasons []core.Reason
	if !j.guard {
		reasons = j.w.live.Explain(j.decided)
	}
	out := checkJSON{
		document: newDocument("check"), Action: j.request.Action.String(), Resource: j.request.Resource.String(),
		Agent: j.request.Subject.Agent, Decision: j.verdict.Decision.String(), Because: newRule(j.verdict.Reason),
		Rules: []ruleJSON{}, Policy: j.w.live.Version(), Otherwise: others, MoreAgents: more, Warnings: j.w.wide(env),
	}
	if j.code != fault.OK {
		out.Code = j.code.String()
	}
	if j.decided.Resource != j.request.Resource {
		out.About = j.decided.Resource.String()
	}
	for _, r := range reasons {
		out.Rules = append(out.Rules, newRule(r))
	}
	return answer(env.Out, asJSON, out, func(p io.Writer) {
		fmt.Fprintf(p, "%s: %s %s\n", out.Decision, out.Action, drawn(out.Resource))
		if out.About != "" {
			fmt.Fprintf(p, "about: %s\n", drawn(out.About))
		}
		fmt.Fprintf(p, "because: %s\n", textsafe.Clean(j.verdict.Reason.String()))
		for _, r := range reasons {
			if r != j.verdict.Reason && r.Step != core.StepDefault {
				fmt.Fprintf(p, "also: %s\n", textsafe.Clean(r.String()))
			}
		}
		for _, each := range others {
			fmt.Fprintln(p, each.text())
		}
		if more > 0 {
			fmt.Fprintf(p, "but: %s more with rules of their own; next: postern check --agent NAME\n", counted(more, "agent"))
		}
	})
}

// drawn is a name as it can be shown, the empty one too.
func drawn(name string) string {
	if name == "" {
		return `""`
	}
	return textsafe.Name(name)
}
