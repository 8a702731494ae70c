// SPDX-License-Identifier: Apache-2.0

package mcpserver

import (
	"bufio"
	"io"
	"os"
	"strings"
	"testing"

	"github.com/postern-gate/postern/core/textsafe"
	"github.com/postern-gate/postern/core/untrusted"
)

// BenchmarkCall measures one tools/call over the pipes of an operating system,
// with the client in the same process: serial is a whole round, in-flight what
// the server can take. The user and system time of the process over b.N is an
// upper bound of the CPU a call, since the client's is in it.
func BenchmarkCall(b *testing.B) {
	request := call("1", "echo", `,"arguments":{"text":"hello"}`) + "\n"
	for name, depth := range map[string]int{"serial": 1, "in-flight-16": 16} {
		b.Run(name, func(b *testing.B) {
			in, out, stop := pipes(b, newServer(b, newGate()))
			defer stop()
			exchange(b, in, out, opening+"\n")
			ids := make([]string, depth)
			for i := range ids {
				ids[i] = strings.Replace(request, `"id":1`, `"id":`+strings.Repeat("1", i+1), 1)
			}
			batch := strings.Join(ids, "")
			b.ReportAllocs()
			for b.Loop() {
				if _, err := io.WriteString(in, batch); err != nil {
					b.Fatal(err)
				}
				for range depth {
					if _, err := out.ReadSlice('\n'); err != nil {
						b.Fatal(err)
					}
				}
			}
			b.ReportMetric(float64(b.N*depth)/b.Elapsed().Seconds(), "calls/s")
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*depth), "ns/call")
		})
	}
}

func pipes(b *testing.B, s *Server) (in *os.File, out *bufio.Reader, stop func()) {
	b.Helper()
	inR, inW, err := os.Pipe()
	if err != nil {
		b.Fatal(err)
	}
	outR, outW, err := os.Pipe()
	if err != nil {
		b.Fatal(err)
	}
	served := make(chan error, 1)
	go func() { served <- s.ServeStdio(b.Context(), inR, outW) }()
	return inW, bufio.NewReaderSize(outR, 1<<20), func() {
		inW.Close()
		if err := <-served; err != nil {
			b.Error(err)
		}
		inR.Close()
		outR.Close()
		outW.Close()
	}
}

func exchange(b *testing.B, in io.Writer, out *bufio.Reader, line string) {
	b.Helper()
	if _, err := io.WriteString(in, line); err != nil {
		b.Fatal(err)
	}
	if _, err := out.ReadSlice('\n'); err != nil {
		b.Fatal(err)
	}
}

// BenchmarkResult measures what a large file costs between the tool and the
// transport: the envelope and one encoding.
func BenchmarkResult(b *testing.B) {
	body := strings.Repeat("The quick brown fox jumps over the lazy dog.\n", 25000)
	s := newServer(b, newGate())
	b.SetBytes(int64(len(body)))
	b.ReportAllocs()
	for b.Loop() {
		r := Result{Content: []Content{Outside(untrusted.Wrap(untrusted.File, "project://a.txt", "", body)), Own(textsafe.Block("note"))}}
		s.appendResult(nil, "1", false, &r)
	}
}
