// SPDX-License-Identifier: Apache-2.0

package pathguard

import (
	"errors"
	"iter"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/postern-gate/postern/core"
	"github.com/postern-gate/postern/core/fault"
)

// Options describe a root. The zero value has no name and is refused.
type Options struct {
	Name  string // as in root://; [a-z0-9._-]+
	Alias string // a second scheme, which makes the root strict; "" for none
	// Mounts are the mount points beneath the root that may be entered, as
	// clean relative paths. proc, sysfs, cgroup, debugfs, bpf and their like
	// are never entered, listed or not.
	Mounts []string
	// DenyHardlinks refuses to open a regular file that has more than one name.
	DenyHardlinks bool
	// Forbidden are directories that a root may neither be nor lie beneath:
	// the state directory.
	Forbidden []string
}

// Root is one directory, held by handle. Moved or renamed, it stays the same
// directory under the names it was opened with; exchanged for another one or a
// link, it still is the one that was opened; removed, every access is
// path.missing until a directory is there again at the same resolved path.
type Root struct {
	name, given string
	resolved    string // where it is, or where alone it may appear
	opts        Options
	seam        seam
	ws          atomic.Pointer[Workspace]
	place       atomic.Pointer[place]

	mu     sync.RWMutex // held for reading while fd is in use
	fd     handle
	open   bool
	closed bool
	fs     fsTraits
}

// OpenRoot opens a directory as a root. A directory that is absent is no
// error: accesses are path.missing until it appears, as a plain directory
// where its path leads now. A path that is not a
// directory, one in a kernel file system, and one equal to or beneath a
// forbidden directory are refused.
func OpenRoot(dir string, o Options) (*Root, error) {
	if err := o.check(dir); err != nil {
		return nil, err
	}
	given, err := absolute(dir)
	if err != nil {
		return nil, badRoot(dir, "the path can't be made absolute", err)
	}
	r := &Root{name: o.Name, given: given, resolved: expected(given), opts: o, seam: realSeam()}
	r.mu.Lock()
	defer r.mu.Unlock()
	if err := r.attach(); err != nil && fault.CodeOf(err) != fault.PathMissing {
		return nil, err
	}
	return r, nil
}

func badRoot(dir, rule string, err error) *fault.Error {
	return &fault.Error{Code: fault.ConfigInvalid, Resource: dir, Rule: rule, Err: err}
}

func (o *Options) check(dir string) error {
	if badForm(dir) != "" {
		return badRoot(dir, badForm(dir), nil)
	}
	for _, s := range [...]string{o.Name, o.Alias} {
		if strings.Trim(s, "abcdefghijklmnopqrstuvwxyz0123456789._-") != "" {
			return badRoot(dir, "the name of a root has only a-z, 0-9, dot, underscore and minus", nil)
		}
	}
	if o.Name == "" || o.Name == o.Alias {
		return badRoot(dir, "a root has a name, which is not its alias", nil)
	}
	for _, m := range o.Mounts {
		if badForm(m) != "" || !core.Canonical(m) {
			return badRoot(dir, "a mount is a clean path relative to its root", nil)
		}
	}
	return nil
}

// Name returns the root's name, as in root://.
func (r *Root) Name() string { return r.name }

// Alias returns the alias scheme, "" for none.
func (r *Root) Alias() string { return r.opts.Alias }

// Mounts returns the mount points beneath the root that may be entered.
func (r *Root) Mounts() []string { return slices.Clone(r.opts.Mounts) }

// Given returns the absolute path as it was given, links unresolved.
func (r *Root) Given() string { return r.given }

// Resolved returns the path with links resolved, as of OpenRoot. What is absent
// then must appear as plain directories.
func (r *Root) Resolved() string { return r.resolved }

// Top is the name of the directory itself.
func (r *Root) Top() Name { return Name{root: r} }

// Missing reports whether the directory is absent now. It looks.
func (r *Root) Missing() bool {
	_, err := r.Top().Stat()
	return fault.CodeOf(err) == fault.PathMissing
}

// Close lets the directory go. Later accesses are path.missing; files that
// were opened through it stay open.
func (r *Root) Close() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.closed = true
	r.detach()
	return nil
}

func (r *Root) detach() {
	if r.open {
		r.fd.close()
		r.open = false
	}
}

// hold returns the root's handle and keeps it open until r.mu.RUnlock. It
// opens a root that was absent. Holding it twice at once can deadlock.
func (r *Root) hold() (fd handle, err error) {
	r.mu.RLock()
	if r.open {
		return r.fd, nil
	}
	r.mu.RUnlock()
	if err := r.reattach(); err != nil {
		return fd, err
	}
	r.mu.RLock()
	if !r.open {
		r.mu.RUnlock()
		return fd, r.missing()
	}
	return r.fd, nil
}

func (r *Root) reattach() error {
	r.mu.Lock()
	err := error(nil)
	if !r.open {
		err = r.attach()
	}
	r.mu.Unlock()
	if w := r.ws.Load(); err == nil && w != nil {
		w.rebuild()
	}
	return err
}

func (r *Root) missing() error {
	return &fault.Error{Code: fault.PathMissing, Resource: r.name + "://", Rule: "the root's directory is absent"}
}

// attach opens the directory and proves that it is where its resolved path
// says. The caller holds r.mu.
func (r *Root) attach() error {
	if r.closed {
		return r.missing()
	}
	resolved, err := resolve(r.given)
	if err != nil {
		return r.missing()
	}
	if r.resolved != resolved {
		return &fault.Error{Code: fault.PathEscape, Resource: r.name + "://", Rule: "the root's path leads elsewhere now"}
	}
	fd, traits, err := openRootDir(resolved)
	if err != nil {
		return badRoot(r.given, "it can't be opened as a directory", err)
	}
	switch {
	case traits.kernel:
		err = &fault.Error{Code: fault.PathMount, Resource: r.given, Rule: "a file system of the kernel can't be a root"}
	case forbidden(resolved, r.opts.Forbidden):
		err = &fault.Error{Code: fault.PolicyDenied, Resource: r.given, Rule: "a root can't be, or lie beneath, the state directory " + ruleBuiltin}
	default:
		r.fd, r.fs, r.open = fd, traits, true
		return nil
	}
	fd.close()
	return err
}

// forbidden compares by name and by identity, upwards to /.
func forbidden(resolved string, dirs []string) bool {
	ids := map[ident]bool{}
	for _, d := range dirs {
		abs, err := absolute(d)
		if _, ok := beneath(resolved, abs); ok || err != nil {
			return true
		}
		if id, ok := identify(d); ok {
			ids[id] = true
		}
	}
	for dir := range upwards(resolved) {
		if id, ok := identify(dir); ok && ids[id] {
			return true
		}
	}
	return false
}

// upwards goes from an absolute path to the top.
func upwards(abs string) iter.Seq[string] {
	return func(yield func(string) bool) {
		for yield(abs) && abs != parent(abs) {
			abs = parent(abs)
		}
	}
}

// absolute, resolve and parent are for the operator's own paths, in slashes.
func absolute(dir string) (string, error) {
	abs, err := filepath.Abs(dir)
	if err != nil {
		return "", err
	}
	path, why := native(abs, onWindows)
	if why != "" {
		return "", errors.New(why)
	}
	return path, nil
}

func resolve(abs string) (string, error) {
	real, err := filepath.EvalSymlinks(abs)
	if err != nil {
		return "", err
	}
	return absolute(real)
}

// expected resolves the part of a path that exists; the rest stays as given,
// so that nobody can let an absent root appear as a link to elsewhere.
func expected(given string) string {
	for dir := range upwards(given) {
		if resolved, err := resolve(dir); err == nil {
			return joinPath(resolved, strings.Trim(given[len(dir):], "/"))
		}
	}
	return given
}

func parent(abs string) string { return filepath.ToSlash(filepath.Dir(abs)) }
