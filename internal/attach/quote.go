// SPDX-License-Identifier: Apache-2.0

package attach

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"unicode"
	"unicode/utf16"

	"github.com/postern-gate/postern/core/textsafe"
)

// quote spells a string for JSON so that every character of it shows: what a
// person sees and pastes is then what is meant. What textsafe would drop or
// replace is an escape.
func quote(s string) string {
	return spell(s, func(r rune) string {
		if r > 0xffff {
			high, low := utf16.EncodeRune(r)
			return fmt.Sprintf(`\u%04x\u%04x`, high, low)
		}
		return fmt.Sprintf(`\u%04x`, r)
	})
}

// quoteTOML is quote for TOML, which has no pairs of surrogates.
func quoteTOML(s string) string {
	return spell(s, func(r rune) string {
		if r > 0xffff {
			return fmt.Sprintf(`\U%08x`, r)
		}
		return fmt.Sprintf(`\u%04x`, r)
	})
}

func spell(s string, escape func(rune) string) string {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(s); err != nil { // a string always encodes
		return `""`
	}
	var out strings.Builder
	for _, r := range strings.TrimSuffix(b.String(), "\n") {
		if unseen(r) {
			out.WriteString(escape(r))
		} else {
			out.WriteRune(r)
		}
	}
	return out.String()
}

// unseen reports whether a character may not show as itself: all that textsafe
// changes, and what joins or varies the letter before it, which counts in a name.
func unseen(r rune) bool {
	if r >= 0x20 && r < 0x7f {
		return false
	}
	s := string(r)
	return textsafe.Block(s).String() != s || textsafe.Clean(s).String() != s ||
		unicode.In(r, unicode.Cf, unicode.Variation_Selector, unicode.Other_Default_Ignorable_Code_Point) || unicode.IsSpace(r) || r == 0x2800
}

func list(words []string) string { return inBrackets(words, quote) }

func listTOML(words []string) string { return inBrackets(words, quoteTOML) }

func inBrackets(words []string, spelled func(string) string) string {
	quoted := make([]string, len(words))
	for i, w := range words {
		quoted[i] = spelled(w)
	}
	return "[" + strings.Join(quoted, ", ") + "]"
}
