// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime/debug"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/postern-gate/postern/core/fault"
	"github.com/postern-gate/postern/core/textsafe"
	"github.com/postern-gate/postern/internal/cli/man"
	"github.com/postern-gate/postern/internal/config"
)

func newMan(env *Env) *cobra.Command {
	var dir string
	cmd := &cobra.Command{
		Use:   "man [flags] [VERB...]",
		Short: "print a manual page",
		Example: `  postern man | man -l -
  postern man log verify | man -l -
  postern man --dir ~/.local/share/man/man1`,
		Long: `the page of a verb, or of postern, as roff on stdout. its texts are those of
--help. with --dir every page is written there, as postern-VERB.1

the date is that of SOURCE_DATE_EPOCH, or of the commit that was built, so that
the same commit gives the same pages`,
		DisableFlagsInUseLine: true,
		RunE: func(cmd *cobra.Command, args []string) error {
			page := manPage(env)
			if dir != "" {
				if len(args) > 0 {
					return usage(cmd.CommandPath(), "--dir is about all pages", "leave the verb out")
				}
				return writePages(env, page, cmd.Root(), dir)
			}
			found, rest, err := cmd.Root().Find(args)
			if err != nil || len(rest) > 0 {
				return unknownVerb(cmd, textsafe.Name(args[0]))
			}
			_, err = io.WriteString(env.Out, page.Roff(found))
			return err
		},
		ValidArgsFunction: func(cmd *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
			var names []string
			if above, rest, err := cmd.Root().Find(args); err == nil && len(rest) == 0 {
				for _, c := range above.Commands() {
					if c.IsAvailableCommand() {
						names = append(names, cobra.CompletionWithDesc(c.Name(), c.Short))
					}
				}
			}
			return names, cobra.ShellCompDirectiveNoFileComp
		},
	}
	textFlag(cmd, &dir, "dir", "DIR", "write every page into this folder")
	return cmd
}

// manPage is what all pages have in common.
func manPage(env *Env) man.Page {
	return man.Page{
		Version: buildVersion(), Date: builtAt(env.Getenv("SOURCE_DATE_EPOCH")),
		Exits: []man.Entry{
			{Term: "0", Text: "done"},
			{Term: "1", Text: "failed"},
			{Term: "2", Text: "the command line says nothing that can be done"},
			{Term: "3", Text: "denied"},
			{Term: "4", Text: "approval needed"},
			{Term: "5", Text: "a policy or another file is not valid"},
			{Term: "6", Text: "required enforcement is not available here"},
			{Term: "7", Text: "held by another process"},
			{Term: "8", Text: "the audit log is unusable, changed or cut off"},
			{Term: "130", Text: "interrupted"},
		},
		Files: []man.Entry{
			{Term: config.SystemFile, Text: "the system's policy"},
			{Term: "$XDG_CONFIG_HOME/postern/policy.yaml, ~/.config/postern/policy.yaml", Text: "the user's policy"},
			{Term: ".postern/policy.yaml", Text: "the policy of a project, which can only tighten"},
			{Term: "$POSTERN_STATE, $XDG_STATE_HOME/postern, ~/.local/state/postern", Text: "the state directory: audit log, keys, endpoints"},
		},
	}
}

// builtAt is the date of the pages: that of SOURCE_DATE_EPOCH, else of the
// commit, else none.
func builtAt(epoch string) time.Time {
	if n, err := strconv.ParseInt(epoch, 10, 64); err == nil {
		return time.Unix(n, 0)
	}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return time.Time{}
	}
	for _, s := range info.Settings {
		if at, err := time.Parse(time.RFC3339, s.Value); err == nil && s.Key == "vcs.time" {
			return at
		}
	}
	return time.Time{}
}

// writePages writes the page of every verb.
func writePages(env *Env, page man.Page, root *cobra.Command, dir string) error {
	err := os.MkdirAll(dir, 0o755)
	n := 0
	var write func(*cobra.Command)
	write = func(c *cobra.Command) {
		n++
		err = errors.Join(err, os.WriteFile(filepath.Join(dir, man.Name(c)+".1"), []byte(page.Roff(c)), 0o644)) //nolint:gosec // a page is for everybody
		for _, sub := range c.Commands() {
			if sub.IsAvailableCommand() && sub.Name() != "help" {
				write(sub)
			}
		}
	}
	if err == nil {
		write(root)
	}
	if err != nil {
		return &fault.Error{Code: fault.IOFailed, Op: "man", Resource: dir, Rule: "the pages can't be written", Hint: "give a folder that you may write", Err: err}
	}
	fmt.Fprintf(env.Err, "%s written to %s\n", counted(n, "page"), textsafe.Name(dir))
	return nil
}
