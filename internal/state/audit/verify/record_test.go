// SPDX-License-Identifier: Apache-2.0

package verify

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
	"time"
)

const plain = `{"t":"2026-03-04T05:06:07.08Z","agent":"","op":"fs.read","decision":"allow","reason":"a \"b\" \\ \u00e4",` +
	`"source":"serve","session":"","corr":"c-1","policy":"0e","level":"sdk","event":"decision"}`

func TestScan(t *testing.T) {
	more := func(s string) string { return strings.TrimSuffix(plain, "}") + s + "}" }
	swap := func(old, with string) string {
		s := strings.Replace(plain, old, with, 1)
		if s == plain {
			t.Fatalf("%q is not in it", old)
		}
		return s
	}
	for _, tt := range []struct {
		name, line string
		kind       Kind
	}{
		{"plain", plain, ""},
		{"with all that may follow", more(`,"resource":"r","code":"c","was":"w","found":"f","n":-12`), ""},
		{"with names of a later version", more(`,"x":"y","z":0`), ""},
		{"every escape", more(`,"x":"\"\\\/\b\f\n\r\t\u00Ff"`), ""},
		{"empty", "", Garbage},
		{"no object", "x", Garbage},
		{"cut", plain[:len(plain)-1], Garbage},
		{"cut in a string", plain[:40], Garbage},
		{"more after it", plain + " ", Garbage},
		{"a second object", plain + plain, Garbage},
		{"a comma at the end", more(","), Garbage},
		{"a blank", swap(`,"agent"`, `, "agent"`), Garbage},
		{"a control", swap(`serve`, "ser\x1bve"), Garbage},
		{"a delete", swap(`serve`, "ser\x7fve"), Garbage},
		{"not ASCII", swap(`serve`, "serv\u00e9"), Garbage},
		{"an escape that is none", swap(`serve`, `ser\ve`), Garbage},
		{"a short escape", swap(`\u00e4`, `\u00e`), Garbage},
		{"a nested value", more(`,"x":{"y":1}`), Garbage},
		{"a list", more(`,"x":[1]`), Garbage},
		{"a truth", more(`,"x":true`), Garbage},
		{"a fraction", more(`,"n":1.5`), Garbage},
		{"an exponent", more(`,"n":1e3`), Garbage},
		{"a number with a zero", more(`,"n":01`), Garbage},
		{"minus nothing", more(`,"n":-0`), Garbage},
		{"no number", more(`,"n":`), Garbage},
		{"a number beyond 64 bits", more(`,"n":9223372036854775808`), Garbage},
		{"another name first", swap(`{"t":`, `{"at":`), Garbage},
		{"no agent", swap(`"agent":"",`, ``), Record},
		{"no event", swap(`,"event":"decision"`, ``), Record},
		{"another order", swap(`"agent":"","op":"fs.read"`, `"op":"fs.read","agent":""`), Record},
		{"a number for a text", swap(`"corr":"c-1"`, `"corr":1`), Record},
		{"a name twice", more(`,"code":"a","code":"b"`), Record},
		{"an early name twice", more(`,"op":"log"`), Record},
		{"too many names", more(`,"a":1,"b":1,"c":1,"d":1,"e":1,"f":1,"g":1,"h":1,"i":1,"j":1,"k":1,"l":1,"m":1,"o":1,"p":1,"q":1,"r":1`), Record},
		{"no time", swap(`2026-03-04T05:06:07.08Z`, `yesterday`), Record},
		{"a time elsewhere", swap(`07.08Z`, `07.08+00:00`), Record},
		{"an empty time", swap(`2026-03-04T05:06:07.08Z`, ``), Record},
	} {
		if _, kind, wrong := scan([]byte(tt.line)); kind != tt.kind || (wrong == "") != (kind == "") {
			t.Errorf("%s: %q (%s), want %q", tt.name, kind, wrong, tt.kind)
		}
	}
	r, _, _ := scan([]byte(more(`,"resource":"000001.jsonl"`)))
	if !r.at.Equal(time.Date(2026, 3, 4, 5, 6, 7, 80_000_000, time.UTC)) || string(r.op) != "fs.read" || string(r.event) != "decision" || string(r.resource) != "000001.jsonl" {
		t.Errorf("%+v", r)
	}
}

// FuzzScan: a line that is taken is JSON to everybody, of one object with the
// fields that were read.
func FuzzScan(f *testing.F) {
	f.Add([]byte(plain))
	f.Fuzz(func(t *testing.T, line []byte) {
		r, kind, wrong := scan(line)
		if (kind == "") != (wrong == "") {
			t.Fatalf("%q without %q", kind, wrong)
		}
		if wrong != "" {
			return
		}
		var all map[string]any
		if err := json.Unmarshal(line, &all); err != nil {
			t.Fatalf("%q is taken: %v", line, err)
		}
		for _, name := range always {
			if _, ok := all[name].(string); !ok {
				t.Errorf("%q is taken without %s", line, name)
			}
		}
		var op string
		if json.Unmarshal(append(append([]byte{'"'}, r.op...), '"'), &op) != nil || op != all["op"] {
			t.Errorf("%q: op %q", line, r.op)
		}
		var compact bytes.Buffer
		if json.Compact(&compact, line) != nil || !bytes.Equal(compact.Bytes(), line) {
			t.Errorf("%q is taken with blanks", line)
		}
	})
}
