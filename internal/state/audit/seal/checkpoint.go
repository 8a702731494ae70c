// SPDX-License-Identifier: Apache-2.0

package seal

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"golang.org/x/mod/sumdb/note"
	"golang.org/x/mod/sumdb/tlog"
)

// The kinds of notes that don't open.
var (
	ErrFormat     = errors.New("not a checkpoint")
	ErrUnknownKey = errors.New("not signed by the key of this log")
	ErrSignature  = errors.New("the signature is wrong")
)

// originPrefix begins the origin of every log; a random id follows.
const (
	originPrefix = "postern/"
	originBytes  = 16
)

// previousLine is the one extension line of ours: the hash of the checkpoint
// before, so that none can be left out.
const previousLine = "previous "

// Checkpoint is a signed statement that the first Size lines have this Root
// (c2sp.org/tlog-checkpoint, c2sp.org/signed-note).
type Checkpoint struct {
	Origin   string
	Size     int64
	Root     Hash
	Previous string // base64 of SHA-256 of the whole note before, "" for a log's first
	Note     string // the note as it was signed
}

// After returns what the Previous of the next checkpoint is.
func (c Checkpoint) After() string {
	sum := sha256.Sum256([]byte(c.Note))
	return base64.StdEncoding.EncodeToString(sum[:])
}

// Key signs the checkpoints of one log.
type Key struct {
	signer note.Signer
	secret string
	line   string
}

// NewKey returns the key of a new log with a random origin.
func NewKey() (Key, error) {
	var id [originBytes]byte
	_, _ = rand.Read(id[:]) // never fails: crypto/rand ends the program instead
	secret, line, err := note.GenerateKey(rand.Reader, originPrefix+hex.EncodeToString(id[:]))
	if err != nil {
		return Key{}, err
	}
	return ParseKey([]byte(secret + "\n" + line + "\n"))
}

// ParseKey reads what Bytes returned.
func ParseKey(b []byte) (Key, error) {
	secret, rest, _ := strings.Cut(string(b), "\n")
	line, rest, whole := strings.Cut(rest, "\n")
	signer, err := note.NewSigner(secret)
	if err != nil || !whole || rest != "" {
		return Key{}, errors.New("not the key of a log")
	}
	v, err := ParseVerifier(line)
	if err != nil || v.v.Name() != signer.Name() || v.v.KeyHash() != signer.KeyHash() {
		return Key{}, errors.New("not the key of a log")
	}
	return Key{signer: signer, secret: secret, line: line}, nil
}

// Bytes returns the key for its file: the secret line, then Line.
func (k Key) Bytes() []byte { return []byte(k.secret + "\n" + k.line + "\n") }

// Line returns the verifier's line: what somebody needs to check this log.
func (k Key) Line() string { return k.line }

// Origin names the log.
func (k Key) Origin() string { return k.signer.Name() }

// Verifier returns the public half.
func (k Key) Verifier() Verifier {
	v, err := ParseVerifier(k.line)
	if err != nil {
		panic(err) // ParseKey looked at it
	}
	return v
}

// Sign states the tree, after the checkpoint before: nil for a log's first.
func (k Key) Sign(e *Edge, before *Checkpoint) (Checkpoint, error) {
	c := Checkpoint{Origin: k.Origin(), Size: e.Size(), Root: e.Root()}
	if before != nil {
		c.Previous = before.After()
	}
	text := fmt.Sprintf("%s\n%d\n%s\n", c.Origin, c.Size, c.Root)
	if c.Previous != "" {
		text += previousLine + c.Previous + "\n"
	}
	signed, err := note.Sign(&note.Note{Text: text}, k.signer)
	c.Note = string(signed)
	return c, err
}

// Verifier opens the checkpoints of one log.
type Verifier struct{ v note.Verifier }

// ParseVerifier reads a verifier's line, name+hash+key.
func ParseVerifier(line string) (Verifier, error) {
	v, err := note.NewVerifier(strings.TrimSpace(line))
	if err != nil {
		return Verifier{}, fmt.Errorf("not a verifier's line: %w", err)
	}
	return Verifier{v}, nil
}

// Origin names the log.
func (v Verifier) Origin() string { return v.v.Name() }

// Open returns the checkpoint in a note, or ErrFormat, ErrUnknownKey (another
// key, or another log's origin) or ErrSignature.
func (v Verifier) Open(signed string) (Checkpoint, error) {
	n, err := note.Open([]byte(signed), note.VerifierList(v.v))
	var unknown *note.UnverifiedNoteError
	var invalid *note.InvalidSignatureError
	switch {
	case errors.As(err, &unknown):
		return Checkpoint{}, ErrUnknownKey
	case errors.As(err, &invalid):
		return Checkpoint{}, ErrSignature
	case err != nil || len(n.Sigs) != 1 || len(n.UnverifiedSigs) > 0:
		return Checkpoint{}, ErrFormat
	}
	c, err := parse(n.Text)
	switch {
	case err != nil:
		return Checkpoint{}, err
	case c.Origin != v.Origin():
		return Checkpoint{}, ErrUnknownKey
	case signed != n.Text+"\n"+v.signature(n.Sigs[0].Base64):
		return Checkpoint{}, ErrFormat
	}
	c.Note = signed
	return c, nil
}

// signature returns the one form of the line in which a note has this
// signature, "" where it is not base64. The note package also takes base64 with
// stray bits at its end and a line that is there twice: with those a signed
// note could be changed and still open.
func (v Verifier) signature(b64 string) string {
	raw, err := base64.StdEncoding.DecodeString(b64)
	if err != nil {
		return ""
	}
	return "\u2014 " + v.v.Name() + " " + base64.StdEncoding.EncodeToString(raw) + "\n"
}

// Peek returns what a note says without any check of its signature.
func Peek(signed string) (Checkpoint, error) {
	text, _, ok := strings.Cut(signed, "\n\n")
	if !ok {
		return Checkpoint{}, ErrFormat
	}
	c, err := parse(text + "\n")
	if err != nil {
		return Checkpoint{}, err
	}
	c.Note = signed
	return c, nil
}

func parse(text string) (Checkpoint, error) {
	lines := strings.Split(text, "\n")
	if len(lines) < 4 || len(lines) > 5 || lines[len(lines)-1] != "" || !isOrigin(lines[0]) {
		return Checkpoint{}, ErrFormat
	}
	size, err := strconv.ParseInt(lines[1], 10, 64)
	if err != nil || size < 0 || strconv.FormatInt(size, 10) != lines[1] {
		return Checkpoint{}, ErrFormat
	}
	root, err := tlog.ParseHash(lines[2])
	if err != nil || root.String() != lines[2] {
		return Checkpoint{}, ErrFormat
	}
	c := Checkpoint{Origin: lines[0], Size: size, Root: root}
	if len(lines) == 5 {
		previous, ok := strings.CutPrefix(lines[3], previousLine)
		if h, err := tlog.ParseHash(previous); !ok || err != nil || h.String() != previous {
			return Checkpoint{}, ErrFormat
		}
		c.Previous = previous
	}
	return c, nil
}

// isOrigin tells whether s can be the origin of a log of ours.
func isOrigin(s string) bool {
	id, ok := strings.CutPrefix(s, originPrefix)
	raw, err := hex.DecodeString(id)
	return ok && err == nil && len(raw) == originBytes && hex.EncodeToString(raw) == id
}
