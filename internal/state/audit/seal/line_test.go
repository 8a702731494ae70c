// SPDX-License-Identifier: Apache-2.0

package seal

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

var at = time.Date(2026, 3, 4, 5, 6, 7, 80_000_000, time.UTC)

// fixed is a note of fixed bytes; nothing here looks at its signature.
const fixed = "postern/000102030405060708090a0b0c0d0e0f\n0\n47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU=\n\n" +
	"\u2014 postern/000102030405060708090a0b0c0d0e0f AAAAAAAA\n"

const fixedLine = `{"checkpoint":"postern/000102030405060708090a0b0c0d0e0f\n0\n47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU=\n\n` +
	`\u2014 postern/000102030405060708090a0b0c0d0e0f AAAAAAAA\n"}`

func TestLines(t *testing.T) {
	c, err := Peek(fixed)
	if err != nil {
		t.Fatal(err)
	}
	head := Head{Segment: 1, Time: at, Note: fixed}
	for _, tt := range []struct {
		got  []byte
		want string
		kind Kind
	}{
		{c.Line(), fixedLine, KindCheckpoint},
		{head.Line(), `{"segment":1,"t":"2026-03-04T05:06:07.08Z",` + strings.TrimSuffix(fixedLine[1:], "}") + `,"edge":[]}`, KindHead},
		{[]byte(`{"t":"2026-03-04T05:06:07.08Z","agent":""}`), "", KindLeaf},
		{[]byte(`{"checkpoint" :""}`), "", KindLeaf},
		{[]byte(` {"segment":1}`), "", KindLeaf},
		{nil, "", KindLeaf},
	} {
		if tt.want != "" && string(tt.got) != tt.want {
			t.Errorf("%s\nwant %s", tt.got, tt.want)
		}
		if k := KindOf(tt.got); k != tt.kind {
			t.Errorf("%s: kind %d, want %d", tt.got, k, tt.kind)
		}
	}
}

func TestParseHead(t *testing.T) {
	k := newKey(t)
	e := grown(11)
	c := sign(t, k, 11, nil)
	want := Head{Segment: 7, Time: at, Note: c.Note, Edge: e.Clone()}
	line := want.Line()
	got, err := ParseHead(line)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(want, got, cmp.Comparer(func(a, b Edge) bool { return a.Root() == b.Root() && a.Size() == b.Size() })); d != "" {
		t.Error(d)
	}
	swap := func(old, with string) []byte {
		b := bytes.Replace(line, []byte(old), []byte(with), 1)
		if bytes.Equal(b, line) {
			t.Fatalf("%q is not in the line", old)
		}
		return b
	}
	hash := grown(1).Root().String()
	for name, b := range map[string][]byte{
		"a blank":               swap(`,"t"`, `, "t"`),
		"another order":         []byte(`{"t":"2026-03-04T05:06:07.08Z","segment":7,` + string(line[bytes.Index(line, []byte(`"checkpoint"`)):])),
		"a name in capitals":    swap(`"segment"`, `"Segment"`),
		"a name twice":          swap(`{"segment":7,`, `{"segment":6,"segment":7,`),
		"one more name":         swap(`{"segment":7,`, `{"segment":7,"x":1,`),
		"a time with an offset": swap(`08Z"`, `08+00:00"`),
		"a time beyond years":   swap(`2026-03-04T05:06:07.08Z`, `9999-12-31T23:59:59-23:59`),
		"a time before years":   swap(`2026-03-04T05:06:07.08Z`, `0000-01-01T00:00:00+23:59`),
		"an escape not needed":  swap(`postern/`, `postern\/`),
		"escape in capitals":    swap(`\u2014`, `\U2014`),
		"raw dash":              swap(`\u2014`, "\u2014"),
		"another edge":          swap(e.Hashes()[1].String(), hash),
		"a longer edge":         swap(`"edge":[`, `"edge":["`+hash+`",`),
		"an edge of null":       []byte(strings.Replace(fixedHead, `[]`, `null`, 1)),
		"more after it":         append(bytes.Clone(line), ' '),
		"a note without text":   []byte(`{"segment":7,"t":"2026-03-04T05:06:07.08Z","checkpoint":"","edge":[]}`),
		"nothing":               nil,
	} {
		if _, err := ParseHead(b); err == nil {
			t.Errorf("%s: taken: %s", name, b)
		}
	}
	if _, err := ParseHead([]byte(fixedHead)); err != nil {
		t.Errorf("the head that was changed: %v", err)
	}
}

const fixedHead = `{"segment":1,"t":"2026-03-04T05:06:07.08Z","checkpoint":"postern/000102030405060708090a0b0c0d0e0f\n0\n47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU=\n\n` +
	`\u2014 postern/000102030405060708090a0b0c0d0e0f AAAAAAAA\n","edge":[]}`

func TestParseCheckpoint(t *testing.T) {
	c := sign(t, newKey(t), 4, nil)
	got, err := ParseCheckpoint(c.Line())
	if err != nil || got != c {
		t.Errorf("%+v, %v", got, err)
	}
	for _, b := range []string{
		"", "{}", "null", `{"checkpoint":""}`, `{"checkpoint":"a\n\nb"}`, fixedLine + " ", " " + fixedLine,
		strings.Replace(fixedLine, "{", `{"x":1,`, 1), strings.Replace(fixedLine, "checkpoint", "Checkpoint", 1),
		strings.Replace(fixedLine, `\u2014`, "\u2014", 1), strings.Replace(fixedLine, `\n0\n`, `\u000a0\n`, 1),
		strings.Replace(fixedLine, `\n0\n`, `\n00\n`, 1), strings.Replace(fixedLine, "postern/", "gate/", 1),
	} {
		if got, err := ParseCheckpoint([]byte(b)); err == nil || got.Note != "" {
			t.Errorf("%s: %v, %+v", b, err, got)
		}
	}
}

// FuzzParseCheckpoint: what is taken is written as the same bytes, in
// printable ASCII.
func FuzzParseCheckpoint(f *testing.F) {
	f.Add([]byte(fixedLine))
	f.Fuzz(func(t *testing.T, line []byte) {
		c, err := ParseCheckpoint(line)
		if err != nil {
			return
		}
		if !bytes.Equal(c.Line(), line) || KindOf(line) != KindCheckpoint || !printable(line) {
			t.Errorf("%q is taken", line)
		}
	})
}

func FuzzParseHead(f *testing.F) {
	f.Add([]byte(fixedHead))
	f.Fuzz(func(t *testing.T, line []byte) {
		h, err := ParseHead(line)
		if err != nil {
			return
		}
		if !bytes.Equal(h.Line(), line) || KindOf(line) != KindHead || !printable(line) {
			t.Errorf("%q is taken", line)
		}
		if c, err := Peek(h.Note); err != nil || c.Root != h.Edge.Root() || c.Size != h.Edge.Size() {
			t.Errorf("%q: the edge is not that of the note", line)
		}
	})
}

func printable(b []byte) bool {
	return !bytes.ContainsFunc(b, func(r rune) bool { return r < 0x20 || r > 0x7e })
}
