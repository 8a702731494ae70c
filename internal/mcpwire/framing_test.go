// SPDX-License-Identifier: Apache-2.0

package mcpwire

import (
	"bytes"
	"errors"
	"io"
	"strings"
	"sync"
	"testing"
	"testing/iotest"
)

// frames reads all of r: each line, each id of a line that was too long.
func frames(t *testing.T, r *Reader) (out []string) {
	t.Helper()
	for {
		line, err := r.Next()
		var long *TooLong
		switch {
		case errors.Is(err, io.EOF):
			return out
		case errors.As(err, &long):
			out = append(out, "too long: "+string(long.ID))
		case err != nil:
			t.Fatal(err)
		default:
			out = append(out, string(line))
		}
	}
}

func TestReader(t *testing.T) {
	big := strings.Repeat("x", 70000)
	tests := map[string]struct {
		in   string
		want []string
	}{
		"lines":                 {"a\nb\n", []string{"a", "b"}},
		"no LF at the end":      {"a\nb", []string{"a", "b"}},
		"blank lines":           {"\n \t\r\n\na\n\r\n", []string{"a"}},
		"CR stays":              {"a\r\n", []string{"a\r"}},
		"empty":                 {"", nil},
		"at the cap":            {strings.Repeat("y", 100000) + "\nb\n", []string{strings.Repeat("y", 100000), "b"}},
		"one beyond the cap":    {strings.Repeat("y", 100001) + "\nb\n", []string{"too long: ", "b"}},
		"too long, id first":    {`{"jsonrpc":"2.0","id":5,"method":"m","params":{"id":9,"c":"` + big + big + "\"}}\nb\n", []string{"too long: 5", "b"}},
		"too long, id last":     {`{"method":"m","params":{"c":"` + big + big + `","id":3},"jsonrpc":"2.0","id":"q\"1"}` + "\nb\n", []string{`too long: "q\"1"`, "b"}},
		"too long, two ids":     {`{"id":1,"c":"` + big + big + `","Id":2}` + "\nb\n", []string{"too long: ", "b"}},
		"too long, id an array": {`{"id":[1],"c":"` + big + big + `"}` + "\nb\n", []string{"too long: ", "b"}},
		"too long, id null":     {`{"id":null,"c":"` + big + big + `"}` + "\nb\n", []string{"too long: ", "b"}},
		"too long, bad id":      {`{"id":1x,"c":"` + big + big + `"}` + "\nb\n", []string{"too long: ", "b"}},
		"too long, id not text": {"{\"id\":\"\xff\",\"c\":\"" + big + big + "\"}\nb\n", []string{"too long: ", "b"}},
		"too long, huge id":     {`{"id":"` + big + big + `"}` + "\nb\n", []string{"too long: ", "b"}},
		"too long, braces":      {`{"c":"}],{\"id\":4,` + big + big + `","id":6}` + "\nb\n", []string{"too long: 6", "b"}},
		"too long, a batch":     {`[{"id":1},{"id":2},"` + big + big + `"]` + "\nb\n", []string{"too long: ", "b"}},
		"too long, id a value":  {`{"k":"id","x":7,"c":"` + big + big + `"}` + "\nb\n", []string{"too long: ", "b"}},
		"too long at the end":   {big + big, []string{"too long: "}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			for _, r := range []io.Reader{
				strings.NewReader(tt.in), iotest.OneByteReader(strings.NewReader(tt.in)), iotest.DataErrReader(strings.NewReader(tt.in)),
			} {
				got := frames(t, NewReader(r, 100000))
				if strings.Join(got, "|") != strings.Join(tt.want, "|") {
					t.Errorf("%.300q", got)
				}
			}
		})
	}
}

func TestReaderReportsErrors(t *testing.T) {
	failure := errors.New("reset")
	for _, text := range []string{"a\n", strings.Repeat("x", 100)} {
		r := NewReader(io.MultiReader(strings.NewReader(text), iotest.ErrReader(failure)), 50)
		var err error
		for err == nil {
			_, err = r.Next()
		}
		if !errors.Is(err, failure) {
			t.Errorf("%v", err)
		}
	}
	if text := (&TooLong{Limit: 50}).Error(); !strings.Contains(text, "50") {
		t.Error(text)
	}
}

// A frame is the caller's: the next one must not overwrite it.
func TestFramesAreTheirOwn(t *testing.T) {
	r := NewReader(strings.NewReader("first\nsecond\n"), 100)
	a, _ := r.Next()
	if _, err := r.Next(); err != nil || string(a) != "first" {
		t.Errorf("%q %v", a, err)
	}
}

func TestWriterKeepsLinesWhole(t *testing.T) {
	var b bytes.Buffer
	w := NewWriter(&b)
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for range 50 {
				if err := w.Write([]byte(strings.Repeat("z", 1000))); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	for _, line := range strings.Split(strings.TrimSuffix(b.String(), "\n"), "\n") {
		if len(line) != 1000 {
			t.Fatalf("a line of %d bytes", len(line))
		}
	}
}

// Memory for a line beyond the cap stays near the cap, whatever its length.
func FuzzReader(f *testing.F) {
	f.Add([]byte(`{"id":5,"c":"xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx"}`+"\nb\n"), 20)
	f.Add([]byte("\n\n\r\na"), 1)
	f.Add([]byte(`{"c":"\"}","id":6,"d":[{"id":7}]}`), 3)
	f.Fuzz(func(t *testing.T, in []byte, limit int) {
		limit = limit&63 + 1
		r := NewReader(bytes.NewReader(in), limit)
		lines := 0
		for {
			line, err := r.Next()
			var long *TooLong
			switch {
			case errors.Is(err, io.EOF):
				if lines > bytes.Count(in, []byte{'\n'})+1 {
					t.Errorf("%d frames from %q", lines, in)
				}
				return
			case errors.As(err, &long):
				checkFoundID(t, in, long.ID)
			case err != nil:
				t.Fatal(err)
			case len(line) > limit || bytes.ContainsRune(line, '\n') || isBlank(line):
				t.Errorf("frame %q at limit %d", line, limit)
			}
			lines++
		}
	})
}

// The id that is found while a line is thrown away is the one that a parser of
// the whole line finds.
func checkFoundID(t *testing.T, in []byte, id ID) {
	for _, line := range bytes.Split(in, []byte{'\n'}) {
		m, bad := Parse(line)
		if bad == nil && m.ID != id && bytes.Count(in, []byte{'\n'}) == 0 && !bytes.Contains(line, []byte(`\u`)) {
			t.Errorf("found %q, parsed %q in %q", id, m.ID, line)
		}
	}
}
