// SPDX-License-Identifier: Apache-2.0

package config

import (
	"github.com/postern-gate/postern/core/policy"
	"github.com/postern-gate/postern/internal/links"
)

// Parse reads one file as if it were the user's, or a project's, without
// touching the file system for anything else.
func Parse(name string, src []byte, ofProject bool) (*policy.Policy, error) {
	l := loader{Options: Options{WorkDir: "/w", Env: func(string) string { return "" }}, out: &Config{}, look: &links.Look{}}
	l.docs = []*document{read(name, src, ofProject)}
	l.namedRoots()
	for _, r := range l.out.Roots {
		l.roots = append(l.roots, policy.Root{Name: r.Name, Alias: r.Alias, ReadOnly: r.ReadOnly})
	}
	if len(l.roots) == 0 {
		l.roots = append(l.roots, policy.Root{Name: project})
	}
	l.compile()
	return l.out.Policy, l.failed()
}

// ChangeTime is what tells a change whose own time was set back.
var ChangeTime = changeTime

// Looks finds links in a folder again and again, and tells how many names were judged.
func Looks(dir string) (look func() (judged int, warnings []string)) {
	n := 0
	f := newFinder(nil, func(string, string) bool { n++; return true })
	return func() (int, []string) {
		n = 0
		all := f.find([]top{{name: "project", dirs: []string{dir}}}, links.NewLook(patience))
		return n, all.warnings
	}
}
