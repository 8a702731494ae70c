// SPDX-License-Identifier: Apache-2.0

package ignore

import "strings"

// token is one step of a pattern.
type token struct {
	kind kind
	c    byte
	set  uint16 // its number among those of the rule, of which a pattern has no room for more
}

type kind uint8

const (
	exact kind = iota // the byte c
	one               // any byte but a slash
	among             // a byte of the set
	run               // *: any bytes but slashes
	any               // ** before an escaped slash, or at the end: any bytes
	dirs              // **/: any directories, or none
)

// set is one of all bytes; a slash is never in it.
type set [4]uint64

func (s *set) add(low, high byte) {
	for c := int(low); c <= int(high); c++ {
		s[c>>6] |= 1 << (c & 63)
	}
}

func (s *set) has(c byte) bool { return s[c>>6]>>(c&63)&1 == 1 }

// compile is false for a pattern that can name nothing. In one that is about
// whole paths two stars between slashes stand for directories.
func compile(s string, path bool) (tokens []token, sets []set, ok bool) {
	tokens = make([]token, 0, len(s))
	for i := 0; i < len(s); {
		c := s[i]
		switch c {
		case '*':
			t, n := stars(s, i, path)
			tokens, i = append(tokens, t), n
			continue
		case '?':
			tokens = append(tokens, token{kind: one})
		case '[':
			members, end := class(s, i+1)
			if members == nil {
				return nil, nil, false
			}
			tokens, i = append(tokens, token{kind: among, set: uint16(len(sets))}), end //nolint:gosec // at most MaxPattern
			sets = append(sets, *members)
			continue
		case '\\':
			if i++; i == len(s) {
				return nil, nil, false
			}
			c = s[i]
			fallthrough
		default:
			tokens = append(tokens, token{kind: exact, c: c})
		}
		i++
	}
	return tokens, sets, true
}

// stars reads the stars that begin at i.
func stars(s string, i int, path bool) (t token, end int) {
	end = i
	for end < len(s) && s[end] == '*' {
		end++
	}
	first := i == 0 || s[i-1] == '/'
	switch rest := s[end:]; {
	case end-i < 2 || !path || !first:
	case rest == "" || strings.HasPrefix(rest, `\/`):
		return token{kind: any}, end
	case rest[0] == '/':
		return token{kind: dirs}, end + 1
	}
	return token{kind: run}, end
}

// match reports whether the tokens stand for all of s. Of two stars that could
// give more only the last one has to, since an earlier one could give no more
// than it; a run ends at a slash, and then the last ** gives more. It gives up
// when its steps are used up.
func match(r *rule, s string, steps *int) bool {
	m := matcher{rule: r, s: s, star: -1, wide: -1}
	for m.t < len(r.tokens) || m.i < len(s) {
		if *steps--; *steps < 0 {
			return false
		}
		if m.t == len(r.tokens)-1 && r.tokens[m.t].kind == any {
			return true
		}
		if !m.step() && !m.back() {
			return false
		}
	}
	return true
}

// matcher is a place in a name and in the pattern, and the last stars passed.
type matcher struct {
	*rule
	s              string
	t, i           int
	star, starFrom int // of a run, and where what follows it begins; -1 for none
	wide, wideFrom int // the same of a **
}

// step takes one token, if it fits.
func (m *matcher) step() bool {
	if m.t == len(m.tokens) {
		return false
	}
	switch t := &m.tokens[m.t]; {
	case t.kind == run:
		m.star, m.starFrom = m.t, m.i
	case t.kind == any || t.kind == dirs:
		m.wide, m.wideFrom, m.star = m.t, m.i, -1
	case m.i < len(m.s) && m.takes(t, m.s[m.i]):
		m.i++
	default:
		return false
	}
	m.t++
	return true
}

// back gives the last star more.
func (m *matcher) back() bool {
	switch {
	case m.star >= 0 && m.starFrom < len(m.s) && m.s[m.starFrom] != '/':
		m.starFrom++
		m.t, m.i = m.star+1, m.starFrom
		return true
	case m.wide >= 0:
		m.wideFrom = wider(m.tokens[m.wide].kind, m.s, m.wideFrom)
		m.t, m.i, m.star = m.wide+1, m.wideFrom, -1
		return m.wideFrom >= 0
	default:
		return false
	}
}

// wider is where what follows a ** may begin next, -1 for nowhere.
func wider(k kind, s string, from int) int {
	if k == any {
		if from < len(s) {
			return from + 1
		}
		return -1
	}
	slash := strings.IndexByte(s[from:], '/')
	if slash < 0 {
		return -1
	}
	return from + slash + 1
}

func (r *rule) takes(t *token, c byte) bool {
	switch t.kind {
	case exact:
		return c == t.c
	case one:
		return c != '/'
	default:
		return r.sets[t.set].has(c)
	}
}
