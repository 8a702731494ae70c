// SPDX-License-Identifier: Apache-2.0

package prompt

import (
	"context"
	"errors"
	"io"
	"os"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"golang.org/x/term"
)

// Deaf is how long what is typed is ignored after something new is shown: it
// was meant for something else.
const Deaf = 500 * time.Millisecond

// ErrInterrupted is ctrl-c, which a raw terminal hands over as a character.
var ErrInterrupted = errors.New("interrupted")

type key struct {
	char byte
	at   time.Time
}

// Terminal is the one that a program was started on. It is for one goroutine.
type Terminal struct {
	out   io.Writer
	keys  chan key
	size  func() (columns, rows int)
	close func()
	now   func() time.Time
}

// Open opens the terminal that this program was started on, whatever its
// standard streams are, and takes single keys from it until Close.
func Open() (*Terminal, error) {
	in, out, err := Files()
	if err != nil {
		return nil, err
	}
	var before *term.State
	if err := control(in, func(fd int) (err error) { before, err = term.MakeRaw(fd); return err }); err != nil {
		return nil, errors.Join(err, in.Close(), out.Close())
	}
	t := newTerminal(in, out)
	t.size = func() (columns, rows int) {
		_ = control(out, func(fd int) (err error) { columns, rows, err = term.GetSize(fd); return err })
		return sized(columns, rows)
	}
	t.close = func() {
		_ = control(in, func(fd int) error { return term.Restore(fd, before) })
		_ = errors.Join(in.Close(), out.Close())
	}
	return t, nil
}

// sized is the size of a terminal, of 80 columns and 24 rows where it doesn't tell.
func sized(columns, rows int) (int, int) {
	if columns <= 0 {
		columns = 80
	}
	if rows <= 0 {
		rows = 24
	}
	return columns, rows
}

// Files opens the same terminal for reading and for writing as it is, for who asks
// for a line that the terminal itself edits.
func Files() (in, out *os.File, err error) {
	if in, err = os.OpenFile(readPath, os.O_RDWR, 0); err != nil {
		return nil, nil, err
	}
	if out, err = os.OpenFile(writePath, os.O_RDWR, 0); err != nil {
		return nil, nil, errors.Join(err, in.Close())
	}
	return in, out, nil
}

// control does something with the descriptor of a file that stays open meanwhile.
func control(f *os.File, do func(fd int) error) error {
	raw, err := f.SyscallConn()
	if err != nil {
		return err
	}
	var inner error
	return errors.Join(raw.Control(func(fd uintptr) { inner = do(int(fd)) }), inner)
}

func newTerminal(in io.Reader, out io.Writer) *Terminal {
	t := &Terminal{out: out, keys: make(chan key, 1024), size: func() (int, int) { return sized(0, 0) }, close: func() {}, now: time.Now}
	go func() {
		defer close(t.keys)
		var buf [64]byte
		for {
			n, err := in.Read(buf[:])
			for _, c := range buf[:n] {
				t.keys <- key{c, t.now()}
			}
			if err != nil {
				return
			}
		}
	}()
	return t
}

// Close gives the terminal back as it was.
func (t *Terminal) Close() { t.close() }

// print writes text whose only control character is the line feed.
func (t *Terminal) print(text string) error {
	_, err := io.WriteString(t.out, strings.ReplaceAll(text, "\n", "\r\n"))
	return err
}

// maxAnswer bounds a line that is typed, in bytes.
const maxAnswer = 256

const (
	ctrlC     = 0x03
	ctrlD     = 0x04
	backspace = 0x08
	del       = 0x7f
)

// ask shows a prompt and reads a line. Keys of the first half second are
// dropped. It ends early with the error of gone, which is asked again and
// again.
func (t *Terminal) ask(ctx context.Context, prompt string, gone func() error) (string, error) {
	if err := t.print(prompt); err != nil {
		return "", err
	}
	hears := t.now().Add(Deaf)
	look := time.NewTicker(lookEvery)
	defer look.Stop()
	var line []byte
	for {
		select {
		case <-ctx.Done():
			return "", ctx.Err()
		case <-look.C:
			if err := gone(); err != nil {
				return "", errors.Join(err, t.print("\n"))
			}
		case k, open := <-t.keys:
			switch {
			case !open:
				return "", io.EOF
			case k.char == ctrlC || k.char == ctrlD && len(line) == 0:
				_ = t.print("\n")
				return "", ErrInterrupted
			case k.at.Before(hears):
			case k.char == '\r' || k.char == '\n':
				return strings.TrimSpace(string(line)), t.print("\n")
			default:
				line = t.edit(line, k.char)
			}
		}
	}
}

// edit adds a character to the line that is typed, or takes one away.
func (t *Terminal) edit(line []byte, char byte) []byte {
	switch {
	case (char == backspace || char == del) && len(line) > 0:
		_ = t.print("\b \b")
		return line[:len(line)-1]
	case char >= ' ' && char < del && len(line) < maxAnswer:
		_ = t.print(string(rune(char)))
		return append(line, char)
	}
	return line
}

// lookEvery is how often it is looked whether a question is still one.
const lookEvery = 250 * time.Millisecond

// page shows a text a screen at a time. It returns when all of it was shown.
func (t *Terminal) page(ctx context.Context, text string, gone func() error) error {
	_, rows := t.size()
	room, used := max(rows-3, 5), 0
	for row := range strings.Lines(t.wrap(text)) {
		if used == room {
			if _, err := t.ask(ctx, "-- more: enter --", gone); err != nil {
				return err
			}
			used = 0
		}
		if err := t.print(row); err != nil {
			return err
		}
		used++
	}
	return nil
}

// goesOn begins each row that continues a line.
const goesOn = "  ¦ "

// wrap breaks lines before the terminal would: what it puts at the beginning of
// a row by itself could pass for a line of ours. It is broken behind a blank where
// one stands in the second half of the row. A tab becomes blanks.
func (t *Terminal) wrap(text string) string {
	columns, _ := t.size()
	return Wrap(text, columns)
}

// Wrap breaks the lines of text for so many columns, as those of a card are.
func Wrap(text string, columns int) string {
	columns = max(columns, 20) - 1 // a full row waits at its end, each terminal in its own way
	var b []byte
	at, word, begins := 0, 0, 0 // in columns, where the last word begins; and that in b
	for _, r := range text {
		if r == '\n' {
			b = append(b, '\n')
			at, word = 0, 0
			continue
		}
		w := width(r, at)
		if at+w > columns {
			if word <= columns/2 || r == ' ' || r == '\t' {
				word, begins = at, len(b)
			}
			b = slices.Insert(b, begins, []byte("\n"+goesOn)...)
			at += len(goesOn) - 1 - word
			word = 0
			w = width(r, at)
		}
		at += w
		switch r {
		case '\t':
			b = append(b, strings.Repeat(" ", w)...)
			word, begins = at, len(b)
		case ' ':
			b = append(b, ' ')
			word, begins = at, len(b)
		default:
			b = utf8.AppendRune(b, r)
		}
	}
	return string(b)
}

// width is how many columns a character takes at most, after so many. Which
// are wide, terminals don't agree on.
func width(r rune, at int) int {
	switch {
	case r == '\t':
		return 8 - at%8
	case r >= utf8.RuneSelf:
		return 2
	}
	return 1
}
