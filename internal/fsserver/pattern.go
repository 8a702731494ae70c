// SPDX-License-Identifier: Apache-2.0

package fsserver

import (
	"regexp"
	"slices"
	"strings"

	"github.com/postern-gate/postern/core/fault"
)

// Limits of a pattern. Braces multiply, so what all of one call become is
// bounded too.
const (
	maxPattern  = 1024 // bytes
	maxExpanded = 1000 // alternatives
	// maxExpressions bounds the length of all expressions that are compiled: a
	// byte of one may stand for hundreds in memory.
	maxExpressions = 16 << 10
)

// pattern is what search_files and the excludes match against a path relative
// to where the search began: the language of the reference server's glob
// library with dot files matched like any other. Its negated groups !(…) are
// refused, since the matcher is linear and they are not.
type pattern struct {
	alternatives [][]segment
	negated      bool
	part         string // instead: in the name, small letters or not
}

// segment matches one component of a path, or any number of them.
type segment struct {
	any     bool   // **
	never   bool   // an empty component, which no path has
	literal string // exactly this, if wild and re are unset
	wild    bool   // literal holds * and ? as wildcards and no escape
	re      *regexp.Regexp
}

// compiler compiles the patterns of one call, each expression once.
type compiler struct {
	expressions map[string]*regexp.Regexp
	length      int
}

func newCompiler() *compiler { return &compiler{expressions: map[string]*regexp.Regexp{}} }

// wanted is what a search for names looks for: a pattern, or a part of a name.
func (c *compiler) wanted(s string, part bool) (pattern, error) {
	switch {
	case !part:
		return c.search(s)
	case s == "" || len(s) > maxPattern || strings.Contains(s, "/"):
		return pattern{}, badPattern("is no part of a name: it is empty, too long or holds a slash")
	}
	return pattern{part: strings.ToLower(s)}, nil
}

// files is what a search in contents looks into: without a slash it is about
// the name at any depth.
func (c *compiler) files(s string) (pattern, error) {
	p, err := c.pattern(s, maxExpanded)
	if err == nil && !strings.Contains(s, "/") {
		for i, alternative := range p.alternatives {
			p.alternatives[i] = append([]segment{{any: true}}, alternative...)
		}
	}
	return p, err
}

// search is what a search looks for. A plain word names an entry at any depth.
func (c *compiler) search(s string) (pattern, error) {
	if !strings.Contains(s, "/") && !magic(s) {
		return pattern{alternatives: [][]segment{{{any: true}, {literal: s}}}}, nil
	}
	return c.pattern(s, maxExpanded)
}

// exclude is one rule for all tools: what has no star excludes at any
// depth, what has one is anchored where the search began. Beneath an excluded
// directory nothing is looked at.
func (c *compiler) exclude(list []string) ([]pattern, error) {
	patterns := make([]pattern, 0, len(list))
	left := maxExpanded
	for _, s := range list {
		p, err := c.pattern(s, left)
		if err != nil {
			return nil, err
		}
		left -= len(p.alternatives)
		if !strings.Contains(s, "*") && !p.negated {
			for _, alternative := range slices.Clone(p.alternatives) {
				p.alternatives = append(p.alternatives, append([]segment{{any: true}}, alternative...))
			}
		}
		patterns = append(patterns, p)
	}
	return patterns, nil
}

func matchesAny(patterns []pattern, path string) bool {
	return slices.ContainsFunc(patterns, func(p pattern) bool { return p.match(path) })
}

// magic reports whether s holds anything but the letters of a name.
func magic(s string) bool {
	return strings.ContainsAny(s, `*?[{\`) || strings.HasPrefix(s, "!") ||
		strings.Contains(s, "+(") || strings.Contains(s, "@(") || strings.Contains(s, "!(")
}

// pattern compiles a pattern that stands for at most that many.
func (c *compiler) pattern(s string, most int) (pattern, error) {
	var p pattern
	if len(s) > maxPattern {
		return p, badPattern("is longer than 1024 bytes")
	}
	for strings.HasPrefix(s, "!") {
		p.negated, s = !p.negated, s[1:]
	}
	expanded, ok := expandBraces(s, most)
	if !ok || len(expanded) > most {
		return p, badPattern("has braces that stand for more than 1000 patterns in all")
	}
	for _, one := range expanded {
		segments, err := c.segments(one)
		if err != nil {
			return p, err
		}
		p.alternatives = append(p.alternatives, segments)
	}
	return p, nil
}

func badPattern(what string) error {
	return &fault.Error{Code: fault.RequestInvalid, Rule: "the pattern " + what, Hint: "use *, **, ?, [a-z] and {a,b}"}
}

func (c *compiler) segments(s string) ([]segment, error) {
	var segments []segment
	parts := strings.Split(s, "/")
	for i, part := range parts {
		if part == "" && i > 0 && i < len(parts)-1 {
			continue // a//b is a/b
		}
		last := len(segments) - 1
		if part == ".." && last >= 0 && ordinary(segments[last]) {
			segments = segments[:last]
			continue
		}
		if part == "**" && last >= 0 && segments[last].any {
			continue
		}
		seg, err := c.segment(part)
		if err != nil {
			return nil, err
		}
		segments = append(segments, seg)
	}
	return segments, nil
}

// ordinary reports whether a following ".." takes the segment back.
func ordinary(s segment) bool {
	return !s.any && !s.never && s.literal != "." && s.literal != ".."
}

func (c *compiler) segment(s string) (segment, error) {
	switch {
	case s == "":
		return segment{never: true}, nil
	case s == "**":
		return segment{any: true}, nil
	case !magic(s):
		return segment{literal: s}, nil
	case !strings.ContainsAny(s, `[\(`):
		return segment{literal: s, wild: true}, nil
	}
	t := translator{s: s}
	t.out.WriteString(`(?s)\A`)
	t.sequence(false)
	t.out.WriteString(`\z`)
	if t.refused {
		return segment{}, badPattern("holds a negated group !(…), which is not supported")
	}
	re, err := c.compile(t.out.String())
	return segment{re: re}, err
}

func (c *compiler) compile(expression string) (*regexp.Regexp, error) {
	if re := c.expressions[expression]; re != nil {
		return re, nil
	}
	if c.length += len(expression); c.length > maxExpressions {
		return nil, badPattern("holds too many sets and groups")
	}
	re, err := regexp.Compile(expression)
	if err != nil {
		return nil, badPattern("nests its groups too deep")
	}
	c.expressions[expression] = re
	return re, nil
}

// match reports whether the pattern names the path, which is relative and
// clean. Time is linear in the path for each segment of the pattern.
func (p pattern) match(path string) bool {
	if p.part != "" {
		return strings.Contains(strings.ToLower(path[strings.LastIndexByte(path, '/')+1:]), p.part)
	}
	found := slices.ContainsFunc(p.alternatives, func(segments []segment) bool { return matchSegments(segments, path) })
	return found != p.negated
}

// matchSegments goes back to the last ** only: an earlier one could take no
// more than that one can.
func matchSegments(segments []segment, path string) bool {
	back, backPath := -1, ""
	i := 0
	for path != "" {
		part, rest, _ := strings.Cut(path, "/")
		switch {
		case i < len(segments) && segments[i].any:
			if i == len(segments)-1 {
				return true // a final ** takes one component or more
			}
			back, backPath = i, path
			i++
		case i < len(segments) && segments[i].match(part):
			i++
			path = rest
		case back >= 0:
			_, backPath, _ = strings.Cut(backPath, "/")
			i, path = back+1, backPath
		default:
			return false
		}
	}
	return i == len(segments)
}

func (s *segment) match(part string) bool {
	switch {
	case s.never:
		return false
	case s.re != nil:
		return s.re.MatchString(part)
	case s.wild:
		return wildcard(s.literal, part)
	default:
		return s.literal == part
	}
}

// wildcard matches * and ? against one component; a lone star takes at least
// one character, and no component has none.
func wildcard(pattern, s string) bool {
	star, starred := -1, 0
	i, j := 0, 0
	for j < len(s) {
		switch {
		case i < len(pattern) && pattern[i] == '*':
			star, starred = i, j
			i++
		case i < len(pattern) && pattern[i] == '?':
			i++
			j += runeLen(s[j:])
		case i < len(pattern) && pattern[i] == s[j]:
			i++
			j++
		case star >= 0:
			starred++
			i, j = star+1, starred
		default:
			return false
		}
	}
	return strings.Trim(pattern[i:], "*") == ""
}
