// SPDX-License-Identifier: Apache-2.0

package enforce

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"hash"
	"reflect"
	"slices"
	"unicode/utf8"

	"github.com/postern-gate/postern/core/fault"
	"github.com/postern-gate/postern/core/pathguard"
	"github.com/postern-gate/postern/internal/safety"
)

// toolArguments are those of a guarded handler, as a yes is bound to them.
type toolArguments struct {
	text string
	says []Detail // fields that change nothing of what is done
}

// readArguments takes apart what is bound and what is only shown.
func (c *crossing) readArguments(args map[string]any) error {
	c.args = &toolArguments{}
	kept := make(map[string]any, len(args))
	only := safety.ShownOnly(c.tool.Server, c.tool.Name)
	for name, v := range args {
		text, isText := v.(string)
		if isText && slices.Contains(only, name) {
			c.args.says = append(c.args.says, Detail{name, text})
			continue
		}
		kept[name] = v
	}
	b, err := json.Marshal(kept)
	if err != nil {
		return &fault.Error{Code: fault.RequestInvalid, Resource: c.tool.Name, Rule: "the arguments can't be shown to a person", Err: err}
	}
	if !allText(reflect.ValueOf(kept)) { // all bad bytes become one character, and a yes would be for each
		return &fault.Error{Code: fault.RequestInvalid, Resource: c.tool.Name, Rule: "an argument is not UTF-8"}
	}
	c.args.text = string(b)
	return nil
}

// allText reports whether every string of a value is UTF-8. It is called for
// what could be encoded, which ends.
func allText(v reflect.Value) bool {
	switch v.Kind() {
	case reflect.String:
		return utf8.ValidString(v.String())
	case reflect.Interface, reflect.Pointer:
		return v.IsNil() || allText(v.Elem())
	case reflect.Slice, reflect.Array:
		return listText(v)
	case reflect.Map:
		for at := v.MapRange(); at.Next(); {
			if !allText(at.Key()) || !allText(at.Value()) {
				return false
			}
		}
	case reflect.Struct:
		return fieldsText(v)
	default:
	}
	return true
}

func listText(v reflect.Value) bool {
	if v.Type().Elem().Kind() == reflect.Uint8 { // base64, or a message as it came
		return v.Type() != reflect.TypeFor[json.RawMessage]() || utf8.Valid(v.Bytes())
	}
	for i := range v.Len() {
		if !allText(v.Index(i)) {
			return false
		}
	}
	return true
}

func fieldsText(v reflect.Value) bool {
	for i := range v.NumField() {
		if f := v.Type().Field(i); f.IsExported() && f.Tag.Get("json") != "-" && !allText(v.Field(i)) {
			return false
		}
	}
	return true
}

// beneath is what goes with a folder, in whatever order it is met.
type beneath struct {
	n      int
	sum    [sha256.Size]byte
	h      hash.Hash
	walked bool // by descend
}

func (t *beneath) add(n pathguard.Name, info pathguard.Info) {
	if t.h == nil {
		t.h = sha256.New()
	}
	t.h.Reset()
	_, _ = fmt.Fprintf(t.h, "%q %d %d %s", n.Rel(), info.Kind, info.Size, info.Fingerprint)
	carry := 0
	for i, b := range t.h.Sum(nil) { // a sum modulo 2²⁵⁶: no order, and no entry takes another away
		carry += int(t.sum[i]) + int(b)
		t.sum[i] = byte(carry)
		carry >>= 8
	}
	t.n++
}

func (t *beneath) digest() string {
	if t.n == 0 {
		return ""
	}
	return hex.EncodeToString(t.sum[:])
}

// Bounds of a diff that is shown.
const (
	maxChangeLines = 400
	maxChangeBytes = 64 << 10
)

// change draws what would become of the first operand.
func (c *crossing) change() string {
	if c.proposed == nil || c.private() {
		return ""
	}
	o, after := &c.operands[0], *c.proposed
	var before []byte
	if o.exists() {
		content, err := o.content()
		if err != nil {
			return "what is there can't be shown"
		}
		before = content
	}
	if c.appends {
		after = append(slices.Clone(before), after...)
	}
	sizes := fmt.Sprintf("%d bytes, sha256 %x\nbecome\n%d bytes, sha256 %x", len(before), sha256.Sum256(before), len(after), sha256.Sum256(after))
	if c.diff == nil || noText(before) || noText(after) {
		return sizes
	}
	text, complete := c.diff(o.name.String(), before, after)
	switch {
	case text == "":
		return "nothing in it changes"
	case !complete:
		return text + sizes
	}
	return text
}

// cutChange keeps the beginning of a long diff and says what is left out.
func cutChange(text string) string {
	end, lines := 0, 0
	for lines < maxChangeLines && end < len(text) {
		i := bytes.IndexByte([]byte(text[end:]), '\n') + 1
		if i == 0 {
			i = len(text) - end
		}
		if end+i > maxChangeBytes {
			break
		}
		end, lines = end+i, lines+1
	}
	if end == len(text) {
		return text
	}
	rest := text[end:]
	return text[:end] + fmt.Sprintf("and %d lines more (%d bytes) that are not shown\n", bytes.Count([]byte(rest), []byte("\n")), len(rest))
}

// private reports whether a name belongs to a built-in list.
func (c *crossing) private() bool { return len(c.classes) > 0 }

// noText reports whether the content is no text.
func noText(b []byte) bool {
	return bytes.IndexByte(b[:min(len(b), 8<<10)], 0) >= 0
}
