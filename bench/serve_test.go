// SPDX-License-Identifier: Apache-2.0

//go:build linux

package bench

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// grow makes files of about 2 kB, a hundred to a folder, five levels deep.
func grow(tb testing.TB, files int) string {
	tb.Helper()
	root := filepath.Join(tb.TempDir(), "tree")
	body := []byte(strings.Repeat("const answer = 42 // an ordinary line of text\n", 44))
	for i := range files {
		path := filepath.Join(root, small(i))
		if i%100 == 0 {
			if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
				tb.Fatal(err)
			}
		}
		if err := os.WriteFile(path, body, 0o644); err != nil {
			tb.Fatal(err)
		}
	}
	return root
}

func small(i int) string {
	return fmt.Sprintf("src/pkg/a%d/b%d/f%d.ts", i/1000, i/100, i)
}

// each runs one benchmark for both servers over the same tree.
func each(b *testing.B, files int, run func(b *testing.B, root string, launch func() *client)) {
	root := grow(b, files)
	commands := servers(b)
	for _, name := range []string{"postern", "reference"} {
		command := commands[name]
		b.Run(name, func(b *testing.B) {
			run(b, root, func() *client { return start(b, command(root)) })
		})
	}
}

// perCall reports the server's processor time, beside the client's clock.
func perCall(b *testing.B, c *client, before time.Duration) {
	b.ReportMetric(float64((c.cpu()-before).Microseconds())/float64(b.N), "cpu-µs/call")
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "calls/s")
}

func BenchmarkStart(b *testing.B) {
	each(b, 1, func(b *testing.B, _ string, launch func() *client) {
		var idle float64
		for b.Loop() {
			c := launch()
			b.StopTimer()
			idle = c.memory("VmRSS")
			c.stop()
			b.StartTimer()
		}
		b.ReportMetric(idle, "idle-MiB")
	})
}

func BenchmarkSmallReads(b *testing.B) {
	const files = 2000
	for _, flight := range []int{1, 16} {
		b.Run(fmt.Sprintf("flight=%d", flight), func(b *testing.B) {
			each(b, files, func(b *testing.B, root string, launch func() *client) {
				c := launch()
				defer c.stop()
				for i := range 200 {
					c.call("read_text_file", map[string]any{"path": filepath.Join(root, small(i))})
				}
				before, sent := c.cpu(), 0
				send := func() {
					c.request("read_text_file", map[string]any{"path": filepath.Join(root, small(sent%files))})
					sent++
				}
				for range flight - 1 {
					send()
				}
				for b.Loop() {
					send()
					c.answer()
				}
				perCall(b, c, before)
				for range flight - 1 {
					c.answer()
				}
			})
		})
	}
}

func BenchmarkWrites(b *testing.B) {
	each(b, 1, func(b *testing.B, root string, launch func() *client) {
		c := launch()
		defer c.stop()
		before := c.cpu()
		body := strings.Repeat("a line of the body\n", 40)
		for i := 0; b.Loop(); i++ {
			c.call("write_file", map[string]any{"path": filepath.Join(root, fmt.Sprintf("w%d", i%500)), "content": body})
		}
		perCall(b, c, before)
	})
}

func BenchmarkNameSearch(b *testing.B) {
	each(b, 30000, func(b *testing.B, root string, launch func() *client) {
		c := launch()
		defer c.stop()
		before := c.cpu()
		for b.Loop() {
			c.call("search_files", map[string]any{"path": root, "pattern": "**/no-such-name"})
		}
		perCall(b, c, before)
		b.ReportMetric(c.memory("VmHWM"), "peak-MiB")
	})
}

// BenchmarkReadsBesideSearch is the middle time of a small read while one
// search after another runs, beside that of a read alone.
func BenchmarkReadsBesideSearch(b *testing.B) {
	each(b, 30000, func(b *testing.B, root string, launch func() *client) {
		c := launch()
		defer c.stop()
		read := func() time.Duration {
			from := time.Now()
			c.call("read_text_file", map[string]any{"path": filepath.Join(root, small(0))})
			return time.Since(from)
		}
		var alone, beside []time.Duration
		for range 1000 {
			alone = append(alone, read())
		}
		for b.Loop() {
			beside = append(beside, c.readsDuring("search_files", map[string]any{"path": root, "pattern": "**/no-such-name"},
				map[string]any{"path": filepath.Join(root, small(0))})...)
		}
		b.ReportMetric(middle(alone), "alone-µs")
		b.ReportMetric(middle(beside), "beside-µs")
	})
}

// BenchmarkLargeFile asks for both ends of a file of 100 MB.
func BenchmarkLargeFile(b *testing.B) {
	each(b, 1, func(b *testing.B, root string, launch func() *client) {
		path := filepath.Join(root, "large.log")
		if err := os.WriteFile(path, []byte(strings.Repeat("an ordinary line of a log that has grown\n", 100_000_000/41)), 0o644); err != nil {
			b.Fatal(err)
		}
		c := launch()
		defer c.stop()
		for b.Loop() {
			c.call("read_text_file", map[string]any{"path": path, "head": 100})
			c.call("read_text_file", map[string]any{"path": path, "tail": 100})
		}
		b.ReportMetric(c.memory("VmHWM"), "peak-MiB")
	})
}
