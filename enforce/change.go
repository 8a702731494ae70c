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
	"strings"
	"unicode/utf8"

	"github.com/postern-gate/postern/core/fault"
	"github.com/postern-gate/postern/core/pathguard"
	"github.com/postern-gate/postern/internal/safety"
	"github.com/postern-gate/postern/internal/state/grant"
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

// maxChangeLines bounds a diff that is shown: of more nobody reads each line.
// Its bytes are bounded by what a question may hold.
const maxChangeLines = 4000

// What a card doesn't show of a change.
const (
	onlySizes   = "what changes: only sizes and digests are shown"
	onlyBinary  = "what changes: it is no text, so only sizes and digests are shown"
	onlyPrivate = "what is written: its name belongs to a built-in list"
	onlyAfter   = "what is there: it can't be read"
)

// change draws what would become of the first operand.
func (c *crossing) change() (text, unshown string) {
	if c.proposed == nil {
		return "", ""
	}
	if c.private() {
		return "", onlyPrivate
	}
	o, after := &c.operands[0], *c.proposed
	var before []byte
	if o.exists() {
		content, err := o.content()
		if err != nil {
			return "what is there can't be shown", onlyAfter
		}
		before = content
	}
	if c.blind() {
		var err error
		if after, err = c.edits(before); err != nil {
			return "the edit does not apply to what is there: " + fault.As(err).Because(), ""
		}
	}
	if c.appends {
		after = append(slices.Clone(before), after...)
	}
	return drawChange(c.diff, o.name.String(), before, after)
}

// drawChange draws what becomes of a file, and says what of it isn't shown.
func drawChange(diff func(name string, before, after []byte) (text string, complete bool), name string, before, after []byte) (text, unshown string) {
	sizes := fmt.Sprintf("%d bytes, sha256 %x\nbecome\n%d bytes, sha256 %x", len(before), sha256.Sum256(before), len(after), sha256.Sum256(after))
	if noText(before) || noText(after) {
		return sizes, onlyBinary
	}
	if diff == nil {
		diff = bothWhole
	}
	text, complete := diff(name, before, after)
	switch {
	case !complete:
		return text + sizes, onlySizes
	case text == "":
		return "nothing in it changes", ""
	}
	return text, ""
}

// bothWhole is the diff of a door that has none: all that goes, then all that
// comes.
func bothWhole(_ string, before, after []byte) (text string, complete bool) {
	if bytes.Equal(before, after) {
		return "", true
	}
	if len(before)+len(after) > grant.MaxQuestion {
		return "", false
	}
	var b strings.Builder
	for _, side := range []struct{ sign, text string }{{"-", string(before)}, {"+", string(after)}} {
		for l := range strings.Lines(side.text) {
			b.WriteString(side.sign + strings.TrimSuffix(l, "\n") + "\n")
			if !strings.HasSuffix(l, "\n") {
				b.WriteString(`\ No newline at end of file` + "\n")
			}
		}
	}
	return b.String(), true
}

// cutChange keeps the whole lines that fit, and says how much is left out.
func cutChange(text string, room int) (shown, unshown string) {
	end, lines := 0, 0
	for lines < maxChangeLines && end < len(text) {
		n := strings.IndexByte(text[end:], '\n') + 1
		if n == 0 {
			n = len(text) - end
		}
		if end+n > room {
			break
		}
		end, lines = end+n, lines+1
	}
	rest := text[end:]
	if rest == "" {
		return text, ""
	}
	more := strings.Count(strings.TrimSuffix(rest, "\n"), "\n") + 1
	return text[:end], fmt.Sprintf("the rest of the change: %d lines, %d bytes", more, len(rest))
}

// private reports whether a name belongs to a built-in list.
func (c *crossing) private() bool { return len(c.classes) > 0 }

// noText reports whether the content is no text.
func noText(b []byte) bool {
	return bytes.IndexByte(b[:min(len(b), 8<<10)], 0) >= 0
}
