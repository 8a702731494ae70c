// SPDX-License-Identifier: Apache-2.0

package glob

import "slices"

// lead is how a segment of a pattern was reached.
type lead uint8

const (
	unreached lead = iota
	anyhow         // over wildcards alone
	byName         // over at least one segment that names something
)

// Above reports whether the pattern can name something beneath path by what path
// itself is called: a segment of the pattern that says more than one character of
// a name has met one of path, and others are still to come. So a name that a
// pattern starts with everywhere, as `**/x` does, is not above it, and neither is
// one that the pattern names already, unless it also goes on from there. Unlike a
// match it allocates, for the few names that come near.
func (p *Pattern) Above(path *Path) bool {
	switch {
	case p.exact == nil || path.name == "":
		return false
	case p.folded == nil:
		return above(p.exact, path.name, false)
	case above(p.folded, path.key, path.lower):
		return true
	default:
		return (p.negated || !path.plain) && above(p.exact, path.name, false)
	}
}

// above follows all ways through the pattern at once, so that each segment of it
// is compared with each of path once at most.
func above(segs []segment, path string, lower bool) bool {
	if !slices.ContainsFunc(segs, func(s segment) bool { return s.names() && s.among(path, lower) }) {
		return false // nearly every pair ends here
	}
	now, next := make([]lead, len(segs)+1), make([]lead, len(segs)+1)
	now[0] = anyhow
	for pos := 0; pos <= len(path); {
		end := segmentEnd(path, pos)
		skipDouble(segs, now)
		clear(next)
		for i := range segs {
			switch {
			case now[i] == unreached:
			case segs[i].double:
				next[i] = max(next[i], now[i])
			case segs[i].match(path[pos:end], lower):
				to := now[i]
				if segs[i].names() {
					to = byName
				}
				next[i+1] = max(next[i+1], to)
			}
		}
		now, next = next, now
		pos = end + 1
	}
	skipDouble(segs, now)
	for i := range segs {
		if now[i] == byName && slices.ContainsFunc(segs[i:], func(s segment) bool { return !s.double }) {
			return true
		}
	}
	return false
}

// among reports whether the segment meets one of path.
func (s *segment) among(path string, lower bool) bool {
	for pos := 0; pos <= len(path); {
		end := segmentEnd(path, pos)
		if s.match(path[pos:end], lower) {
			return true
		}
		pos = end + 1
	}
	return false
}

// skipDouble lets each ** stand for nothing.
func skipDouble(segs []segment, reached []lead) {
	for i := range segs {
		if segs[i].double {
			reached[i+1] = max(reached[i+1], reached[i])
		}
	}
}

// names reports whether the segment says more of a name than one character.
func (s *segment) names() bool {
	if s.tokens == nil {
		return !s.double
	}
	n := 0
	for _, t := range s.tokens {
		n += len(t.lit)
	}
	return n > 1
}
