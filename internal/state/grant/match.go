// SPDX-License-Identifier: Apache-2.0

package grant

import (
	"slices"
	"strings"

	"github.com/postern-gate/postern/core/glob"
	"github.com/postern-gate/postern/internal/spell"
)

// covers reports whether the yes is for a call with this binding, whose prints
// are p.
func (g *Grant) covers(b *Binding, p *prints) bool {
	switch g.Kind {
	case Once:
		return g.prints().exact == p.exact
	case Session:
		return !b.Destructive() && g.prints().sameCall == p.sameCall
	case Until:
		return !b.Destructive() && b.Agent != "" && g.prints().anySession == p.anySession
	case Pattern:
		return g.For.Asker == b.Asker && g.matches(b)
	case Always:
		return b.Agent != "" && g.For.ofAgent() == b.ofAgent() && g.matches(b)
	case No:
	}
	return false
}

// matches reports whether a pattern covers every name of the call and every
// operation that is asked about. The server and the policy are those of the
// question.
func (g *Grant) matches(b *Binding) bool {
	if b.Destructive() || b.Private || b.More > 0 || g.For.Server != b.Server || g.For.Policy != b.Policy || !g.within(b) {
		return false
	}
	for _, o := range b.Operations {
		if !g.allows(o.Action) || !g.names(o.Resource) {
			return false
		}
	}
	for _, o := range b.Objects {
		if !g.names(o.Name) {
			return false
		}
	}
	return len(b.Operations) > 0
}

// within reports whether every folder of the call is one that was asked about, with
// the same mount points: which may be entered is no part of the policy's version.
func (g *Grant) within(b *Binding) bool {
	for _, r := range b.Roots {
		if !slices.Contains(g.For.Roots, r) || !slices.Equal(g.For.Mounts[r.Name], b.Mounts[r.Name]) {
			return false
		}
	}
	return len(b.Roots) > 0 || len(g.For.Roots) == 0
}

func (g *Grant) allows(action string) bool {
	for _, o := range g.For.Operations {
		if o.Action == action {
			return true
		}
	}
	return false
}

// Reaches reports whether a yes to a look at a folder is one for this name beneath
// it too: of a pattern only where it names it.
func (g *Grant) Reaches(resource string) bool { return !g.Kind.patterned() || g.names(resource) }

func (g *Grant) names(resource string) bool {
	root, text, ok := strings.Cut(g.Pattern, "://")
	of, name, named := strings.Cut(resource, "://")
	if !ok || !named || of != root {
		return false
	}
	p, err := glob.Compile(text)
	return err == nil && p.Match(name)
}

// AroundOf proposes the pattern for a question: the folder of its first
// object, and all beneath it. It is "" where there is none.
func AroundOf(b *Binding) string {
	if len(b.Objects) == 0 {
		return ""
	}
	root, name, ok := strings.Cut(b.Objects[0].Name, "://")
	if !ok {
		return ""
	}
	dir := ""
	if i := strings.LastIndexByte(name, '/'); i > 0 {
		dir = glob.Literal(name[:i]) + "/"
	}
	return root + "://" + dir + "**"
}

// Anywhere reports whether a pattern names no folder to begin with, so that it may
// reach all of its root.
func Anywhere(pattern string) bool {
	_, text, _ := strings.Cut(pattern, "://")
	text = strings.TrimLeft(text, "/")
	return text != "" && strings.ContainsRune("*?[", rune(text[0]))
}

// patternRule is what is wrong with a pattern, "" if nothing is.
func (g *Grant) patternRule() string {
	root, text, ok := strings.Cut(g.Pattern, "://")
	if !ok || root == "" {
		return "a pattern begins with its root, as project://src/**"
	}
	if _, err := glob.Compile(text); err != nil {
		return "the pattern is not valid: " + err.Error()
	}
	if g.matches(&g.For) {
		return ""
	}
	rule := "the pattern does not cover what is asked"
	for _, o := range g.For.Objects { // a link's name may be covered, and not where it leads
		if !g.names(o.Name) {
			return rule + ": not " + spell.Name(o.Name)
		}
	}
	return rule
}
