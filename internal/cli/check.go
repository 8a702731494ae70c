// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"errors"
	"fmt"
	"io"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/postern-gate/postern/core"
	"github.com/postern-gate/postern/core/fault"
	"github.com/postern-gate/postern/core/pathguard"
	"github.com/postern-gate/postern/core/textsafe"
)

func newCheck(env *Env) *cobra.Command {
	var o options
	var asJSON bool
	var class string
	cmd := &cobra.Command{
		Use:   "check ACTION RESOURCE",
		Short: "Say what the policy decides, and why",
		Long: `check evaluates one request as the doors do and prints the decision and every
rule that matches it, the deciding one first. Nothing is done or recorded.

ACTION is one of fs.read fs.list fs.watch fs.write fs.create fs.rename fs.delete
tool.call proc.exec net.fetch net.connect. RESOURCE is a path, a tool as
server/tool, a program, or a host. Paths are looked up from the roots that the
policy names, or else from this folder.

Exit: 0 allow, 3 deny, 4 ask.`,
		Example: `  postern check fs.write .git/hooks/pre-commit
  postern check --agent codex fs.delete src/main.go
  postern check --class mutating tool.call github/create_issue`,
		Args: cobra.ExactArgs(2),
		RunE: func(_ *cobra.Command, args []string) error {
			return o.check(env, args[0], args[1], class, asJSON)
		},
	}
	o.flags(cmd)
	cmd.Flags().BoolVar(&asJSON, "json", false, "print one JSON document")
	cmd.Flags().StringVar(&class, "class", "", "`CLASS` of the tool: read_only, mutating, destructive, runtime")
	cmd.ValidArgsFunction = func(_ *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
		if len(args) > 0 {
			return nil, cobra.ShellCompDirectiveDefault
		}
		var names []string
		for _, a := range core.Actions() {
			names = append(names, a.String())
		}
		return names, cobra.ShellCompDirectiveNoFileComp
	}
	return cmd
}

func usage(rule string) error {
	return &fault.Error{Code: fault.RequestInvalid, Op: "check", Rule: rule, Hint: "postern check --help"}
}

func (o *options) check(env *Env, actionName, spelling, className string, asJSON bool) error {
	action, ok := core.ParseAction(actionName)
	if !ok {
		return usage("unknown action " + textsafe.Name(actionName))
	}
	class, ok := core.ParseClass(className)
	if className != "" && !ok {
		return usage("unknown class " + textsafe.Name(className))
	}
	w, err := o.openHere(env)
	if err != nil {
		return err
	}
	request := core.Request{Subject: o.subject("check"), Action: action, Class: class}
	if request.Resource, err = w.find(action, spelling); err != nil {
		return err
	}
	verdict := w.live.Evaluate(request)
	return w.explain(env, request, verdict, asJSON)
}

// openHere opens the roots of the policy, or this folder where it names none.
func (o *options) openHere(env *Env) (*workspace, error) {
	here, err := env.Getwd()
	if err != nil {
		return nil, err
	}
	w, err := o.open(env, nil)
	if fault.CodeOf(err) == fault.RequestInvalid {
		return o.open(env, []string{here})
	}
	return w, err
}

// find is the canonical name of what is asked about: of a path the one that
// its links lead to, of a program the file that would be run.
func (w *workspace) find(action core.Action, spelling string) (core.Resource, error) {
	switch {
	case action.IsFile():
		return w.findFile(action, spelling)
	case action == core.ProcExec:
		return findProgram(spelling)
	case action == core.ToolCall:
		server, tool, ok := strings.Cut(spelling, "/")
		if !ok || server == "" || tool == "" {
			return core.Resource{}, usage("a tool is written as server/tool")
		}
		return core.File(server, tool), nil
	default:
		return core.Resource{Name: spelling, Resolved: spelling != ""}, nil
	}
}

func (w *workspace) findFile(action core.Action, spelling string) (core.Resource, error) {
	names, err := w.Parse(spelling)
	if err != nil {
		return core.Resource{}, err
	}
	name := names[0]
	look := pathguard.Name.Stat
	if action == core.FSRename || action == core.FSDelete {
		look = pathguard.Name.Lstat // these act on a link itself
	}
	for range 40 {
		_, err := look(name)
		var link *pathguard.LinkError
		if !errors.As(err, &link) {
			if fault.CodeOf(err) == fault.PathEscape || fault.CodeOf(err) == fault.PathMount {
				return core.Resource{}, err
			}
			break // missing or unreadable: its name is what is judged
		}
		name = link.To
	}
	return name.Resource(), nil
}

// findProgram resolves as a shell would and then follows links: a rule is
// about the program that runs, not about a name for it.
func findProgram(spelling string) (core.Resource, error) {
	path, err := exec.LookPath(spelling)
	if err != nil {
		return core.Resource{}, &fault.Error{Code: fault.PathMissing, Op: "proc.exec", Resource: spelling,
			Rule: "there is no such program", Hint: "give its path, or set PATH"}
	}
	if path, err = filepath.Abs(path); err == nil {
		path, err = filepath.EvalSymlinks(path)
	}
	if err != nil {
		return core.Resource{}, &fault.Error{Code: fault.PathMissing, Op: "proc.exec", Resource: spelling, Err: err}
	}
	return core.Resource{Name: path, Resolved: true}, nil
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

func (w *workspace) explain(env *Env, q core.Request, v core.Verdict, asJSON bool) error {
	reasons := w.live.Explain(q)
	out := struct {
		document
		Action   string     `json:"action"`
		Resource string     `json:"resource"`
		Agent    string     `json:"agent,omitempty"`
		Decision string     `json:"decision"`
		Because  ruleJSON   `json:"because"`
		Rules    []ruleJSON `json:"rules"`
		Policy   string     `json:"policy"`
	}{newDocument("check"), q.Action.String(), q.Resource.String(), q.Subject.Agent, v.Decision.String(),
		newRule(v.Reason), []ruleJSON{}, w.live.Version()}
	for _, r := range reasons {
		out.Rules = append(out.Rules, newRule(r))
	}
	err := answer(env.Out, asJSON, out, func(p io.Writer) {
		fmt.Fprintf(p, "%s: %s %s\n", v.Decision, q.Action, textsafe.Name(q.Resource.String()))
		fmt.Fprintf(p, "because: %s\n", textsafe.Clean(v.Reason.String()))
		for _, r := range reasons {
			if r != v.Reason {
				fmt.Fprintf(p, "also: %s\n", textsafe.Clean(r.String()))
			}
		}
	})
	if err != nil {
		return err
	}
	switch v.Decision {
	case core.Allow:
		return nil
	case core.Ask:
		return exitCode(fault.ExitAsk)
	default:
		return exitCode(fault.ExitDenied)
	}
}
