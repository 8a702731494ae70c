// SPDX-License-Identifier: Apache-2.0

package archtest

import (
	"go/ast"
	"testing"
)

// opens are the places beneath internal/state where a file may be opened by the
// functions of package os.
var opens = map[string]string{
	"internal/state/regular":              "the one place that does, without waiting",
	"internal/state/grant/clock_linux.go": "a file of the kernel",
}

// openProblems finds files that are opened so that a FIFO under their name
// would hold the process for good. One that is made anew can be none.
func openProblems(files []source) []string {
	var problems []string
	for _, s := range files {
		if s.test || !beneath(s.dir(), "internal/state") || opens[s.dir()] != "" || opens[s.path] != "" {
			continue
		}
		fresh := map[ast.Node]bool{}
		ast.Inspect(s.file, func(n ast.Node) bool {
			if call, ok := n.(*ast.CallExpr); ok && makesAnew(call) {
				fresh[call.Fun] = true
			}
			return true
		})
		s.refers(func(n ast.Node, path, name string) {
			if path == "os" && (name == "Open" || name == "ReadFile" || name == "OpenFile" || name == "Create") && !fresh[n] {
				problems = append(problems, s.at(n)+": os."+name+": a file of the state directory is opened by internal/state/regular, which waits for no pipe")
			}
		})
	}
	return problems
}

// makesAnew reports whether one of the arguments says O_EXCL.
func makesAnew(call *ast.CallExpr) (anew bool) {
	for _, arg := range call.Args {
		ast.Inspect(arg, func(n ast.Node) bool {
			if s, ok := n.(*ast.SelectorExpr); ok && s.Sel.Name == "O_EXCL" {
				anew = true
			}
			return true
		})
	}
	return anew
}

func TestStateOpens(t *testing.T) {
	report(t, openProblems(sources(t)))
	text := "package x\nimport \"os\"\nfunc f() { os.Open(\"a\"); os.ReadFile(\"a\"); os.OpenFile(\"a\", os.O_RDWR, 0); os.OpenFile(\"a\", os.O_RDWR|os.O_EXCL, 0) }\n"
	control(t, openProblems([]source{made(t, "internal/state/x/x.go", text), made(t, "internal/cli/x.go", text)}), 3)
}
