// SPDX-License-Identifier: Apache-2.0

package verify

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/postern-gate/postern/internal/state/audit/seal"
	"github.com/postern-gate/postern/internal/state/audit/segment"
)

// mutant is a log that was changed: the files that differ, nil for one that is
// gone.
type mutant struct {
	name  string
	files map[string][]byte
	// cut: what is missing is at the end, where only a checkpoint from elsewhere
	// can tell.
	cut bool
	// tail: the change lies in records that no checkpoint covers yet. Nobody
	// can find it, as long as it leaves whole records.
	tail bool
}

// mutants yields every change of b's log that the tests know.
func mutants(b *builder, yield func(mutant)) {
	for _, name := range slices.Sorted(maps.Keys(b.files)) {
		content := b.files[name]
		if strings.HasSuffix(name, segment.Hashes) {
			hashMutants(name, content, yield)
		} else {
			b.lineMutants(name, content, yield)
		}
	}
	b.segmentMutants(yield)
	b.insertMutants(yield)
}

func hashMutants(name string, content []byte, yield func(mutant)) {
	one := func(what string, content []byte) {
		yield(mutant{name: name + " " + what, files: map[string][]byte{name: content}})
	}
	for i := range content {
		one(fmt.Sprintf("bit of byte %d", i), flipped(content, i, i%8))
	}
	for i := 0; i < len(content); i += seal.HashSize {
		one(fmt.Sprintf("without hash at %d", i), slices.Concat(content[:i], content[i+seal.HashSize:]))
		one(fmt.Sprintf("hash at %d twice", i), slices.Concat(content[:i+seal.HashSize], content[i:]))
		if i > 0 {
			one(fmt.Sprintf("swapped at %d", i), slices.Concat(content[:i-seal.HashSize], content[i:i+seal.HashSize], content[i-seal.HashSize:i], content[i+seal.HashSize:]))
		}
	}
	one("cut", content[:len(content)-1])
	one("empty", []byte{})
	one("longer", append(slices.Clone(content), 0))
}

func flipped(b []byte, at, bit int) []byte {
	b = slices.Clone(b)
	b[at] ^= 1 << bit
	return b
}

// outside tells whether a line is no part of the log: it was given up.
func (b *builder) outside(name string, line int) bool {
	return b.givenUp[name] > 0 && line >= b.givenUp[name]
}

// lineMutants changes the lines of one segment.
func (b *builder) lineMutants(name string, content []byte, yield func(mutant)) {
	all := lines(content)
	newest := name == b.name()
	sealed := b.sealedLines(name) // lines from here on are not covered
	one := func(m mutant, lines ...[][]byte) {
		m.name = name + " " + m.name
		m.files = map[string][]byte{name: append([]byte{}, bytes.Join(slices.Concat(lines...), nil)...)}
		yield(m)
	}
	for i, line := range all {
		if b.outside(name, i) {
			continue
		}
		tail := newest && i >= sealed
		for at := range line {
			for bit := range 8 {
				if (at+bit)%b.sample != 0 || i == 0 && inTime(line, at) {
					continue
				}
				one(mutant{name: fmt.Sprintf("line %d, bit %d of byte %d", i+1, bit, at), tail: tail}, all[:i], [][]byte{flipped(line, at, bit)}, all[i+1:])
			}
		}
		// The newest checkpoint too can only be missed by who knows of it.
		last := newest && i == sealed-1
		one(mutant{name: fmt.Sprintf("without line %d", i+1), tail: tail, cut: last}, all[:i], all[i+1:])
		one(mutant{name: fmt.Sprintf("line %d twice", i+1), tail: tail}, all[:i+1], all[i:])
		if i+1 < len(all) && !b.outside(name, i+1) && !bytes.Equal(line, all[i+1]) {
			one(mutant{name: fmt.Sprintf("lines %d and %d swapped", i+1, i+2), tail: tail, cut: last}, all[:i], [][]byte{all[i+1], line}, all[i+2:])
		}
		for _, n := range []int{0, 1, len(line) / 2, len(line) - 1} {
			one(mutant{name: fmt.Sprintf("cut in line %d after %d bytes", i+1, n), tail: tail, cut: newest && i > 0}, all[:i], [][]byte{line[:n]})
		}
	}
}

// inTime tells whether a byte of a head is one of its time, the only bytes
// before the last checkpoint that nothing covers (docs/audit-log.md).
func inTime(head []byte, at int) bool {
	from := bytes.Index(head, []byte(`"t":"`)) + len(`"t":"`)
	return at >= from && at < from+bytes.IndexByte(head[from:], '"')
}

// sealedLines is the number of lines of a segment up to its last checkpoint.
func (b *builder) sealedLines(name string) int {
	n := 0
	for i, line := range lines(b.files[name]) {
		if seal.KindOf(line) != seal.KindLeaf {
			n = i + 1
		}
	}
	return n
}

// segmentMutants drops, replaces and swaps whole segments.
func (b *builder) segmentMutants(yield func(mutant)) {
	names := slices.Sorted(maps.Keys(b.files))
	other := full(b.t, fixedKey(b.t, 9))
	for i, name := range names {
		yield(mutant{name: name + " gone", files: map[string][]byte{name: nil}, cut: i == len(names)-1})
		for j, with := range names {
			if i != j {
				yield(mutant{name: name + " with the contents of " + with, files: map[string][]byte{name: b.files[with]}})
			}
			if i < j {
				yield(mutant{name: name + " and " + with + " swapped", files: map[string][]byte{name: b.files[with], with: b.files[name]}})
			}
		}
		yield(mutant{name: name + " empty", files: map[string][]byte{name: {}}})
		if !bytes.Equal(other.files[name], b.files[name]) { // the hashes of equal records are equal
			yield(mutant{name: name + " of another log", files: map[string][]byte{name: other.files[name]}})
		}
	}
	for n := 2; n < b.number; n++ {
		c := b.clone()
		c.prune(n) // its event is not written
		c.files[b.name()] = b.files[b.name()]
		hashes := filepath.Base(segment.Path("", n, segment.Hashes))
		yield(mutant{name: fmt.Sprintf("segment %d as hashes", n), files: map[string][]byte{segment.Name(n): nil, hashes: c.files[hashes]}})
	}
}

// insertMutants puts a line where none was: an old checkpoint, one of another
// log, and a forged record.
func (b *builder) insertMutants(yield func(mutant)) {
	other := full(b.t, fixedKey(b.t, 9))
	insert := map[string][]byte{"a forged record": []byte(b.record("outcome", "fs.delete", `,"resource":"project://forged"`))}
	for i, n := range b.notes {
		insert[fmt.Sprintf("checkpoint %d", i)] = n.Line()
		insert[fmt.Sprintf("checkpoint %d of another log", i)] = other.notes[i].Line()
	}
	for name := range b.files {
		if strings.HasSuffix(name, segment.Hashes) {
			continue
		}
		all := lines(b.files[name])
		for at := range len(all) + 1 {
			if b.outside(name, at) {
				continue
			}
			for what, line := range insert {
				yield(mutant{
					name:  fmt.Sprintf("%s: %s before line %d", name, what, at+1),
					files: map[string][]byte{name: bytes.Join(slices.Concat(all[:at], [][]byte{append(slices.Clone(line), '\n')}, all[at:]), nil)},
					tail:  what == "a forged record" && name == b.name() && at >= b.sealedLines(name),
				})
			}
		}
	}
}

var sample = flag.Int("sample", 31, "of how many flips of a bit TestMutants takes one")

// checked is one folder in which mutant after mutant is put.
type checked struct {
	t    testing.TB
	b    *builder
	dir  string
	opts Options
}

func (c *checked) put(files map[string][]byte) {
	for name, content := range files {
		path := filepath.Join(c.dir, name)
		var err error
		if content != nil {
			err = os.WriteFile(path, content, 0o600)
		} else if err = os.Remove(path); errors.Is(err, fs.ErrNotExist) {
			err = nil
		}
		if err != nil {
			c.t.Fatal(err)
		}
	}
}

// check puts a mutant in the place of the log, checks it and takes it away.
func (c *checked) check(m mutant, signed, anchor *seal.Checkpoint) Report {
	c.t.Helper()
	back := map[string][]byte{}
	for name := range m.files {
		back[name] = c.b.files[name] // nil for one that was not there
	}
	c.put(m.files)
	defer c.put(back)
	o := c.opts
	o.Signed, o.Anchor = signed, anchor
	r, err := Check(context.Background(), o)
	if err != nil {
		c.t.Fatal(err)
	}
	return r
}

// TestMutants: every change of what is covered by a checkpoint is found from
// the log and the verifier's line alone; one that cuts off the end is found
// with what the machine remembers or with an anchor; and nothing is found in
// the log itself.
func TestMutants(t *testing.T) {
	b := full(t, fixedKey(t, 1))
	b.sample = *sample
	c := &checked{t: t, b: b, dir: write(t, b.files), opts: b.options("")}
	c.opts.Dir = c.dir
	control := func(when string) {
		if r := c.check(mutant{}, b.last, b.last); len(r.Problems) > 0 {
			t.Fatalf("%s: the log itself has problems: %+v", when, r.Problems)
		}
	}
	control("before")
	count, cut, tail := 0, 0, 0
	mutants(b, func(m mutant) {
		count++
		switch {
		case m.tail:
			// Nothing covers these, which is no secret: only that it ends well.
			tail++
			c.check(m, b.last, b.last)
		case m.cut:
			cut++
			if r := c.check(m, b.last, nil); len(r.Problems) == 0 {
				t.Errorf("%s: not found with what is remembered", m.name)
			}
			if r := c.check(m, nil, b.last); len(r.Problems) == 0 || r.Err() == nil {
				t.Errorf("%s: not found with an anchor", m.name)
			}
		default:
			if r := c.check(m, nil, nil); len(r.Problems) == 0 || r.Err() == nil {
				t.Errorf("%s: not found", m.name)
			}
		}
	})
	control("after")
	if count < 3000 && *sample <= 31 || cut == 0 || tail == 0 {
		t.Errorf("%d mutants, %d cut, %d in the tail", count, cut, tail)
	}
	t.Logf("%d mutants, of them %d cut at the end and %d in the unsealed tail", count, cut, tail)
}
