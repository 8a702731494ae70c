// SPDX-License-Identifier: Apache-2.0

package pathguard

import (
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"golang.org/x/text/unicode/norm"

	"github.com/postern-gate/postern/core/fault"
)

// Workspace is the set of roots that names are parsed against. Make it once;
// all methods may be called at the same time.
type Workspace struct {
	roots  []*Root
	mu     sync.Mutex // one change of the layout at a time
	marked []string   // protected paths, absolute, as given
	layout atomic.Pointer[layout]
}

// layout is what follows from where the roots and the protected paths are. It
// is replaced whole, so that an access sees one state of it.
type layout struct {
	places []place // innermost first
	// denied holds the protected paths by name, both spellings; ids the same
	// by identity, and whether each is a directory.
	denied []string
	ids    map[ident]bool
	// above holds every directory on the way to a protected path or a root,
	// and each root itself: these are never moved or removed.
	above map[ident]struct{}
}

type place struct {
	root            *Root
	given, resolved string
	denied          []string // protected names beneath it, relative
	nested          []place  // roots beneath it, innermost first
}

// NewWorkspace makes the set. Root names and aliases are unique among them; a
// root belongs to one workspace. A workspace without roots names nothing.
func NewWorkspace(roots ...*Root) (*Workspace, error) {
	w := &Workspace{roots: slices.Clone(roots)}
	seen := map[string]bool{}
	for _, r := range roots {
		for _, scheme := range []string{r.name, r.opts.Alias} {
			if scheme != "" && seen[scheme] {
				return nil, &fault.Error{Code: fault.ConfigInvalid, Resource: scheme, Rule: "two roots have this name"}
			}
			seen[scheme] = true
		}
	}
	for _, r := range roots {
		if !r.ws.CompareAndSwap(nil, w) {
			return nil, &fault.Error{Code: fault.ConfigInvalid, Resource: r.name, Rule: "the root belongs to another workspace"}
		}
	}
	w.rebuild()
	return w, nil
}

// Roots returns the roots in the order given.
func (w *Workspace) Roots() []*Root { return slices.Clone(w.roots) }

// Protect marks files and directories that no access may touch, whatever
// policy says: opening, listing and changing them and what is beneath them is
// policy.denied, by name and, where they exist now, by device and inode under
// any other name. No directory above one is moved or removed. Call it again,
// with none or more, when one may have been made, replaced or removed: what is
// there then counts. A file that has got the number of a protected one which is
// gone is not refused meanwhile.
//
// Not guaranteed: a file beneath a protected directory that is known under a
// hard link elsewhere, unless that file is marked itself.
func (w *Workspace) Protect(paths ...string) error {
	for _, p := range paths {
		abs, err := absolute(p)
		if err != nil {
			return &fault.Error{Code: fault.ConfigInvalid, Resource: p, Rule: "the path can't be made absolute", Err: err}
		}
		w.mu.Lock()
		if !slices.Contains(w.marked, abs) {
			w.marked = append(w.marked, abs)
		}
		w.mu.Unlock()
	}
	w.rebuild()
	return nil
}

// rebuild computes the layout anew: at the start, after Protect, and when a
// root that was missing has appeared.
func (w *Workspace) rebuild() {
	w.mu.Lock()
	defer w.mu.Unlock()
	l := &layout{ids: map[ident]bool{}, above: map[ident]struct{}{}}
	for _, p := range w.marked {
		l.mark(p)
	}
	for _, r := range w.roots {
		l.places = append(l.places, place{root: r, given: r.given, resolved: r.resolved})
		l.climb(r.resolved)
	}
	slices.SortStableFunc(l.places, func(a, b place) int { return len(b.resolved) - len(a.resolved) })
	for i := range l.places {
		p := &l.places[i]
		for _, d := range l.denied {
			if rel, ok := beneath(d, p.resolved); ok {
				p.denied = append(p.denied, rel)
			}
		}
		for _, q := range l.places[:i] {
			if _, ok := beneath(q.resolved, p.resolved); ok && q.resolved != p.resolved {
				p.nested = append(p.nested, q)
			}
		}
	}
	for i := range l.places {
		l.places[i].root.place.Store(&l.places[i])
	}
	w.layout.Store(l)
}

// mark adds one protected path under both spellings.
func (l *layout) mark(path string) {
	for _, s := range [...]string{path, expected(path)} {
		l.denied = append(l.denied, s)
		if id, ok := identify(s); ok {
			l.ids[id] = isDir(s)
		}
		l.climb(s)
	}
}

func isDir(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.IsDir()
}

// climb notes the path and every directory above it.
func (l *layout) climb(path string) {
	for dir := range upwards(path) {
		if id, ok := identify(dir); ok {
			l.above[id] = struct{}{}
		}
	}
}

// innermost returns the name of what is at rel beneath r: where another root
// holds it, that root's.
func (r *Root) innermost(rel string) Name {
	if p := r.place.Load(); p != nil && len(p.nested) > 0 {
		abs := joinPath(p.resolved, rel)
		for _, q := range p.nested {
			if inner, ok := beneath(abs, q.resolved); ok {
				return Name{root: q.root, rel: inner}
			}
		}
	}
	return Name{root: r, rel: rel}
}

// locate returns the innermost root that holds an absolute path, in either
// spelling of the root, and the rest as spelled.
func (l *layout) locate(path string) (*place, string, bool) {
	for i := range l.places {
		p := &l.places[i]
		for _, dir := range [...]string{p.given, p.resolved} {
			if rel, ok := beneath(path, dir); ok {
				return p, rel, true
			}
		}
	}
	return nil, "", false
}

// locateEqual is locate for a path whose root part is in another Unicode
// normal form.
func (l *layout) locateEqual(path string) (*place, string, bool) {
	for i := range l.places {
		p := &l.places[i]
		for _, dir := range [...]string{p.given, p.resolved} {
			top, rest := cutAfter(path, strings.Count(dir, "/"))
			if norm.NFC.String(top) == norm.NFC.String(dir) {
				return p, rest, true
			}
		}
	}
	return nil, "", false
}

// cutAfter splits an absolute path after its first n components.
func cutAfter(path string, n int) (top, rest string) {
	for i := 1; i < len(path); i++ {
		if path[i] != '/' {
			continue
		}
		if n--; n == 0 {
			return path[:i], path[i+1:]
		}
	}
	return path, ""
}

const (
	ruleBuiltin = "(built-in: postern)"
	ruleOurs    = "it belongs to postern itself " + ruleBuiltin
	ruleRoot    = "a root is never replaced, moved or removed " + ruleBuiltin
	ruleAbove   = "a directory above a root or a protected path is never moved or removed " + ruleBuiltin
)

// guarded refuses a protected name, and proposes the strict form of a loose
// one.
func (n Name) guarded() error {
	if n.root == nil {
		return n.fault(fault.PathEscape, "", nil)
	}
	if n.loose {
		return &LinkError{Name: n, To: Name{root: n.root, rel: n.rel, folder: n.folder}}
	}
	if p := n.root.place.Load(); p != nil {
		for _, d := range p.denied {
			if _, ok := beneath(n.rel, d); ok || d == "" {
				return n.fault(fault.PolicyDenied, ruleOurs, nil)
			}
		}
	}
	return nil
}

// known refuses a protected file under whatever name it was reached.
func (n Name) known(id ident) error {
	dir, ok := n.root.layout().ids[id]
	if ok && !dir { // another file may have the number by now
		n.root.ws.Load().rebuild()
		_, ok = n.root.layout().ids[id]
	}
	if ok {
		return n.fault(fault.PolicyDenied, ruleOurs, nil)
	}
	return nil
}

// movable refuses to move or remove what a root or a protected path hangs on.
func (n Name) movable(id ident) error {
	if _, ok := n.root.layout().above[id]; ok {
		return n.fault(fault.PolicyDenied, ruleAbove, nil)
	}
	return nil
}

// layout is empty for a root that is in no workspace yet.
func (r *Root) layout() *layout {
	if w := r.ws.Load(); w != nil {
		return w.layout.Load()
	}
	return &layout{}
}
