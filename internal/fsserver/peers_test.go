// SPDX-License-Identifier: Apache-2.0

//go:build linux

package fsserver

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/postern-gate/postern/internal/testenv"
)

// run is what a program prints, one sorted line each; a search that finds
// nothing ends with 1.
func (w *world) run(program string, arguments ...string) []string {
	w.Helper()
	cmd := exec.CommandContext(w.Context(), program, arguments...)
	cmd.Dir = w.root
	cmd.Env = append(os.Environ(), "RIPGREP_CONFIG_PATH=", "HOME="+w.box, "XDG_CONFIG_HOME="+w.box, "LC_ALL=C.UTF-8")
	out, err := cmd.Output()
	var exit *exec.ExitError
	if err != nil && (!errors.As(err, &exit) || exit.ExitCode() != 1 || len(exit.Stderr) > 0) {
		w.Fatalf("%s %q: %v", program, arguments, err)
	}
	return sorted(strings.TrimSuffix(string(out), "\n"))
}

func sorted(text string) []string {
	if text == "" || text == "No matches found" {
		return []string{}
	}
	lines := strings.Split(text, "\n")
	slices.Sort(lines)
	return lines
}

// grow makes a tree of folders, files and .gitignore files.
func (w *world) grow(t *rapid.T) {
	w.plant(t)
	names := rapid.SampledFrom([]string{"a", "b", "c.txt", "d.log", ".e", "build", "x y", "é"})
	lines := rapid.SliceOfN(rapid.SampledFrom([]string{"needle", "a needle here", "Needle", "hay", "", "needle needle", "né needle", "end needle", "needle\r", "\tneedle"}), 0, 6)
	for range rapid.IntRange(3, 14).Draw(t, "files") {
		parts := rapid.SliceOfN(names, 1, 4).Draw(t, "path")
		path := w.at(filepath.Join(parts...))
		if os.MkdirAll(filepath.Dir(path), 0o755) != nil {
			continue // a file is in the way
		}
		_ = os.WriteFile(path, []byte(strings.Join(lines.Draw(t, "lines"), "\n")), 0o600) // or a directory
	}
	patterns := rapid.SliceOfN(rapid.SampledFrom([]string{"a", "*.log", "!d.log", "build/", "/b", "a/b", "**/c.txt", "c.*", "!*", "*", "!*/", "x\\ y", "[a-c]", "b/**"}), 1, 4)
	for _, dir := range []string{"", "a", "b", "build"} {
		if info, err := os.Stat(w.at(dir)); err == nil && info.IsDir() && rapid.Bool().Draw(t, "list") {
			_ = os.WriteFile(w.at(filepath.Join(dir, ".gitignore")), []byte(strings.Join(patterns.Draw(t, "patterns"), "\n")), 0o600)
		}
	}
}

// TestAgainstRipgrep: on the same tree with the same options the same lines are
// found. Left out of the comparison, since they are meant to differ: files that
// are UTF-16 (ripgrep recodes them; to us they are binary), $ before a carriage
// return (it is part of the line's end here), lines of more than MaxLine, and
// the list of git's own configuration (core.excludesFile is the person's, not
// the folder's).
func TestAgainstRipgrep(t *testing.T) {
	if _, err := exec.LookPath("rg"); err != nil {
		testenv.Missing(t, "ripgrep")
	}
	w := newWorld(t, nil)
	found, left := 0, 0
	rapid.Check(t, func(rt *rapid.T) {
		w.grow(rt)
		query := rapid.SampledFrom([]string{"needle", "^needle", "n..dle", "needle .*e", "é n", `\bhere\b`, "[^n]eedle", "^$", "needle|hay", `\sneedle`, "(end|a) n"}).Draw(rt, "query")
		a := args{"path": w.root, "query": query, "limit": 1000}
		options := []string{"--no-heading", "-n", "--hidden", "--no-require-git", "--no-ignore-global", "--no-messages", "--color=never", "--glob=!.git"}
		if rapid.Bool().Draw(rt, "any case") {
			a["ignoreCase"], options = true, append(options, "-i")
		}
		if rapid.Bool().Draw(rt, "all") {
			a["includeIgnored"], options = true, append(options, "--no-ignore")
		}
		// A --glob of ripgrep brings back what is ignored; ours doesn't.
		if glob := rapid.SampledFrom([]string{"", "*.txt", "c*", "a/**"}).Draw(rt, "glob"); glob != "" && a["includeIgnored"] != nil {
			a["glob"], options = glob, append(options, "--glob="+glob)
		}
		if near := rapid.IntRange(0, 2).Draw(rt, "context"); near > 0 {
			a["context"], options = near, append(options, fmt.Sprintf("-C%d", near))
		}
		r := w.call("search_content", a).ok()
		ours := unspaced(strings.ReplaceAll(r.body(), w.root+"/", ""))
		theirs := unspaced(strings.Join(w.run("rg", append(options, "-e", query, ".")...), "\n"))
		if d := cmp.Diff(theirs, ours); d != "" {
			rt.Fatalf("%v: -ripgrep +ours\n%s", a, d)
		}
		if found += len(ours); strings.Contains(r.text(), "left out by .gitignore") {
			left++
		}
	})
	if t.Logf("%d lines found, %d searches left something out", found, left); found == 0 || left == 0 {
		t.Error("nothing was compared")
	}
}

// unspaced are the lines in the one form: ripgrep has no blank before the text,
// a ./ before the name, and its carriage returns.
func unspaced(text string) []string {
	var out []string
	for _, line := range sorted(text) {
		if line == "--" {
			continue
		}
		line = strings.TrimPrefix(strings.TrimRight(line, "\r"), "./")
		for _, mark := range []string{":", "-"} {
			for n := range 20 {
				number := mark + itoa(n) + mark
				if at := strings.Index(line, number); at >= 0 {
					line = line[:at] + number + strings.TrimPrefix(line[at+len(number):], " ")
				}
			}
		}
		out = append(out, line)
	}
	slices.Sort(out)
	return out
}

// TestAgainstFind: a name is found if and only if find finds it and the policy
// lets it be listed.
func TestAgainstFind(t *testing.T) {
	w := newWorld(t, nil)
	found := 0
	rapid.Check(t, func(rt *rapid.T) {
		w.grow(rt)
		w.link("a", "to-a")
		for _, tt := range []struct {
			a    args
			find []string
		}{
			{args{"pattern": "a"}, []string{"-name", "a"}},
			{args{"pattern": "**/*.txt"}, []string{"-name", "*.txt"}},
			{args{"pattern": "**/[a-c]*"}, []string{"-name", "[a-c]*"}},
			{args{"pattern": "**/*"}, nil},
			{args{"pattern": "a/**"}, []string{"-path", "./a/*"}},
			{args{"pattern": "B", "substring": true}, []string{"-iname", "*b*"}},
			{args{"pattern": "**/*", "excludePatterns": []string{"build"}}, []string{"-not", "(", "-name", "build", "-o", "-path", "*/build/*", ")"}},
		} {
			tt.a["path"] = w.root
			ours := sorted(strings.ReplaceAll(w.call("search_files", tt.a).ok().body(), w.root+"/", "./"))
			theirs := w.run("find", append([]string{".", "-mindepth", "1", "-not", "-name", ".env"}, tt.find...)...)
			if d := cmp.Diff(theirs, ours); d != "" {
				rt.Fatalf("%v: -find +ours\n%s", tt.a, d)
			}
			found += len(ours)
		}
	})
	if t.Logf("%d names found", found); found == 0 {
		t.Error("nothing was compared")
	}
}
