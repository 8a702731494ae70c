// SPDX-License-Identifier: Apache-2.0

package archtest

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"go/ast"
	"go/parser"
	"go/token"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
)

const module = "github.com/postern-gate/postern"

// pkg is what the rules look at, from go list or made up by a control.
type pkg struct {
	ImportPath string
	Dir        string
	Standard   bool
	GoFiles    []string
	CgoFiles   []string
	Imports    []string
	Deps       []string
	Module     *struct {
		Path, Version string
		Main          bool
	}
}

// rel is the import path beneath the module: "core/policy", "" for the top.
func rel(importPath string) (string, bool) {
	if importPath == module {
		return "", true
	}
	return strings.CutPrefix(importPath, module+"/")
}

// beneath reports whether the path is dir or something below it.
func beneath(path, dir string) bool {
	return path == dir || strings.HasPrefix(path, dir+"/")
}

// systems are the platforms that the module is built for: a rule that held on
// one of them only would be a hole on the others.
var systems = []string{"linux", "darwin", "windows"}

var loaded sync.Map // GOOS+pattern → func() ([]pkg, error)

// list is go list -deps over the pattern, for one system, without cgo.
func list(t *testing.T, goos, pattern string) []pkg {
	t.Helper()
	once, _ := loaded.LoadOrStore(goos+" "+pattern, sync.OnceValues(func() ([]pkg, error) {
		return goList(goos, pattern)
	}))
	load, ok := once.(func() ([]pkg, error))
	if !ok {
		t.Fatalf("unexpected cache entry %T", once)
	}
	pkgs, err := load()
	if err != nil {
		t.Fatal(err)
	}
	return pkgs
}

func goList(goos, pattern string) ([]pkg, error) {
	cmd := exec.CommandContext(context.Background(), "go", "list", "-deps",
		"-json=ImportPath,Dir,Standard,GoFiles,CgoFiles,Imports,Deps,Module", pattern)
	cmd.Dir = filepath.Join("..", "..")
	cmd.Env = append(os.Environ(), "GOOS="+goos, "GOARCH=amd64", "CGO_ENABLED=0")
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		return nil, errors.New("go list " + pattern + " for " + goos + ": " + stderr.String())
	}
	var pkgs []pkg
	for dec := json.NewDecoder(bytes.NewReader(out)); ; {
		var p pkg
		if err := dec.Decode(&p); errors.Is(err, io.EOF) {
			return pkgs, nil
		} else if err != nil {
			return nil, err
		}
		pkgs = append(pkgs, p)
	}
}

// source is one parsed Go file of the module.
type source struct {
	path string // slash-separated, beneath the module
	test bool
	text []byte
	file *ast.File
	fset *token.FileSet
}

// dir is the package's path beneath the module.
func (s source) dir() string {
	if i := strings.LastIndexByte(s.path, '/'); i >= 0 {
		return s.path[:i]
	}
	return ""
}

// at is path:line of a node.
func (s source) at(n ast.Node) string {
	return s.path + ":" + strconv.Itoa(s.fset.Position(n.Pos()).Line)
}

// imported maps the file's local names to the import paths behind them.
func (s source) imported() map[string]string {
	names := map[string]string{}
	for _, spec := range s.file.Imports {
		path, err := strconv.Unquote(spec.Path.Value)
		if err != nil {
			continue // the parser accepted it, so it is quoted right
		}
		name := path[strings.LastIndexByte(path, '/')+1:]
		if spec.Name != nil {
			name = spec.Name.Name
		}
		names[name] = path
	}
	return names
}

// refers calls found for every use of a name that another package exports.
func (s source) refers(found func(n ast.Node, path, name string)) {
	names := s.imported()
	ast.Inspect(s.file, func(n ast.Node) bool {
		sel, ok := n.(*ast.SelectorExpr)
		if !ok {
			return true
		}
		if x, ok := sel.X.(*ast.Ident); ok && names[x.Name] != "" {
			found(n, names[x.Name], sel.Sel.Name)
		}
		return true
	})
}

func parse(path string, text []byte) (source, error) {
	fset := token.NewFileSet()
	file, err := parser.ParseFile(fset, path, text, parser.ParseComments|parser.SkipObjectResolution)
	return source{path, strings.HasSuffix(path, "_test.go"), text, file, fset}, err
}

// sources reads every Go file of the module, for all systems and build tags.
func sources(t *testing.T) []source {
	t.Helper()
	top := filepath.Join("..", "..")
	var all []source
	err := filepath.WalkDir(top, func(path string, d os.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && path != top && (strings.HasPrefix(d.Name(), ".") || d.Name() == "testdata" || d.Name() == "node_modules") {
			return filepath.SkipDir
		}
		if d.IsDir() || !strings.HasSuffix(path, ".go") {
			return nil
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		name, err := filepath.Rel(top, path)
		if err != nil {
			return err
		}
		s, err := parse(filepath.ToSlash(name), text)
		all = append(all, s)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// made is a made-up source file for a negative control.
func made(t *testing.T, path, text string) source {
	t.Helper()
	s, err := parse(path, []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// report fails the test with each problem.
func report(t *testing.T, problems []string) {
	t.Helper()
	for _, p := range problems {
		t.Error(p)
	}
}

// control fails when a rule finds a number of problems in made-up code other
// than the number that was put there.
func control(t *testing.T, problems []string, want int) {
	t.Helper()
	if len(problems) != want {
		t.Errorf("negative control: the rule found %d of %d breaches: %q", len(problems), want, problems)
	}
}
