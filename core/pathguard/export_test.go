// SPDX-License-Identifier: Apache-2.0

package pathguard

import "strings"

var CleanRel = cleanRel

// Lexical makes a workspace of roots that are nowhere on the disk.
type Lexical struct{ Name, Alias, Given, Resolved string }

func NewLexical(roots ...Lexical) (*Workspace, error) {
	var all []*Root
	for _, l := range roots {
		all = append(all, &Root{name: l.Name, given: l.Given, resolved: l.Resolved, opts: Options{Alias: l.Alias}})
	}
	return NewWorkspace(all...)
}

// BeneathWindows says what path is beneath root under the rules of Windows.
func BeneathWindows(root, path string) (rest, code string) {
	r, why := native(root, true)
	if why != "" {
		return "", "root: " + why
	}
	p, why := native(path, true)
	if why != "" {
		return "", "path.denied"
	}
	top := rootLen(p, true)
	clean, ok := cleanRel(p[top:])
	rel, in := beneath(p[:top]+clean, strings.TrimSuffix(r, "/"))
	if p[:top]+clean == r {
		rel, in = "", true
	}
	if !ok || !in || top == 0 {
		return "", "path.escape"
	}
	return strings.ReplaceAll(rel, "/", `\`), ""
}

var FileURIFor = fileURI
