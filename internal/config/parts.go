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
}

// Parts returns a copy of the parts that may be changed.
func (c *Config) Parts() Parts {
	p := Parts{c.parts.Config, slices.Clone(c.parts.Files), slices.Clone(c.parts.Lifting)}
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
