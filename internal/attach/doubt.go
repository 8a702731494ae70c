// SPDX-License-Identifier: Apache-2.0

package attach

import (
	"path/filepath"
	"slices"
	"strings"
)

// Doubt says for a person why an entry that runs postern may guard nothing, or
// something else than the project for its client; "" for none. A file of the
// project may have come with it, so that its line has to serve the project and
// nothing beside it. In a file of the user an entry may be for another folder. It
// can be drawn as it is.
func (a Attachment) Doubt(project string) string {
	if len(a.Overrides) > 0 {
		return a.Overrides[0].doubt()
	}
	if beside := a.beside(); beside != "" {
		return beside
	}
	if part := a.Client.replaced(a.Command, a.Args); part != "" {
		return "holds " + Brief(part) + ", which " + a.Client.Name + " puts something else in place of"
	}
	agents, folders := a.line()
	switch {
	case len(agents) == 0:
		return "names no agent, so that no rule for " + a.Client.ID + " holds"
	case len(agents) > 1 || agents[0] != a.Client.ID:
		return "is for the agent " + shortly(agents) + ", and its client is " + a.Client.ID
	case a.Everywhere:
		folders = slices.DeleteFunc(folders, absolute)
	case len(folders) == 0:
		return "names no folder"
	default:
		folders = slices.DeleteFunc(folders, func(f string) bool { return isFolder(f, project) })
	}
	if len(folders) > 0 {
		return "serves another folder than this one: " + shortly(folders)
	}
	return ""
}

// Step is what a person does about the doubt, "" for looking at the entry. It can
// be drawn as it is.
func (a Attachment) Step() string {
	if len(a.Overrides) == 0 {
		return ""
	}
	return a.Overrides[0].step()
}

// line reads the agents and the folders of the arguments as serve does.
func (a Attachment) line() (agents, folders []string) {
	valued := []string{"--agent", "--policy", "--envelope", "--http", "--accept"}
	for i := 1; i < len(a.Args); i++ {
		name, value, joined := strings.Cut(a.Args[i], "=")
		switch {
		case a.Args[i] == "--":
			return agents, append(folders, a.Args[i+1:]...)
		case !strings.HasPrefix(name, "-") || name == "-":
			folders = append(folders, a.Args[i])
			continue
		case !joined && slices.Contains(valued, name) && i+1 < len(a.Args):
			i++
			value = a.Args[i]
		}
		if name == "--agent" {
			agents = append(agents, value)
		}
	}
	return agents, folders
}

// isFolder reports whether a path is the project. A link that lies in it is
// whatever the project makes of it tomorrow.
func isFolder(path, project string) bool {
	if !filepath.IsAbs(path) {
		return false
	}
	if filepath.Clean(path) == filepath.Clean(project) {
		return true
	}
	one, err1 := filepath.EvalSymlinks(path)
	two, err2 := filepath.EvalSymlinks(project)
	rel, err := filepath.Rel(two, filepath.Clean(path))
	return err1 == nil && err2 == nil && one == two && (err != nil || !filepath.IsLocal(rel))
}

// shortly draws names from a line, the first few.
func shortly(names []string) string {
	var all []string
	for i, name := range names {
		if i == mostOdd {
			all = append(all, "and more")
			break
		}
		all = append(all, Brief(name))
	}
	return strings.Join(all, ", ")
}
