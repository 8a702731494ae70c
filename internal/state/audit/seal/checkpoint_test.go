// SPDX-License-Identifier: Apache-2.0

package seal

import (
	"encoding/base64"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/mod/sumdb/note"
)

func newKey(t testing.TB) Key {
	t.Helper()
	k, err := NewKey()
	if err != nil {
		t.Fatal(err)
	}
	return k
}

// grown returns an edge of n lines.
func grown(n int) *Edge {
	e := new(Edge)
	for i := range n {
		e.AddLine(fmt.Append(nil, "line ", i))
	}
	return e
}

func sign(t testing.TB, k Key, n int, before *Checkpoint) Checkpoint {
	t.Helper()
	c, err := k.Sign(grown(n), before)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// TestSignIsANote: what is signed is a note to the package that defined them,
// and what comes back is what was signed.
func TestSignIsANote(t *testing.T) {
	k := newKey(t)
	first := sign(t, k, 0, nil)
	next := sign(t, k, 5, &first)
	v, err := note.NewVerifier(k.Line())
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []Checkpoint{first, next} {
		n, err := note.Open([]byte(c.Note), note.VerifierList(v))
		if err != nil {
			t.Fatal(err)
		}
		want := fmt.Sprintf("%s\n%d\n%s\n", k.Origin(), c.Size, c.Root)
		if c.Previous != "" {
			want += "previous " + c.Previous + "\n"
		}
		if n.Text != want {
			t.Errorf("the text is %q, want %q", n.Text, want)
		}
		for name, open := range map[string]func(string) (Checkpoint, error){"Open": k.Verifier().Open, "Peek": Peek} {
			got, err := open(c.Note)
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			if d := cmp.Diff(c, got); d != "" {
				t.Errorf("%s: %s", name, d)
			}
		}
	}
	if first.Previous != "" || next.Previous != first.After() {
		t.Errorf("previous: %q, then %q", first.Previous, next.Previous)
	}
}

// TestOpenRefuses: each is one step from a note that opens.
func TestOpenRefuses(t *testing.T) {
	k, other := newKey(t), newKey(t)
	first := sign(t, k, 0, nil)
	c := sign(t, k, 5, &first)
	text, sig, _ := strings.Cut(c.Note, "\n\n")
	text += "\n"
	raw, err := base64.StdEncoding.DecodeString(strings.TrimSpace(sig[strings.LastIndexByte(sig, ' ')+1:]))
	if err != nil {
		t.Fatal(err)
	}
	raw[10] ^= 1
	resign := func(text string, signers ...note.Signer) string {
		b, err := note.Sign(&note.Note{Text: text}, signers...)
		if err != nil {
			t.Fatal(err)
		}
		return string(b)
	}
	lines := strings.Split(text, "\n")
	for _, tt := range []struct {
		name, note string
		want       error
	}{
		{"itself", c.Note, nil},
		{"signed again", resign(text, k.signer), nil},
		{"another key", sign(t, other, 5, &first).Note, ErrUnknownKey},
		{"the text signed by another key", resign(text, other.signer), ErrUnknownKey},
		{"another log's origin under this key", resign(strings.Replace(text, k.Origin(), other.Origin(), 1), k.signer), ErrUnknownKey},
		{"a flipped signature", text + "\n" + k.Verifier().signature(base64.StdEncoding.EncodeToString(raw)), ErrSignature},
		{"another size", strings.Replace(c.Note, "\n5\n", "\n6\n", 1), ErrSignature},
		{"a second signature", resign(text, k.signer, other.signer), ErrFormat},
		{"the signature twice", c.Note + sig, ErrFormat},
		{"stray bits at the end of the base64", strayBits(c.Note), ErrFormat},
		{"nothing", "", ErrFormat},
		{"no signature", text + "\n", ErrFormat},
		{"cut", c.Note[:len(c.Note)-1], ErrFormat},
		{"more after it", c.Note + "\n", ErrFormat},
		{"a size with a sign", resign(strings.Replace(text, "\n5\n", "\n+5\n", 1), k.signer), ErrFormat},
		{"a size with a zero", resign(strings.Replace(text, "\n5\n", "\n05\n", 1), k.signer), ErrFormat},
		{"a size below zero", resign(strings.Replace(text, "\n5\n", "\n-5\n", 1), k.signer), ErrFormat},
		{"a short root", resign(lines[0]+"\n5\nAAAA\n", k.signer), ErrFormat},
		{"another extension", resign(lines[0]+"\n5\n"+lines[2]+"\nother x\n", k.signer), ErrFormat},
		{"two extensions", resign(text+lines[3]+"\n", k.signer), ErrFormat},
		{"a short previous", resign(lines[0]+"\n5\n"+lines[2]+"\nprevious AAAA\n", k.signer), ErrFormat},
		{"no root", resign(lines[0]+"\n5\n", k.signer), ErrFormat},
		{"an origin of another kind", resign("example.org/log\n5\n"+lines[2]+"\n", k.signer), ErrFormat},
	} {
		if tt.note == c.Note && tt.want != nil {
			t.Errorf("%s: nothing was changed", tt.name)
		}
		if _, err := k.Verifier().Open(tt.note); !errors.Is(err, tt.want) {
			t.Errorf("%s: %v, want %v", tt.name, err, tt.want)
		}
	}
}

// strayBits sets a bit of the last base64 digit that no byte is made of.
func strayBits(signed string) string {
	at := strings.LastIndex(signed, "=\n") - 1
	const digits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"
	d := digits[strings.IndexByte(digits, signed[at])^1]
	return signed[:at] + string(d) + signed[at+1:]
}

// TestStrayBitsOpenAsANote is the control: the note package alone takes it.
func TestStrayBitsOpenAsANote(t *testing.T) {
	k := newKey(t)
	c := sign(t, k, 3, nil)
	v, err := note.NewVerifier(k.Line())
	if err != nil {
		t.Fatal(err)
	}
	changed := strayBits(c.Note)
	if _, err := note.Open([]byte(changed), note.VerifierList(v)); err != nil || changed == c.Note {
		t.Errorf("the note package has become strict (%v): the check in Open can go", err)
	}
}

func TestEveryFlipIsRefused(t *testing.T) {
	k := newKey(t)
	c := sign(t, k, 1234, nil)
	for i := range len(c.Note) {
		for bit := range 8 {
			b := []byte(c.Note)
			b[i] ^= 1 << bit
			if _, err := k.Verifier().Open(string(b)); err == nil {
				t.Errorf("opens with bit %d of byte %d flipped", bit, i)
			}
		}
	}
}

func TestKeyFile(t *testing.T) {
	k := newKey(t)
	again, err := ParseKey(k.Bytes())
	if err != nil || again.Line() != k.Line() || again.Origin() != k.Origin() {
		t.Fatalf("read back: %v", err)
	}
	if sign(t, again, 3, nil) != sign(t, k, 3, nil) {
		t.Error("the key read back signs otherwise")
	}
	other := newKey(t)
	for name, b := range map[string]string{
		"nothing": "", "no line": k.secret + "\n", "cut": string(k.Bytes()[:len(k.Bytes())-1]),
		"more": string(k.Bytes()) + "\n", "another line": k.secret + "\n" + other.line + "\n",
		"lines swapped": k.line + "\n" + k.secret + "\n",
	} {
		if _, err := ParseKey([]byte(b)); err == nil {
			t.Errorf("%s: taken", name)
		}
	}
}

func TestParseVerifier(t *testing.T) {
	k := newKey(t)
	v, err := ParseVerifier(k.Line() + "\n")
	if err != nil || v.Origin() != k.Origin() {
		t.Errorf("%v, origin %q", err, v.Origin())
	}
	for _, line := range []string{"", "x", k.Line()[1:], k.Line() + "A", k.secret} {
		if _, err := ParseVerifier(line); err == nil {
			t.Errorf("%q: taken", line)
		}
	}
}

// FuzzOpen: a note that opens is exactly the one that its contents make.
func FuzzOpen(f *testing.F) {
	k := newKey(f)
	first := sign(f, k, 0, nil)
	c := sign(f, k, 5, &first)
	f.Add(0, byte(0), "")
	f.Add(len(c.Note)-3, byte(1), "")
	f.Add(0, byte(0), c.Note[strings.Index(c.Note, "\u2014"):])
	f.Fuzz(func(t *testing.T, at int, flip byte, more string) {
		b := []byte(c.Note)
		b[uint(at)%uint(len(b))] ^= flip
		signed := string(b) + more
		got, err := k.Verifier().Open(signed)
		if (err == nil) != (signed == c.Note) {
			t.Fatalf("%q: %v", signed, err)
		}
		if err == nil && got != c {
			t.Fatalf("opens as %+v", got)
		}
		if p, err := Peek(signed); err == nil && p.Note != signed {
			t.Fatalf("peek: %+v", p)
		}
	})
}
