// SPDX-License-Identifier: Apache-2.0

package records

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/postern-gate/postern/internal/state/audit/segment"
)

const (
	head = `{"segment":1,"t":"2026-11-30T01:02:03Z","checkpoint":"x","edge":[]}`
	mark = `{"checkpoint":"x"}`
)

func line(corr string) string { return strings.Replace(whole, `"c-1"`, strconv.Quote(corr), 1) }

// write appends to a segment, and syncs nothing.
func write(t testing.TB, dir string, number int, text string) {
	t.Helper()
	f, err := os.OpenFile(segment.Path(dir, number, segment.Lines), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err == nil {
		_, err = f.WriteString(text)
		err = errors.Join(err, f.Close())
	}
	if err != nil {
		t.Fatal(err)
	}
}

func corrs(t *testing.T, r *Reader) []string {
	t.Helper()
	var got []string
	for {
		e, err := r.Next()
		if errors.Is(err, io.EOF) {
			return got
		}
		if err != nil {
			t.Fatal(err)
		}
		if e.Err != nil {
			got = append(got, e.Place()+" "+string(e.Text))
			continue
		}
		got = append(got, e.Record.Corr)
	}
}

func want(t *testing.T, got []string, want ...string) {
	t.Helper()
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
}

// TestReader plays a log that grows while it is read.
func TestReader(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "audit")
	r := NewReader(dir, Cursor{})
	defer r.Close()
	want(t, corrs(t, r))
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "000001.hashes"), make([]byte, 64), 0o600); err != nil {
		t.Fatal(err)
	}
	want(t, corrs(t, r))
	write(t, dir, 2, head+"\n"+line("a")+"\n"+mark+"\n"+line("b")+"\n")
	want(t, corrs(t, r), "a", "b")
	want(t, corrs(t, r))
	// A line is there once it is whole; a torn one that is cut off again
	// leaves no trace.
	write(t, dir, 2, line("c")[:40])
	want(t, corrs(t, r))
	write(t, dir, 2, line("c")[40:])
	want(t, corrs(t, r))
	write(t, dir, 2, "\n")
	want(t, corrs(t, r), "c")
	info, err := os.Stat(segment.Path(dir, 2, segment.Lines))
	if err != nil {
		t.Fatal(err)
	}
	write(t, dir, 2, "torn")
	want(t, corrs(t, r))
	if err := os.Truncate(segment.Path(dir, 2, segment.Lines), info.Size()); err != nil {
		t.Fatal(err)
	}
	write(t, dir, 2, line("d")+"\nnonsense\n"+head+"\n")
	want(t, corrs(t, r), "d", "000002.jsonl:7 nonsense", "000002.jsonl:8 "+head)
	// A rotation: what came late in the old segment comes before the new one.
	write(t, dir, 2, line("e")+"\n"+mark+"\n")
	write(t, dir, 3, head+"\n"+line("f")+"\n")
	want(t, corrs(t, r), "e", "f")
	want(t, corrs(t, r))
	write(t, dir, 3, "torn")
	write(t, dir, 5, head+"\n"+line("g")+"\n")
	want(t, corrs(t, r), "g")
}

// TestReaderLosesSegment: a segment that is removed or replaced is not a
// reason to show old ones again; its successor is shown.
func TestReaderLosesSegment(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, 1, line("a")+"\n")
	write(t, dir, 2, line("b")+"\n")
	r := NewReader(dir, Cursor{})
	defer r.Close()
	want(t, corrs(t, r), "a", "b")
	if err := os.Remove(segment.Path(dir, 2, segment.Lines)); err != nil {
		t.Fatal(err)
	}
	want(t, corrs(t, r))
	write(t, dir, 2, line("forged")+"\n")
	want(t, corrs(t, r))
	write(t, dir, 3, line("c")+"\n")
	want(t, corrs(t, r), "c")
}

// TestReaderRenewed: a log that a person put aside is read to its end, and the
// new one from its beginning.
func TestReaderRenewed(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, 1, line("a")+"\n")
	r := NewReader(dir, Cursor{})
	defer r.Close()
	want(t, corrs(t, r), "a")
	write(t, dir, 1, line("b")+"\n")
	aside := filepath.Join(dir, "ended-x")
	if err := errors.Join(os.Mkdir(aside, 0o700),
		os.Rename(segment.Path(dir, 1, segment.Lines), segment.Path(aside, 1, segment.Lines))); err != nil {
		t.Fatal(err)
	}
	write(t, dir, 1, line("c")+"\n")
	want(t, corrs(t, r), "b", "c")
}

// TestReaderRegular: only files are read, so that nothing is waited for.
func TestReaderRegular(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, 1, line("a")+"\n")
	elsewhere := filepath.Join(t.TempDir(), "elsewhere")
	if err := errors.Join(os.Mkdir(segment.Path(dir, 2, segment.Lines), 0o700), os.WriteFile(elsewhere, []byte(line("x")+"\n"), 0o600),
		os.Symlink(elsewhere, segment.Path(dir, 3, segment.Lines))); err != nil {
		t.Fatal(err)
	}
	write(t, dir, 4, line("b")+"\n")
	r := NewReader(dir, Cursor{})
	defer r.Close()
	want(t, corrs(t, r), "a", "b")
}

func TestNewest(t *testing.T) {
	dir := t.TempDir()
	for number := 1; number <= 3; number++ {
		text := head + "\n"
		for i := range 4 {
			text += line(fmt.Sprintf("%d.%d", number, i)) + "\n" + mark + "\n"
		}
		write(t, dir, number, text)
	}
	write(t, dir, 3, "garbage\n")
	for _, c := range []struct {
		f    Filter
		n    int
		want []string
		more bool
	}{
		{Filter{}, 0, nil, true},
		{Filter{}, 1, []string{"000003.jsonl:10 garbage"}, true},
		{Filter{}, 6, []string{"2.3", "3.0", "3.1", "3.2", "3.3", "000003.jsonl:10 garbage"}, true},
		{Filter{Agent: "codex"}, 5, []string{"2.3", "3.0", "3.1", "3.2", "3.3"}, true},
		{Filter{Agent: "codex"}, 4, []string{"3.0", "3.1", "3.2", "3.3"}, true},
		{Filter{Agent: "codex"}, 12, []string{"1.0", "1.1", "1.2", "1.3", "2.0", "2.1", "2.2", "2.3", "3.0", "3.1", "3.2", "3.3"}, false},
		{Filter{Corr: "1.2"}, 1, []string{"1.2"}, false},
		{Filter{Corr: "nobody"}, 1, nil, false},
	} {
		from, more, err := Newest(t.Context(), dir, &c.f, c.n)
		if err != nil || more != c.more {
			t.Errorf("%+v %d: more %v, %v", c.f, c.n, more, err)
		}
		r := NewReader(dir, from)
		var got []string
		err = r.Each(t.Context(), func(e Entry) error {
			if !c.f.Match(&e) {
				return nil
			}
			if e.Err != nil {
				got = append(got, e.Place()+" "+string(e.Text))
			} else {
				got = append(got, e.Record.Corr)
			}
			return nil
		})
		r.Close()
		if d := cmp.Diff(c.want, got); err != nil || d != "" {
			t.Errorf("%+v %d: %v %s", c.f, c.n, err, d)
		}
	}
	if from, more, err := Newest(t.Context(), filepath.Join(dir, "none"), &Filter{}, 1); err != nil || more || from != (Cursor{}) {
		t.Errorf("no log: %v, %v, %v", from, more, err)
	}
}

// TestNewestIsTheEnd: over any log and any number, what follows the place are
// the last ones of all that fit.
func TestNewestIsTheEnd(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		dir := t.TempDir()
		for number := range rapid.IntRange(0, 4).Draw(r, "segments") {
			text := ""
			for range rapid.IntRange(0, 6).Draw(r, "lines") {
				text += rapid.SampledFrom([]string{line("a"), line("b"), mark, "garbage"}).Draw(r, "line") + "\n"
			}
			write(t, dir, number+1, text)
		}
		f := rapid.SampledFrom([]Filter{{}, {Corr: "a"}, {Agent: "codex"}, {Corr: "c"}}).Draw(r, "filter")
		n := rapid.IntRange(0, 12).Draw(r, "n")
		from, more, err := Newest(t.Context(), dir, &f, n)
		if err != nil {
			r.Fatal(err)
		}
		places := func(from Cursor) (all []string) {
			reader := NewReader(dir, from)
			defer reader.Close()
			if err := reader.Each(t.Context(), func(e Entry) error {
				if f.Match(&e) {
					all = append(all, e.Place())
				}
				return nil
			}); err != nil {
				r.Fatal(err)
			}
			return all
		}
		all := places(Cursor{})
		if got, want := places(from), all[max(0, len(all)-n):]; !slices.Equal(got, want) || more != (len(all) > n) {
			r.Fatalf("%v and more %v, want %v of %v", got, more, want, all)
		}
	})
}

const asWriter = "POSTERN_TEST_RECORDS"

// TestFollow: another process appends in pieces, tears a line and cuts it off,
// and rotates; the follower sees every line once and in order.
func TestFollow(t *testing.T) {
	if dir := os.Getenv(asWriter); dir != "" {
		appendAndRotate(t, dir)
		return
	}
	dir := t.TempDir()
	cmd := exec.Command(os.Args[0], "-test.run=^TestFollow$")
	cmd.Env = append(os.Environ(), asWriter+"="+dir)
	cmd.Stderr = os.Stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = cmd.Wait() }()
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	r := NewReader(dir, Cursor{})
	defer r.Close()
	next := 0
	err := r.Follow(ctx, func(e Entry) error {
		if e.Err != nil || e.Record.Corr != strconv.Itoa(next) {
			return fmt.Errorf("%s: %q, want record %d", e.Place(), e.Text, next)
		}
		if next++; next == written {
			cancel()
		}
		return nil
	})
	if err != nil || next != written {
		t.Errorf("%d of %d records, %v", next, written, err)
	}
}

const written = 600

func appendAndRotate(t *testing.T, dir string) {
	number, pause := 1, 3*time.Millisecond
	write(t, dir, number, head+"\n")
	for i := range written {
		text := line(strconv.Itoa(i)) + "\n"
		path := segment.Path(dir, number, segment.Lines)
		switch {
		case i%7 == 0:
			write(t, dir, number, text[:100])
			time.Sleep(pause)
			write(t, dir, number, text[100:])
		case i%11 == 0:
			info, err := os.Stat(path)
			if err != nil {
				t.Fatal(err)
			}
			write(t, dir, number, "\xff torn")
			time.Sleep(pause)
			if err := os.Truncate(path, info.Size()); err != nil {
				t.Fatal(err)
			}
			write(t, dir, number, text)
		default:
			write(t, dir, number, text)
		}
		if i%50 == 49 {
			write(t, dir, number, mark+"\n")
			number++
			write(t, dir, number, head+"\n")
		}
	}
}

// TestEachEnds: reading ends with its context and with the error of its caller.
func TestEachEnds(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, 1, line("a")+"\n"+line("b")+"\n")
	ctx, cancel := context.WithCancel(t.Context())
	seen := 0
	r := NewReader(dir, Cursor{})
	defer r.Close()
	if err := r.Each(ctx, func(Entry) error { seen++; cancel(); return nil }); !errors.Is(err, context.Canceled) || seen != 1 {
		t.Errorf("%d seen, %v", seen, err)
	}
	if err := r.Follow(t.Context(), func(Entry) error { return io.ErrClosedPipe }); !errors.Is(err, io.ErrClosedPipe) {
		t.Error(err)
	}
}
