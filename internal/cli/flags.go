// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"errors"
	"slices"
	"strings"

	"github.com/spf13/cobra"
)

// text is the value of a flag that is given at most once and never empty: of
// two policies one would be ignored, and an empty one would be another's.
type text struct {
	value *string
	kind  string
	only  []string // the values that it may have, nil for any
	given bool
}

func (t *text) String() string { return "" } // no default to show
func (t *text) Type() string   { return t.kind }

func (t *text) Set(s string) error {
	switch {
	case t.given:
		return errors.New("it is given twice")
	case s == "":
		return errors.New("it is empty")
	}
	t.given, *t.value = true, s
	if t.only != nil && !slices.Contains(t.only, s) {
		return errors.New("it is one of " + strings.Join(t.only, ", "))
	}
	return nil
}

func textFlag(cmd *cobra.Command, value *string, name, kind, about string, only ...string) {
	cmd.Flags().Var(&text{value: value, kind: kind, only: only}, name, about)
	if only != nil {
		// The error is about a flag that doesn't exist.
		_ = cmd.RegisterFlagCompletionFunc(name, cobra.FixedCompletions(only, cobra.ShellCompDirectiveNoFileComp))
	}
}

func jsonFlag(cmd *cobra.Command, value *bool) {
	cmd.Flags().BoolVar(value, "json", false, "print one JSON document, errors too")
}

// door is the name that a door has for its agent.
type door struct{ text }

func (d *door) Set(s string) error {
	if s == noName {
		return errors.New("it stands for an agent without a name")
	}
	return d.text.Set(s)
}

func agentFlag(cmd *cobra.Command, o *options) {
	cmd.Flags().Var(&door{text{value: &o.agent, kind: "NAME"}}, "agent", "the agent that this line is installed for; its rules apply")
}

func policyFlag(cmd *cobra.Command, o *options) {
	textFlag(cmd, &o.policy, "policy", "FILE", "a policy in the place of your own")
}
