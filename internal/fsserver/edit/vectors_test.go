// SPDX-License-Identifier: Apache-2.0

package edit_test

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/postern-gate/postern/internal/fsserver/edit"
)

// vector is one line of vectors/edit/*.jsonl.
type vector struct {
	ID, Kind string
	Setup    []string
	Input    struct {
		Content, Base64 string
		// Fill asks for that many bytes of lines that hold Hold once.
		Fill  int
		Hold  string
		Edits []edit.Edit
	}
	Right struct {
		Content *string
		Base64  string
		Bytes   int // the length, where the text is Fill bytes
		Refused string
		Says    []string // in the reason
		Shows   []string // beside the reason
		Hides   []string // nowhere
	}
}

func vectors(t testing.TB) []vector {
	t.Helper()
	files, err := filepath.Glob(filepath.Join("..", "..", "..", "vectors", "edit", "*.jsonl"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no vectors: %v", err)
	}
	var all []vector
	for _, name := range files {
		f, err := os.Open(name)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		for lines := bufio.NewScanner(f); lines.Scan(); {
			var v vector
			dec := json.NewDecoder(bytes.NewReader(lines.Bytes()))
			dec.DisallowUnknownFields()
			if err := dec.Decode(&v); err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			all = append(all, v)
		}
	}
	if len(all) < 50 {
		t.Fatalf("only %d vectors", len(all))
	}
	return all
}

// content is the text that the vector starts with.
func (v vector) content(t testing.TB) []byte {
	t.Helper()
	switch {
	case v.Input.Base64 != "":
		return decode(t, v.Input.Base64)
	case v.Input.Fill > 0:
		line := strings.Repeat("plain text ", 7) + "\n"
		half := strings.Repeat(line, v.Input.Fill/2/len(line))
		text := half + v.Input.Hold + "\n" + half
		return []byte(text + strings.Repeat("z", v.Input.Fill-len(text)-1) + "\n")
	default:
		return []byte(v.Input.Content)
	}
}

func decode(t testing.TB, text string) []byte {
	t.Helper()
	var b []byte
	if err := json.Unmarshal([]byte(`"`+text+`"`), &b); err != nil {
		t.Fatal(err)
	}
	return b
}

func TestVectors(t *testing.T) {
	for _, v := range vectors(t) {
		t.Run(v.ID, func(t *testing.T) {
			src := v.content(t)
			before := bytes.Clone(src)
			got, err := edit.Apply(src, v.Input.Edits)
			if !bytes.Equal(src, before) {
				t.Error("the source was changed")
			}
			if v.Right.Refused != "" {
				v.checkRefusal(t, got, err)
				return
			}
			if err != nil {
				t.Fatalf("refused: %v", err)
			}
			v.checkText(t, src, got)
		})
	}
}

func (v vector) checkText(t *testing.T, src, got []byte) {
	t.Helper()
	want := decode(t, v.Right.Base64)
	switch {
	case v.Right.Bytes > 0:
		want = bytes.Replace(src, []byte(v.Input.Hold), []byte(v.Input.Edits[0].NewText), 1)
		if len(src) != v.Input.Fill || len(want) != v.Right.Bytes {
			t.Fatalf("the vector itself: %d bytes become %d", len(src), len(want))
		}
	case v.Right.Content != nil:
		want = []byte(*v.Right.Content)
	}
	if !bytes.Equal(got, want) {
		t.Errorf("got  %q\nwant %q", got, want)
	}
}

func (v vector) checkRefusal(t *testing.T, got []byte, err error) {
	t.Helper()
	var r *edit.Refusal
	if !errors.As(err, &r) {
		t.Fatalf("not refused: %q, %v", got, err)
	}
	if got != nil || r.Code.String() != v.Right.Refused || r.Next == "" || r.Error() != r.Because {
		t.Errorf("text %q, refusal %+v, want code %s", got, r, v.Right.Refused)
	}
	for _, says := range v.Right.Says {
		if !strings.Contains(r.Because, says) {
			t.Errorf("%q is not in the reason %q", says, r.Because)
		}
	}
	for _, shows := range v.Right.Shows {
		if !strings.Contains(r.Near, shows) {
			t.Errorf("%q is not shown in\n%s", shows, r.Near)
		}
	}
	for _, hidden := range append(v.Right.Hides, "\t") {
		if strings.Contains(r.Near+r.Because+r.Next, hidden) {
			t.Errorf("%q is shown in\n%s\n%s", hidden, r.Because, r.Near)
		}
	}
	// The reason is our own words: no text of the file or of the call.
	for _, e := range v.Input.Edits {
		if len(e.OldText) > 3 && strings.Contains(r.Because+r.Next, e.OldText) {
			t.Errorf("the reason quotes outside text: %q", r.Because)
		}
	}
}
