// SPDX-License-Identifier: Apache-2.0

package archtest

import (
	"go/ast"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

const maxReadme = 150

// docs are the pages that make claims or point somewhere, by path beneath the
// module.
func docs(t *testing.T) map[string]string {
	t.Helper()
	top := filepath.Join("..", "..")
	pages := map[string]string{}
	for _, pattern := range []string{"*.md", filepath.Join("docs", "*.md"), filepath.Join("docs", "adr", "*.md")} {
		names, err := filepath.Glob(filepath.Join(top, pattern))
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range names {
			text, err := os.ReadFile(name)
			if err != nil {
				t.Fatal(err)
			}
			rel, err := filepath.Rel(top, name)
			if err != nil {
				t.Fatal(err)
			}
			pages[filepath.ToSlash(rel)] = string(text)
		}
	}
	if pages["README.md"] == "" || pages["THREATMODEL.md"] == "" || pages["SECURITY.md"] == "" {
		t.Fatal("the pages that make claims are missing")
	}
	return pages
}

// claimed is `core/pathguard TestCases` in a page: a test that is promised.
var claimed = regexp.MustCompile("`([a-z][a-z/]*) ((?:Test|Fuzz|Benchmark)[A-Za-z0-9_]+)`")

func claimProblems(pages map[string]string, files []source) []string {
	exist := map[string]bool{}
	for _, s := range files {
		if !s.test {
			continue
		}
		for _, decl := range s.file.Decls {
			if fn, ok := decl.(*ast.FuncDecl); ok && fn.Recv == nil {
				exist[s.dir()+" "+fn.Name.Name] = true
			}
		}
	}
	var problems []string
	for page, text := range pages {
		for _, m := range claimed.FindAllStringSubmatch(text, -1) {
			if !exist[m[1]+" "+m[2]] {
				problems = append(problems, page+": there is no test "+m[1]+" "+m[2]+": a claim without its test is no claim")
			}
		}
	}
	return problems
}

func TestClaimsHaveTests(t *testing.T) {
	files := sources(t)
	pages := docs(t)
	report(t, claimProblems(pages, files))
	if n := len(claimed.FindAllString(pages["README.md"]+pages["THREATMODEL.md"], -1)); n < 30 {
		t.Errorf("only %d claims with tests", n)
	}
	control(t, claimProblems(map[string]string{
		"a.md": "| x | `internal/archtest TestClaimsHaveTests`, `internal/archtest TestNowhere` | `core/x TestClaimsHaveTests`",
	}, files), 2)
}

var link = regexp.MustCompile(`\]\(([^)#]+)[^)]*\)`)

func linkProblems(pages map[string]string) []string {
	var problems []string
	for page, text := range pages {
		for _, m := range link.FindAllStringSubmatch(text, -1) {
			if strings.Contains(m[1], "://") {
				continue
			}
			if _, err := os.Stat(filepath.Join("..", "..", filepath.FromSlash(path.Join(path.Dir(page), m[1])))); err != nil {
				problems = append(problems, page+": the link to "+m[1]+" leads nowhere")
			}
		}
	}
	return problems
}

func TestLinks(t *testing.T) {
	report(t, linkProblems(docs(t)))
	control(t, linkProblems(map[string]string{"docs/x.md": "[a](errors.md) [b](../README.md#use) [c](nowhere.md) [d](README.md)"}), 2)
}

func TestReadmeIsShort(t *testing.T) {
	if n := strings.Count(docs(t)["README.md"], "\n"); n > maxReadme {
		t.Errorf("README.md has %d lines, %d is the limit", n, maxReadme)
	}
}

// Each decision says where it stands and what else there was.
func TestDecisionsAreWhole(t *testing.T) {
	found := 0
	for page, text := range docs(t) {
		if !strings.HasPrefix(page, "docs/adr/") {
			continue
		}
		found++
		for _, want := range []string{"\nStatus: "} {
			if !strings.Contains(text, want) {
				t.Errorf("%s has no line %q", page, strings.TrimSpace(want))
			}
		}
		if !strings.Contains(text, "## Alternatives") && !strings.Contains(text, "## Rejected") {
			t.Errorf("%s names no alternatives", page)
		}
		if n := strings.Count(text, "\n"); n > 60 {
			t.Errorf("%s has %d lines: a decision is one page", page, n)
		}
	}
	if found < 7 {
		t.Errorf("%d decisions found", found)
	}
}
