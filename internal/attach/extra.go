// SPDX-License-Identifier: Apache-2.0

package attach

import (
	"slices"
	"strings"
)

// idle reports whether a member beside those that init writes says what holds
// without it too, or only how long a client waits: it changes nothing of what
// the client starts. The value is minimized JSON, "" where it isn't known.
func (f form) idle(name, value string) bool {
	switch name {
	case "command":
		return true
	case "args":
		return !f.array
	case "type":
		return value == quote(f.kind) || f.kind == "" && value == `"stdio"`
	case "env", "environment":
		return value == "{}"
	case "disabled":
		return value == "false"
	case "enabled":
		return value == "true"
	case "tools":
		return value == `["*"]`
	case "timeout", "startup_timeout_sec", "startup_timeout_ms", "tool_timeout_sec":
		return value == "" || strings.Trim(value, "0123456789.") == ""
	}
	return false
}

// odd are the names of the members that may make a client start something else
// than the command and its arguments, or nothing at all, sorted.
func (f form) odd(got map[string]string) (names []string) {
	for name, value := range got {
		if !f.idle(name, value) {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// mostOdd bounds how many odd names are told.
const mostOdd = 5

// beside says what is odd about an entry, "" for nothing. It can be drawn as it is.
func (a Attachment) beside() string {
	var members, flags []string
	for i, name := range a.Odd {
		if i == mostOdd {
			members = append(members, "and more")
			break
		}
		if strings.HasPrefix(name, "-") {
			flags = append(flags, Brief(name))
		} else {
			members = append(members, Brief(name))
		}
	}
	const beside = " that init doesn't write: "
	switch {
	case len(flags) == 0 && len(members) == 0:
		return ""
	case len(flags) == 0:
		return "has members" + beside + strings.Join(members, ", ")
	case len(members) == 0:
		return "has flags" + beside + strings.Join(flags, ", ")
	}
	return "has members" + beside + strings.Join(members, ", ") + ", and flags: " + strings.Join(flags, ", ")
}

// oddTOML notes the name of an item of the entry's table that is not ours.
func (e *entry) oddTOML(f form, it tomlItem) {
	if len(it.path) < 3 || len(it.path) == 3 && it.kind == '=' && f.idle(it.path[2], "") {
		return
	}
	if !slices.Contains(e.odd, it.path[2]) {
		e.odd = append(e.odd, it.path[2])
	}
}

// oddFlags are the flags of a line in a project's file that init doesn't write
// and that don't narrow: the file came with the project, and could name a policy
// that did too.
func (e entry) oddFlags() (names []string) {
	for _, a := range e.args[min(1, len(e.args)):] {
		name, _, _ := strings.Cut(a, "=")
		if strings.HasPrefix(a, "-") && name != "--agent" && name != "--read-only" && !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return names
}
