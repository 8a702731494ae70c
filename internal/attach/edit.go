// SPDX-License-Identifier: Apache-2.0

package attach

import (
	"bytes"
)

// add returns the text with the entry. Everything else of it stays.
func (f form) add(text []byte, e entry) (after []byte, m made, prob *problem) {
	if prob := checkText(text); prob != nil {
		return nil, made{}, prob
	}
	body := bytes.TrimPrefix(text, bom)
	shift := len(text) - len(body)
	if f.toml {
		after, m, prob = f.addTOML(body, e)
	} else {
		after, m, prob = f.addJSON(body, e)
	}
	if prob != nil {
		return nil, made{}, prob.moved(shift)
	}
	after = append(bytes.Clone(text[:shift]), after...)
	return after, m, f.check(text, after, e, m)
}

// remove returns the text without the entry of that name, which must be ours. m
// is what was made beside it, nil where that isn't known.
func (f form) remove(text []byte, name string, m *made) (after []byte, prob *problem) {
	if prob := checkText(text); prob != nil {
		return nil, prob
	}
	body := bytes.TrimPrefix(text, bom)
	shift := len(text) - len(body)
	if f.toml {
		after, prob = f.removeTOML(body, name, m)
	} else {
		after, prob = f.removeJSON(body, name, m)
	}
	if prob != nil {
		return nil, prob.moved(shift)
	}
	return append(bytes.Clone(text[:shift]), after...), nil
}

// moved is the problem in a text with that many bytes before it.
func (p *problem) moved(by int) *problem {
	if p.at >= 0 {
		p.at += by
	}
	return p
}

// check reads back what was made: the entry must be there, and taking it out
// must give the text of before. It is the last look before anything is planned.
func (f form) check(text, after []byte, e entry, m made) *problem {
	got, prob := f.entries(after)
	if prob != nil {
		return wrong(-1, "adding the entry would break the file")
	}
	n := 0
	for _, g := range got {
		if g.name == e.name && g.same(e) {
			n++
		}
	}
	if n != 1 {
		return wrong(-1, "adding the entry would not be read back")
	}
	if bytes.Equal(text, after) {
		return nil // it was there
	}
	back, prob := f.remove(after, e.name, &m)
	if prob != nil || !bytes.Equal(back, text) {
		return wrong(-1, "the entry can't be added so that it can be taken out again")
	}
	return nil
}

// entries returns every server of a text with what it runs.
func (f form) entries(text []byte) ([]entry, *problem) {
	if prob := checkText(text); prob != nil {
		return nil, prob
	}
	body := bytes.TrimPrefix(text, bom)
	shift := len(text) - len(body)
	if f.toml {
		items, prob := scanTOML(string(body))
		if prob != nil {
			return nil, prob.moved(shift)
		}
		return f.entriesTOML(items), nil
	}
	p, prob := parseJSON(body, f.key)
	if prob != nil {
		return nil, prob.moved(shift)
	}
	var all []entry
	if p.servers != nil {
		for _, m := range p.servers.members {
			e, _ := f.read(m.name, m.value)
			all = append(all, e)
		}
	}
	return all, nil
}
