// SPDX-License-Identifier: Apache-2.0

package config

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/postern-gate/postern/core/fault"
	"github.com/postern-gate/postern/core/glob"
	"github.com/postern-gate/postern/core/pathguard"
	"github.com/postern-gate/postern/core/policy"
)

// project is the name of the root that is the one folder of the command line.
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
	for _, r := range l.out.Roots {
		l.roots = append(l.roots, policy.Root{Name: r.Name, Alias: r.Alias, ReadOnly: r.ReadOnly, Homes: l.homes(r.Path), Pos: r.Pos})
	}
	return nil
}

// Open opens the folder as the root that it is here. The state directory is
// neither it nor above it.
func (r Root) Open(stateDir string) (*pathguard.Root, error) {
	return pathguard.OpenRoot(r.Path, pathguard.Options{
		Name: r.Name, Alias: r.Alias, Mounts: r.Mounts, DenyHardlinks: r.DenyHardlinks, Forbidden: []string{stateDir},
	})
}

// names lists the roots for a person.
func names(roots []policy.Root) string {
	var out []string
	for _, r := range roots {
		out = append(out, r.Name+"://")
	}
	return strings.Join(out, ", ")
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
	taken := map[string]string{}
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
		if err := l.nameable(dir, r, taken); err != nil {
			return err
		}
		taken[r.Name] = r.Path
		l.out.Roots = append(l.out.Roots, r)
	}
	return nil
}

// nameable says why a folder of the command line can't be a root under its own
// name, beside those before it.
func (l *loader) nameable(dir string, r Root, taken map[string]string) error {
	for _, first := range taken {
		if real(first) == real(r.Path) {
			return usage(dir, "the folder is given twice", "give it once")
		}
	}
	var because string
	switch first, dup := taken[r.Name]; {
	case dup:
		because = "of several folders each is a root under its own name, and " + first + " has the same"
	case reserved(r.Name):
		because = "of several folders each is a root under its own name, and a root can't be called " + r.Name
	case !rootName(r.Name):
		because = "of several folders each is a root under its own name, and a root's has only a-z, 0-9, dot, dash and underscore, 64 at most"
	default:
		return nil
	}
	return usage(dir, because, "paste into a policy file (a new one starts with version: 1): "+l.snippet())
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

// checkRoots refuses what is no folder that may be served, and warns of what
// is missing or wide.
func (l *loader) checkRoots() error {
	missing := 0
	for i := range l.out.Roots {
		r := &l.out.Roots[i]
		if because, next := l.unfit(r); because != "" {
			l.refuse(*r, because, next)
			continue
		}
		if r.Missing {
			missing++
			l.out.Warnings = append(l.out.Warnings, "root "+r.Name+": there is no folder "+r.Path+" now")
		}
		if r.Path == filepath.Dir(r.Path) {
			l.out.Warnings = append(l.out.Warnings, "root "+r.Name+" is "+r.Path+", the whole file system")
		}
	}
	l.overlaps()
	if l.unusable != nil {
		return l.unusable
	}
	if missing == len(l.out.Roots) && l.failed() == nil && !l.trying {
		because, next := "there is no such folder", "create it, or name another"
		if missing > 1 {
			because, next = "neither this folder nor any other root is there", "create one of them, or name others"
		}
		return &fault.Error{Code: fault.PathMissing, Op: "roots", Resource: l.out.Roots[0].Path, Rule: because, Hint: next}
	}
	return l.failed()
}

// unfit says why a root can't be served and what to do, "" when it can or is
// only missing.
func (l *loader) unfit(r *Root) (because, next string) {
	if _, inside := beneath(l.StateDir, r.Path); inside && l.StateDir != "" {
		return "the folder belongs to postern's own state", "give another folder"
	}
	if _, moved := l.dirs(r.Path); moved { // it is served as it was opened
		return "", ""
	}
	info, err := os.Stat(r.Path)
	if err == nil && !info.IsDir() {
		return "it is a file, and a root is a folder", "give the folder that it lies in"
	}
	if err == nil { // a name in it can be looked up
		_, err = os.Lstat(r.Path + string(filepath.Separator) + ".")
	}
	if errors.Is(err, fs.ErrPermission) {
		return "the folder can't be entered by this user", "give a folder that you may enter, or have its owner open this one"
	}
	r.Missing = err != nil
	return "", ""
}

// refuse is a problem of the policy that names the root, or an error of the
// command line.
func (l *loader) refuse(r Root, because, next string) {
	for _, d := range l.docs {
		if r.Pos.Line > 0 && d.name == r.Pos.File {
			d.failAt(r.Pos.Line, r.Pos.Column, "the root "+r.Name+", "+r.Path+": "+because)
			return
		}
	}
	if l.unusable == nil {
		l.unusable = usage(r.Path, because, next)
	}
}

// overlaps refuses one folder as two roots, whose names the rules would not
// know of each other, and warns of a root within another: a file there has the
// inner root's name alone.
func (l *loader) overlaps() {
	for i, a := range l.out.Roots {
		for j, b := range l.out.Roots {
			rel, inside := beneath(a.Path, b.Path)
			switch {
			case i == j || !inside && !sameFolder(a.Path, b.Path):
			case i < j && (rel == "" || sameFolder(a.Path, b.Path)):
				l.refuse(b, "it is the folder of the root "+a.Name+" too", "name it once")
			case rel != "":
				l.out.Warnings = append(l.out.Warnings, "root "+b.Name+" lies within root "+a.Name+
					": rules anchored in "+a.Name+"://"+rel+" do not reach it; write them for "+b.Name+"://")
			}
		}
	}
}

// sameFolder knows a folder by its identity, a bind mount of it too.
func sameFolder(a, b string) bool {
	x, errA := os.Stat(a)
	y, errB := os.Stat(b)
	return errA == nil && errB == nil && os.SameFile(x, y)
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

// inside returns the places, whose links are followed, that lie in a folder by
// one of its spellings.
func inside(dirs, places []string) (rels []string) {
	for _, dir := range dirs {
		for _, place := range places {
			if rel, err := filepath.Rel(dir, place); err == nil && rel != "." && filepath.IsLocal(rel) {
				rels = append(rels, filepath.ToSlash(rel))
			}
		}
	}
	return rels
}
