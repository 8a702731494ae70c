// SPDX-License-Identifier: Apache-2.0

package pathguard

import (
	pathpkg "path"
	"slices"
	"strings"

	"github.com/postern-gate/postern/core/fault"
)

// Parse returns the names that a caller's spelling may mean: root://name, an
// alias scheme, an absolute path beneath a root (in the spelling that the root
// was given with or the resolved one), or a plain relative name, which has a
// candidate in each root. It is purely lexical: nothing is looked up, trimmed,
// unquoted, folded or expanded. A ".." that stays beneath its root is resolved
// lexically; one that leads above is path.escape. A slash or dot at the end
// demands a directory.
//
// A root with an alias is strict, as its documents are: only its schemes name
// it, and "..", a backslash, a leading slash and drive forms are path.denied.
func (w *Workspace) Parse(spelling string) ([]Name, error) {
	r, rest, err := w.precheck(spelling)
	if err != nil {
		return nil, err
	}
	path, why := native(rest, onWindows)
	switch abs := isAbs(path, onWindows); {
	case why != "", r != nil && abs:
		return nil, refuse(fault.PathDenied, spelling, why)
	case abs:
		return w.absolute(spelling, path)
	}
	rel, ok := cleanRel(path)
	switch {
	case !ok:
		return nil, refuse(fault.PathEscape, spelling, "")
	case r != nil:
		return []Name{r.innermost(rel).asFolder(namesFolder(path))}, nil
	}
	return w.relative(rel, namesFolder(path)), nil
}

func (w *Workspace) absolute(spelling, path string) ([]Name, error) {
	top := path[:rootLen(path, onWindows)]
	rel := pathpkg.Clean("/" + path[len(top):])[1:] // the parent of / is /
	p, rest, ok := w.layout.Load().locate(top + rel)
	loose := !ok
	if loose {
		p, rest, ok = w.layout.Load().locateEqual(top + rel)
	}
	if !ok {
		return nil, refuse(fault.PathEscape, spelling, "")
	}
	if p.root.strict() {
		return nil, refuse(fault.PathDenied, spelling, ruleStrict)
	}
	n := p.root.innermost(rest).asFolder(namesFolder(path))
	n.loose = loose
	return []Name{n}, nil
}

func (w *Workspace) relative(rel string, folder bool) (names []Name) {
	for _, r := range w.roots {
		if n := r.innermost(rel).asFolder(folder); !r.strict() && !slices.Contains(names, n) {
			names = append(names, n)
		}
	}
	return names
}

const (
	ruleScheme = "no root has this scheme"
	ruleStrict = "names here start with the scheme of a root"
)

// Precheck is the syntactic pre-filter, for the place where calls are
// dispatched. It refuses a strict subset of what Parse refuses, with the same
// codes, without resolving anything: leaving it out changes no verdict.
func (w *Workspace) Precheck(spelling string) error {
	r, rest, err := w.precheck(spelling)
	if err != nil {
		return err
	}
	if (r != nil || !isAbs(rest, onWindows)) && (rest == ".." || strings.HasPrefix(rest, "../")) {
		return refuse(fault.PathEscape, spelling, "")
	}
	return nil
}

// precheck splits a spelling into the root that its scheme names, nil without
// a scheme, and what follows.
func (w *Workspace) precheck(spelling string) (r *Root, rest string, err error) {
	if why := badForm(spelling); why != "" {
		return nil, "", refuse(fault.PathDenied, spelling, why)
	}
	scheme, rest, ok := cutScheme(spelling)
	if ok {
		r = w.byScheme(scheme)
	}
	switch {
	case ok && r == nil:
		return nil, "", refuse(fault.PathEscape, spelling, ruleScheme)
	case !ok && allStrict(w.roots):
		return nil, "", refuse(fault.PathDenied, spelling, ruleStrict)
	case ok && strings.HasPrefix(rest, "/"):
		return nil, "", refuse(fault.PathDenied, spelling, "an absolute path follows the scheme")
	case ok && r.strict() && badStrict(rest) != "":
		return nil, "", refuse(fault.PathDenied, spelling, badStrict(rest))
	}
	return r, rest, nil
}

// refuse names only the caller's own spelling.
func refuse(code fault.Code, spelling, rule string) *fault.Error {
	return &fault.Error{Code: code, Resource: spelling, Rule: rule}
}

// cutScheme splits scheme://rest. The letters are those that a root's name and
// an RFC 3986 scheme may have; without a scheme rest is the whole.
func cutScheme(s string) (scheme, rest string, ok bool) {
	scheme, rest, ok = strings.Cut(s, "://")
	if !ok || scheme == "" || strings.IndexFunc(scheme, notScheme) >= 0 {
		return "", s, false
	}
	return scheme, rest, true
}

func notScheme(r rune) bool {
	return (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9') && !strings.ContainsRune("._-+", r)
}

func (w *Workspace) byScheme(scheme string) *Root {
	for _, r := range w.roots {
		if r.name == scheme || (r.opts.Alias != "" && r.opts.Alias == scheme) {
			return r
		}
	}
	return nil
}

func (r *Root) strict() bool { return r.opts.Alias != "" }

func allStrict(roots []*Root) bool {
	return !slices.ContainsFunc(roots, func(r *Root) bool { return !r.strict() })
}

// badStrict says why a strict root refuses what follows its scheme.
func badStrict(rest string) string {
	switch {
	case strings.ContainsRune(rest, '\\'):
		return "a backslash is not part of a name here"
	case len(rest) >= 2 && rest[1] == ':' && isLetter(rest[0]):
		return "a drive is not part of a name here"
	}
	for part := range strings.SplitSeq(rest, "/") {
		if part == ".." {
			return "a name here holds no .."
		}
	}
	return ""
}

func isLetter(b byte) bool { return b|0x20 >= 'a' && b|0x20 <= 'z' }
