// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"strings"

	"github.com/postern-gate/postern/core"
	"github.com/postern-gate/postern/core/fault"
	"github.com/postern-gate/postern/core/glob"
)

// kind is what the name of a resource is.
type kind uint8

const (
	kindFile kind = iota
	kindTool
	kindProgram
	kindHost
)

func kindOf(a core.Action) kind {
	switch a {
	case core.ToolCall:
		return kindTool
	case core.ProcExec:
		return kindProgram
	case core.NetFetch, core.NetConnect:
		return kindHost
	default: // a list of patterns (no action) has the syntax of files
		return kindFile
	}
}

// Check reports what is wrong with a pattern that decides d about action, or
// that stands in a deny or allow list (ActionUnknown), for the given roots.
// The error is a fault.ConfigInvalid whose Rule says it.
func Check(action core.Action, d core.Decision, text string, roots []Root) error {
	_, _, err := compilePattern(kindOf(action), d, text, roots)
	return err
}

// compilePattern returns the pattern and the root that its scheme names.
func compilePattern(k kind, d core.Decision, text string, roots []Root) (string, glob.Pattern, error) {
	root, path, msg := splitScheme(k, text, roots)
	if msg == "" {
		path, msg = shape(k, d, path)
	}
	if msg != "" {
		return "", glob.Pattern{}, &fault.Error{Code: fault.ConfigInvalid, Op: "pattern", Resource: text, Rule: msg}
	}
	compile := glob.CompileFolded
	if d == core.Allow {
		compile = glob.Compile
	}
	p, err := compile(path)
	return root, p, err
}

func splitScheme(k kind, text string, roots []Root) (root, path, msg string) {
	scheme, rest, ok := strings.Cut(text, "://")
	if !ok {
		return "", text, ""
	}
	if k != kindFile {
		return "", "", "only a pattern for files has a scheme"
	}
	for _, r := range roots {
		if scheme == r.Name || scheme == r.Alias && scheme != "" {
			if rest == "" {
				return "", "", "the pattern is empty: write " + scheme + "://** for the whole root"
			}
			return r.Name, rest, ""
		}
	}
	return "", "", "no root is called " + scheme
}

// shape refuses patterns that can't match any name of their kind, since a
// deny that never matches is a hole, and spells out the short forms.
func shape(k kind, d core.Decision, path string) (string, string) {
	slash := strings.Contains(path, "/")
	switch {
	case k == kindProgram:
		return shapeProgram(d, path, slash)
	case k == kindFile && strings.HasPrefix(path, "/"):
		return "", "patterns are anchored at the root: write it without the leading slash"
	case k == kindHost && slash:
		return "", "a host has no slash: write the host alone, as *.example.org"
	case k == kindTool && d == core.Allow && !slash && path != "**":
		return "", "a tool is named server/tool: write server/* for all of its tools"
	}
	return path, ""
}

// shapeProgram: a base name holds wherever the program lies, and not for what
// lies in a folder of that name.
func shapeProgram(d core.Decision, path string, slash bool) (string, string) {
	anywhere := path == "**" || strings.HasPrefix(path, "**/")
	switch {
	case !slash && !anywhere:
		return "**/" + path, ""
	case !anywhere && path[0] != '/' && !strings.HasPrefix(path[1:], ":/"):
		return "", "a program is named by its base name or its absolute path"
	case d != core.Allow && !strings.HasSuffix(path, "**"):
		return path + "/**", ""
	}
	return path, ""
}
