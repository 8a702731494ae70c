// SPDX-License-Identifier: Apache-2.0

//go:build linux

package bench

import (
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/postern-gate/postern/internal/testenv"
)

// searched is how many files the trees of these benchmarks have.
const searched = 30_000

// lineByLine is how servers without an index or a matcher of their own search:
// one file after the other, read whole, each line looked through.
func lineByLine(root, text string) (hits int, err error) {
	err = filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		content, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		for line := range strings.SplitSeq(string(content), "\n") {
			if strings.Contains(line, text) {
				hits++
			}
		}
		return nil
	})
	return hits, err
}

// ripgrep searches a tree for an expression that nothing matches.
func ripgrep(rg, query, root string) error {
	out, err := exec.Command(rg, "--no-config", "--hidden", "--no-heading", "-n", "-e", query, root).CombinedOutput()
	if exit := (*exec.ExitError)(nil); errors.As(err, &exit) && exit.ExitCode() == 1 && len(out) == 0 {
		return nil
	}
	return errors.Join(errors.New("ripgrep found something"), err)
}

// BenchmarkContentSearch looks for what isn't there in 30,000 files of 2 kB:
// postern over stdio, ripgrep as a process, and files read one by one.
func BenchmarkContentSearch(b *testing.B) {
	rg, err := exec.LookPath("rg")
	if err != nil {
		testenv.Missing(b, "ripgrep")
	}
	root := grow(b, searched)
	command := postern(b)
	for name, query := range map[string]string{"text": "no such text", "expression": `no[- ]such\s+\w+`, "no-text": `[x-z]{3}\d`} {
		b.Run(name, func(b *testing.B) {
			c := start(b, command(root))
			defer c.stop()
			inTurn(b,
				way{"postern", func() error { c.call("search_content", map[string]any{"path": root, "query": query}); return nil }},
				way{"ripgrep", func() error { return ripgrep(rg, query, root) }},
				way{"line-by-line", func() error { _, err := lineByLine(root, "no such text"); return err }},
			)
			b.ReportMetric(c.memory("VmHWM"), "peak-MiB")
		})
	}
}

// BenchmarkFullPageSearch looks for what is on every line, up to the first page.
func BenchmarkFullPageSearch(b *testing.B) {
	root := grow(b, searched)
	c := start(b, postern(b)(root))
	defer c.stop()
	for b.Loop() {
		c.call("search_content", map[string]any{"path": root, "query": "ordinary"})
	}
}

// BenchmarkReadsBesideContentSearch is the middle time of a small read while
// one search in contents after another runs, beside that of a read alone.
func BenchmarkReadsBesideContentSearch(b *testing.B) {
	root := grow(b, searched)
	c := start(b, postern(b)(root))
	defer c.stop()
	one := map[string]any{"path": filepath.Join(root, small(0))}
	var alone, beside []time.Duration
	for range 1000 {
		from := time.Now()
		c.call("read_text_file", one)
		alone = append(alone, time.Since(from))
	}
	for b.Loop() {
		beside = append(beside, c.readsDuring("search_content", map[string]any{"path": root, "query": "no such text"}, one)...)
	}
	b.ReportMetric(middle(alone), "alone-µs")
	b.ReportMetric(middle(beside), "beside-µs")
	b.ReportMetric(middle(beside)/middle(alone), "x-alone")
}
