// SPDX-License-Identifier: Apache-2.0

//go:build unix

package pathguard

import (
	"errors"
	"path"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
	"golang.org/x/text/unicode/norm"

	"github.com/postern-gate/postern/core/fault"
)

// maxLinks is the kernel's own bound, MAXSYMLINKS of linux/namei.h.
const maxLinks = 40

// errTwoEqual is a name that no entry has, but two are equivalent to.
var errTwoEqual = errors.New("two entries have an equivalent name")

// tracer reads the first link on the way, to propose the name that a spelling
// leads to. What it finds is only a proposal: it is judged, and the access to
// it proves it. It looks at nothing beneath where the link leads, since that was
// not judged yet, and never at anything outside the roots.
type tracer struct {
	start   Name
	entry   bool // the last component is meant itself, not what it leads to
	equiv   bool // an absent name may be taken from its one NFC-equal entry
	links   int
	changed bool
	folder  bool // what is found must be a directory

	root    *Root
	dirs    []visited // the first is the root
	done    []string  // the names of the others, at the end that of no directory
	pending []string
}

// visited is a directory that is open on the way.
type visited struct {
	fd int
	fsTraits
}

func (t *tracer) here() visited { return t.dirs[len(t.dirs)-1] }

// trace returns the name that n leads to over one link or one equivalent name,
// or a fault that tells nothing of what is outside.
func (n Name) trace(entry, equiv bool) (Name, error) {
	t := &tracer{start: n, entry: entry && !n.folder, equiv: equiv, folder: n.folder}
	defer t.leave()
	if err := t.enter(n.root, strings.Split(n.rel, "/")); err != nil {
		return Name{}, n.failure(err)
	}
	for t.unclear() {
		name := t.pending[0]
		t.pending = t.pending[1:]
		err := t.take(name)
		if t.changed && err == unix.ENOTDIR {
			err = unix.ENOENT // a link that leads nowhere doesn't say how
		}
		if err != nil {
			return Name{}, n.failure(err)
		}
	}
	return t.result()
}

// unclear reports whether something must be looked at to tell the name: all up
// to the first link, and then no more than the ".." in its target demand, each
// of which leaves the directory that is really there. Those at its start leave
// directories that are known.
func (t *tracer) unclear() bool {
	return len(t.pending) > 0 && (!t.changed || slices.Contains(t.pending, ".."))
}

func (t *tracer) leave() {
	for _, d := range t.dirs {
		unix.Close(d.fd)
	}
	t.dirs, t.done = nil, nil
}

// enter starts anew at a root.
func (t *tracer) enter(r *Root, pending []string) error {
	t.leave()
	fd, err := r.openAt("", oPath|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return err
	}
	t.root, t.dirs = r, []visited{{fd, r.traits()}}
	t.pending = slices.Clone(pending)
	return nil
}

// take consumes one component.
func (t *tracer) take(name string) error {
	switch name {
	case "", ".":
		return nil
	case "..":
		return t.up()
	}
	upTo := strings.Join(append(slices.Clone(t.done), name), "/")
	fd, to, err := t.root.step(t.here().fd, t.here().fsTraits, upTo, name, oPath|unix.O_CLOEXEC, 0)
	switch {
	case err == unix.ENOENT && t.equiv:
		return t.takeEqual(name)
	case err != nil:
		return err
	case to.kind == KindDir:
		t.dirs, t.done = append(t.dirs, visited{fd, to.fsTraits}), append(t.done, name)
		return nil
	}
	unix.Close(fd)
	last := len(t.pending) == 0
	switch {
	case to.kind == KindLink && (!t.entry || !last):
		return t.follow(name)
	case !last:
		return unix.ENOTDIR
	}
	t.done = append(t.done, name)
	return nil
}

// follow puts a link's target in front of what is pending.
func (t *tracer) follow(name string) error {
	if t.links++; t.links > maxLinks {
		return t.start.fault(fault.PathSymlink, "more than 40 links on the way", nil)
	}
	t.changed = true
	buf := make([]byte, maxPath+1)
	n, err := retry(func() (int, error) { return unix.Readlinkat(t.here().fd, name, buf) })
	if err == unix.EINVAL {
		return t.raced()
	}
	if err != nil {
		return err
	}
	target := string(buf[:n])
	if badForm(target) != "" {
		return t.start.fault(fault.PathEscape, "", nil)
	}
	t.folder = t.folder || len(t.pending) == 0 && namesFolder(target)
	if target[0] == '/' {
		return t.rebase(target, t.pending)
	}
	t.pending = append(strings.Split(target, "/"), t.pending...)
	return nil
}

// up leaves a directory that was proven to be none of the links, so that its
// parent is the one by name.
func (t *tracer) up() error {
	if last := len(t.done) - 1; last >= 0 {
		unix.Close(t.here().fd)
		t.dirs, t.done = t.dirs[:last+1], t.done[:last]
		return nil
	}
	return t.rebase(path.Dir(t.root.resolved), t.pending)
}

// rebase goes on in the root that holds an absolute path, lexically: what lies
// outside is never looked at, so that its existence shows nowhere.
func (t *tracer) rebase(abs string, rest []string) error {
	abs = strings.Join(append([]string{abs}, rest...), "/")
	l, plain := t.start.root.layout(), firstPlain(abs)
	if p, rel, ok := l.locate(path.Clean("/" + plain)); ok {
		return t.enter(p.root, strings.Split(rel+abs[len(plain):], "/"))
	}
	if p, rel, ok := l.locate(path.Clean(abs)); ok {
		return t.enter(p.root, strings.Split(rel, "/"))
	}
	return t.start.fault(fault.PathEscape, "", nil)
}

// firstPlain returns the part of a path before its first "..": up to there a
// root may be recognised by name, and what follows is walked.
func firstPlain(abs string) string {
	if i := strings.Index(abs+"/", "/../"); i >= 0 {
		return abs[:i]
	}
	return abs
}

// takeEqual looks for the one entry whose name is NFC-equal to an absent one.
func (t *tracer) takeEqual(name string) error {
	want, found, count := norm.NFC.String(name), "", 0
	err := eachEntry(t.here().fd, func(e Entry) bool {
		if e.Reachable && norm.NFC.String(e.Name) == want {
			found, count = e.Name, count+1
		}
		return count < 2
	})
	switch {
	case err != nil || count == 0 || found == name:
		return t.start.fault(fault.PathMissing, "", unix.ENOENT)
	case count > 1:
		return t.start.fault(fault.PathMissing, "no entry has exactly this name, and two names are equivalent to it", errTwoEqual)
	}
	t.changed = true
	t.pending = append([]string{found}, t.pending...)
	return nil
}

func (t *tracer) raced() error {
	f := t.start.fault(fault.PathSymlink, "a link on the way changed while it was followed", nil)
	f.Retry = true
	return f
}

func (t *tracer) result() (Name, error) {
	rel, ok := cleanRel(strings.Join(append(t.done, t.pending...), "/"))
	if !ok {
		return Name{}, t.start.fault(fault.PathEscape, "", nil)
	}
	if len(rel) > maxPath {
		return Name{}, t.start.fault(fault.PathDenied, "the name that the link leads to is too long", nil)
	}
	to := t.root.innermost(rel).asFolder(t.folder)
	switch {
	case !t.changed:
		return Name{}, t.raced()
	case to == t.start:
		return Name{}, t.start.fault(fault.PathSymlink, "the link leads to itself", nil)
	}
	return to, nil
}

// mayHaveEqual reports whether a canonically equivalent spelling can exist:
// any name beyond ASCII, and the three ASCII characters that are the normal
// form of another one (U+212A, U+037E, U+1FEF).
func mayHaveEqual(rel string) bool {
	for i := 0; i < len(rel); i++ {
		if c := rel[i]; c >= 0x80 || c == 'K' || c == ';' || c == '`' {
			return true
		}
	}
	return false
}
