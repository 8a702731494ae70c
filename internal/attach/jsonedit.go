// SPDX-License-Identifier: Apache-2.0

package attach

import (
	"bytes"
	"strings"
)

// addJSON returns the text with the entry: the same text for one that is equal,
// with the value replaced for one of ours, else with the entry added.
func (f form) addJSON(text []byte, e entry) ([]byte, made, *problem) {
	p, prob := parseJSON(text, f.key)
	if prob != nil {
		return nil, made{}, prob
	}
	s := style{eol: lineEnd(text), unit: p.unit()}
	if p.empty {
		return append(bytes.Clone(text), f.document(e, s)...), made{Root: true}, nil
	}
	if p.servers == nil {
		value := func(s style) string {
			inner := s.deeper()
			if s.inline {
				return quote(f.key) + ": {" + quote(e.name) + ": " + f.object(e, s) + "}"
			}
			return quote(f.key) + ": {" + s.eol + inner.indent + quote(e.name) + ": " + f.object(e, inner) + s.eol + s.indent + "}"
		}
		splices, closed := p.insert(p.root, s, value)
		return apply(text, splices), made{Object: true, ClosedRoot: closed}, nil
	}
	m, prob := p.servers.only(e.name)
	if prob != nil {
		return nil, made{}, prob
	}
	if m == nil {
		splices, closed := p.insert(p.servers, s, func(s style) string { return quote(e.name) + ": " + f.object(e, s) })
		return apply(text, splices), made{Closed: closed}, nil
	}
	old, plain := f.read(m.name, m.value)
	switch {
	case !plain || !old.plain():
		return nil, made{}, notOurs(m.at, old)
	case old.same(e):
		return text, made{}, nil
	case commented(text[m.start:m.end]):
		return nil, made{}, withComment(m.at, e.name)
	}
	s.inline = !bytes.ContainsRune(text[m.start:m.end], '\n')
	s.indent = indentAt(text, m.at)
	return apply(text, []splice{{m.start, m.end, f.object(e, s)}}), made{Was: string(text[m.start:m.end]), WasRuns: old.runs()}, nil
}

// withComment refuses an entry with a comment of somebody in it.
func withComment(at int, name string) *problem {
	p := wrong(at, "there is a comment in the entry %q, which would go with it", name)
	p.hint = "move the comment out of the entry"
	return p
}

// commented reports whether there is a comment in a part of a text.
func commented(text []byte) bool {
	for i := 0; i >= 0 && i < len(text); i++ {
		switch text[i] {
		case '/':
			return true
		case '"':
			i = skip(text, i)
		}
	}
	return false
}

// notOurs refuses an entry of our name.
func notOurs(at int, e entry) *problem {
	what := "runs something else"
	if e.serves() {
		what = "was changed by hand"
	}
	p := wrong(at, "the entry %q %s, and it is neither overwritten nor trusted", e.name, what)
	p.hint = "look at the entry and rename or remove it, or leave this client out with --client"
	return p
}

// removeJSON returns the text without the entry, or with the one that it took the
// place of. What was made beside it goes too if it is empty then; without m (nil)
// only the entry goes.
func (f form) removeJSON(text []byte, name string, m *made) ([]byte, *problem) {
	p, prob := parseJSON(text, f.key)
	if prob != nil || p.servers == nil {
		return text, prob
	}
	at, prob := p.servers.index(name)
	if prob != nil || at < 0 {
		return text, prob
	}
	own := p.servers.members[at]
	old, plain := f.read(name, own.value)
	switch {
	case !plain || !old.plain():
		return nil, notOurs(own.at, old)
	case commented(text[own.at:max(own.end, own.comma)]):
		return nil, withComment(own.at, name)
	case m == nil:
		return apply(text, p.cut(p.servers, at, false, false)), nil
	case m.Was != "":
		return apply(text, []splice{{own.start, own.end, m.Was}}), nil
	}
	return apply(text, p.without(at, m, f.key)), nil
}

// without takes out the server at that place, with what was made for it and
// would be empty then.
func (p *parsed) without(at int, m *made, key string) []splice {
	i, _ := p.root.index(key) // it was found before
	if !m.Object && !m.Root || !p.alone(p.servers) || p.remarked(p.root.members[i]) {
		return p.cut(p.servers, at, true, m.Closed)
	}
	if eol := lineEnd(p.text); m.Root && p.alone(p.root) && bytes.HasPrefix(p.text[p.root.end:], []byte(eol)) {
		return []splice{{p.root.start, p.root.end + len(eol), ""}}
	}
	return p.cut(p.root, i, true, m.ClosedRoot)
}

// remarked reports whether somebody's comment stands between a member's name and
// its value, or between that and its comma.
func (p *parsed) remarked(m member) bool {
	return commented(p.text[m.at:m.start]) || commented(p.text[m.end:max(m.end, m.comma)])
}

// index is where the member of that name is, -1 for none.
func (o *object) index(name string) (int, *problem) {
	m, prob := o.only(name)
	if m == nil {
		return -1, prob
	}
	for i := range o.members {
		if o.members[i].at == m.at {
			return i, nil
		}
	}
	return -1, nil
}

// alone reports whether an object holds one member and no comment beside it.
func (p *parsed) alone(o *object) bool {
	if len(o.members) != 1 {
		return false
	}
	m := o.members[0]
	rest := string(p.text[m.end : o.end-1])
	return blank(string(p.text[o.start+1:m.at])) && blank(strings.Replace(rest, ",", "", 1))
}

func blank(s string) bool { return strings.Trim(s, " \t\r\n") == "" }

// unit is one level of indentation: that of the first member of the root.
func (p *parsed) unit() string {
	if p.empty || len(p.root.members) == 0 {
		return "  "
	}
	at := p.root.members[0].at
	if !bytes.ContainsRune(p.text[p.root.start:at], '\n') {
		return "  "
	}
	unit := strings.TrimPrefix(indentAt(p.text, at), indentAt(p.text, p.root.start))
	if unit == "" {
		return "  "
	}
	return unit
}

// insert puts a member last into an object. Closed says that a line end was
// added before the brace.
func (p *parsed) insert(o *object, s style, text func(style) string) (splices []splice, closed bool) {
	from, comma := o.start+1, ""
	n := len(o.members)
	if n > 0 {
		last := o.members[n-1]
		from = last.end
		if last.comma >= 0 {
			from, comma = last.comma+1, ","
		} else {
			splices = append(splices, splice{from, from, ","})
		}
		lead := p.text[o.gap(n-1):last.at]
		s.inline = !bytes.ContainsRune(lead, '\n')
	} else {
		s.inline = len(p.root.members) > 0 && !bytes.ContainsRune(p.text[p.root.start:o.end], '\n')
	}
	at, line := p.afterComments(from, o.end-1)
	s.inline = s.inline && !line
	s.indent = p.indentIn(o, s.unit)
	switch {
	case s.inline && n == 0:
		return append(splices, splice{at, at, text(s)}), false
	case s.inline:
		return append(splices, splice{at, at, " " + text(s) + comma}), false
	}
	with := s.eol + s.indent + text(s) + comma
	if n == 0 && !bytes.ContainsRune(p.text[at:o.end], '\n') {
		closed = true
		with += s.eol + indentAt(p.text, o.start)
	}
	return append(splices, splice{at, at, with}), closed
}

// indentIn is the indentation of an object's members.
func (p *parsed) indentIn(o *object, unit string) string {
	if n := len(o.members); n > 0 && bytes.ContainsRune(p.text[o.gap(n-1):o.members[n-1].at], '\n') {
		return indentAt(p.text, o.members[n-1].at)
	}
	return indentAt(p.text, o.start) + unit
}

// afterComments returns where the last comment of a stretch of white space and
// comments ends, before its line end for a line comment; from without one.
func (p *parsed) afterComments(from, to int) (at int, line bool) {
	at = from
	for i := from; i < to; i++ {
		switch {
		case bytes.HasPrefix(p.text[i:to], []byte("//")):
			end := i + bytes.IndexByte(p.text[i:], '\n')
			at, line, i = end, true, end
			for p.text[at-1] == '\r' {
				at--
			}
		case bytes.HasPrefix(p.text[i:to], []byte("/*")):
			i += 2 + bytes.Index(p.text[i+2:], []byte("*/")) + 1
			at, line = i+1, false
		}
	}
	return at, line
}

// cut takes a member out of an object. Known says that closed is known; without
// that an object that is empty then is closed up.
func (p *parsed) cut(o *object, i int, known, closed bool) []splice {
	m := o.members[i]
	start, line := p.afterComments(o.gap(i), m.at)
	end := m.end
	var splices []splice
	switch last := i == len(o.members)-1; {
	case m.comma >= 0:
		end = m.comma + 1
	case last && i > 0:
		comma := o.members[i-1].comma
		splices = append(splices, splice{comma, comma + 1, ""})
	case known && closed:
		if tail := lineEnd(p.text) + indentAt(p.text, o.start); bytes.HasPrefix(p.text[end:o.end-1], []byte(tail)) {
			end += len(tail)
		}
	case !known && blank(string(p.text[end:o.end-1])) && !line:
		end = o.end - 1
	}
	if rest := bytes.TrimLeft(p.text[end:], "\r"); line && (len(rest) == 0 || rest[0] != '\n') {
		start += bytes.IndexByte(p.text[start:], '\n') + 1 // what follows must not become part of the comment
	}
	return append(splices, splice{start, end, ""})
}
