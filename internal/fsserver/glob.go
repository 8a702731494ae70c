// SPDX-License-Identifier: Apache-2.0

package fsserver

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"unicode/utf8"
)

func runeLen(s string) int {
	_, n := utf8.DecodeRuneInString(s)
	return n
}

// expandBraces returns the alternatives that {a,b}, {1..3} and {a..c} stand
// for, at most that many; braces that stand for none are ordinary characters.
func expandBraces(s string, most int) ([]string, bool) {
	for i := 0; i < len(s); i++ {
		switch s[i] {
		case '\\':
			i++
			continue
		case '{':
		default:
			continue
		}
		end, commas := closing(s, i)
		if end < 0 {
			continue
		}
		parts, ok := alternatives(s, i, end, commas, most)
		if !ok || parts == nil {
			if !ok {
				return nil, false
			}
			continue
		}
		rests, ok := expandBraces(s[end+1:], most)
		if !ok || len(rests)*len(parts) > most {
			return nil, false
		}
		all := make([]string, 0, len(parts)*len(rests))
		for _, part := range parts {
			for _, rest := range rests {
				all = append(all, s[:i]+part+rest)
			}
		}
		return all, true
	}
	return []string{s}, true
}

// closing finds the brace that closes the one at open, and the commas between
// that belong to it; end is -1 without one.
func closing(s string, open int) (end int, commas []int) {
	depth := 0
	for i := open; i < len(s); i++ {
		switch s[i] {
		case '\\':
			i++
		case '{':
			depth++
		case '}':
			if depth--; depth == 0 {
				return i, commas
			}
		case ',':
			if depth == 1 {
				commas = append(commas, i)
			}
		}
	}
	return -1, nil
}

// alternatives is what one pair of braces stands for, nil for itself.
func alternatives(s string, open, end int, commas []int, most int) ([]string, bool) {
	if len(commas) == 0 {
		return sequence(s[open+1:end], most)
	}
	var all []string
	from := open + 1
	for _, to := range append(commas, end) {
		parts, ok := expandBraces(s[from:to], most)
		if !ok || len(all)+len(parts) > most {
			return nil, false
		}
		all = append(all, parts...)
		from = to + 1
	}
	return all, true
}

var sequenceForm = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`\A(?:(-?\d{1,9})\.\.(-?\d{1,9})|([A-Za-z])\.\.([A-Za-z]))(?:\.\.(-?\d{1,9}))?\z`)
})

// sequence is what {1..9..2} and {a..e} stand for, nil if it is neither.
func sequence(body string, most int) ([]string, bool) {
	m := sequenceForm().FindStringSubmatch(body)
	if m == nil {
		return nil, true
	}
	var from, to int
	text := strconv.Itoa
	if m[1] != "" {
		from, _ = strconv.Atoi(m[1]) // digits, by the form
		to, _ = strconv.Atoi(m[2])
		if width := max(len(m[1]), len(m[2])); padded(m[1]) || padded(m[2]) {
			text = func(n int) string { return fmt.Sprintf("%0*d", width, n) }
		}
	} else {
		from, to = int(m[3][0]), int(m[4][0])
		text = func(n int) string { return string(rune(n)) }
	}
	step, _ := strconv.Atoi(m[5])
	step = max(1, max(step, -step))
	count := max(from-to, to-from)/step + 1
	if count > most {
		return nil, false
	}
	if to < from {
		step = -step
	}
	all := make([]string, count)
	for i := range all {
		all[i] = text(from + i*step)
	}
	return all, true
}

func padded(number string) bool {
	digits := strings.TrimPrefix(number, "-")
	return len(digits) > 1 && digits[0] == '0'
}

// translator turns one component of a pattern into a regular expression. The
// expression has no back references, so matching is linear.
type translator struct {
	s       string
	i       int
	out     strings.Builder
	refused bool
}

// sequence translates up to the end, or of a group up to its parenthesis.
func (t *translator) sequence(group bool) {
	for t.i < len(t.s) {
		c := t.s[t.i]
		switch {
		case t.groupAt():
			t.group()
			continue
		case group && c == ')':
			return
		case group && c == '|':
			t.out.WriteByte('|')
		case c == '*':
			t.out.WriteString(`.*`)
		case c == '?':
			t.out.WriteByte('.')
		case c == '[':
			if t.class() {
				continue
			}
			t.out.WriteString(`\[`)
		case c == '\\' && t.i+1 < len(t.s):
			t.i++
			fallthrough
		default:
			n := runeLen(t.s[t.i:])
			t.out.WriteString(regexp.QuoteMeta(t.s[t.i : t.i+n]))
			t.i += n
			continue
		}
		t.i++
	}
}

// groupAt reports whether a group such as +(a|b) begins here and ends.
func (t *translator) groupAt() bool {
	if t.i+1 >= len(t.s) || t.s[t.i+1] != '(' || !strings.ContainsRune("?*+@!", rune(t.s[t.i])) {
		return false
	}
	depth := 0
	for i := t.i + 1; i < len(t.s); i++ {
		switch t.s[i] {
		case '\\':
			i++
		case '(':
			depth++
		case ')':
			if depth--; depth == 0 {
				return true
			}
		}
	}
	return false
}

func (t *translator) group() {
	kind := t.s[t.i]
	t.refused = t.refused || kind == '!'
	t.i += 2
	t.out.WriteString("(?:")
	t.sequence(true)
	t.i++
	t.out.WriteByte(')')
	if kind != '@' && kind != '!' {
		t.out.WriteByte(kind)
	}
}

// posix are the named classes, by the letters that a reader expects of them.
var posix = map[string]string{
	"alnum": `\p{L}\p{Nd}\p{Nl}`, "alpha": `\p{L}\p{Nl}`, "ascii": `\x00-\x7f`, "blank": `\t\p{Zs}`,
	"cntrl": `\p{Cc}`, "digit": `\p{Nd}`, "lower": `\p{Ll}`, "print": `\PC`, "punct": `\p{P}`,
	"space": `\t\n\v\f\r\p{Z}`, "upper": `\p{Lu}`, "word": `\p{L}\p{Nl}\p{Nd}\p{Pc}`, "xdigit": `A-Fa-f0-9`,
}

// class translates a set in brackets. It is false, and nothing is consumed, if
// the bracket isn't closed and stands for itself.
func (t *translator) class() bool {
	rest := t.s[t.i+1:]
	negated := strings.HasPrefix(rest, "!") || strings.HasPrefix(rest, "^")
	if negated {
		rest = rest[1:]
	}
	var set []string
	for first := true; ; first = false {
		switch {
		case rest == "":
			return false
		case rest[0] == ']' && !first:
			t.i = len(t.s) - len(rest) + 1
			t.set(set, negated)
			return true
		}
		if name, after, ok := namedClass(rest); ok {
			set, rest = append(set, name), after
			continue
		}
		var low, high rune
		low, rest = classRune(rest)
		high = low
		if len(rest) > 1 && rest[0] == '-' && rest[1] != ']' {
			high, rest = classRune(rest[1:])
		}
		if low <= high {
			set = append(set, fmt.Sprintf(`\x{%x}-\x{%x}`, low, high))
		}
	}
}

func namedClass(s string) (set, rest string, ok bool) {
	name, rest, ok := strings.Cut(strings.TrimPrefix(s, "[:"), ":]")
	set, known := posix[name]
	return set, rest, ok && known && strings.HasPrefix(s, "[:")
}

func classRune(s string) (r rune, rest string) {
	if len(s) > 1 && s[0] == '\\' {
		s = s[1:]
	}
	r, n := utf8.DecodeRuneInString(s)
	return r, s[n:]
}

func (t *translator) set(set []string, negated bool) {
	switch {
	case len(set) > 0 && negated:
		t.out.WriteString("[^" + strings.Join(set, "") + "]")
	case len(set) > 0:
		t.out.WriteString("[" + strings.Join(slices.Compact(set), "") + "]")
	case negated:
		t.out.WriteByte('.')
	default:
		t.out.WriteString(`[^\x00-\x{10ffff}]`) // an empty set matches nothing
	}
}
