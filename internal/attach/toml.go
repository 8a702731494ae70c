// SPDX-License-Identifier: Apache-2.0

package attach

import (
	"bytes"
	"cmp"
	"slices"
	"strings"
)

// block is our table in a TOML text: where its lines begin and end, without the
// last line end.
type block struct {
	start, end int
	entry      entry
	long       bool // a value goes over several lines, and may hold somebody's comment
}

// addTOML returns the text with the entry's table at its end: the same text for
// one that is equal, with the block replaced for one of ours.
func (f form) addTOML(text []byte, e entry) ([]byte, made, *problem) {
	items, prob := scanTOML(string(text))
	if prob != nil {
		return nil, made{}, prob
	}
	b, prob := f.block(text, items, e.name)
	if prob != nil {
		return nil, made{}, prob
	}
	eol := lineEnd(text)
	table := strings.TrimSuffix(f.table(e, eol), eol)
	switch {
	case b != nil && b.entry.same(e):
		return text, made{}, nil
	case b != nil && b.long:
		return nil, made{}, f.changed(items, e.name)
	case b != nil:
		return apply(text, []splice{{b.start, b.end, table}}), made{Was: string(text[b.start:b.end]), WasRuns: b.entry.runs()}, nil
	}
	if prob := f.taken(items, e); prob != nil {
		return nil, made{}, prob
	}
	switch { // a text that has no line end last has none afterwards
	case len(text) == 0:
		table += eol
	case bytes.HasSuffix(text, []byte("\n")):
		table = eol + table + eol
	default:
		table = eol + table
	}
	return append(bytes.Clone(text), table...), made{}, nil
}

// removeTOML returns the text without the entry's block, or with the one that it
// took the place of.
func (f form) removeTOML(text []byte, name string, m *made) ([]byte, *problem) {
	items, prob := scanTOML(string(text))
	if prob != nil {
		return nil, prob
	}
	b, prob := f.block(text, items, name)
	if prob != nil || b == nil || b.long {
		return text, cmp.Or(prob, f.changed(items, name))
	}
	if m != nil && m.Was != "" {
		return apply(text, []splice{{b.start, b.end, m.Was}}), nil
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
		return f.bare(text, items, name), nil
	}
	b, end := f.blockAt(text, items[begin:], name)
	if b == nil {
		p := wrong(items[begin].start, "the block %q was changed by hand, and it is neither overwritten nor trusted", name)
		p.hint = "look at the block and remove it yourself"
		return nil, p
	}
	for i, it := range items {
		if (i < begin || i >= begin+end) && begins(it.path, []string{f.key, name}) {
			return nil, wrong(it.start, "it belongs to %q, whose block was added by postern init", name)
		}
	}
	return b, nil
}

// blockAt reads the block that begins with the first item, and returns how many
// it has; nil if it isn't exactly what we write.
func (f form) blockAt(text []byte, items []tomlItem, name string) (*block, int) {
	const parts = 5 // the mark, the header, two pairs, the mark
	if len(items) < parts {
		return nil, 0
	}
	path := []string{f.key, name}
	is := func(it tomlItem, kind byte, key ...string) bool {
		return it.kind == kind && slices.Equal(it.path, append(slices.Clone(path), key...))
	}
	if !is(items[1], '[') || !is(items[2], '=', "command") || !is(items[3], '=', "args") || items[4].text != "# "+endMark+name {
		return nil, 0
	}
	e := entry{name: name}
	if !e.take(items[2]) || !e.take(items[3]) || !e.plain() {
		return nil, 0
	}
	b := &block{items[0].start, items[4].end, e, false}
	if text[b.end-1] == '\r' {
		b.end--
	}
	if eol := lineEnd(text); string(text[b.start:b.end]) != strings.TrimSuffix(f.table(e, eol), eol) {
		return nil, 0
	}
	return b, parts
}

// bare finds the entry's table without the marks, which Codex drops when it
// writes its servers anew: a header and our two pairs, each on a line of its own.
func (f form) bare(text []byte, items []tomlItem, name string) *block {
	path := []string{f.key, name}
	var own []tomlItem
	first := slices.IndexFunc(items, func(it tomlItem) bool { return begins(it.path, path) })
	for _, it := range items {
		if begins(it.path, path) {
			own = append(own, it)
		}
	}
	if len(own) != 3 || own[0].kind != '[' || len(own[0].path) != 2 || items[first+1].kind != '=' || items[first+2].kind != '=' {
		return nil
	}
	e := entry{name: name}
	if !e.part(own[1]) || !e.part(own[2]) || !e.plain() {
		return nil
	}
	long := slices.ContainsFunc(own, func(it tomlItem) bool { return bytes.ContainsRune(text[it.start:it.end], '\n') })
	b := &block{own[0].start, own[2].end, e, long}
	rest, _, _ := bytes.Cut(text[b.end:], []byte("\n"))
	if !blank(string(rest)) || indentAt(text, b.start) != "" || b.start > 0 && text[b.start-1] != '\n' {
		return nil
	}
	b.end += len(bytes.TrimSuffix(rest, []byte("\r")))
	return b
}

// changed refuses a table of the entry that isn't as it was added, nor as Codex
// writes that anew.
func (f form) changed(items []tomlItem, name string) *problem {
	i := slices.IndexFunc(items, func(it tomlItem) bool { return begins(it.path, []string{f.key, name}) })
	if i < 0 {
		return nil
	}
	p := wrong(items[i].start, "the table %q was changed by hand", f.key+"."+name)
	p.hint = "look at the table and remove it yourself"
	return p
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
func (f form) taken(items []tomlItem, e entry) *problem {
	head := -1
	for _, it := range items {
		switch servers := slices.Equal(it.path, []string{f.key}); {
		case servers && it.kind != '[':
			return f.paste(wrong(it.start, "%q is not a table that one can be added to", f.key), e)
		case servers && head >= 0:
			return wrong(it.start, "the table %q is there twice", f.key)
		case servers:
			head = it.start
		case begins(it.path, []string{f.key, e.name}):
			return f.paste(wrong(it.start, "the table %q is there and was not added by postern init", f.key+"."+e.name), e)
		}
	}
	return nil
}

// part reads an item of the entry's table: its header, or a pair that is ours.
func (e *entry) part(it tomlItem) bool {
	return len(it.path) == 2 && it.kind == '[' || len(it.path) == 3 && it.kind == '=' && e.take(it)
}

// paste says what to write by hand.
func (f form) paste(p *problem, e entry) *problem {
	p.hint = "write it yourself: [" + f.key + "." + e.name + "] command = " + quoteTOML(e.command) + ", args = " + listTOML(e.args)
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
		all[i].oddTOML(f, it)
	}
	return all
}
