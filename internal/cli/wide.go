// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/postern-gate/postern/core/textsafe"
	"github.com/postern-gate/postern/internal/attach"
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

const wholeSystem = "it is the root of the file system"

// beneathOther says that a folder lies in one that is guarded on its own, "" where it
// doesn't: what holds for a root holds for its own agents, and for no root beneath.
// A policy file in force holds for all.
func beneathOther(stateDir, folder string, inForce []string) string {
	attached := attach.Folders(stateDir)
	if real, err := filepath.EvalSymlinks(folder); err == nil {
		folder = real
	}
	for up := filepath.Dir(folder); up != folder; folder, up = up, filepath.Dir(up) {
		file := filepath.Join(up, ".postern", "policy.yaml")
		if slices.Contains(inForce, file) {
			return ""
		}
		_, err := os.Lstat(file)
		if err == nil || slices.Contains(attached, up) {
			return "it lies in " + textsafe.Name(up) + ", which is guarded on its own: what is said here is not what holds for the agents of that folder; run this there"
		}
	}
	return ""
}

// warnWide says at a start what wide finds, but for the root of the file system,
// which has a warning of the configuration.
func (w *workspace) warnWide(env *Env) {
	for _, text := range w.wide(env) {
		if !strings.HasSuffix(text, wholeSystem) {
			fmt.Fprintln(env.Err, "warning: "+text)
		}
	}
}

// wide has a line for each root that is more than one project, or a part of another.
func (w *workspace) wide(env *Env) []string {
	var all []string
	for _, r := range w.Roots() {
		for _, why := range []string{tooWide(env, r.Given()), beneathOther(w.stateDir, r.Given(), w.live.Current().Files)} {
			if why != "" {
				all = append(all, fmt.Sprintf("root %s is %s: %s", r.Name(), textsafe.Name(r.Given()), why))
			}
		}
	}
	return all
}
