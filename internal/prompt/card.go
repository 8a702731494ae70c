// SPDX-License-Identifier: Apache-2.0

// Package prompt shows a person what an agent asks for, and takes the answer
// from a terminal.
//
// Guaranteed: everything on a card that somebody else wrote passes textsafe, and
// what nobody would see of a change, of arguments and of words is spelled out
// and counted; a terminal never wraps a line by itself: what continues one is
// marked, so that no part of a line can pass for another;
// the agent's and its client's own words stand in quotes and are marked; names,
// commands and arguments are never shortened; what will be done, and to what,
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
	"strings"
	"time"

	"github.com/postern-gate/postern/core/textsafe"
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
	// Pattern is what a yes for a pattern would cover; "" where there is none.
	Pattern string
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

// Part is a piece of a card. Its texts have passed textsafe.
type Part struct {
	Kind       PartKind
	Name, Text string
}

// maxSaid is how much of the agent's own words is shown, in bytes. They decide
// nothing.
const maxSaid = 500

// Draw draws a question.
func Draw(q *grant.Question) Card {
	c := Card{Parts: parts(q)}
	var b strings.Builder
	b.WriteString("question " + q.ID + "\n")
	for _, p := range c.Parts {
		p.write(&b)
	}
	c.Text = b.String()
	sum := sha256.Sum256([]byte(c.Text))
	c.Digest = hex.EncodeToString(sum[:])
	if q.WantsCode() {
		c.Code = strings.ToLower(base32.StdEncoding.EncodeToString(sum[:])[:4])
	} else if !q.For.Private {
		c.Pattern = grant.AroundOf(&q.For)
	}
	return c
}

func parts(q *grant.Question) (all []Part) {
	field := func(name, text string) { all = append(all, Part{Field, name, text}) }
	field("agent", orNone(q.For.Agent))
	if q.For.Host {
		field("session", textsafe.Name(q.For.Session)+" (as its client says)")
	} else {
		field("session", orNone(q.For.Session))
	}
	for _, r := range q.For.Roots {
		field("folder", textsafe.Name(r.Name+"://")+" is "+textsafe.Name(r.Path))
	}
	field("tool", textsafe.Name(strings.TrimPrefix(q.For.Server+"/"+q.For.Tool, "/")))
	field("class", textsafe.Name(q.For.Class))
	field("asked", q.Asked.Wall.Local().Format(time.DateTime)+", until "+q.Deadline().Local().Format(time.TimeOnly))
	field("because", textsafe.Clean(q.Card.Rule).String())
	hidden := q.Card.Hidden
	spelled := func(text string, block bool) string {
		text, n := spell.Out(text, block)
		hidden += n
		return text
	}
	for _, f := range q.Card.Says {
		all = append(all, Part{Says, "it says", textsafe.Name(f.Name) + ": " + quoted(spelled(f.Text, false))})
	}
	for _, f := range q.Card.Details {
		field(textsafe.Name(f.Name), spelled(f.Text, false))
	}
	if q.Card.Change != "" {
		all = append(all, Part{Change, "change", spelled(q.Card.Change, true)})
	}
	if q.Card.Unshown != "" {
		field("not shown", textsafe.Clean(q.Card.Unshown).String())
	}
	if hidden == 1 {
		field("hidden", `1 invisible character, spelled as \u{…} or \x…`)
	} else if hidden > 1 {
		field("hidden", fmt.Sprintf(`%d invisible characters, spelled as \u{…} or \x…`, hidden))
	}
	all = append(all, Part{Undo, "can be undone", textsafe.Clean(q.Card.Undo).String()})
	return append(all, targets(&q.For)...)
}

// targets are the last parts: what is done, and to what.
func targets(f *grant.Binding) (all []Part) {
	listed := map[string]bool{}
	for _, o := range f.Operations {
		listed[o.Resource] = true
	}
	for _, o := range f.Objects {
		if !listed[o.Name] {
			all = append(all, Part{Field, "with", textsafe.Name(o.Name)})
		}
	}
	if f.More > 0 {
		all = append(all, Part{Names, "", fmt.Sprintf("and the same for %d names more", f.More)})
	}
	for _, o := range f.Operations {
		all = append(all, Part{Targets, textsafe.Name(o.Action), textsafe.Name(o.Resource)})
	}
	return all
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
	return `"` + strings.ReplaceAll(textsafe.Clean(s).String(), `"`, `'`) + `"` + cut
}

func orNone(s string) string {
	if s == "" {
		return "-"
	}
	return textsafe.Name(s)
}
