// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/postern-gate/postern/core/fault"
	"github.com/postern-gate/postern/core/textsafe"
	"github.com/postern-gate/postern/enforce"
	"github.com/postern-gate/postern/internal/config"
)

func newPaths(env *Env) *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "paths [flags]",
		Short: "print every place that postern uses",
		Example: `  postern paths
  postern paths --json`,
		Long: `one line a place: what it is, where, and whether it is there. nothing is read or
made, so it answers with a policy that is not valid too. the first lines of
docs/policy.md say which variables move what`,
		DisableFlagsInUseLine: true,
		Args:                  exactly(),
		ValidArgsFunction:     cobra.NoFileCompletions,
		RunE: func(*cobra.Command, []string) error {
			p := placesOf(env)
			return answer(env.Out, asJSON, p, p.print)
		},
	}
	jsonFlag(cmd, &asJSON)
	return cmd
}

type placeJSON struct {
	Name    string `json:"name"`
	Path    string `json:"path"` // "" where it can't be told
	There   bool   `json:"there"`
	Problem string `json:"problem,omitempty"` // why it can't be told, or be looked at
}

type pathsJSON struct {
	document
	Places []placeJSON `json:"places"`
}

// placesOf looks at every place without opening any.
func placesOf(env *Env) *pathsJSON {
	out := &pathsJSON{document: newDocument("paths")}
	self, err := os.Executable()
	out.add("binary", self, err)
	out.add("system policy", config.SystemFile, nil)
	user := config.UserFile(env.Getenv)
	out.add("user policy", user, unset(user, "neither XDG_CONFIG_HOME nor HOME is set to an absolute path"))
	here, err := env.Getwd()
	project := ""
	if err == nil {
		project = filepath.Join(here, ".postern", "policy.yaml")
	}
	out.add("project policy", project, err)
	state, err := enforce.LocateState(env.Getenv)
	for _, p := range [...][2]string{
		{"state", ""},
		{"audit log", "audit"},
		{"keys", "keys"},
		{"endpoints", "endpoints"},
		{"attachments", "attached"},
	} {
		path := ""
		if err == nil {
			path = filepath.Join(state, p[1])
		}
		out.add(p[0], path, err)
	}
	return out
}

func unset(path, because string) error {
	if path != "" {
		return nil
	}
	return &fault.Error{Code: fault.ConfigInvalid, Rule: because}
}

func (out *pathsJSON) add(name, path string, err error) {
	p := placeJSON{Name: name, Path: path}
	switch {
	case err != nil:
		p.Path, p.Problem = "", fault.As(err).Because()
		if fault.CodeOf(err) == fault.Bug { // an error of the operating system
			p.Problem = "it can't be told"
		}
	default:
		_, err := os.Lstat(path)
		p.There = err == nil
		if err != nil && !os.IsNotExist(err) {
			p.Problem = "it can't be looked at by this user"
		}
	}
	out.Places = append(out.Places, p)
}

func (out *pathsJSON) print(w io.Writer) {
	for _, p := range out.Places {
		text := textsafe.Name(p.Path)
		switch {
		case p.Path == "":
			text = "- (" + p.Problem + ")"
		case p.Problem != "":
			text += " (" + p.Problem + ")"
		case !p.There:
			text += " (not there)"
		}
		fmt.Fprintf(w, "%-14s %s\n", p.Name, text)
	}
}
