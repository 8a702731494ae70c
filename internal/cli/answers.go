// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/postern-gate/postern/core/fault"
	"github.com/postern-gate/postern/internal/state/grant"
)

// someIDs are the arguments of a verb that answers.
func someIDs(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return usage(cmd.CommandPath(), "ID is missing", "postern pending")
	}
	return nil
}

// each answers questions one by one. One that can't be answered keeps no other
// back, but a person who has enough does; the first error is what is returned.
func each(env *Env, op string, ids []string, asJSON bool, do func(id string) (*grant.Grant, error)) error {
	var given []*grant.Grant
	var failed error
	for _, id := range ids {
		g, err := do(id)
		if g != nil {
			given = append(given, g)
		}
		if err == nil {
			continue
		}
		err = named(err, op)
		if failed == nil {
			failed = err
		} else if fault.CodeOf(err) != fault.Bug {
			report(env.Err, err, false)
		}
		if f := fault.As(err); f.Code == fault.Cancelled || f.Code == fault.PolicyAsk && f.Resource == "" {
			break // the person has enough, or there is none
		}
	}
	if len(given) == 0 {
		return failed
	}
	return errors.Join(failed, answers(env, op, given, asJSON))
}

// answers tells what was answered. Several are a list under --json.
func answers(env *Env, op string, given []*grant.Grant, asJSON bool) error {
	var out any
	if len(given) == 1 {
		out = struct {
			document
			grantJSON
		}{newDocument(op), grantOf(given[0])}
	} else {
		all := []grantJSON{}
		for _, g := range given {
			all = append(all, grantOf(g))
		}
		out = struct {
			document

			Answers []grantJSON `json:"answers"`
		}{newDocument(op), all}
	}
	return answer(env.Out, asJSON, out, func(w io.Writer) {
		for _, g := range given {
			fmt.Fprintln(w, outcomeOf(g))
		}
	})
}
