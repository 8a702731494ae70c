// SPDX-License-Identifier: Apache-2.0

package config

import (
	"maps"
	"slices"

	"github.com/postern-gate/postern/core"
	"github.com/postern-gate/postern/core/policy"
)

// Parts are what a policy was compiled from: for asking what it would decide
// with another rule.
type Parts struct {
	policy.Config
	// Files are the files of the layers, in their order.
	Files []string
	// Lifting are those that have allow_sensitive.
	Lifting []string
	// Lifts is how many entries are lifted by each file and those before it.
	Lifts []int
	// Examples are what the files say that they decide, file by file. Each is about
	// the layers up to its own.
	Examples []Example
}

// Example is a decision that a policy says it makes. One that is about several
// resources is there for each.
type Example struct {
	Pos     core.Position
	Request core.Request
	Want    core.Decision
}

// Parts returns a copy of the parts that may be changed.
func (c *Config) Parts() Parts {
	p := c.parts
	p.Files, p.Lifting, p.Lifts = slices.Clone(p.Files), slices.Clone(p.Lifting), slices.Clone(p.Lifts)
	p.Roots, p.Lift = slices.Clone(p.Roots), slices.Clone(p.Lift)
	p.Layers = slices.Clone(p.Layers)
	for i := range p.Layers {
		l := &p.Layers[i]
		l.Deny, l.Allow = slices.Clone(l.Deny), slices.Clone(l.Allow)
		l.Rules = copied(l.Rules)
		l.Agents = maps.Clone(l.Agents)
		for name, rules := range l.Agents {
			l.Agents[name] = copied(rules)
		}
	}
	return p
}

func copied(rules map[core.Action]policy.Rules) map[core.Action]policy.Rules {
	out := maps.Clone(rules)
	for a, r := range out {
		r.Matches, r.Class = slices.Clone(r.Matches), maps.Clone(r.Class)
		out[a] = r
	}
	return out
}
