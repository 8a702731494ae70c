// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"fmt"
	"io"
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"
)

// versionJSON is the answer of version --json. What a build doesn't know is
// left out: it has a commit when it was made in a clone by a go that may ask git.
type versionJSON struct {
	document
	Postern  string `json:"postern"`
	Go       string `json:"go"`
	System   string `json:"system"`
	Commit   string `json:"commit,omitempty"`
	Modified *bool  `json:"modified,omitempty"` // the tree had changes that no commit has
}

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
			info, _ := debug.ReadBuildInfo()
			v := versionOf(info)
			return answer(env.Out, asJSON, v, func(w io.Writer) {
				fmt.Fprintf(w, "postern %s (%s, %s)\n", v.Postern, v.Go, v.System)
			})
		},
	}
	jsonFlag(cmd, &asJSON)
	return cmd
}

// buildVersion is the module's version, or the commit that it was built from.
func buildVersion() string {
	info, _ := debug.ReadBuildInfo()
	return versionOf(info).Postern
}

// versionOf reads what go wrote into the program, nil when there is nothing.
// In a clone go takes the version from the tag; away from a tag it names the
// one before, the time and the commit, with +dirty for a changed tree. So no
// build needs a flag to know its version.
func versionOf(info *debug.BuildInfo) versionJSON {
	v := versionJSON{
		document: newDocument("version"), Postern: "unknown",
		Go: runtime.Version(), System: runtime.GOOS + "/" + runtime.GOARCH,
	}
	if info == nil {
		return v
	}
	for _, s := range info.Settings {
		switch s.Key {
		case "vcs.revision":
			v.Commit = s.Value
		case "vcs.modified":
			modified := s.Value == "true"
			v.Modified = &modified
		}
	}
	switch {
	case info.Main.Version != "" && info.Main.Version != "(devel)":
		v.Postern = info.Main.Version
	case len(v.Commit) >= 12:
		v.Postern = "devel-" + v.Commit[:12]
	default:
		v.Postern = "devel"
	}
	return v
}
