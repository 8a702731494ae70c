// SPDX-License-Identifier: Apache-2.0

// Package prompt shows a person what an agent asks for, and takes the answer
// from a terminal.
//
// Guaranteed: everything on a card that somebody else wrote passes textsafe;
// the agent's and its client's own words stand in quotes and are marked; names,
// commands and arguments are never shortened; what will be done, and to what,
// is the last thing of the card. An answer comes from the terminal that the
// program was started on, never from a pipe; what is typed in the first half
// second is ignored; a yes needs the last page shown, and a yes to what can't
// be taken back the code of exactly this card.
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
	"github.com/postern-gate/postern/internal/state/grant"
)

// Card is a question as it is drawn.
type Card struct {
	Text string
	// Digest is the SHA-256 of Text in hexadecimal digits.
	Digest string
	// Code has to be typed for a yes to what can't be taken back; "" for the
	// rest.
	Code string
	// Pattern is what a yes for a pattern would cover; "" where there is none.
	Pattern string
}

// maxSaid is how much of the agent's own words is shown, in bytes. They decide
// nothing.
const maxSaid = 500

// Draw draws a question.
func Draw(q *grant.Question) Card {
	var b strings.Builder
	line := func(name, text string) { fmt.Fprintf(&b, "%-11s %s\n", name, text) }
	b.WriteString("question " + q.ID + "\n")
	line("agent", orNone(q.For.Agent))
	if q.For.Host {
		line("session", textsafe.Name(q.For.Session)+" (as its client says)")
	} else {
		line("session", orNone(q.For.Session))
	}
	line("tool", textsafe.Name(strings.TrimPrefix(q.For.Server+"/"+q.For.Tool, "/")))
	line("class", textsafe.Name(q.For.Class))
	line("asked", q.Asked.Wall.Local().Format(time.DateTime)+", until "+q.Deadline().Local().Format(time.TimeOnly))
	line("because", textsafe.Clean(q.Card.Rule).String())
	for _, f := range q.Card.Says {
		line("it says", textsafe.Name(f.Name)+": "+quoted(f.Text))
	}
	for _, f := range q.Card.Details {
		line(textsafe.Name(f.Name), textsafe.Name(f.Text))
	}
	change(&b, q.Card.Change)
	b.WriteString("can be undone: " + textsafe.Clean(q.Card.Undo).String() + "\n")
	targets(&b, &q.For)
	sum := sha256.Sum256([]byte(b.String()))
	c := Card{Text: b.String(), Digest: hex.EncodeToString(sum[:])}
	if q.For.Destructive() {
		c.Code = strings.ToLower(base32.StdEncoding.EncodeToString(sum[:])[:4])
	} else if !q.For.Private && q.For.More == 0 {
		c.Pattern = grant.AroundOf(&q.For)
	}
	return c
}

// change draws a diff so that no line of it can pass for one of ours.
func change(b *strings.Builder, text string) {
	if text == "" {
		return
	}
	b.WriteString("change\n")
	for l := range strings.Lines(textsafe.Block(text).String()) {
		b.WriteString("  | " + strings.TrimSuffix(l, "\n") + "\n")
	}
}

// targets are the last lines: what is done, and to what.
func targets(b *strings.Builder, f *grant.Binding) {
	listed := map[string]bool{}
	for _, o := range f.Operations {
		listed[o.Resource] = true
	}
	for _, o := range f.Objects {
		if !listed[o.Name] {
			fmt.Fprintf(b, "%-11s %s\n", "with", textsafe.Name(o.Name))
		}
	}
	if f.More > 0 {
		fmt.Fprintf(b, "and the same for %d names more\n", f.More)
	}
	for _, o := range f.Operations {
		b.WriteString(textsafe.Name(o.Action) + " " + textsafe.Name(o.Resource) + "\n")
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
