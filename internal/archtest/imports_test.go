// SPDX-License-Identifier: Apache-2.0

package archtest

import (
	"fmt"
	"strings"
	"testing"
)

// floors: an import may only point to a lower floor. The longest prefix counts.
var floors = map[string]int{
	"core":               0,
	"policies":           0,
	"schema":             0,
	"internal/state":     1,
	"internal/safety":    1,
	"internal/spell":     1,
	"internal/links":     1,
	"internal/screen":    1,
	"internal/mcpwire":   1,
	"internal/mcpserver": 1,
	"internal/watch":     1,
	"internal/egress":    1,
	"internal/listen":    1,
	"internal/sandbox":   1,
	"enforce":            2,
	"internal/fsserver":  3,
	"internal/broker":    3,
	"internal/prompt":    3,
	"internal/proxy":     3,
	"internal/hook":      3,
	"internal/fetch":     3,
	"filesclient":        3,
	"internal/config":    4,
	"internal/attach":    4,
	"internal/selftest":  4,
	"internal/doctor":    4,
	"internal/page":      4,
	"internal/cli":       4,
	"internal/team":      4,
	"cmd":                5,
	"examples":           5,
	"bench":              5,
}

// sameFloor are the imports that are drawn within a floor, with the reason.
var sameFloor = map[[2]string]string{
	{"internal/mcpserver", "internal/mcpwire"}: "the server stands on the wire",
	{"internal/state", "internal/spell"}:       "a question is as large as it is drawn",
	{"internal/cli", "internal/page"}:          "the command line serves the page",
	{"internal/cli", "internal/config"}:        "the command line loads the policy",
	{"internal/cli", "internal/attach"}:        "the command line attaches clients",
	{"internal/cli", "internal/selftest"}:      "the command line attacks the guard",
	{"internal/cli", "internal/doctor"}:        "the command line looks at the machine",
	{"internal/doctor", "internal/config"}:     "a policy is one of the things looked at",
	{"internal/doctor", "internal/attach"}:     "a client's entry is another",
	{"internal/selftest", "internal/config"}:   "what is attacked is guarded by a policy as a person writes it",
}

// forTests are packages that only tests may import.
var forTests = map[string]string{
	"internal/testenv":        "it imports testing, which registers flags",
	"internal/interop":        "the peers of the tests",
	"internal/interop/agents": "it runs real agents",
}

func floorOf(path string) (prefix string, floor int, ok bool) {
	for p, f := range floors {
		if beneath(path, p) && len(p) >= len(prefix) {
			prefix, floor, ok = p, f, true
		}
	}
	return prefix, floor, ok
}

func floorProblems(pkgs []pkg) []string {
	var problems []string
	for _, p := range pkgs {
		from, ours := rel(p.ImportPath)
		if !ours || len(p.GoFiles) == 0 || from == "internal/archtest" || forTests[from] != "" {
			continue
		}
		prefix, floor, ok := floorOf(from)
		if !ok {
			problems = append(problems, from+": has no floor; add it to the layout in archtest and .golangci.yml")
			continue
		}
		for _, imported := range p.Imports {
			to, ours := rel(imported)
			if !ours {
				continue
			}
			if why := forTests[to]; why != "" {
				problems = append(problems, fmt.Sprintf("%s imports %s, which is for tests: %s", from, to, why))
				continue
			}
			below, toFloor, ok := floorOf(to)
			drawn := sameFloor[[2]string{prefix, below}] != ""
			if !ok || toFloor > floor || (toFloor == floor && below != prefix && !drawn) {
				problems = append(problems, fmt.Sprintf(
					"%s (floor %d) imports %s (floor %d): imports point to a lower floor only", from, floor, to, toFloor))
			}
		}
	}
	return problems
}

func TestFloors(t *testing.T) {
	for _, goos := range systems {
		report(t, floorProblems(list(t, goos, "./...")))
	}
	control(t, floorProblems([]pkg{
		{ImportPath: module + "/core/policy", GoFiles: []string{"a.go"}, Imports: []string{module + "/enforce", module + "/core/glob"}},
		{ImportPath: module + "/internal/safety", GoFiles: []string{"a.go"}, Imports: []string{module + "/internal/mcpwire"}},
		{ImportPath: module + "/internal/unheard", GoFiles: []string{"a.go"}},
		{ImportPath: module + "/enforce", GoFiles: []string{"a.go"}, Imports: []string{module + "/internal/testenv", module + "/core"}},
	}), 4)
}

// coreAllows is all that the trust boundary may import besides the standard
// library and itself.
var coreAllows = []string{"golang.org/x/sys", "golang.org/x/text/unicode/norm", "golang.org/x/text/cases"}

// coreDirect: standard packages that the boundary never imports, and why.
var coreDirect = map[string]string{
	"reflect": "what is checked must be visible to a reader; reflection hides it",
	"unsafe":  "x/sys has every call that is needed without it",
	"C":       "one static binary, and memory safety ends there",
}

// coreReaches: what the boundary must not even reach through what it imports.
var coreReaches = map[string]string{
	"net/http":      "the boundary serves and fetches nothing; internal/egress and internal/listen do",
	"os/exec":       "the boundary starts no program; internal/sandbox does",
	"log":           "the boundary returns what it has to say; a logger is a side channel for untrusted text",
	"encoding/gob":  "a decoder that builds values by name is more than a boundary should trust",
	"text/template": "templates run code chosen by text",
	"plugin":        "the boundary loads no code",
}

func coreProblems(pkgs []pkg) []string {
	standard := map[string]bool{}
	for _, p := range pkgs {
		standard[p.ImportPath] = p.Standard
	}
	var problems []string
	for _, p := range pkgs {
		name, ours := rel(p.ImportPath)
		if !ours || !beneath(name, "core") {
			continue
		}
		for _, to := range p.Imports {
			if why := coreDirect[to]; why != "" {
				problems = append(problems, name+" imports "+to+": "+why)
			} else if !standard[to] && to != "C" && !coreMayImport(to) {
				problems = append(problems, name+" imports "+to+
					": the boundary is the standard library, x/sys, two packages of x/text and itself, so that one person can read all of it")
			}
		}
		for _, to := range p.Deps {
			if why := coreReaches[to]; why != "" {
				problems = append(problems, name+" reaches "+to+": "+why)
			}
		}
	}
	return problems
}

func coreMayImport(path string) bool {
	if name, ours := rel(path); ours {
		return beneath(name, "core")
	}
	for _, allowed := range coreAllows {
		if beneath(path, allowed) {
			return true
		}
	}
	return false
}

func TestCoreImports(t *testing.T) {
	for _, goos := range systems {
		report(t, coreProblems(list(t, goos, "./core/...")))
	}
	control(t, coreProblems([]pkg{
		{ImportPath: "os", Standard: true},
		{ImportPath: module + "/core/glob", Imports: []string{"os", "unsafe", "golang.org/x/sys/unix"}, Deps: []string{"os"}},
		{ImportPath: module + "/core/policy", Imports: []string{"golang.org/x/net/html", module + "/enforce"}},
		{ImportPath: module + "/core/x", Imports: []string{"golang.org/x/text/cases"}, Deps: []string{"log", "net/http"}},
	}), 5)
}

// logProblems finds what a record would have to wait for besides the local
// disk: whatever is sent elsewhere is read from the log, later.
func logProblems(pkgs []pkg) []string {
	var problems []string
	for _, p := range pkgs {
		name, ours := rel(p.ImportPath)
		if !ours || !beneath(name, "internal/state") {
			continue
		}
		for _, to := range p.Deps {
			if to == "net" || beneath(to, "net/http") || to == "os/exec" {
				problems = append(problems, name+" reaches "+to+": nothing but the local disk is on the way of a record")
			}
		}
	}
	return problems
}

func TestLogReachesNoNetwork(t *testing.T) {
	for _, goos := range []string{"linux", "darwin"} { // for Windows, x/sys itself imports net
		report(t, logProblems(list(t, goos, "./internal/state/...")))
	}
	control(t, logProblems([]pkg{
		{ImportPath: module + "/internal/state/audit", Deps: []string{"os", "net"}},
		{ImportPath: module + "/internal/state", Deps: []string{"net/http"}},
		{ImportPath: module + "/internal/listen", Deps: []string{"net"}},
	}), 2)
}

func cgoProblems(files []source) []string {
	var problems []string
	for _, s := range files {
		for _, spec := range s.file.Imports {
			if spec.Path.Value == `"C"` {
				problems = append(problems, s.at(spec)+`: import "C": the binary is built and shipped without cgo`)
			}
		}
	}
	return problems
}

func TestNoCgo(t *testing.T) {
	report(t, cgoProblems(sources(t)))
	control(t, cgoProblems([]source{made(t, "core/x.go", "package core\nimport \"C\"\n")}), 1)
}

// maxModules is the budget for what is linked into the binary.
const maxModules = 40

func moduleProblems(pkgs []pkg, most int) []string {
	seen := map[string]bool{}
	for _, p := range pkgs {
		if p.Module != nil && !p.Module.Main {
			seen[p.Module.Path] = true
		}
	}
	if len(seen) <= most {
		return nil
	}
	names := make([]string, 0, len(seen))
	for name := range seen {
		names = append(names, name)
	}
	return []string{fmt.Sprintf("%d modules are linked, %d is the budget: %s", len(seen), most, strings.Join(names, " "))}
}

// notShipped: modules that tests use and the binary must not contain.
var notShipped = map[string]string{
	"github.com/modelcontextprotocol/go-sdk": "the peer in tests (docs/adr/0002)",
	"github.com/bmatcuk/doublestar/v4":       "the oracle in tests (docs/adr/0007)",
	"github.com/hanwen/go-fuse/v2":           "file systems for tests",
	"github.com/google/go-cmp":               "comparisons for tests",
	"github.com/rogpeppe/go-internal":        "scripts for tests",
	"pgregory.net/rapid":                     "properties for tests",
	"go.uber.org/goleak":                     "leak checks for tests",
}

func TestLinkedModules(t *testing.T) {
	for _, goos := range systems {
		pkgs := list(t, goos, "./cmd/postern")
		report(t, moduleProblems(pkgs, maxModules))
		for _, p := range pkgs {
			if p.Module != nil && notShipped[p.Module.Path] != "" {
				t.Errorf("%s is linked for %s: %s", p.ImportPath, goos, notShipped[p.Module.Path])
			}
		}
	}
	control(t, moduleProblems(list(t, "linux", "./..."), 0), 1)
}
