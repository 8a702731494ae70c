// SPDX-License-Identifier: Apache-2.0

package glob

import (
	"strings"
	"unicode/utf8"

	"github.com/postern-gate/postern/core/fault"
)

// maxPattern bounds a pattern: longer than any name a kernel accepts (PATH_MAX).
const maxPattern = 4096

// Pattern is a compiled pattern. Its zero value matches nothing.
type Pattern struct {
	need   sieve // what a matching plain name has
	text   string
	exact  []segment
	folded []segment // nil unless made by CompileFolded
	// negated: it has a class that may hold a capital and not its small
	// letter, so that a match by key does not follow from one by bytes.
	negated bool
}

// String returns the pattern as it was written.
func (p Pattern) String() string { return p.text }

type segment struct {
	double bool    // **
	lit    string  // the whole segment, when tokens is nil
	tokens []token // otherwise
	suffix string  // what every match ends with, "" when unknown
}

type tokenKind uint8

const (
	tokenLiteral tokenKind = iota
	tokenOne               // ?
	tokenStar              // *
	tokenClass             // [..]
)

type token struct {
	kind  tokenKind
	lit   string
	class class
}

// Compile returns the pattern that compares byte for byte, for rules that
// allow. The error is a fault.ConfigInvalid whose Rule says what is wrong.
func Compile(pattern string) (Pattern, error) {
	p, err := parse(pattern)
	p.need = need(p.exact)
	return p, err
}

// CompileFolded returns the pattern for rules that tighten: it matches a name
// byte for byte or by its Key. Errors are those of Compile.
func CompileFolded(pattern string) (Pattern, error) {
	p, err := parse(pattern)
	for _, s := range p.exact {
		p.folded = append(p.folded, s.fold())
		for _, t := range s.tokens {
			p.negated = p.negated || t.class.negated
		}
	}
	p.need = need(p.folded)
	return p, err
}

func parse(pattern string) (Pattern, error) {
	if msg := screen(pattern); msg != "" {
		return Pattern{}, invalid(pattern, msg)
	}
	parts := strings.Split(pattern, "/")
	segs := make([]segment, 0, len(parts))
	for i, part := range parts {
		s, msg := parseSegment(part, i == 0 && len(parts) > 1)
		if msg != "" {
			return Pattern{}, invalid(pattern, msg)
		}
		if s.double && len(segs) > 0 && segs[len(segs)-1].double {
			continue
		}
		segs = append(segs, s)
	}
	return Pattern{text: pattern, exact: segs}, nil
}

func screen(pattern string) string {
	switch {
	case pattern == "":
		return "the pattern is empty: write ** for everything"
	case len(pattern) > maxPattern:
		return "the pattern is longer than 4096 bytes"
	case !utf8.ValidString(pattern):
		return "the pattern is not valid UTF-8"
	case strings.IndexByte(pattern, 0) >= 0:
		return "the pattern holds a NUL, which no name can"
	case strings.HasSuffix(pattern, "/"):
		return "the pattern ends in a slash: write a/** for a and all below it"
	}
	return ""
}

// parseSegment compiles one segment; leading says that an empty one is the
// start of an absolute path.
func parseSegment(part string, leading bool) (segment, string) {
	switch part {
	case "**":
		return segment{double: true}, ""
	case "":
		if leading {
			return segment{}, ""
		}
		return segment{}, "the pattern has an empty segment, which no name has"
	}
	tokens, msg := tokenize(part)
	if msg != "" {
		return segment{}, msg
	}
	s := newSegment(tokens)
	if s.tokens == nil && (s.lit == "." || s.lit == "..") {
		return segment{}, "names are canonical, so . and .. match nothing: write the pattern from the root"
	}
	return s, ""
}

// newSegment collapses tokens to a plain literal where they are one, and
// notes the suffix that makes most comparisons short.
func newSegment(tokens []token) segment {
	if len(tokens) == 1 && tokens[0].kind == tokenLiteral {
		return segment{lit: tokens[0].lit}
	}
	s := segment{tokens: tokens}
	if last := tokens[len(tokens)-1]; last.kind == tokenLiteral {
		s.suffix = last.lit
	}
	return s
}

// tokenizer collects the tokens of one segment.
type tokenizer struct {
	tokens []token
	lit    []byte
}

func tokenize(part string) ([]token, string) {
	var t tokenizer
	for part != "" {
		size, msg := t.next(part)
		if msg != "" {
			return nil, msg
		}
		part = part[size:]
	}
	t.flush()
	return t.tokens, ""
}

// next takes what part starts with and returns its length.
func (t *tokenizer) next(part string) (int, string) {
	switch part[0] {
	case '{', '}':
		return 0, `braces are not supported: write two entries, or \{ for the character itself`
	case '\\':
		_, size := decode(part[1:])
		if size == 0 {
			return 0, "a backslash at the end of a segment takes nothing literally"
		}
		t.lit = append(t.lit, part[1:1+size]...)
		return 1 + size, ""
	case '?':
		t.add(token{kind: tokenOne})
	case '*':
		if strings.HasPrefix(part, "**") {
			return 0, "** must be a whole segment: write **/*.js, or one * within a segment"
		}
		t.add(token{kind: tokenStar})
	case '[':
		cls, size, msg := parseClass(part)
		t.add(token{kind: tokenClass, class: cls})
		return size, msg
	default:
		t.lit = append(t.lit, part[0])
	}
	return 1, ""
}

func (t *tokenizer) add(next token) {
	t.flush()
	t.tokens = append(t.tokens, next)
}

func (t *tokenizer) flush() {
	if len(t.lit) > 0 {
		t.tokens = append(t.tokens, token{kind: tokenLiteral, lit: string(t.lit)})
		t.lit = nil
	}
}

func invalid(pattern, msg string) error {
	return &fault.Error{Code: fault.ConfigInvalid, Op: "pattern", Resource: pattern, Rule: msg}
}

// Literal returns the pattern that names path and nothing else.
func Literal(path string) string {
	var b strings.Builder
	for i := range len(path) {
		if strings.IndexByte(`\*?[]{}`, path[i]) >= 0 {
			b.WriteByte('\\')
		}
		b.WriteByte(path[i])
	}
	return b.String()
}
