// SPDX-License-Identifier: Apache-2.0

package mcpwire

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"reflect"
	"runtime"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"github.com/postern-gate/postern/core/fault"
)

func TestParseAccepts(t *testing.T) {
	tests := map[string]struct {
		in   string
		want Message
	}{
		"request":           {`{"jsonrpc":"2.0","id":1,"method":"a/b","params":{"x":[1]}}`, Message{Kind: Request, ID: "1", Method: "a/b", Params: []byte(`{"x":[1]}`)}},
		"white space":       {" \t{ \"jsonrpc\" : \"2.0\" ,\"id\": 1 ,\"method\" :\"m\" } \r", Message{Kind: Request, ID: "1", Method: "m"}},
		"id beyond 2^53":    {`{"jsonrpc":"2.0","id":9007199254740993,"method":"m"}`, Message{Kind: Request, ID: "9007199254740993", Method: "m"}},
		"id with fraction":  {`{"jsonrpc":"2.0","id":1.50,"method":"m"}`, Message{Kind: Request, ID: "1.50", Method: "m"}},
		"id a string":       {`{"jsonrpc":"2.0","id":"\u00e9\"","method":"m"}`, Message{Kind: Request, ID: `"\u00e9\""`, Method: "m"}},
		"id negative":       {`{"jsonrpc":"2.0","id":-1,"method":"m"}`, Message{Kind: Request, ID: "-1", Method: "m"}},
		"escaped method":    {`{"jsonrpc":"2.0","method":"\u0070ing\/\ud83d\ude00"}`, Message{Kind: Notification, Method: "ping/😀"}},
		"unknown members":   {`{"jsonrpc":"2.0","id":1,"method":"m","x":{"a":1},"trace":null}`, Message{Kind: Request, ID: "1", Method: "m"}},
		"result":            {`{"jsonrpc":"2.0","id":1,"result":null}`, Message{Kind: Response, ID: "1", Result: []byte("null")}},
		"error":             {`{"jsonrpc":"2.0","id":"x","error":{}}`, Message{Kind: Response, ID: `"x"`, Error: []byte("{}")}},
		"twins in a value":  {`{"jsonrpc":"2.0","method":"m","params":{"arguments":{"map":{"a":1,"A":2}}}}`, Message{Kind: Notification, Method: "m", Params: []byte(`{"arguments":{"map":{"a":1,"A":2}}}`)}},
		"same key, nested":  {`{"jsonrpc":"2.0","method":"m","params":{"params":{"params":{"id":1}}}}`, Message{Kind: Notification, Method: "m", Params: []byte(`{"params":{"params":{"id":1}}}`)}},
		"longest id":        {`{"jsonrpc":"2.0","id":"` + strings.Repeat("i", maxID-2) + `","method":"m"}`, Message{Kind: Request, ID: ID(`"` + strings.Repeat("i", maxID-2) + `"`), Method: "m"}},
		"deepest":           {`{"jsonrpc":"2.0","method":"m","params":{"a":` + nested(MaxDepth-2) + `}}`, Message{Kind: Notification, Method: "m", Params: []byte(`{"a":` + nested(MaxDepth-2) + `}`)}},
		"hex in both cases": {`{"jsonrpc":"2.0","method":"\u00aF\u00Af"}`, Message{Kind: Notification, Method: "¯¯"}},
		"raw U+2028 and <>": {"{\"jsonrpc\":\"2.0\",\"method\":\"\u2028<&>\"}", Message{Kind: Notification, Method: "\u2028<&>"}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			got, err := Parse([]byte(tt.in))
			if err != nil || !reflect.DeepEqual(got, tt.want) {
				t.Errorf("%+v, %v\nwant %+v", got, err, tt.want)
			}
		})
	}
}

func nested(n int) string { return strings.Repeat("[", n) + strings.Repeat("]", n) }

func TestParseRefuses(t *testing.T) {
	const head = `{"jsonrpc":"2.0","id":7,"method":"tools/call"`
	tests := map[string]struct {
		in     string
		number int
		id     ID
		silent bool
	}{
		"empty":                   {"", ParseError, "", false},
		"noise":                   {"this is not json", ParseError, "", false},
		"cut off":                 {head, ParseError, "", false},
		"two objects":             {head + `}{}`, ParseError, "", false},
		"trailing comma":          {head + `,}`, ParseError, "", false},
		"byte order mark":         {"\ufeff" + head + `}`, ParseError, "", false},
		"not UTF-8":               {head + `,"x":"` + "\xff" + `"}`, ParseError, "", false},
		"raw control":             {head + `,"x":"` + "\x01" + `"}`, ParseError, "", false},
		"raw NUL":                 {head + "\x00}", ParseError, "", false},
		"NUL behind":              {"1\x00", ParseError, "", false},
		"single quotes":           {`{'jsonrpc':'2.0'}`, ParseError, "", false},
		"unknown escape":          {head + `,"x":"\x41"}`, ParseError, "", false},
		"half an escape":          {head + `,"x":"\u00`, ParseError, "", false},
		"bad digits":              {head + `,"x":"\u00zz"}`, ParseError, "", false},
		"not a literal":           {head + `,"x":nul}`, ParseError, "", false},
		"not a value":             {head + `,"x":a value}`, ParseError, "", false},
		"NaN":                     {head + `,"x":NaN}`, ParseError, "", false},
		"leading zero":            {head + `,"x":01}`, ParseError, "", false},
		"no digits":               {head + `,"x":-}`, ParseError, "", false},
		"no fraction":             {head + `,"x":1.}`, ParseError, "", false},
		"no exponent":             {head + `,"x":1e+}`, ParseError, "", false},
		"plus":                    {head + `,"x":+1}`, ParseError, "", false},
		"no colon":                {`{"jsonrpc" "2.0"}`, ParseError, "", false},
		"no comma":                {head + ` "x":1}`, ParseError, "", false},
		"key not a string":        {`{1:2}`, ParseError, "", false},
		"array not closed":        {head + `,"x":[1 2]}`, ParseError, "", false},
		"bad element":             {head + `,"x":[1,]}`, ParseError, "", false},
		"string not closed":       {head + `,"x`, ParseError, "", false},
		"batch":                   {`[` + head + `}]`, InvalidRequest, "", false},
		"batch after white space": {" \t [", InvalidRequest, "", false},
		"a string":                {`"x"`, InvalidRequest, "", false},
		"a number":                {`-1.5e3`, InvalidRequest, "", false},
		"duplicate key":           {head + `,"params":{"name":"evil","name":"echo"}}`, InvalidRequest, "7", false},
		"duplicate, escaped":      {head + `,"params":{"name":"evil","n\u0061me":"echo"}}`, InvalidRequest, "7", false},
		"duplicate, deep":         {head + `,"params":{"arguments":{"a":[{"b":{"c":1,"c":1}}]}}}`, InvalidRequest, "7", false},
		"duplicate, last of many": {head + `,"x":{` + manyKeys(40) + `,"k7":0}}`, InvalidRequest, "7", false},
		"case of method":          {head + `,"Method":"ping"}`, InvalidRequest, "7", false},
		"case in params":          {head + `,"params":{"name":"write_file","Name":"x"}}`, InvalidRequest, "7", false},
		"case in arguments":       {head + `,"params":{"arguments":{"path":"a","PATH":"b"}}}`, InvalidRequest, "7", false},
		"case in _meta":           {head + `,"params":{"_meta":{"progressToken":1,"progresstoken":2}}}`, InvalidRequest, "7", false},
		"long s":                  {head + `,"params":{"arguments":{"edits":1,"edit\u017f":2}}}`, InvalidRequest, "7", false},
		"kelvin sign":             {head + `,"params":{"token":1,"to\u212aen":2}}`, InvalidRequest, "7", false},
		"sharp s":                 {head + `,"params":{"stra\u00dfe":1,"STRASSE":2}}`, InvalidRequest, "7", false},
		"case, many keys":         {head + `,"params":{` + manyKeys(40) + `,"K9":0}}`, InvalidRequest, "7", false},
		"lone high surrogate":     {head + `,"x":"\ud800"}`, InvalidRequest, "7", false},
		"lone low surrogate":      {head + `,"x":"a\udc00"}`, InvalidRequest, "7", false},
		"high, then a letter":     {head + `,"x":"\ud800\u0041"}`, InvalidRequest, "7", false},
		"high at the end":         {head + `,"x":"\ud83d`, ParseError, "", false},
		"two halves in a key":     {head + `,"\ud800\u0041\ud800":1}`, InvalidRequest, "7", false},
		"surrogate in a key":      {head + `,"\ud800":1}`, InvalidRequest, "7", false},
		"too deep":                {head + `,"x":` + nested(MaxDepth) + `}`, InvalidRequest, "7", false},
		"too deep, objects":       {head + `,"x":` + strings.Repeat(`{"a":`, MaxDepth), InvalidRequest, "7", false},
		"two ids":                 {`{"jsonrpc":"2.0","id":1,"id":2,"method":"m"}`, InvalidRequest, "", false},
		"twin of the id":          {`{"jsonrpc":"2.0","id":1,"ID":2,"method":"m"}`, InvalidRequest, "", false},
		"id null":                 {`{"jsonrpc":"2.0","id":null,"method":"m"}`, InvalidRequest, "", false},
		"id an object":            {`{"jsonrpc":"2.0","id":{},"method":"m"}`, InvalidRequest, "", false},
		"id an array":             {`{"jsonrpc":"2.0","id":[1],"method":"m"}`, InvalidRequest, "", false},
		"id a bool":               {`{"jsonrpc":"2.0","id":true,"method":"m"}`, InvalidRequest, "", false},
		"id too long":             {`{"jsonrpc":"2.0","id":"` + strings.Repeat("i", maxID) + `","method":"m"}`, InvalidRequest, "", false},
		"no version":              {`{"id":7,"method":"m"}`, InvalidRequest, "7", false},
		"other version":           {`{"jsonrpc":"1.0","id":7,"method":"m"}`, InvalidRequest, "7", false},
		"version a number":        {`{"jsonrpc":2.0,"id":7,"method":"m"}`, InvalidRequest, "7", false},
		"method a number":         {`{"jsonrpc":"2.0","id":7,"method":1}`, InvalidRequest, "7", false},
		"method null":             {`{"jsonrpc":"2.0","id":7,"method":null}`, InvalidRequest, "7", false},
		"no method":               {`{"jsonrpc":"2.0","id":7}`, InvalidRequest, "7", false},
		"params an array":         {head + `,"params":[]}`, InvalidRequest, "7", false},
		"params null":             {head + `,"params":null}`, InvalidRequest, "7", false},
		"method and result":       {head + `,"result":{}}`, InvalidRequest, "7", false},
		"method and error":        {head + `,"error":{}}`, InvalidRequest, "7", false},
		"result and error":        {`{"jsonrpc":"2.0","id":7,"result":1,"error":{}}`, InvalidRequest, "7", true},
		"result and params":       {`{"jsonrpc":"2.0","id":7,"result":1,"params":{}}`, InvalidRequest, "7", true},
		"error without id":        {`{"jsonrpc":"2.0","error":{}}`, InvalidRequest, "", true},
		"error with id null":      {`{"jsonrpc":"2.0","id":null,"error":{}}`, InvalidRequest, "", true},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			m, err := Parse([]byte(tt.in))
			if err == nil {
				t.Fatalf("accepted as %+v", m)
			}
			if err.Number != tt.number || err.ID != tt.id || err.Unanswerable != tt.silent {
				t.Errorf("%d for %q (silent %v): %v", err.Number, err.ID, err.Unanswerable, err)
			}
			if err.Reason == "" || !strings.Contains(err.Error(), err.Reason) {
				t.Errorf("no reason in %q", err)
			}
		})
	}
}

// Each refusal above is of the frame, not of its size or place: the same frame
// without the twin is accepted.
func TestTwinsAreTheReason(t *testing.T) {
	m, err := Parse([]byte(`{"jsonrpc":"2.0","id":7,"method":"m","params":{` + manyKeys(40) + `}}`))
	if err != nil || m.Kind != Request {
		t.Fatalf("%+v %v", m, err)
	}
	if _, err := Parse([]byte(`{"jsonrpc":"2.0","id":1,"method":"m","Method":"ping"}`)); !strings.Contains(err.Reason, `"Method"`) {
		t.Errorf("the reason doesn't name the key: %v", err)
	}
}

func manyKeys(n int) string {
	keys := make([]string, n)
	for i := range keys {
		keys[i] = fmt.Sprintf(`"k%d":%d`, i, i)
	}
	return strings.Join(keys, ",")
}

// Whatever the standard library's folding treats as one key, ours does too.
func TestFoldCoversSimpleFolding(t *testing.T) {
	for r := rune(0); r <= unicode.MaxRune; r++ {
		if !utf8.ValidRune(r) {
			continue
		}
		for f := unicode.SimpleFold(r); f != r; f = unicode.SimpleFold(f) {
			if !equalFold([]byte(string(r)), []byte(string(f))) {
				t.Errorf("%U and %U", r, f)
			}
		}
	}
	if equalFold([]byte("path"), []byte("paths")) || equalFold([]byte("é"), []byte("e")) {
		t.Error("different keys are equal")
	}
}

func TestManyKeysAreLinear(t *testing.T) {
	use := func(n int) uint64 {
		frame := []byte(`{"jsonrpc":"2.0","method":"m","params":{` + manyKeys(n) + `}}`)
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		if _, err := Parse(frame); err != nil {
			t.Fatal(err)
		}
		runtime.ReadMemStats(&after)
		return after.TotalAlloc - before.TotalAlloc
	}
	if small, large := use(5000), use(50000); large > 20*small {
		t.Errorf("%d bytes for 5,000 keys, %d for 50,000", small, large)
	}
}

func TestCommonRequestAllocatesLittle(t *testing.T) {
	frame := []byte(`{"jsonrpc":"2.0","id":12,"method":"tools/call","params":{"name":"read_text_file","arguments":{"path":"/w/a.txt"}}}`)
	if n := testing.AllocsPerRun(100, func() {
		if _, err := Parse(frame); err != nil {
			t.Fatal(err)
		}
	}); n > 3 { // the id, the method and the keys
		t.Errorf("%v allocations", n)
	}
}

// decode builds the value that our view shows, numbers as text.
func decode(v Value) (any, error) {
	switch v.first() {
	case '{':
		o, err := v.Object()
		if err != nil {
			return nil, err
		}
		m := map[string]any{}
		for _, member := range o.Members() {
			if m[member.Key], err = decode(member.Value); err != nil {
				return nil, err
			}
		}
		return m, nil
	case '[':
		list, err := v.Array()
		if err != nil {
			return nil, err
		}
		out := make([]any, len(list))
		for i, e := range list {
			if out[i], err = decode(e); err != nil {
				return nil, err
			}
		}
		return out, nil
	case '"':
		return v.String()
	case 't', 'f':
		return v.Bool()
	case 'n':
		return nil, nil
	}
	return json.Number(v.Raw()), nil
}

func standard(frame []byte) (map[string]any, error) {
	var want map[string]any
	d := json.NewDecoder(bytes.NewReader(frame))
	d.UseNumber()
	err := d.Decode(&want)
	return want, err
}

// checkParse holds for all bytes: what is accepted is JSON, and every decoder
// that goes by the standard reads the same values from it.
func checkParse(t *testing.T, frame []byte) {
	m, bad := Parse(frame)
	if bad != nil {
		if bad.Number != ParseError && bad.Number != InvalidRequest || bad.Number == ParseError && bad.ID != "" {
			t.Errorf("%+v", bad)
		}
		return
	}
	if !json.Valid(frame) {
		t.Fatalf("accepted what is no JSON: %q", frame)
	}
	want, err := standard(frame)
	if err != nil {
		t.Fatal(err)
	}
	o, err := NewObject(frame)
	if err != nil {
		t.Fatalf("accepted by Parse, refused as an object: %v", err)
	}
	if len(o.Members()) != len(want) {
		t.Fatalf("%d members, %d keys: %q", len(o.Members()), len(want), frame)
	}
	if m.Kind != Response && want["method"] != m.Method {
		t.Errorf("method %q, standard %q", m.Method, want["method"])
	}
	if got, err := decode(Value{raw: bytes.TrimSpace(frame)}); err == nil && !reflect.DeepEqual(got, any(want)) {
		t.Errorf("%#v\nstandard %#v", got, want)
	}
	again, bad := Parse(frame)
	if bad != nil || !reflect.DeepEqual(again, m) {
		t.Errorf("scanned again: %+v %v", again, bad)
	}
	// Cut at any byte, it is no message any more.
	for _, cut := range []int{1, len(bytes.TrimSpace(frame)) / 2} {
		if _, bad := Parse(bytes.TrimSpace(frame)[:len(bytes.TrimSpace(frame))-cut]); bad == nil {
			t.Errorf("accepted without its end: %q", frame)
		}
	}
	checkDigest(t, o, want)
}

// checkDigest re-encodes the object by the standard library, which sorts and
// escapes otherwise: the digest stays.
func checkDigest(t *testing.T, o Object, want map[string]any) {
	b, err := json.Marshal(want)
	if err != nil {
		t.Fatal(err)
	}
	re, err := NewObject(b)
	if err != nil {
		t.Fatalf("re-encoded %q: %v", b, err)
	}
	if Digest(re) != Digest(o) {
		t.Errorf("digest of %q and of %q differ", o.Raw(), b)
	}
}

var seeds = []string{
	`{"jsonrpc":"2.0","id":1,"method":"m","params":{"a":[1,2.50,-0,1e9,{"b":"\u00e9\n😀"}],"c":null,"d":true}}`,
	`{"jsonrpc":"2.0","id":"x","result":{"A":1,"a":{"Ab":2,"ab":3}}}`,
	`{"jsonrpc":"2.0","id":7,"method":"tools/call","Method":"ping"}`,
	`{"jsonrpc":"2.0","method":"m","params":{"arguments":{"edit\u017f":1,"edits":2}}}`,
	`[{"jsonrpc":"2.0"}]`, `{"jsonrpc":"2.0","x":"\ud83d\ude00\ud800"}`, "\ufeff{}", `{"a":01}`, `{"":0,"":1}`,
	`{"jsonrpc":"2.0","id":1,"method":"m"} {}`, `{"jsonrpc":"2.0","id":1e400,"method":"m","params":{"big":12345678901234567890}}`,
	`{"jsonrpc":"2.0","method":"\"\\\/\b\f\n\r\t"}`,
}

func FuzzParse(f *testing.F) {
	for _, s := range seeds {
		f.Add([]byte(s))
	}
	f.Fuzz(checkParse)
}

// What the standard library refuses we refuse, and of what it accepts only
// what the rules name.
func FuzzStrictness(f *testing.F) {
	for _, s := range seeds {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		_, err := NewObject(raw)
		want, stdErr := standard(raw)
		switch {
		case err == nil && (stdErr != nil || !json.Valid(raw)):
			t.Errorf("accepted %q: %v", raw, stdErr)
		case err != nil && stdErr == nil && json.Valid(raw) && want != nil && plain(raw) && utf8.Valid(raw):
			t.Errorf("refused %q: %v", raw, err)
		}
	})
}

// plain reports whether none of the rules beyond JSON can apply: no key twice
// in any spelling, no surrogates, no depth.
func plain(raw []byte) bool {
	if bytes.Contains(bytes.ToLower(raw), []byte(`\ud`)) || bytes.Count(raw, []byte{'['})+bytes.Count(raw, []byte{'{'}) > MaxDepth {
		return false
	}
	d := json.NewDecoder(bytes.NewReader(raw))
	seen := map[string]bool{}
	for {
		token, err := d.Token()
		if errors.Is(err, io.EOF) {
			return true
		}
		if s, ok := token.(string); ok {
			if key := foldKey([]byte(s)); seen[key] {
				return false
			} else {
				seen[key] = true
			}
		}
		if err != nil {
			return false
		}
	}
}

func TestFaultCode(t *testing.T) {
	_, err := NewObject([]byte(`[]`))
	if fault.CodeOf(err) != fault.RequestInvalid {
		t.Errorf("%v", err)
	}
}

func BenchmarkParse(b *testing.B) {
	small := []byte(`{"jsonrpc":"2.0","id":12,"method":"tools/call","params":{"name":"read_text_file","arguments":{"path":"/w/a.txt"}}}`)
	large := []byte(`{"jsonrpc":"2.0","id":12,"method":"tools/call","params":{"name":"write_file","arguments":{"path":"/w/a.txt","content":"` +
		strings.Repeat(`The quick brown fox jumps over the lazy dog.\n`, 25000) + `"}}}`)
	for name, frame := range map[string][]byte{"small": small, "large": large} {
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(len(frame)))
			b.ReportAllocs()
			for b.Loop() {
				if _, err := Parse(frame); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
