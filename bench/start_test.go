// SPDX-License-Identifier: Apache-2.0

//go:build linux

package bench

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"
)

// BenchmarkStartBesideTrue times whole processes, from fork to exit, in turn
// with /bin/true: what a verb costs a hook or a shell that calls it. An empty
// Go program stands beside them, to tell what is the language's.
func BenchmarkStartBesideTrue(b *testing.B) {
	home := b.TempDir()
	folder := filepath.Join(home, "folder")
	if err := os.Mkdir(folder, 0o700); err != nil {
		b.Fatal(err)
	}
	program := compiled(b, "../cmd/postern")
	for _, c := range []struct {
		name string
		args []string
	}{
		{"empty-go", []string{emptyGo(b)}},
		{"version", []string{program, "version"}},
		{"check", []string{program, "check", "fs.write", "x"}},
	} {
		b.Run(c.name, func(b *testing.B) {
			var ours, ratios []time.Duration
			run := func(args ...string) time.Duration {
				cmd := exec.Command(args[0], args[1:]...)
				cmd.Dir, cmd.Env = folder, append(os.Environ(), "HOME="+home, "XDG_CONFIG_HOME=", "XDG_STATE_HOME=", "POSTERN_STATE=")
				from := time.Now()
				if err := cmd.Run(); err != nil {
					b.Fatal(err)
				}
				return time.Since(from)
			}
			for range 5 {
				run(c.args...)
			}
			for b.Loop() {
				base, took := run("/bin/true"), run(c.args...)
				ours, ratios = append(ours, took), append(ratios, 1000*took/base)
			}
			b.ReportMetric(middle(ours)/1000, "ms")
			b.ReportMetric(middle(ratios), "×true")
			b.ReportMetric(0, "ns/op") // of both: says nothing
		})
	}
}

// compiled is a package as it is shipped, in a folder of its own.
func compiled(tb testing.TB, pkg string) string {
	tb.Helper()
	bin := filepath.Join(tb.TempDir(), "program")
	build := exec.Command("go", "build", "-trimpath", "-ldflags=-s", "-o", bin, pkg)
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		tb.Fatalf("%v\n%s", err, out)
	}
	return bin
}

func emptyGo(tb testing.TB) string {
	tb.Helper()
	file := filepath.Join(tb.TempDir(), "main.go")
	if err := os.WriteFile(file, []byte("package main\n\nfunc main() {}\n"), 0o600); err != nil {
		tb.Fatal(err)
	}
	return compiled(tb, file)
}
