// SPDX-License-Identifier: Apache-2.0

package seal

import (
	"fmt"
	"testing"

	"golang.org/x/mod/sumdb/tlog"
	"pgregory.net/rapid"
)

// stored is the storage that tlog's own tree keeps of some lines.
func stored(t require, lines [][]byte) tlog.HashReaderFunc {
	t.Helper()
	var hashes []Hash
	read := tlog.HashReaderFunc(func(at []int64) ([]Hash, error) {
		var out []Hash
		for _, i := range at {
			out = append(out, hashes[i])
		}
		return out, nil
	})
	for i, line := range lines {
		more, err := tlog.StoredHashes(int64(i), line, read)
		if err != nil {
			t.Fatal(err)
		}
		hashes = append(hashes, more...)
	}
	return read
}

type require interface {
	Helper()
	Fatal(args ...any)
}

// TestEdgeIsTheTree: the edge has the root that tlog computes, at every size
// and from every edge that it is taken up from.
func TestEdgeIsTheTree(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		lines := rapid.SliceOfN(rapid.SliceOfN(rapid.Byte(), 0, 40), 0, 70).Draw(t, "lines")
		read := stored(t, lines)
		var e Edge
		for i := 0; ; i++ {
			want, err := tlog.TreeHash(int64(i), read)
			if err != nil {
				t.Fatal(err)
			}
			if e.Root() != want || e.Size() != int64(i) {
				t.Fatalf("size %d: root %v, tlog has %v", i, e.Root(), want)
			}
			if i == len(lines) {
				break
			}
			if rapid.Bool().Draw(t, "taken up") {
				if e, err = NewEdge(e.Size(), e.Hashes()); err != nil {
					t.Fatal(err)
				}
			}
			if rapid.Bool().Draw(t, "by hash") {
				e.Add(Leaf(lines[i]))
			} else {
				e.AddLine(lines[i])
			}
		}
	})
}

func TestEdgeClone(t *testing.T) {
	var e Edge
	for i := range 7 {
		e.AddLine(fmt.Append(nil, i))
	}
	root := e.Root()
	c := e.Clone()
	for i := range 9 {
		c.AddLine(fmt.Append(nil, "x", i))
	}
	h := e.Hashes()
	h[0][0] ^= 1
	if e.Root() != root || e.Size() != 7 {
		t.Error("the edge changed with its clone or with what it gave away")
	}
}

func TestNewEdgeRefuses(t *testing.T) {
	for _, c := range []struct {
		size   int64
		hashes int
		ok     bool
	}{{0, 0, true}, {1, 1, true}, {6, 2, true}, {7, 3, true}, {0, 1, false}, {7, 2, false}, {8, 3, false}, {-1, 64, false}} {
		if _, err := NewEdge(c.size, make([]Hash, c.hashes)); (err == nil) != c.ok {
			t.Errorf("size %d with %d hashes: %v", c.size, c.hashes, err)
		}
	}
}

func BenchmarkAddLine(b *testing.B) {
	line := make([]byte, 300)
	var e Edge
	b.ReportAllocs()
	for b.Loop() {
		e.AddLine(line)
	}
}
