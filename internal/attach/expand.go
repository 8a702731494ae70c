// SPDX-License-Identifier: Apache-2.0

package attach

import (
	"regexp"

	"github.com/postern-gate/postern/core/fault"
)

// expands is what of a command and its arguments a client puts something else in
// place of, "" for a client that takes both as they are.
func (c Client) expands() string {
	switch c.ID {
	case "claude-code", "cursor", "vscode", "windsurf", "kiro":
		return `\$\{[^}]*\}?`
	case "copilot-cli":
		return `\$\{[^}]*\}?|\$\w+`
	case "gemini-cli":
		return `\$\{[^}]*\}?|\$\w+|%\w+%`
	case "opencode":
		return `\{(env|file):[^}]*\}?`
	}
	return ""
}

// replaced is the first part of a line that the client would replace, "" for none.
func (c Client) replaced(command string, args []string) string {
	if c.expands() == "" {
		return ""
	}
	replaces := regexp.MustCompile(c.expands())
	for _, word := range append([]string{command}, args...) {
		if part := replaces.FindString(word); part != "" {
			return part
		}
	}
	return ""
}

// literal refuses an entry that its client would read as another one: no spelling
// of it is safe from that in every version of a client.
func (c Client) literal(w World, e entry) error {
	part := c.replaced(e.command, e.args)
	if part == "" {
		return nil
	}
	about := w.Project
	if c.replaced("", e.args) == "" {
		about = e.command
	}
	return &fault.Error{
		Code: fault.RequestInvalid, Op: op, Resource: about,
		Rule: c.Name + " puts something else in place of " + Brief(part) + " in an entry, and would start or serve another path",
		Hint: "rename it, or leave the client out: postern init --client ID",
	}
}
