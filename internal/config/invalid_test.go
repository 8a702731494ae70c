// SPDX-License-Identifier: Apache-2.0

package config_test

import (
	"errors"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/postern-gate/postern/core/fault"
	"github.com/postern-gate/postern/internal/config"
)

var update = flag.Bool("update", false, "rewrite the messages in testdata/invalid")

// TestInvalid: one broken file for each error, and its whole message. Files
// whose name starts with project- are read as a project's.
func TestInvalid(t *testing.T) {
	names, err := filepath.Glob("testdata/invalid/*.yaml")
	if err != nil || len(names) < 40 {
		t.Fatalf("%d files, %v", len(names), err)
	}
	for _, name := range names {
		base := filepath.Base(name)
		t.Run(base, func(t *testing.T) {
			src, err := os.ReadFile(name)
			if err != nil {
				t.Fatal(err)
			}
			_, err = config.Parse(base, src, strings.HasPrefix(base, "project-"))
			var invalid *config.Invalid
			if fault.CodeOf(err) != fault.ConfigInvalid || !errors.As(err, &invalid) {
				t.Fatalf("accepted, or not as invalid: %v", err)
			}
			golden := strings.TrimSuffix(name, ".yaml") + ".want"
			got := invalid.Error() + "\n"
			if *update {
				if err := os.WriteFile(golden, []byte(got), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(golden)
			if err != nil {
				t.Fatal(err)
			}
			if d := cmp.Diff(string(want), got); d != "" {
				t.Error(d)
			}
		})
	}
}

func TestTooLarge(t *testing.T) {
	src := "version: 1\n#" + strings.Repeat("x", 1<<20-12)
	if _, err := config.Parse("p", []byte(src), false); err != nil {
		t.Errorf("exactly 1 MB: %v", err)
	}
	if _, err := config.Parse("p", []byte(src+"x"), false); !strings.Contains(errorText(err), "p:1:1: the file is larger than 1 MB") {
		t.Errorf("%v", err)
	}
}

// TestDeepNesting: a megabyte of brackets is an error and takes no time.
func TestDeepNesting(t *testing.T) {
	for _, s := range []string{"[", "{a: ", "- "} {
		if _, err := config.Parse("p", []byte(strings.Repeat(s, 1<<20/len(s))), false); fault.CodeOf(err) != fault.ConfigInvalid {
			t.Errorf("%q: %v", s, err)
		}
	}
}

// FuzzParse: never a panic, an error always has a place in the file, and what
// is accepted compiles.
func FuzzParse(f *testing.F) {
	seeds, _ := filepath.Glob("testdata/invalid/*.yaml")
	more, _ := filepath.Glob("../../policies/*.yaml")
	for _, name := range append(seeds, more...) {
		src, err := os.ReadFile(name)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(src, false)
	}
	f.Add([]byte("version: 1\nroots: {a: {path: ~}}"), true)
	f.Fuzz(func(t *testing.T, src []byte, project bool) {
		p, err := config.Parse("p", src, project)
		if err == nil {
			if p.Version() == "" {
				t.Fatal("accepted without a policy")
			}
			return
		}
		var invalid *config.Invalid
		if !errors.As(err, &invalid) || len(invalid.Problems) == 0 {
			t.Fatalf("not an *Invalid: %v", err)
		}
		for _, problem := range invalid.Problems {
			if problem.Pos.Line < 1 || problem.Pos.Column < 1 || problem.Message == "" {
				t.Fatalf("no place: %+v", problem)
			}
		}
		if strings.ContainsAny(invalid.Error(), "\x00\x1b\x7f\r") {
			t.Fatalf("draws a control: %q", invalid.Error())
		}
	})
}
