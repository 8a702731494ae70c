// SPDX-License-Identifier: Apache-2.0

package archtest

import (
	"bytes"
	"fmt"
	"go/ast"
	"go/build"
	"go/scanner"
	"go/token"
	"io"
	"os"
	"path"
	"path/filepath"
	"strings"
	"testing"
)

// The sizes that keep the module readable: any reviewer reads core in a day.
const (
	maxFile     = 400
	maxFunction = 60   // 40 is the habit
	maxCore     = 6700 // lines of code on Linux; docs/adr/0009
	maxMain     = 30
)

func lines(text []byte) int { return bytes.Count(text, []byte("\n")) }

// code counts the lines that hold a token: neither blank ones nor comments,
// which would make a budget a reason to explain less.
func code(text []byte) int {
	fset := token.NewFileSet()
	file := fset.AddFile("", -1, len(text))
	var s scanner.Scanner
	s.Init(file, text, nil, 0)
	held := map[int]bool{}
	for {
		pos, tok, literal := s.Scan()
		if tok == token.EOF {
			return len(held)
		}
		if tok == token.SEMICOLON && literal == "\n" {
			continue // the scanner's own
		}
		for i := range strings.Count(literal, "\n") + 1 {
			held[file.Line(pos)+i] = true
		}
	}
}

// onLinux reports whether a build for Linux has this file: a reviewer reads
// one system at a time.
func (s source) onLinux() bool {
	on := build.Default
	on.GOOS, on.GOARCH, on.CgoEnabled = "linux", "amd64", false
	on.OpenFile = func(string) (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(s.text)), nil }
	ok, err := on.MatchFile("", path.Base(s.path))
	return ok && err == nil
}

func sizeProblems(files []source, coreBudget int) []string {
	var problems []string
	core := 0
	for _, s := range files {
		if s.test {
			continue
		}
		n := lines(s.text)
		if beneath(s.dir(), "core") && s.onLinux() {
			core += code(s.text)
		}
		limit := maxFile
		if beneath(s.dir(), "cmd/postern") {
			limit = maxMain
		}
		if n > limit {
			problems = append(problems, fmt.Sprintf("%s has %d lines, %d is the limit: it holds more than one idea", s.path, n, limit))
		}
		ast.Inspect(s.file, func(node ast.Node) bool {
			fn, ok := node.(*ast.FuncDecl)
			if !ok {
				return true
			}
			if n := s.fset.Position(fn.End()).Line - s.fset.Position(fn.Pos()).Line + 1; n > maxFunction {
				problems = append(problems, fmt.Sprintf("%s: %s has %d lines, %d is the limit: give its steps names", s.at(fn), fn.Name.Name, n, maxFunction))
			}
			return true
		})
	}
	if core > coreBudget {
		problems = append(problems, fmt.Sprintf("core has %d lines of code on Linux, %d is the budget: what decides must be small enough to be read whole (docs/adr/0009)", core, coreBudget))
	}
	return problems
}

func TestSizes(t *testing.T) {
	report(t, sizeProblems(sources(t), maxCore))
	long := "package x\nfunc f() {\n" + strings.Repeat("\t_ = 0\n", maxFile) + "}\n"
	small := []source{
		made(t, "core/y.go", "package y\n\n// why\nconst s = `\n`\n/* more\n*/\n"),
		made(t, "core/y_windows.go", "package y\nvar a, b = 1, 2\n"),
		made(t, "core/z.go", "//go:build !linux\n\npackage y\n"),
	}
	report(t, sizeProblems(small, 3))
	control(t, sizeProblems(small, 2), 1)
	control(t, sizeProblems([]source{
		made(t, "enforce/x.go", long),
		made(t, "enforce/x_test.go", long),
		made(t, "cmd/postern/main.go", "package main\n"+strings.Repeat("\n", maxMain)),
	}, 0), 3)
}

const spdx = "SPDX-License-Identifier: Apache-2.0"

func headerProblems(texts map[string][]byte) []string {
	var problems []string
	for path, text := range texts {
		// A script's first line is its interpreter.
		if top := bytes.SplitN(text, []byte("\n"), 3); !bytes.Contains(bytes.Join(top[:min(2, len(top))], nil), []byte(spdx)) {
			problems = append(problems, path+": the first line is // "+spdx)
		}
	}
	return problems
}

func TestHeaders(t *testing.T) {
	texts := map[string][]byte{}
	for _, s := range sources(t) {
		texts[s.path] = s.text
	}
	scripts, err := filepath.Glob(filepath.Join("..", "..", ".ci", "*"))
	if err != nil || len(scripts) == 0 {
		t.Fatalf("no scripts found: %v", err)
	}
	for _, path := range append(scripts, filepath.Join("..", "..", "Makefile")) {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		texts[path] = text
	}
	report(t, headerProblems(texts))
	control(t, headerProblems(map[string][]byte{
		"a.go": []byte("package a\n"), "b.go": []byte("// " + spdx + "\n\npackage b\n"),
		"c.go": nil, "d": []byte("#!/bin/sh\n# " + spdx + "\n"),
	}), 2)
}
