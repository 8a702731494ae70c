// SPDX-License-Identifier: Apache-2.0

// Package prompt shows a person what an agent asks for, and takes the answer
// from a terminal.
//
// Guaranteed: what nobody would see of anything on a card that somebody else
// wrote, names too, is spelled out and counted; a terminal never wraps a line by
// itself: what continues one is marked, so that no part of a line can pass for
// another; the agent's and its client's own words stand in quotes and are marked;
// names, commands and arguments are never shortened; what will be done, and to what,
// is the last thing of the card. An answer comes from the terminal that the
// program was started on, never from a pipe; what is typed in the first half
// second is ignored; a yes needs the last page shown, and a yes to what can't
// be taken back, or isn't shown whole, the code of exactly this card.
//
// Not guaranteed: that who types there is the person.
package prompt

import (
	"crypto/sha256"
	"encoding/base32"
	"encoding/hex"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/postern-gate/postern/internal/spell"
	"github.com/postern-gate/postern/internal/state/grant"
)

// Card is a question as it is drawn.
type Card struct {
	// Parts are what is shown, in their order; Text is all of it as a terminal
	// shows it.
	Parts []Part
	Text  string
	// Digest is the SHA-256 of Text in hexadecimal digits.
	Digest string
	// Code has to be typed for a yes to what can't be taken back, and to what the
	// card doesn't show all of; "" for the rest.
	Code string
	// WhyCode is why, in a few words.
	WhyCode string
	// Pattern is what a yes for a pattern would cover; "" where there is none.
	Pattern string
	// Named says that the agent has a name: what serves other sessions needs one.
	Named bool
	// Actions are those of the question, spelled: a pattern covers no other.
	Actions string
}

// PartKind says what a part of a card is.
type PartKind int

// The kinds.
const (
	Field   PartKind = iota // a name and one line
	Says                    // the same, in quotes: words of the agent or its client
	Change                  // a diff, or what stands for it, of any number of lines
	Undo                    // whether it can be undone
	Names                   // how many names are not listed
	Targets                 // an operation and what it is done to
)

// Part is a piece of a card. Its texts are spelled.
type Part struct {
	Kind       PartKind
	Name, Text string
}

// maxSaid is how much of the agent's own words is shown, in bytes. They decide
// nothing.
const maxSaid = 500

// Draw draws a question.
func Draw(q *grant.Question) Card {
	c := Card{Parts: parts(q), Named: q.For.Agent != "", WhyCode: q.WhyCode()}
	c.Text = "question " + q.ID + "\n" + Text(c.Parts)
	sum := sha256.Sum256([]byte(c.Text))
	c.Digest = hex.EncodeToString(sum[:])
	if c.WhyCode != "" {
		c.Code = strings.ToLower(base32.StdEncoding.EncodeToString(sum[:])[:4])
	} else if !q.For.Private {
		c.Pattern = grant.AroundOf(&q.For)
	}
	var actions []string
	for _, o := range q.For.Operations {
		if a := spell.Name(o.Action); !slices.Contains(actions, a) {
			actions = append(actions, a)
		}
	}
	c.Actions = strings.Join(actions, ", ")
	return c
}

// drawing collects the parts of a card, and how much in them nobody would see.
type drawing struct {
	parts  []Part
	hidden int
}

func parts(q *grant.Question) []Part {
	d := drawing{hidden: q.Card.Hidden}
	d.head(q)
	d.card(&q.Card)
	above := len(d.parts)
	d.add(Undo, "can be undone", d.text(q.Card.Undo, false))
	d.targets(&q.For)
	return d.counted(above)
}

// Changed draws a change as a card does, for what is no question.
func Changed(change, unshown string) []Part {
	var d drawing
	d.change(change, unshown)
	return d.counted(len(d.parts))
}

// counted puts in how much nobody would see, if there is any.
func (d *drawing) counted(at int) []Part {
	if d.hidden == 0 {
		return d.parts
	}
	count := "1 invisible character"
	if d.hidden > 1 {
		count = strconv.Itoa(d.hidden) + " invisible characters"
	}
	return slices.Insert(d.parts, at, Part{Field, "hidden", count + `, spelled as \u{…} or \x…`})
}

func (d *drawing) add(k PartKind, name, text string) { d.parts = append(d.parts, Part{k, name, text}) }

// name spells a name, and text a text, and both count.
func (d *drawing) name(s string) string {
	d.text(s, false)
	return spell.Name(s)
}

func (d *drawing) text(s string, block bool) string {
	text, n := spell.Out(s, block)
	d.hidden += n
	return text
}

func (d *drawing) orNone(s string) string {
	if s == "" {
		return "-"
	}
	return d.name(s)
}

// head is who asks, where, with what, when, and why.
func (d *drawing) head(q *grant.Question) {
	d.add(Field, "agent", d.orNone(q.For.Agent))
	if q.For.Host {
		d.add(Field, "session", d.name(q.For.Session)+" (as its client says)")
	} else {
		d.add(Field, "session", d.orNone(q.For.Session))
	}
	for _, r := range q.For.Roots {
		d.add(Field, "folder", d.name(r.Name+"://")+" is "+d.name(r.Path))
	}
	d.add(Field, "tool", d.name(strings.TrimPrefix(q.For.Server+"/"+q.For.Tool, "/")))
	d.add(Field, "class", d.name(q.For.Class))
	d.add(Field, "asked", q.Asked.Wall.Local().Format(time.DateTime)+", until "+q.Deadline().Local().Format(time.TimeOnly))
	d.add(Field, "because", d.text(q.Card.Rule, false))
}

// card is what is said, given, and changed.
func (d *drawing) card(c *grant.Card) {
	for _, f := range c.Says {
		d.add(Says, "it says", d.name(f.Name)+": "+quoted(d.text(f.Text, false)))
	}
	for _, f := range c.Details {
		d.add(Field, d.name(f.Name), d.text(f.Text, false))
	}
	d.change(c.Change, c.Unshown)
}

func (d *drawing) change(text, unshown string) {
	if text != "" {
		d.add(Change, "change", d.text(withoutIndex(text), true))
	}
	if unshown != "" {
		d.add(Field, "not shown", d.text(unshown, false))
	}
}

// withoutIndex is a diff without the two lines that clients expect at its head
// and that tell a person nothing.
func withoutIndex(diff string) string {
	first, rest, _ := strings.Cut(diff, "\n")
	second, rest, more := strings.Cut(rest, "\n")
	if more && strings.HasPrefix(first, "Index: ") && second != "" && strings.Trim(second, "=") == "" && strings.HasPrefix(rest, "--- ") {
		return rest
	}
	return diff
}

// targets are the last parts: what is done, and to what.
func (d *drawing) targets(f *grant.Binding) {
	listed := map[string]bool{}
	for _, o := range f.Operations {
		listed[o.Resource] = true
	}
	for _, o := range f.Objects {
		if !listed[o.Name] {
			d.add(Field, "with", d.name(o.Name))
		}
	}
	if f.More > 0 {
		d.add(Names, "", fmt.Sprintf("and the same for %d names more", f.More))
	}
	for _, o := range f.Operations {
		d.add(Targets, d.name(o.Action), d.name(o.Resource))
	}
}

// Text is what a terminal shows of parts.
func Text(parts []Part) string {
	var b strings.Builder
	for _, p := range parts {
		p.write(&b)
	}
	return b.String()
}

// write adds the part as a terminal shows it. No line of a diff can pass for
// one of ours.
func (p Part) write(b *strings.Builder) {
	switch p.Kind {
	case Change:
		b.WriteString(p.Name + "\n")
		for l := range strings.Lines(p.Text) {
			b.WriteString("  | " + strings.TrimSuffix(l, "\n") + "\n")
		}
	case Undo:
		b.WriteString(p.Name + ": " + p.Text + "\n")
	case Names:
		b.WriteString(p.Text + "\n")
	case Targets:
		b.WriteString(p.Name + " " + p.Text + "\n")
	case Field, Says:
		fmt.Fprintf(b, "%-11s %s\n", p.Name, p.Text)
	}
}

// quoted draws somebody's words in quotes that they can't close.
func quoted(s string) string {
	cut := ""
	if len(s) > maxSaid {
		s, cut = strings.ToValidUTF8(s[:maxSaid], ""), fmt.Sprintf(" and %d bytes more", len(s)-maxSaid)
	}
	return `"` + strings.ReplaceAll(s, `"`, `'`) + `"` + cut
}
