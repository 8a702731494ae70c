// SPDX-License-Identifier: Apache-2.0

package mcpwire

import (
	"encoding/json"
	"strings"
	"testing"
	"unicode/utf8"

	"pgregory.net/rapid"

	"github.com/postern-gate/postern/core/fault"
)

func object(t interface{ Fatal(...any) }, raw string) Object {
	o, err := NewObject([]byte(raw))
	if err != nil {
		t.Fatal(raw, err)
	}
	return o
}

func TestObject(t *testing.T) {
	o := object(t, ` {"b":"x\n\u00e9","a":true,"n":12,"list":[{"k":false},[1]],"none":null,"o":{"deep":{"er":1}}} `)
	var keys []string
	for _, m := range o.Members() {
		keys = append(keys, m.Key)
	}
	if got := strings.Join(keys, " "); got != "b a n list none o" {
		t.Errorf("order %q", got)
	}
	if v, ok := o.Get("B"); ok || v.Raw() != nil {
		t.Error("found by another case")
	}
	b, _ := o.Get("b")
	if s, err := b.String(); s != "x\né" || err != nil || string(b.Raw()) != `"x\n\u00e9"` {
		t.Errorf("%q %v %s", s, err, b.Raw())
	}
	a, _ := o.Get("a")
	if v, err := a.Bool(); !v || err != nil {
		t.Error(v, err)
	}
	list, _ := o.Get("list")
	elements, err := list.Array()
	if err != nil || len(elements) != 2 {
		t.Fatal(elements, err)
	}
	inner, err := elements[0].Object()
	if err != nil {
		t.Fatal(err)
	}
	k, _ := inner.Get("k")
	if v, err := k.Bool(); v || err != nil {
		t.Error(v, err)
	}
	if none, _ := o.Get("none"); !none.IsNull() {
		t.Error("null")
	}
	if empty, err := NewObject(nil); err != nil || len(empty.Members()) != 0 || empty.Raw() != nil {
		t.Error("nil is the empty object")
	}
	if arr, err := (Value{raw: []byte("[ ]")}).Array(); err != nil || arr == nil || len(arr) != 0 {
		t.Error("empty array", arr, err)
	}
}

// Every decoder takes one type and says where the other one stands.
func TestDecodersRefuse(t *testing.T) {
	o := object(t,
		`{"s":"1","n":1,"f":1.0,"e":1e2,"big":9223372036854775808,"t":"true","z":null,"l":[{"x":1}],"o":{"A":1,"a":2}}`)
	get := func(key string) Value { v, _ := o.Get(key); return v }
	element, _ := get("l").Array()
	inner, _ := element[0].Object()
	x, _ := inner.Get("x")
	absent, _ := inner.Get("y")
	tests := map[string]struct {
		err  error
		want string
	}{
		"string, number":   {second(get("n").String()), "n must be a string"},
		"string, null":     {second(get("z").String()), "z must be a string"},
		"string, absent":   {second(get("gone").String()), "gone is missing; it must be a string"},
		"string, nested":   {second(x.String()), "l[0].x must be a string"},
		"absent, nested":   {second(absent.Int()), "l[0].y is missing; it must be an integer"},
		"bool, 1":          {second(get("n").Bool()), "n must be true or false"},
		"bool, string":     {second(get("t").Bool()), "t must be true or false"},
		"int, string":      {second(get("s").Int()), "s must be an integer"},
		"int, fraction":    {second(get("f").Int()), "f must be an integer of 64 bits without fraction or exponent"},
		"int, exponent":    {second(get("e").Int()), "e must be an integer of 64 bits without fraction or exponent"},
		"int, beyond":      {second(get("big").Int()), "big must be an integer of 64 bits without fraction or exponent"},
		"object, array":    {second(get("l").Object()), "l must be an object"},
		"object, twins":    {second(get("o").Object()), `o is not one well-formed object: the key "a" repeats another one of its object`},
		"array, object":    {second(get("o").Array()), "o must be an array"},
		"unknown member":   {o.Only("s", "n", "f", "e", "big", "t", "z", "l"), "o is not a parameter of this tool"},
		"top, not object":  {second(NewObject([]byte(" 1"))), "it must be an object"},
		"top, two objects": {second(NewObject([]byte("{} {}"))), "it is not one well-formed object: "},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			f := fault.As(tt.err)
			if tt.err == nil || f.Code != fault.RequestInvalid || f.Rule != tt.want {
				t.Errorf("%v, want %q", tt.err, tt.want)
			}
		})
	}
	if n, err := get("n").Int(); n != 1 || err != nil {
		t.Error(n, err)
	}
	if err := inner.Only("x"); err != nil {
		t.Error(err)
	}
}

func second[T any](_ T, err error) error { return err }

func TestDigest(t *testing.T) {
	base := object(t, `{"path":"a/b","edits":[{"x":1.0,"y":"é"}],"n":10}`)
	same := []string{
		` { "n" : 10 , "edits" : [ { "y" : "\u00e9" , "x" : 1.0 } ] , "path" : "a\/b" } `,
		`{"n":10,"confirm":true,"edits":[{"y":"é","x":1.0}],"path":"\u0061/b"}`,
	}
	for _, s := range same {
		if Digest(object(t, s), "confirm") != Digest(base) {
			t.Errorf("%s differs", s)
		}
	}
	for _, s := range []string{
		`{"path":"a/b","edits":[{"x":1,"y":"é"}],"n":10}`,
		`{"path":"a/b","edits":[{"x":1.0,"y":"e"}],"n":10}`,
		`{"path":"a/b","edits":[{"x":1.0,"y":"é"},{}],"n":10}`,
		`{"path":"a/b","edits":[{"x":1.0,"y":"é"}],"n":1e1}`,
		`{"path":"a/b","edits":[{"x":1.0,"y":"é","confirm":true}],"n":10}`,
		`{"path":"a/b","edits":[{"x":1.0,"y":"é"}],"n":"10"}`,
		`{"path":"a/b","edits":[[]],"n":null}`,
		`{}`,
	} {
		if Digest(object(t, s), "confirm") == Digest(base) {
			t.Errorf("%s has the same digest", s)
		}
	}
	if Digest(Object{}) != Digest(object(t, " {} ")) {
		t.Error("the absent object and the empty one")
	}
}

func TestAppendString(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		parts := rapid.SliceOfN(rapid.SampledFrom([]string{
			"a", "plain text of some length", `"`, `\`, "\n", "\r\t\b\f", "\x00", "\x1f", "\x7f", "é", "\u2028<&>", "😀", "\xff", "\xc2", "\xed\xa0\x80",
		}), 0, 20).Draw(t, "parts")
		checkString(t, strings.Join(parts, ""))
	})
}

func checkString(t interface{ Fatalf(string, ...any) }, s string) {
	encoded := AppendString([]byte("x"), s)[1:]
	var back string
	if err := json.Unmarshal(encoded, &back); err != nil {
		t.Fatalf("%q: %v", encoded, err)
	}
	if want := string([]rune(s)); back != want {
		t.Fatalf("%q came back as %q", want, back)
	}
	if !utf8.Valid(encoded) || strings.ContainsAny(string(encoded), "\n\r") {
		t.Fatalf("%q isn't one line of UTF-8", encoded)
	}
	v := Value{raw: encoded}
	if own, err := v.String(); err != nil || own != back {
		t.Fatalf("our own decoder reads %q as %q: %v", encoded, own, err)
	}
}

func FuzzString(f *testing.F) {
	for _, s := range append(seeds, "\x00\x1f\x7f\xff", strings.Repeat("x", 9)+"\"") {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) { checkString(t, s) })
}

func TestAppendBase64(t *testing.T) {
	if got := string(AppendBase64([]byte("x"), []byte{0, 255, 16})); got != `x"AP8Q"` {
		t.Error(got)
	}
}

func BenchmarkAppendString(b *testing.B) {
	for name, s := range map[string]string{
		"prose": strings.Repeat("The quick brown fox jumps over the lazy dog.\n", 25000),
		"cjk":   strings.Repeat("機械学習とデータ", 40000),
	} {
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(len(s)))
			dst := make([]byte, 0, 2*len(s))
			for b.Loop() {
				dst = AppendString(dst[:0], s)
			}
		})
	}
}

func BenchmarkArguments(b *testing.B) {
	params := []byte(`{"name":"edit_file","arguments":{"path":"/w/a.txt","edits":[{"oldText":"a","newText":"b"}],"dry_run":true}}`)
	b.ReportAllocs()
	for b.Loop() {
		o, err := NewObject(params)
		if err != nil {
			b.Fatal(err)
		}
		v, _ := o.Get("arguments")
		if _, err = v.Object(); err != nil {
			b.Fatal(err)
		}
	}
}
