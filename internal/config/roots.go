// SPDX-License-Identifier: Apache-2.0

package config

import (
	"path/filepath"
	"strings"

	"github.com/postern-gate/postern/core/fault"
	"github.com/postern-gate/postern/core/glob"
	"github.com/postern-gate/postern/core/policy"
)

// project is the root that stands for the one folder of the command line. Its
// name is always known to patterns, so that one policy serves any folder.
const project = "project"

// placeRoots makes the roots of the policy files, or else of the command
// line, and what the policy has to know of them.
func (l *loader) placeRoots() error {
	l.namedRoots()
	if err := l.failed(); err != nil {
		return err
	}
	if err := l.givenRoots(); err != nil {
		return err
	}
	if err := l.checkRoots(); err != nil {
		return err
	}
	known := false
	for _, r := range l.out.Roots {
		known = known || r.Name == project
		l.roots = append(l.roots, policy.Root{Name: r.Name, Alias: r.Alias, ReadOnly: r.ReadOnly, Homes: l.homes(r.Path), Pos: r.Pos})
	}
	if !known {
		l.roots = append(l.roots, policy.Root{Name: project})
	}
	return nil
}

func (l *loader) namedRoots() {
	taken := map[string]string{}
	for _, d := range l.docs {
		for _, r := range d.roots {
			for _, name := range []string{r.Name, r.Alias} {
				if first, dup := taken[name]; dup && name != "" {
					d.failAt(r.Pos.Line, r.Pos.Column, "the name "+name+" is already that of "+first)
				}
				taken[name] = "the root at " + r.Pos.String()
			}
			r.Path = l.rootPath(d, r)
			l.out.Roots = append(l.out.Roots, r)
		}
	}
}

func (l *loader) rootPath(d *document, r Root) string {
	switch home := l.Env("HOME"); {
	case r.Path == ".":
		if len(l.Dirs) == 1 {
			return l.abs(l.WorkDir, l.Dirs[0])
		}
		if len(l.Dirs) > 1 {
			d.failAt(r.Pos.Line, r.Pos.Column, "path . is the folder given, and several are: give each its own root")
		}
		return filepath.Clean(l.WorkDir)
	case r.Path[0] == '~' && !filepath.IsAbs(home):
		d.failAt(r.Pos.Line, r.Pos.Column, "path starts with ~, and HOME is not set")
		return ""
	case r.Path[0] == '~':
		return filepath.Join(home, r.Path[1:])
	default:
		return l.abs(filepath.Dir(d.name), filepath.FromSlash(r.Path))
	}
}

// givenRoots turns the folders of the command line into roots, or holds them
// against those that the policy names.
func (l *loader) givenRoots() error {
	named := len(l.out.Roots)
	if named == 0 && len(l.Dirs) == 0 {
		return usage("", "no folder is given and the policy names no roots", "name a folder: postern serve DIR")
	}
	seen := map[string]bool{}
	for _, dir := range l.Dirs {
		r := Root{Name: project, Path: l.abs(l.WorkDir, dir)}
		if named > 0 {
			if !l.named(r.Path) {
				return usage(dir, "the policy names the roots, and this folder is none of them",
					"add it under roots in the policy file, or path: . for the folder given")
			}
			continue
		}
		if len(l.Dirs) > 1 {
			r.Name = filepath.Base(r.Path)
		}
		if !rootName.MatchString(r.Name) || reserved(r.Name) || seen[r.Name] {
			return usage(dir, "the folder's name can't be that of a root (a-z, 0-9, dot, dash, underscore, each once)",
				"name the folders under roots in a policy file")
		}
		seen[r.Name] = true
		l.out.Roots = append(l.out.Roots, r)
	}
	return nil
}

func (l *loader) named(path string) bool {
	for _, r := range l.out.Roots {
		if real(r.Path) == real(path) {
			return true
		}
	}
	return false
}

func usage(resource, because, next string) error {
	return &fault.Error{Code: fault.RequestInvalid, Op: "roots", Resource: resource, Rule: because, Hint: next}
}

// checkRoots refuses the state directory and warns of what is missing or wide.
func (l *loader) checkRoots() error {
	missing := 0
	for i := range l.out.Roots {
		r := &l.out.Roots[i]
		if _, inside := beneath(l.StateDir, r.Path); inside && l.StateDir != "" {
			return usage(r.Path, "the folder belongs to postern's own state", "give another folder")
		}
		if r.Missing = !isDir(r.Path); r.Missing {
			missing++
			l.out.Warnings = append(l.out.Warnings, "root "+r.Name+": there is no folder "+r.Path+" now")
		}
		if r.Path == filepath.Dir(r.Path) {
			l.out.Warnings = append(l.out.Warnings, "root "+r.Name+" is "+r.Path+", the whole file system")
		}
	}
	if missing == len(l.out.Roots) {
		return &fault.Error{
			Code: fault.PathMissing, Op: "roots", Resource: l.out.Roots[0].Path,
			Rule: "there is no such folder, and no other root", Hint: "create it or name another",
		}
	}
	return nil
}

// real is the path without links, or the path itself where it can't be told.
func real(path string) string {
	if p, err := filepath.EvalSymlinks(path); err == nil {
		return p
	}
	return path
}

// beneath returns the slash-separated path of name from dir, by either
// spelling of both; "" is dir itself.
func beneath(dir, name string) (string, bool) {
	for _, pair := range [][2]string{{dir, name}, {real(dir), real(name)}} {
		rel, err := filepath.Rel(pair[0], pair[1])
		rel = filepath.ToSlash(rel)
		switch {
		case err != nil || rel == ".." || strings.HasPrefix(rel, "../"):
		case rel == ".":
			return "", true
		default:
			return rel, true
		}
	}
	return "", false
}

// homes are the patterns of the home folders beneath a root: the person's, and
// where systems keep those of others.
func (l *loader) homes(root string) []string {
	var out []string
	if rel, ok := beneath(root, l.Env("HOME")); ok && rel != "" {
		out = append(out, glob.Literal(rel))
	}
	for _, parent := range []string{"/home", "/Users"} {
		if rel, ok := beneath(root, parent); ok {
			out = append(out, strings.TrimPrefix(rel+"/*", "/"))
		}
	}
	for _, home := range []string{"/root", "/var/root"} {
		if rel, ok := beneath(root, home); ok && rel != "" {
			out = append(out, rel)
		}
	}
	return out
}

// protected are the places of our own files that lie beneath a root.
func (l *loader) protected() []policy.Protected {
	places := map[string]string{l.StateDir: "postern-state", l.Binary: "postern"}
	for _, s := range l.out.sources {
		places[s.path] = "postern"
	}
	delete(places, "")
	var out []policy.Protected
	for _, r := range l.out.Roots {
		for place, entry := range places {
			if rel, ok := beneath(r.Path, place); ok {
				out = append(out, policy.Protected{Root: r.Name, Path: rel, Entry: entry})
			}
		}
	}
	return out
}
