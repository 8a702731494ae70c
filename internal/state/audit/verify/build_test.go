// SPDX-License-Identifier: Apache-2.0

package verify

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"encoding/base64"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/mod/sumdb/note"

	"github.com/postern-gate/postern/internal/state/audit/seal"
	"github.com/postern-gate/postern/internal/state/audit/segment"
)

// fixedKey is a key that everybody knows: for tests, and for vectors that are
// the same each time.
func fixedKey(t testing.TB, n byte) seal.Key {
	t.Helper()
	origin := "postern/" + strings.Repeat(fmt.Sprintf("%02x", n), 16)
	seed := bytes.Repeat([]byte{n}, ed25519.SeedSize)
	pub, ok := ed25519.NewKeyFromSeed(seed).Public().(ed25519.PublicKey)
	if !ok {
		t.Fatal("not an Ed25519 key")
	}
	line, err := note.NewEd25519VerifierKey(origin, pub)
	if err != nil {
		t.Fatal(err)
	}
	hash := strings.Split(line, "+")[1]
	secret := "PRIVATE+KEY+" + origin + "+" + hash + "+" + base64.StdEncoding.EncodeToString(append([]byte{1}, seed...))
	k, err := seal.ParseKey([]byte(secret + "\n" + line + "\n"))
	if err != nil {
		t.Fatal(err)
	}
	return k
}

// builder makes a log by the format, with none of the code that writes one.
type builder struct {
	t      testing.TB
	key    seal.Key
	now    time.Time
	files  map[string][]byte
	leaves map[int][]seal.Hash // of each segment
	number int
	edge   seal.Edge
	base   seal.Edge
	last   *seal.Checkpoint
	notes  []seal.Checkpoint
	calls  int
	// For mutants: where the lines of a segment that was given up begin, from
	// 0, and which flips are taken.
	givenUp map[string]int
	sample  int
}

func newBuilder(t testing.TB, key seal.Key) *builder {
	b := &builder{
		t: t, key: key, now: time.Date(2026, 3, 4, 5, 6, 7, 0, time.UTC),
		files: map[string][]byte{}, leaves: map[int][]seal.Hash{},
	}
	b.sign()
	b.begin(1)
	b.own("renewed", "", 0)
	return b
}

func (b *builder) sign() {
	c, err := b.key.Sign(&b.edge, b.last)
	if err != nil {
		b.t.Fatal(err)
	}
	b.last, b.base = &c, b.edge.Clone()
	b.notes = append(b.notes, c)
}

func (b *builder) name() string { return segment.Name(b.number) }

func (b *builder) line(line []byte) {
	b.files[b.name()] = append(append(b.files[b.name()], line...), '\n')
}

// begin makes a segment that goes on from the last checkpoint.
func (b *builder) begin(number int) {
	b.number, b.edge = number, b.base.Clone()
	b.line(seal.Head{Segment: number, Time: b.tick(), Note: b.last.Note, Edge: b.edge.Clone()}.Line())
}

func (b *builder) tick() time.Time {
	b.now = b.now.Add(1234567 * time.Nanosecond)
	return b.now
}

// leaf adds any line that counts.
func (b *builder) leaf(line string) {
	b.line([]byte(line))
	b.edge.AddLine([]byte(line))
	b.leaves[b.number] = append(b.leaves[b.number], seal.Leaf([]byte(line)))
}

func (b *builder) record(event, op, more string) string {
	return fmt.Sprintf(`{"t":%q,"agent":"codex","op":%q,"decision":"allow","reason":"%s: allow (shipped default)","source":"serve",`+
		`"session":"41f3","corr":"aa268f-%d","policy":"0e94","level":"sdk","event":%q%s}`,
		b.tick().Format(time.RFC3339Nano), op, op, b.calls, event, more)
}

// call records a change: an intent and its outcome.
func (b *builder) call() {
	b.calls++
	b.leaf(b.record("intent", "fs.write", fmt.Sprintf(`,"resource":"project://n\u00e4me-%d.txt","was":"absent"`, b.calls)))
	b.leaf(b.record("outcome", "fs.write", fmt.Sprintf(`,"resource":"project://n\u00e4me-%d.txt"`, b.calls)))
}

// own records an event about the log.
func (b *builder) own(event, resource string, n int64) {
	more := ""
	if resource != "" {
		more += fmt.Sprintf(`,"resource":%q`, resource)
	}
	if n != 0 {
		more += fmt.Sprintf(`,"n":%d`, n)
	}
	b.leaf(b.record(event, "log", more))
}

// seal puts a checkpoint after what there is.
func (b *builder) seal() {
	b.sign()
	b.line(b.last.Line())
}

// rotate ends the segment.
func (b *builder) rotate() {
	if b.edge.Size() > b.last.Size {
		b.seal()
	}
	b.begin(b.number + 1)
}

// prune leaves the hashes of a segment.
func (b *builder) prune(number int) {
	b.own("pruned", segment.Name(number), int64(len(b.leaves[number])))
	delete(b.files, segment.Name(number))
	var all []byte
	for _, h := range b.leaves[number] {
		all = append(all, h[:]...)
	}
	b.files[filepath.Base(segment.Path("", number, segment.Hashes))] = all
}

// clockStep is more than the clock may go back unseen.
const clockStep = time.Hour

// cutLines leaves the first lines of a segment.
func (b *builder) cutLines(number, keep int) {
	name := segment.Name(number)
	b.files[name] = bytes.Join(lines(b.files[name])[:keep], nil)
}

// lines returns the lines of a file with their ends.
func lines(content []byte) [][]byte {
	return slices.Collect(bytes.Lines(content))
}

// write puts the files into a new folder.
func write(t testing.TB, files map[string][]byte) string {
	t.Helper()
	dir := t.TempDir()
	for name, content := range files {
		if err := os.WriteFile(filepath.Join(dir, name), content, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// options is everything that there is to check a log with.
func (b *builder) options(dir string) Options {
	return Options{Dir: dir, Verifier: b.key.Verifier()}
}

func (b *builder) check(change func(*Options)) Report {
	b.t.Helper()
	o := b.options(write(b.t, b.files))
	if change != nil {
		change(&o)
	}
	r, err := Check(context.Background(), o)
	if err != nil {
		b.t.Fatal(err)
	}
	return r
}

// clone allows to go on in two ways.
func (b *builder) clone() *builder {
	c := *b
	c.edge, c.base = b.edge.Clone(), b.base.Clone()
	c.files, c.leaves, c.notes = maps.Clone(b.files), maps.Clone(b.leaves), slices.Clone(b.notes)
	for k, v := range c.files {
		c.files[k] = slices.Clone(v)
	}
	return &c
}

// full is a log with every kind of line: a pruned segment, several checkpoints
// in a segment, garbage that an event names, a segment that was given up, and
// an unsealed tail.
func full(t testing.TB, key seal.Key) *builder {
	b := newBuilder(t, key)
	b.call()
	b.seal()
	b.call()
	b.rotate() // 2
	b.call()
	b.seal()
	b.call()
	b.call()
	b.rotate() // 3
	b.prune(1)
	b.call()
	b.leaf("\x00\x01 what a disk left")
	b.own("garbage", segment.Name(3)+":5", 0)
	b.seal()
	b.call()
	b.seal()
	b.givenUp = map[string]int{b.name(): len(lines(b.files[b.name()]))}
	b.line([]byte(b.record("intent", "fs.write", ""))) // 4 goes on without it
	b.begin(4)
	b.own("segment_abandoned", segment.Name(3), 0)
	b.call()
	b.seal()
	b.call()
	b.rotate() // 5
	b.call()
	b.seal()
	b.call()
	b.seal()
	b.call()
	return b
}
