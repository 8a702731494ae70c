// SPDX-License-Identifier: Apache-2.0

package archtest

import (
	"go/ast"
	"go/token"
	"testing"
)

// startProblems finds expressions that are compiled before main: every run of
// a hook would pay for each, a tenth of a short verb's time.
func startProblems(files []source) []string {
	var problems []string
	for _, s := range files {
		if s.test {
			continue
		}
		names := s.imported()
		for _, decl := range s.file.Decls {
			vars, ok := decl.(*ast.GenDecl)
			if !ok || vars.Tok != token.VAR {
				continue
			}
			ast.Inspect(vars, func(n ast.Node) bool {
				if _, later := n.(*ast.FuncLit); later {
					return false
				}
				if sel, ok := n.(*ast.SelectorExpr); ok && sel.Sel.Name == "MustCompile" {
					if x, ok := sel.X.(*ast.Ident); ok && names[x.Name] == "regexp" {
						problems = append(problems, s.at(n)+": an expression is compiled at every start: sync.OnceValue does it at first use")
					}
				}
				return true
			})
		}
	}
	return problems
}

func TestStart(t *testing.T) {
	report(t, startProblems(sources(t)))
	control(t, startProblems([]source{
		made(t, "enforce/a.go", "package a\nimport \"regexp\"\nvar a = regexp.MustCompile(`a`)\n"),
		made(t, "enforce/b.go", "package a\nimport \"regexp\"\nvar (\n\tb = f(func() any { return regexp.MustCompile(`a`) })\n)\n"),
		made(t, "enforce/c_test.go", "package a\nimport \"regexp\"\nvar a = regexp.MustCompile(`a`)\n"),
		made(t, "enforce/d.go", "package a\nimport \"regexp\"\nfunc f() { _ = regexp.MustCompile(`a`) }\n"),
	}), 1)
}
