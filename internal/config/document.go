// SPDX-License-Identifier: Apache-2.0

package config

import (
	"path"
	"slices"
	"strings"

	"github.com/postern-gate/postern/core"
	"github.com/postern-gate/postern/core/policy"
	"go.yaml.in/yaml/v4"
)

// document is one policy file, read and checked as far as it can be without
// knowing the roots; later has the checks that need them.
type document struct {
	decoder
	layer    policy.Layer
	roots    []Root
	lift     []string
	settings []func(*merge)
	examples []example
	tried    []Tried
	stated   []Example // what of them is tried
	later    []func(roots []policy.Root)
	idle     []string // keys that it states and nothing heeds yet
	written  int      // bytes of its patterns
}

// Root is a folder that requests may be about.
type Root struct {
	Name string
	// Path is absolute; links in it are not resolved.
	Path     string
	ReadOnly bool
	Alias    string   // a second scheme, "" for none
	Mounts   []string // mount points beneath that may be entered
	// DenyHardlinks refuses to read a file that has more than one name.
	DenyHardlinks bool
	// Missing: there is no such folder now.
	Missing bool
	Pos     core.Position // zero when it comes from the command line
}

// read parses a file. Problems are in the document.
func read(name string, src []byte, project bool) *document {
	f := &document{decoder: decoder{name: name, src: src, project: project}}
	f.layer.Tighten = project
	if n := f.document(); n != nil {
		f.top(n)
	}
	return f
}

// thePolicy is what the top of a file is in its problems.
const thePolicy = "the policy"

func (f *document) top(n *yaml.Node) {
	version := false
	known := f.topFields()
	known["version"] = func(n *yaml.Node) {
		version = true
		if n.Kind != yaml.ScalarNode || n.Value != "1" || n.ShortTag() != "!!int" {
			f.fail(n, "version must be 1, the only one there is")
		}
	}
	if f.project {
		for _, key := range []string{"roots", "allow_sensitive", "ask", "undo", "egress"} {
			known[key] = func(n *yaml.Node) {
				f.fail(n, "%s: a project's policy can only tighten; set it in your own policy", key)
			}
		}
	}
	f.object(n, thePolicy, known)
	if !version {
		f.fail(n, "version is missing: write version: 1")
	}
}

func (f *document) topFields() fields {
	return fields{
		"roots": f.rootMap,
		"deny":  func(n *yaml.Node) { f.layer.Deny = f.patterns(n, "deny", core.Deny) },
		"allow": func(n *yaml.Node) {
			f.layer.AllowPos = f.pos(n)
			f.layer.Allow = f.patterns(n, "allow", core.Allow)
		},
		"agents": f.agents,
		"rules":  func(n *yaml.Node) { f.layer.Rules = f.rules(n, "rules") },
		"default": func(n *yaml.Node) {
			if d, ok := f.decision(n, "default"); ok {
				f.layer.Default = &policy.Outcome{Decision: d, Pos: f.pos(n)}
			}
		},
		"require":         f.require,
		"allow_sensitive": f.sensitive,
		"envelope":        f.envelope,
		"tools":           f.tools,
		"audit":           f.audit,
		"ask":             f.ask,
		"undo":            f.undo,
		"limits":          f.limits,
		"egress":          f.unheeded("egress", f.egress),
		"screen":          f.unheeded("screen", f.screening),
		"examples":        f.exampleList,
	}
}

// unheeded is a field that this release reads and checks, but does not heed: a
// person who states it is told so.
func (f *document) unheeded(key string, read func(*yaml.Node)) func(*yaml.Node) {
	return func(n *yaml.Node) {
		if !slices.Contains(f.idle, key) {
			f.idle = append(f.idle, key)
		}
		read(n)
	}
}

// rootName reports whether a root may be called that.
func rootName(s string) bool {
	return s != "" && len(s) <= 64 && strings.Trim(s, smallLetters+decimals+"._-") == ""
}

// aliasName reports whether a root may have that scheme.
func aliasName(s string) bool {
	return s != "" && len(s) <= 64 && strings.Contains(smallLetters, s[:1]) && strings.Trim(s, smallLetters+decimals+"+.-") == ""
}

const (
	smallLetters = "abcdefghijklmnopqrstuvwxyz"
	decimals     = "0123456789"
)

func reserved(scheme string) bool {
	switch scheme {
	case "file", "http", "https", ".", "..":
		return true
	}
	return false
}

func (f *document) rootMap(n *yaml.Node) {
	f.each(n, "roots", func(key, value *yaml.Node) {
		if !rootName(key.Value) || reserved(key.Value) {
			f.fail(key, "a root's name has only a-z, 0-9, dot, dash and underscore, and is no scheme such as file")
			return
		}
		r := Root{Name: key.Value, Pos: f.pos(key)}
		f.object(value, "the root "+key.Value, f.rootFields(&r))
		if r.Path == "" {
			f.fail(key, "the root %s has no path", key.Value)
			return
		}
		f.roots = append(f.roots, r)
	})
}

func (f *document) rootFields(r *Root) fields {
	return fields{
		"path": func(n *yaml.Node) {
			if s, ok := f.text(n, "path"); ok {
				if s == "" || strings.ContainsRune(s, 0) || strings.HasPrefix(s, "~") && s != "~" && !strings.HasPrefix(s, "~/") {
					f.fail(n, "path must be a folder: absolute, relative, or from ~/")
					s = "." // said once is enough
				}
				r.Path = s
			}
		},
		"access": func(n *yaml.Node) {
			v, ok := f.oneOf(n, "access", "read", "write")
			r.ReadOnly = ok && v == "read"
		},
		"alias": func(n *yaml.Node) {
			s, ok := f.text(n, "alias")
			if ok && (!aliasName(s) || reserved(s)) {
				f.fail(n, "an alias is a scheme of its own: a letter, then a-z, 0-9, plus, dot, dash")
			}
			r.Alias = s
		},
		"mounts": func(n *yaml.Node) {
			f.list(n, "mounts", func(n *yaml.Node) {
				s, ok := f.text(n, "a mount point")
				if ok && (s == "" || s == "." || path.Clean("/"+s) != "/"+s) {
					f.fail(n, "a mount point is a plain path beneath the root")
				}
				r.Mounts = append(r.Mounts, s)
			})
		},
		"hardlinks": func(n *yaml.Node) {
			v, _ := f.oneOf(n, "hardlinks", "allow", "deny")
			r.DenyHardlinks = v == "deny"
		},
	}
}

func (f *document) require(n *yaml.Node) {
	actions := func(what string, at *[]core.Action) func(*yaml.Node) {
		return func(n *yaml.Node) {
			*at = []core.Action{}
			f.list(n, what, func(n *yaml.Node) {
				if a, ok := f.action(n); ok {
					*at = append(*at, a)
				}
			})
		}
	}
	f.object(n, "require", fields{
		"ifMatch": actions("require.ifMatch", &f.layer.IfMatch),
		"confirm": actions("require.confirm", &f.layer.Confirm),
	})
}

func (f *document) sensitive(n *yaml.Node) {
	f.lift = []string{}
	f.list(n, "allow_sensitive", func(n *yaml.Node) {
		if name, ok := f.oneOf(n, "a built-in entry to lift", policy.Entries()...); ok {
			f.lift = append(f.lift, name)
		}
	})
}
