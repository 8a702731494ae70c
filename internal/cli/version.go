// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"fmt"
	"io"
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"
)

func newVersion(env *Env) *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:                   "version [flags]",
		Short:                 "print the version",
		Example:               "  postern version --json",
		Args:                  exactly(),
		DisableFlagsInUseLine: true,
		ValidArgsFunction:     cobra.NoFileCompletions,
		RunE: func(*cobra.Command, []string) error {
			v := buildVersion()
			return answer(env.Out, asJSON, struct {
				document
				Postern string `json:"postern"`
				Go      string `json:"go"`
				System  string `json:"system"`
			}{newDocument("version"), v, runtime.Version(), runtime.GOOS + "/" + runtime.GOARCH}, func(w io.Writer) {
				fmt.Fprintf(w, "postern %s (%s, %s/%s)\n", v, runtime.Version(), runtime.GOOS, runtime.GOARCH)
			})
		},
	}
	jsonFlag(cmd, &asJSON)
	return cmd
}

// buildVersion is the module's version, or the commit that it was built from.
func buildVersion() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "unknown"
	}
	if v := info.Main.Version; v != "" && v != "(devel)" {
		return v
	}
	for _, s := range info.Settings {
		if s.Key == "vcs.revision" && len(s.Value) >= 12 {
			return "devel-" + s.Value[:12]
		}
	}
	return "devel"
}
