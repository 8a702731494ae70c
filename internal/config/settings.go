// SPDX-License-Identifier: Apache-2.0

package config

import (
	"slices"
	"time"

	"github.com/postern-gate/postern/internal/safety"
	"go.yaml.in/yaml/v4"
)

// Settings is every key of a policy file that is not about decisions.
type Settings struct {
	Envelope bool
	ToolsOff []string
	Audit    Audit
	Ask      Ask
	Undo     Undo
	Limits   Limits
	Egress   Egress
	Screen   Screen
}

// Audit is how the log is kept.
type Audit struct {
	DenyReads   bool          // when the log can't be written
	PlainPaths  bool          // else every path is a class and a MAC
	SegmentSize int64         // bytes at which a segment ends
	Keep        time.Duration // age at which a segment is removed, 0 for never
}

// minSegment is the smallest size of a segment: each costs a file, and a head
// with the tree so far.
const minSegment = 64 << 10

// Ask bounds an approval: how long a call waits, and how long it may be given.
type Ask struct{ Wait, Deadline time.Duration }

// Undo bounds the before-images, in bytes.
type Undo struct {
	MaxEntries     int
	PerFile, Total int64
	Keep           time.Duration
}

// Limits bounds one call: bytes of an answer and of a file read as a whole,
// entries of a walk, time.
type Limits struct {
	Answer, WholeRead int64
	WalkEntries       int
	Call              time.Duration
}

// Egress is what the network may be used for.
type Egress struct {
	Ports []uint16
	Proxy string
}

// Screen is how tools and results are looked through.
type Screen struct {
	Strict         bool
	DenyResults    bool // else they are marked
	MaxDescription int
}

func defaults() Settings {
	const day = 24 * time.Hour
	return Settings{
		Envelope: true,
		Audit:    Audit{PlainPaths: true, SegmentSize: 64 << 20, Keep: 90 * day},
		Ask:      Ask{Wait: 45 * time.Second, Deadline: 15 * time.Minute},
		Undo:     Undo{MaxEntries: 1000, PerFile: 64 << 20, Total: 1 << 30, Keep: 14 * day},
		Limits:   Limits{Answer: 10 << 20, WholeRead: 1 << 20, WalkEntries: 200_000, Call: time.Minute},
		Egress:   Egress{Ports: []uint16{80, 443, 8080, 8443}},
		Screen:   Screen{MaxDescription: 4000},
	}
}

// merge is the settings while files are read, and which a file has stated: a
// later file then can't loosen those that guard.
type merge struct {
	Settings
	stated map[string]bool
}

// guard sets a switch whose strict value wins over the other.
func (m *merge) guard(key string, at *bool, v, strict bool) {
	if m.stated[key] && *at == strict {
		return
	}
	m.stated[key], *at = true, v
}

// lower sets a bound; of two that files state, and of a project's and the
// default, the lower one holds.
func lower[T int | int64 | time.Duration](m *merge, key string, at *T, v T, project bool) {
	if m.stated[key] || project {
		v = min(*at, v)
	}
	m.stated[key], *at = true, v
}

func (f *document) set(apply func(*merge)) { f.settings = append(f.settings, apply) }

// put sets a value where the later file wins.
func put[T any](f *document, v T, ok bool, at func(*Settings) *T) {
	if ok {
		f.set(func(m *merge) { *at(&m.Settings) = v })
	}
}

func bound[T int | int64 | time.Duration](f *document, key string, v T, ok bool, at func(*Settings) *T) {
	if ok {
		f.set(func(m *merge) { lower(m, key, at(&m.Settings), v, f.project) })
	}
}

func (f *document) guard(key string, v, ok, strict bool, at func(*Settings) *bool, n *yaml.Node) {
	if ok && f.project && v != strict {
		f.fail(n, "%s: a project's policy can only tighten", key)
		return
	}
	if ok {
		f.set(func(m *merge) { m.guard(key, at(&m.Settings), v, strict) })
	}
}

func (f *document) envelope(n *yaml.Node) {
	v, ok := f.oneOf(n, "envelope", "on", "off")
	f.guard("envelope", v == "on", ok, true, func(s *Settings) *bool { return &s.Envelope }, n)
}

func (f *document) tools(n *yaml.Node) {
	f.object(n, "tools", fields{"off": func(n *yaml.Node) {
		f.list(n, "tools.off", func(n *yaml.Node) {
			name, ok := f.text(n, "a tool's name")
			if _, ours := safety.OfTool(name); ok && !ours {
				f.fail(n, "no tool is called %q; %s", name, orKnown(name, safety.Tools()))
				return
			}
			if ok {
				f.set(func(m *merge) { m.ToolsOff = append(m.ToolsOff, name) })
			}
		})
	}})
}

func (f *document) audit(n *yaml.Node) {
	f.object(n, "audit", f.narrow("audit", fields{
		"reads": func(n *yaml.Node) {
			v, ok := f.oneOf(n, "audit.reads", "allow", "deny")
			f.guard("audit.reads", v == "deny", ok, true, func(s *Settings) *bool { return &s.Audit.DenyReads }, n)
		},
		"paths": func(n *yaml.Node) {
			v, ok := f.oneOf(n, "audit.paths", "plain", "hashed")
			put(f, v == "plain", ok, func(s *Settings) *bool { return &s.Audit.PlainPaths })
		},
		"segment": func(n *yaml.Node) {
			v, ok := f.size(n, "audit.segment")
			if ok && v < minSegment {
				f.fail(n, "audit.segment must be 64KiB at least")
				return
			}
			put(f, v, ok, func(s *Settings) *int64 { return &s.Audit.SegmentSize })
		},
		"keep": func(n *yaml.Node) {
			if n.Kind == yaml.ScalarNode && n.Value == "forever" {
				put(f, 0, true, func(s *Settings) *time.Duration { return &s.Audit.Keep })
				return
			}
			v, ok := f.quantity(n, "audit.keep", "forever, or a duration, as 90d (units ms, s, m, h, d)", durations())
			put(f, time.Duration(v), ok, func(s *Settings) *time.Duration { return &s.Audit.Keep })
		},
	}, "reads"))
}

func (f *document) ask(n *yaml.Node) {
	f.object(n, "ask", fields{
		"wait": func(n *yaml.Node) {
			v, ok := f.duration(n, "ask.wait")
			put(f, v, ok, func(s *Settings) *time.Duration { return &s.Ask.Wait })
		},
		"deadline": func(n *yaml.Node) {
			v, ok := f.duration(n, "ask.deadline")
			put(f, v, ok, func(s *Settings) *time.Duration { return &s.Ask.Deadline })
		},
	})
}

func (f *document) undo(n *yaml.Node) {
	f.object(n, "undo", fields{
		"max_entries": func(n *yaml.Node) {
			v, ok := f.number(n, "undo.max_entries", 1<<30)
			put(f, int(v), ok, func(s *Settings) *int { return &s.Undo.MaxEntries })
		},
		"per_file": func(n *yaml.Node) {
			v, ok := f.size(n, "undo.per_file")
			put(f, v, ok, func(s *Settings) *int64 { return &s.Undo.PerFile })
		},
		"total": func(n *yaml.Node) {
			v, ok := f.size(n, "undo.total")
			put(f, v, ok, func(s *Settings) *int64 { return &s.Undo.Total })
		},
		"keep": func(n *yaml.Node) {
			v, ok := f.duration(n, "undo.keep")
			put(f, v, ok, func(s *Settings) *time.Duration { return &s.Undo.Keep })
		},
	})
}

func (f *document) limits(n *yaml.Node) {
	f.object(n, "limits", fields{
		"answer": func(n *yaml.Node) {
			v, ok := f.size(n, "limits.answer")
			bound(f, "answer", v, ok, func(s *Settings) *int64 { return &s.Limits.Answer })
		},
		"whole_read": func(n *yaml.Node) {
			v, ok := f.size(n, "limits.whole_read")
			bound(f, "whole_read", v, ok, func(s *Settings) *int64 { return &s.Limits.WholeRead })
		},
		"walk_entries": func(n *yaml.Node) {
			v, ok := f.number(n, "limits.walk_entries", 1<<30)
			bound(f, "walk_entries", int(v), ok, func(s *Settings) *int { return &s.Limits.WalkEntries })
		},
		"call": func(n *yaml.Node) {
			v, ok := f.duration(n, "limits.call")
			bound(f, "call", v, ok, func(s *Settings) *time.Duration { return &s.Limits.Call })
		},
	})
}

func (f *document) egress(n *yaml.Node) {
	f.object(n, "egress", fields{
		"ports": func(n *yaml.Node) {
			ports := []uint16{}
			f.list(n, "egress.ports", func(n *yaml.Node) {
				if v, ok := f.number(n, "a port", 65535); ok {
					ports = append(ports, uint16(v))
				}
			})
			f.set(func(m *merge) {
				if m.stated["ports"] {
					ports = slices.DeleteFunc(ports, func(p uint16) bool { return !slices.Contains(m.Egress.Ports, p) })
				}
				m.stated["ports"], m.Egress.Ports = true, ports
			})
		},
		"proxy": func(n *yaml.Node) {
			v, ok := f.text(n, "egress.proxy")
			put(f, v, ok, func(s *Settings) *string { return &s.Egress.Proxy })
		},
	})
}

func (f *document) screening(n *yaml.Node) {
	f.object(n, "screen", f.narrow("screen", fields{
		"strict": func(n *yaml.Node) {
			v, ok := f.boolean(n, "screen.strict")
			f.guard("screen.strict", v, ok, true, func(s *Settings) *bool { return &s.Screen.Strict }, n)
		},
		"results": func(n *yaml.Node) {
			v, ok := f.oneOf(n, "screen.results", "mark", "deny")
			put(f, v == "deny", ok, func(s *Settings) *bool { return &s.Screen.DenyResults })
		},
		"max_description": func(n *yaml.Node) {
			v, ok := f.number(n, "screen.max_description", 1<<20)
			put(f, int(v), ok, func(s *Settings) *int { return &s.Screen.MaxDescription })
		},
	}, "strict"))
}

// narrow replaces, in a project's file, every field but the given ones by an
// error: those don't tighten anything.
func (f *document) narrow(what string, all fields, open ...string) fields {
	if !f.project {
		return all
	}
	for key := range all {
		if !slices.Contains(open, key) {
			all[key] = func(n *yaml.Node) {
				f.fail(n, "%s.%s: a project's policy can only tighten; set it in your own policy", what, key)
			}
		}
	}
	return all
}
