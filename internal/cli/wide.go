// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"fmt"
	"path/filepath"

	"github.com/postern-gate/postern/core/textsafe"
)

// tooWide says why a folder is more than one project, "" for one that isn't.
// init refuses it; serve and up, whose folder a person has typed, warn.
func tooWide(env *Env, folder string) string {
	real := func(path string) string {
		if at, err := filepath.EvalSymlinks(path); err == nil {
			return at
		}
		return path
	}
	folder = real(folder)
	home := homeOf(env)
	switch {
	case filepath.Dir(folder) == folder:
		return wholeSystem
	case home != "" && beneath(real(home), folder):
		return "it is the home folder or holds it: keys, mail and every project are in an agent's reach"
	}
	return ""
}

// warnWide says at a start what wide finds, but for the root of the file system,
// which has a warning of the configuration.
func (w *workspace) warnWide(env *Env) {
	for _, r := range w.Roots() {
		if why := tooWide(env, r.Given()); why != "" && why != wholeSystem {
			fmt.Fprintf(env.Err, "warning: root %s is %s: %s\n", r.Name(), textsafe.Name(r.Given()), why)
		}
	}
}

const wholeSystem = "it is the root of the file system"

// wide has a line for each root that is more than one project.
func (w *workspace) wide(env *Env) []string {
	var all []string
	for _, r := range w.Roots() {
		if why := tooWide(env, r.Given()); why != "" {
			all = append(all, fmt.Sprintf("root %s is %s: %s", r.Name(), textsafe.Name(r.Given()), why))
		}
	}
	return all
}
