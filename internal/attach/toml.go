// SPDX-License-Identifier: Apache-2.0

package attach

import (
	"bytes"
	"slices"
	"strings"
)

// block is our table in a TOML text: where its lines begin and end, without the
// last line end.
type block struct {
	start, end int
	entry      entry
}

// addTOML returns the text with the entry's table at its end: the same text for
// one that is equal, with the block replaced for one of ours.
func (f form) addTOML(text []byte, e entry) ([]byte, *problem) {
	items, prob := scanTOML(string(text))
	if prob != nil {
		return nil, prob
	}
	b, prob := f.block(text, items, e.name)
	if prob != nil {
		return nil, prob
	}
	eol := lineEnd(text)
	table := strings.TrimSuffix(f.table(e, eol), eol)
	switch {
	case b != nil && b.entry.same(e):
		return text, nil
	case b != nil:
		return apply(text, []splice{{b.start, b.end, table}}), nil
	}
	if prob, same := f.taken(items, e); prob != nil || same {
		return text, prob
	}
	switch { // a text that has no line end last has none afterwards
	case len(text) == 0:
		table += eol
	case bytes.HasSuffix(text, []byte("\n")):
		table = eol + table + eol
	default:
		table = eol + table
	}
	return append(bytes.Clone(text), table...), nil
}

// removeTOML returns the text without the entry's block.
func (f form) removeTOML(text []byte, name string) ([]byte, *problem) {
	items, prob := scanTOML(string(text))
	if prob != nil {
		return nil, prob
	}
	b, prob := f.block(text, items, name)
	if prob != nil || b == nil {
		return text, prob
	}
	eol := lineEnd(text)
	start, end := b.start, b.end
	before := string(text[:start])
	switch {
	case end == len(text): // then there was no line end last
		start -= len(eol)
		if !strings.HasSuffix(before, eol) {
			start = b.start
		}
	case before == eol || strings.HasSuffix(before, "\n"+eol): // the empty line above it
		start -= len(eol)
	}
	for _, e := range []string{"\r\n", "\n"} {
		if bytes.HasPrefix(text[end:], []byte(e)) {
			end += len(e)
			break
		}
	}
	return apply(text, []splice{{start, end, ""}}), nil
}

// block finds the block that was added for the entry: nil for none. One that
// isn't as it was added any more is refused.
func (f form) block(text []byte, items []tomlItem, name string) (*block, *problem) {
	begin := slices.IndexFunc(items, func(it tomlItem) bool { return it.text == "# "+beginMark+name })
	if begin < 0 {
		return nil, nil //nolint:nilnil // none is not a problem
	}
	start := items[begin].start
	changed := wrong(start, "the block %q was changed by hand, and it is neither overwritten nor trusted", name)
	changed.hint = "look at the block and remove it yourself"
	rest := items[begin+1:]
	path := []string{f.key, name}
	is := func(i int, kind byte, key ...string) bool {
		return rest[i].kind == kind && slices.Equal(rest[i].path, append(slices.Clone(path), key...))
	}
	if len(rest) < 4 || !is(0, '[') || !is(1, '=', "command") || !is(2, '=', "args") || rest[3].text != "# "+endMark+name {
		return nil, changed
	}
	e := entry{name: name}
	ok := e.take(rest[1]) && e.take(rest[2])
	b := &block{start, rest[3].end, e}
	if strings.HasSuffix(string(text[:b.end]), "\r") {
		b.end--
	}
	want := strings.TrimSuffix(f.table(e, lineEnd(text)), lineEnd(text))
	if !ok || !e.plain() || string(text[start:b.end]) != want {
		return nil, changed
	}
	for i, it := range items {
		if (i <= begin || i > begin+4) && begins(it.path, path) {
			return nil, wrong(it.start, "it belongs to %q, whose block was added by postern init", name)
		}
	}
	return b, nil
}

// take reads the pair into the entry; ok is false for another pair or kind.
func (e *entry) take(it tomlItem) (ok bool) {
	switch it.path[len(it.path)-1] {
	case "command":
		e.command, ok = it.value.(string)
	case "args":
		var all []any
		if all, ok = it.value.([]any); !ok {
			return false
		}
		e.args = []string{}
		for _, one := range all {
			word, isText := one.(string)
			e.args, ok = append(e.args, word), ok && isText
		}
	}
	return ok
}

func begins(path, with []string) bool {
	return len(path) >= len(with) && slices.Equal(path[:len(with)], with)
}

// taken refuses a text in which the table is there already or can't be added.
// Same says that it is there and runs the same: the client's own command made
// it, say.
func (f form) taken(items []tomlItem, e entry) (p *problem, same bool) {
	path := []string{f.key, e.name}
	got, first, only := entry{name: e.name}, -1, true
	heads := 0
	for _, it := range items {
		switch {
		case slices.Equal(it.path, path[:1]) && it.kind == '[':
			heads++
		case slices.Equal(it.path, path[:1]):
			return f.paste(wrong(it.start, "%q is not a table that one can be added to", f.key), e), false
		case begins(it.path, path):
			if first < 0 {
				first = it.start
			}
			only = only && (len(it.path) == 2 && it.kind == '[' || len(it.path) == 3 && it.kind == '=' && got.take(it))
		}
		if heads > 1 {
			return wrong(it.start, "the table %q is there twice", f.key), false
		}
	}
	switch {
	case first < 0:
		return nil, false
	case only && got.same(e):
		return nil, true
	}
	return f.paste(wrong(first, "the table %q is there and was not added by postern init", f.key+"."+e.name), e), false
}

// paste says what to write by hand.
func (f form) paste(p *problem, e entry) *problem {
	p.hint = "write it yourself: [" + f.key + "." + e.name + "] command = " + quote(e.command) + ", args = " + list(e.args)
	return p
}

// entriesTOML are the servers of a text, with what each runs.
func (f form) entriesTOML(items []tomlItem) []entry {
	var all []entry
	for _, it := range items {
		if len(it.path) < 2 || it.path[0] != f.key {
			continue
		}
		i := slices.IndexFunc(all, func(e entry) bool { return e.name == it.path[1] })
		if i < 0 {
			i = len(all)
			all = append(all, entry{name: it.path[1]})
		}
		if len(it.path) == 3 && it.kind == '=' {
			all[i].take(it)
		}
	}
	return all
}
