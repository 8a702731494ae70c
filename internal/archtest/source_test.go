// SPDX-License-Identifier: Apache-2.0

package archtest

import (
	"errors"
	"go/ast"
	"go/token"
	"go/types"
	"maps"
	"slices"
	"strings"
	"testing"
)

// uses is a rule about who may use what another package exports.
type uses struct {
	path  string
	names []string          // nil: every name
	by    map[string]string // directories that may, and why
	why   string
}

func (u uses) problems(files []source) []string {
	var problems []string
	for _, s := range files {
		if s.test || u.allows(s.dir()) {
			continue
		}
		s.refers(func(n ast.Node, path, name string) {
			if path == u.path && (u.names == nil || slices.Contains(u.names, name)) {
				problems = append(problems, s.at(n)+": "+path+"."+name+": "+u.why)
			}
		})
	}
	return problems
}

func (u uses) allows(dir string) bool {
	for allowed := range maps.Keys(u.by) {
		if beneath(dir, allowed) {
			return true
		}
	}
	return false
}

// osActs are the functions of package os that touch a file by name.
var osActs = []string{
	"Open", "OpenFile", "OpenRoot", "OpenInRoot", "Create", "CreateTemp", "ReadFile", "WriteFile", "ReadDir",
	"Mkdir", "MkdirAll", "MkdirTemp", "Remove", "RemoveAll", "Rename", "Link", "Symlink", "Readlink",
	"Truncate", "Chmod", "Chown", "Lchown", "Chtimes", "Stat", "Lstat", "DirFS", "CopyFS", "Chdir",
}

// systemCallers may use golang.org/x/sys.
var systemCallers = map[string]string{
	"internal/cli":      "whether the reader of stdout is still there",
	"internal/config":   "the access list of a policy",
	"internal/page":     "keeps its memory from other programs",
	"internal/watch":    "inotify, on the handle of a directory",
	"core/pathguard":    "files by handle",
	"internal/state":    "locks and sync of the state directory",
	"internal/testenv":  "another user for a test",
	"internal/selftest": "a pipe to attack with, and what the kernel has",
	"internal/doctor":   "what the kernel and the file systems of the roots have",
}

var usage = map[string]uses{
	"wrap": {
		path: module + "/core/untrusted", names: []string{"Wrap", "Bare"},
		by: map[string]string{
			"internal/fsserver": "file contents, names and search results enter here",
			"enforce":           "the imperative Wrap for tool authors",
		},
		why: "bytes from outside are wrapped once, where they enter; a second envelope would corrupt the first (docs/adr/0001)",
	},
	"listen": {
		path: "net", names: []string{"Listen", "ListenConfig", "ListenIP", "ListenMulticastUDP", "ListenPacket", "ListenTCP", "ListenUDP", "ListenUnix", "ListenUnixgram", "FileListener", "FilePacketConn"},
		by:  map[string]string{"internal/listen": "the one place with Host, Origin and token checks"},
		why: "every listener comes from internal/listen, which checks Host, Origin and token",
	},
	"listen-http": {
		path: "net/http", names: []string{"ListenAndServe", "ListenAndServeTLS", "Serve", "ServeTLS"},
		by:  map[string]string{"internal/listen": "the one place with Host, Origin and token checks"},
		why: "every listener comes from internal/listen, which checks Host, Origin and token",
	},
	"exit": {
		path: "os", names: []string{"Exit"},
		by:  map[string]string{"cmd": "the one place that ends the process"},
		why: "an early exit skips the outcome record, and a hook's exit code is a decision",
	},
	"fatal": {
		path: "log", names: []string{"Fatal", "Fatalf", "Fatalln", "Panic", "Panicf", "Panicln"},
		why: "an early exit skips the outcome record, and a hook's exit code is a decision",
	},
	"unix": {
		path: "golang.org/x/sys/unix",
		by:   systemCallers,
		why:  "system calls are made in few places, each with its tests",
	},
	"windows": {
		path: "golang.org/x/sys/windows",
		by:   systemCallers,
		why:  "system calls are made in few places, each with its tests",
	},
	"unsafe": {
		path: "unsafe",
		why:  "x/sys has every call that is needed without it",
	},
}

// doorWhy is why no door reaches a file by name.
const doorWhy = "a door acts on files through enforce only; a second path would be neither judged nor recorded"

// second are the ways around the crossing.
var second = []uses{
	{path: "os", names: osActs, why: doorWhy},
	{path: "path/filepath", names: []string{"Walk", "WalkDir", "Glob", "EvalSymlinks"}, why: doorWhy},
	{path: "io/ioutil", why: doorWhy},
	{path: "syscall", why: doorWhy},
	{path: "golang.org/x/sys/unix", why: doorWhy},
	{path: "golang.org/x/sys/windows", why: doorWhy},
	{path: "os/exec", why: doorWhy},
	{path: "net", why: doorWhy},
}

// doors are the directories in which nothing is reached but through the
// crossing, and the crossing itself.
var doors = []string{"enforce", "internal/fsserver", "internal/mcpserver", "internal/mcpwire", "internal/safety"}

func secondProblems(files []source) []string {
	var problems []string
	for _, rule := range second {
		problems = append(problems, rule.problems(within(files, doors))...)
	}
	return problems
}

func within(files []source, dirs []string) []source {
	var out []source
	for _, s := range files {
		if slices.ContainsFunc(dirs, func(d string) bool { return beneath(s.dir(), d) }) {
			out = append(out, s)
		}
	}
	return out
}

func TestUsage(t *testing.T) {
	files := sources(t)
	for name, rule := range usage {
		t.Run(name, func(t *testing.T) {
			report(t, rule.problems(files))
			use := rule.path[strings.LastIndexByte(rule.path, '/')+1:] + "."
			if rule.names == nil {
				use += "Pointer"
			} else {
				use += rule.names[0]
			}
			text := "package x\nimport \"" + rule.path + "\"\nvar _ = " + use + "\n"
			control(t, rule.problems([]source{made(t, "internal/other/x.go", text)}), 1)
			renamed := strings.NewReplacer("import ", "import y ", " "+use, " y"+use[strings.IndexByte(use, '.'):]).Replace(text)
			control(t, rule.problems([]source{made(t, "internal/other/x.go", renamed)}), 1)
			for dir := range rule.by {
				control(t, rule.problems([]source{made(t, dir+"/x.go", text)}), 0)
			}
		})
	}
}

func TestNoSecondPathToFiles(t *testing.T) {
	report(t, secondProblems(sources(t)))
	text := "package x\nimport (\"os\"; fp \"path/filepath\"; \"golang.org/x/sys/unix\")\n" +
		"func f() { os.ReadFile(\"a\"); os.Getenv(\"b\"); os.Rename(\"a\", \"b\"); fp.Join(\"a\"); fp.Glob(\"*\"); unix.Unlink(\"a\") }\n"
	control(t, secondProblems([]source{made(t, "internal/fsserver/x.go", text), made(t, "internal/config/x.go", text)}), 4)
}

// dotImports would hide a use from the rules above.
func dotImports(files []source) []string {
	var problems []string
	for _, s := range files {
		for _, spec := range s.file.Imports {
			if spec.Name != nil && spec.Name.Name == "." {
				problems = append(problems, s.at(spec)+": a dot import hides whose names are used")
			}
		}
	}
	return problems
}

func TestNoDotImports(t *testing.T) {
	report(t, dotImports(sources(t)))
	control(t, dotImports([]source{made(t, "core/x.go", "package core\nimport . \"os\"\n")}), 1)
}

// stillProblems: the boundary computes answers. What runs beside it or before
// main, or changes under it, can't be seen from a call.
func stillProblems(files []source) []string {
	var problems []string
	for _, s := range files {
		if s.test || !beneath(s.dir(), "core") {
			continue
		}
		ast.Inspect(s.file, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.GoStmt:
				problems = append(problems, s.at(n)+": a goroutine in core: the boundary is called, it doesn't run beside its caller")
			case *ast.FuncDecl:
				if n.Recv == nil && n.Name.Name == "init" {
					problems = append(problems, s.at(n)+": func init in core: nothing happens before it is asked for")
				}
			}
			return true
		})
	}
	return problems
}

func TestCoreStandsStill(t *testing.T) {
	report(t, stillProblems(sources(t)))
	text := "package core\nfunc init() {}\nfunc f() { go f(); func() { go f() }() }\n"
	control(t, stillProblems([]source{made(t, "core/x.go", text), made(t, "enforce/x.go", text)}), 3)
}

// stateProblems finds package-level variables of core that are assigned to,
// have their address taken, or hold a lock or an atomic. Imports are not
// resolved: only the package's own names matter here.
func stateProblems(files []source) []string {
	byDir := map[string][]source{}
	for _, s := range files {
		if !s.test && beneath(s.dir(), "core") {
			byDir[s.dir()] = append(byDir[s.dir()], s)
		}
	}
	var problems []string
	for _, dir := range slices.Sorted(maps.Keys(byDir)) {
		for _, s := range byDir[dir] {
			problems = append(problems, writesToGlobals(s, byDir[dir])...)
		}
	}
	return problems
}

// nothingImported makes the type checker treat every import as missing.
type nothingImported struct{}

func (nothingImported) Import(string) (*types.Package, error) {
	return nil, errors.New("not needed")
}

// packageVars are the names of the package's variables, with the identifiers
// of s that mean them.
func packageVars(s source, all []source) map[*ast.Ident]bool {
	globals := map[string]bool{}
	for _, f := range all {
		for _, decl := range f.file.Decls {
			gen, ok := decl.(*ast.GenDecl)
			if !ok || gen.Tok != token.VAR {
				continue
			}
			for _, spec := range gen.Specs {
				if v, ok := spec.(*ast.ValueSpec); ok {
					for _, name := range v.Names {
						globals[name.Name] = true
					}
				}
			}
		}
	}
	info := &types.Info{Uses: map[*ast.Ident]types.Object{}}
	conf := types.Config{Importer: nothingImported{}, Error: func(error) {}, DisableUnusedImportCheck: true}
	// Its error is about the missing imports; what it resolved is in info.
	checked, _ := conf.Check(s.dir(), s.fset, []*ast.File{s.file}, info)
	used := map[*ast.Ident]bool{}
	ast.Inspect(s.file, func(n ast.Node) bool {
		id, ok := n.(*ast.Ident)
		if !ok || !globals[id.Name] {
			return true
		}
		// A name of another file of the package is unresolved here; a local
		// variable of the same name is resolved to something that isn't ours.
		obj := info.Uses[id]
		used[id] = obj == nil || obj.Parent() == checked.Scope()
		return true
	})
	return used
}

func writesToGlobals(s source, all []source) []string {
	vars := packageVars(s, all)
	var problems []string
	base := func(e ast.Expr) *ast.Ident {
		for {
			switch x := e.(type) {
			case *ast.IndexExpr:
				e = x.X
			case *ast.SelectorExpr:
				e = x.X
			case *ast.ParenExpr:
				e = x.X
			case *ast.Ident:
				return x
			default:
				return nil
			}
		}
	}
	bad := func(n ast.Node, e ast.Expr) {
		if id := base(e); id != nil && vars[id] {
			problems = append(problems, s.at(n)+": "+id.Name+" is package-level state that changes: a decision must depend on its arguments alone")
		}
	}
	ast.Inspect(s.file, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.AssignStmt:
			if n.Tok != token.DEFINE {
				for _, lhs := range n.Lhs {
					bad(n, lhs)
				}
			}
		case *ast.IncDecStmt:
			bad(n, n.X)
		case *ast.UnaryExpr:
			if n.Op == token.AND {
				bad(n, n.X)
			}
		}
		return true
	})
	return append(problems, lockGlobals(s)...)
}

// lockGlobals finds package-level variables of a type that exists to change.
func lockGlobals(s source) []string {
	var problems []string
	for _, decl := range s.file.Decls {
		gen, ok := decl.(*ast.GenDecl)
		if !ok || gen.Tok != token.VAR {
			continue
		}
		names := s.imported()
		ast.Inspect(gen, func(n ast.Node) bool {
			sel, ok := n.(*ast.SelectorExpr)
			if !ok {
				return true
			}
			x, ok := sel.X.(*ast.Ident)
			if ok && (names[x.Name] == "sync" || names[x.Name] == "sync/atomic") && !strings.HasPrefix(sel.Sel.Name, "Once") {
				problems = append(problems, s.at(n)+": a package-level "+x.Name+"."+sel.Sel.Name+": state that changes has an owner")
			}
			return true
		})
	}
	return problems
}

func TestCoreHasNoMutableState(t *testing.T) {
	report(t, stateProblems(sources(t)))
	control(t, stateProblems([]source{
		made(t, "core/x/a.go", "package x\nimport \"sync\"\nvar n int\nvar m = map[string]int{}\nvar mu sync.Mutex\nvar table = [2]int{1, 2}\n"),
		made(t, "core/x/b.go", "package x\nfunc f() int { n++; m[\"a\"] = 1; p := &n; _ = p; local := table[0]; local = 2; return local }\n"),
		made(t, "core/x/c.go", "package x\nfunc g() { n := 1; n = 2; _ = n }\n"),
	}), 4)
}
