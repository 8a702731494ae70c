// SPDX-License-Identifier: Apache-2.0

package pathguard

import (
	"strings"
	"unicode/utf8"

	"github.com/postern-gate/postern/core"
	"github.com/postern-gate/postern/core/fault"
)

// Name is a lexically clean name beneath a root: a proposal, which policy
// judges and which an access then proves canonical. It is comparable. The zero
// value is beneath no root and every access to it is refused.
type Name struct {
	root *Root
	rel  string // "" is the root; slash-separated, no "", ".", ".."
	// loose: the root's own path was spelled in another normal form. Reads
	// answer with the strict name, changes refuse it.
	loose bool
	// folder: the spelling ends like a directory's, "x/" or "x/.", so that
	// nothing else answers to it.
	folder bool
}

// Root returns the root, nil for the zero Name.
func (n Name) Root() *Root { return n.root }

// Rel returns the path beneath the root, slash-separated; "" is the root.
func (n Name) Rel() string { return n.rel }

// Base returns the last component, "" for the root.
func (n Name) Base() string { return n.rel[strings.LastIndexByte(n.rel, '/')+1:] }

// Resource is the name as policy judges it. That of the zero Name is
// unresolved, which every policy denies.
func (n Name) Resource() core.Resource {
	if n.root == nil {
		return core.Resource{}
	}
	return core.File(n.root.name, n.rel)
}

// String returns root://rel.
func (n Name) String() string { return n.Resource().String() }

// Abs returns the absolute path in the spelling that the root was given with.
// It is for showing: opening it by that string gives up every guarantee.
func (n Name) Abs() string {
	if n.root == nil {
		return ""
	}
	return joinPath(n.root.given, n.rel)
}

// Join returns the name of an entry of this directory. An entry is one
// component; what can't be one (empty, dots, a slash, NUL, not UTF-8, over 255
// bytes) is path.denied. Where another root starts at that entry, the name is
// that root's.
func (n Name) Join(entry string) (Name, error) {
	if n.root == nil {
		return Name{}, n.fault(fault.PathEscape, "", nil)
	}
	if why := badEntry(entry); why != "" {
		return Name{}, &fault.Error{Code: fault.PathDenied, Resource: n.String() + "/" + entry, Rule: why}
	}
	return n.root.innermost(joinRel(n.rel, entry)), nil
}

// Parent returns the directory that holds the entry; false for a root.
func (n Name) Parent() (Name, bool) {
	if n.root == nil || n.rel == "" {
		return Name{}, false
	}
	return Name{root: n.root, rel: n.rel[:max(0, strings.LastIndexByte(n.rel, '/'))], loose: n.loose}, true
}

// asFolder demands a directory; a root is one anyway.
func (n Name) asFolder(demanded bool) Name {
	n.folder = demanded && n.rel != ""
	return n
}

// namesFolder reports a spelling that only a directory can have
// (path_resolution(7), trailing slashes).
func namesFolder(spelling string) bool {
	switch spelling[strings.LastIndexByte(spelling, '/')+1:] {
	case "", ".", "..":
		return true
	}
	return false
}

// fits refuses what is no directory under a name that demands one.
func (n Name) fits(k Kind) error {
	if n.folder && k != KindDir {
		return n.fault(fault.PathMissing, ruleThrough, nil)
	}
	return nil
}

const ruleThrough = "a part of the name is not a directory"

// isDir and isFile refuse what is the other, and say what works.
func (n Name) isDir() *fault.Error {
	f := n.fault(fault.IOFailed, "it is a directory", nil)
	f.Hint = "list it instead"
	return f
}

func (n Name) isFile() *fault.Error {
	f := n.fault(fault.IOFailed, "it is not a directory", nil)
	f.Hint = "read it instead"
	return f
}

// fault returns a refusal or failure about this name. A cause is an errno or
// a sentinel of ours, never a text that could hold an outside path.
func (n Name) fault(code fault.Code, rule string, cause error) *fault.Error {
	return &fault.Error{Code: code, Resource: n.String(), Rule: rule, Err: cause, Retry: code == fault.LockHeld}
}

func joinRel(dir, entry string) string {
	if dir == "" {
		return entry
	}
	return dir + "/" + entry
}

// joinPath joins an absolute directory and a clean relative path.
func joinPath(dir, rel string) string {
	switch {
	case rel == "":
		return dir
	case strings.HasSuffix(dir, "/"):
		return dir + rel
	}
	return dir + "/" + rel
}

// badEntry says why entry can't be one component, "" when it can.
func badEntry(entry string) string {
	switch {
	case entry == "":
		return "a name has at least one byte"
	case entry == "." || entry == "..":
		return "dots are not a name"
	case strings.IndexByte(entry, '/') >= 0:
		return "a name holds no slash"
	case onWindows && badWindows(entry) != "":
		return badWindows(entry)
	}
	return badForm(entry)
}

// The limits of Linux's usual file systems, without the closing NUL: NAME_MAX
// and PATH_MAX of limits.h.
const (
	maxComponent = 255
	maxPath      = 4095
)

// badForm says why s is refused before it is looked at as a path: the part of
// the guard that needs to know no root.
func badForm(s string) string {
	switch {
	case s == "":
		return "the name is empty"
	case len(s) > maxPath:
		return "the name is longer than 4095 bytes"
	case strings.IndexByte(s, 0) >= 0:
		return "the name holds a NUL byte"
	case !utf8.ValidString(s):
		return "the name is not valid UTF-8"
	}
	for part := range strings.SplitSeq(s, "/") {
		if len(part) > maxComponent {
			return "a part of the name is longer than 255 bytes"
		}
	}
	return ""
}

// cleanRel resolves "", "." and ".." lexically. It is false when a ".." leads
// above the start.
func cleanRel(s string) (string, bool) {
	if core.Canonical(s) { // spares the usual name an allocation
		return s, true
	}
	var kept []string
	for part := range strings.SplitSeq(s, "/") {
		switch part {
		case "", ".":
		case "..":
			if len(kept) == 0 {
				return "", false
			}
			kept = kept[:len(kept)-1]
		default:
			kept = append(kept, part)
		}
	}
	return strings.Join(kept, "/"), true
}

// beneath returns what path is below dir, by whole components. Both are clean,
// and either both are absolute or neither, nor empty.
func beneath(path, dir string) (string, bool) {
	rest, ok := strings.CutPrefix(path, strings.TrimSuffix(dir, "/"))
	if !ok || rest == "" {
		return "", ok
	}
	return strings.CutPrefix(rest, "/")
}
