// SPDX-License-Identifier: Apache-2.0

package records

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

const whole = `{"t":"2026-11-30T01:02:03.000004Z","agent":"codex","op":"fs.write","decision":"allow","reason":"a \"rule\" \u00e9 \ud83d\ude00",` +
	`"source":"serve","session":"s1","corr":"c-1","policy":"p-1","level":"sdk","event":"intent","resource":"project://a\u001b[31m.txt","was":"absent"}`

func TestParse(t *testing.T) {
	want := Record{
		Time:  time.Date(2026, 11, 30, 1, 2, 3, 4000, time.UTC),
		Agent: "codex", Op: "fs.write", Decision: "allow", Reason: "a \"rule\" é 😀", Source: "serve", Session: "s1", Corr: "c-1",
		Policy: "p-1", Level: "sdk", Event: "intent", Resource: "project://a\x1b[31m.txt", Was: "absent",
	}
	for name, line := range map[string]string{
		"whole":             whole,
		"a new text":        strings.Replace(whole, `,"was"`, `,"next":"x","was"`, 1),
		"a new object":      strings.Replace(whole, `,"was"`, `,"next":{"t":"}","agent":["],",{}, 1]},"was"`, 1),
		"a new number last": strings.TrimSuffix(whole, "}") + `,"next":1.5e3}`,
		"an escaped name":   strings.Replace(whole, `"agent"`, `"\u0061gent"`, 1),
	} {
		got, err := Parse([]byte(line))
		if err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if d := cmp.Diff(want, got); d != "" {
			t.Errorf("%s: %s", name, d)
		}
	}
	r, err := Parse([]byte(strings.Replace(whole, `"was":"absent"`, `"n":-7`, 1)))
	if err != nil || r.N != -7 {
		t.Errorf("n: %d, %v", r.N, err)
	}
}

func TestParseRefuses(t *testing.T) {
	for name, line := range map[string]string{
		"empty":          "",
		"garbage":        "garbage",
		"another object": `{"a":"b"}`,
		"only a time":    `{"t":"2026-11-30T01:02:03Z"}`,
		"cut":            whole[:len(whole)-1],
		"two":            whole + whole,
		"a line end":     whole + "\n",
		"a blank before": " " + whole,
		"blanks":         strings.Replace(whole, `,"agent":`, `, "agent": `, 1),
		"a blank colon":  strings.Replace(whole, `,"agent":`, `,"agent" :`, 1),
		"twice":          strings.Replace(whole, `"op":`, `"agent":"other","op":`, 1),
		"twice, hidden":  strings.Replace(whole, `"op":`, `"\u0061gent":"other","op":`, 1),
		"time twice":     strings.Replace(whole, `"op":`, `"t":"2026-11-30T01:02:03Z","op":`, 1),
		"other case":     strings.Replace(whole, `"agent"`, `"Agent"`, 1),
		"time elsewhere": strings.Replace(whole, `{"t":"2026-11-30T01:02:03.000004Z",`, `{"t":"now",`, 1),
		"number as text": strings.Replace(whole, `"codex"`, `7`, 1),
		"null as text":   strings.Replace(whole, `"codex"`, `null`, 1),
		"text as number": strings.Replace(whole, `"was":"absent"`, `"n":"7"`, 1),
		"a fraction":     strings.Replace(whole, `"was":"absent"`, `"n":7.5`, 1),
		"not ASCII":      strings.Replace(whole, "codex", "cod\u202ex", 1),
		"not UTF-8":      strings.Replace(whole, "codex", "cod\xffx", 1),
		"an escape":      strings.Replace(whole, "codex", "cod\x1bx", 1),
	} {
		if r, err := Parse([]byte(line)); !errors.Is(err, ErrNotRecord) {
			t.Errorf("%s: %v, %+v", name, err, r)
		}
	}
	// Each field that every record has.
	for _, name := range []string{"agent", "op", "decision", "reason", "source", "session", "corr", "policy", "level", "event"} {
		if _, err := Parse([]byte(strings.Replace(whole, `"`+name+`"`, `"x"`, 1))); err == nil {
			t.Errorf("without %s it is a record", name)
		}
	}
}

// FuzzParse: what parses can be shown as it is, says the same when its unknown
// fields go, and is one line.
func FuzzParse(f *testing.F) {
	for _, seed := range []string{whole, strings.Replace(whole, `,"was"`, `,"next":{"t":"}","a":["],",{}, 1]},"was"`, 1), `{"t":"`, `{"t":"","":{}}`, `{"t":""}`, `{"t":"\\"}`} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, line []byte) {
		before := string(line)
		r, err := Parse(line)
		if string(line) != before {
			t.Fatal("the line was changed")
		}
		if err != nil {
			if !errors.Is(err, ErrNotRecord) || r != (Record{}) {
				t.Fatalf("%v with %+v", err, r)
			}
			return
		}
		for _, c := range line {
			if c < 0x20 || c > 0x7e {
				t.Fatalf("a record with byte %#x", c)
			}
		}
		more := append(append([]byte{}, line[:len(line)-1]...), `,"fuzz":[{"t":"}"}]}`...)
		if again, err := Parse(more); err != nil || again != r {
			t.Fatalf("with a new field: %v, %+v, before %+v", err, again, r)
		}
	})
}

func BenchmarkParse(b *testing.B) {
	b.SetBytes(int64(len(whole)))
	b.ReportAllocs()
	line := []byte(whole)
	for b.Loop() {
		if _, err := Parse(line); err != nil {
			b.Fatal(err)
		}
	}
}
