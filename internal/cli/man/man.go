// SPDX-License-Identifier: Apache-2.0

// Package man writes the manual page of a verb, in the macros of man(7), from
// the texts that its help has. The same verb, version and date give the same
// bytes.
package man

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// Entry is a term and what it means.
type Entry struct{ Term, Text string }

// Page is what every page has besides the texts of its verb.
type Page struct {
	Version string
	Date    time.Time // zero: none is told
	Exits   []Entry
	Files   []Entry
}

// Name is the name of a verb's page, without its section.
func Name(c *cobra.Command) string { return strings.ReplaceAll(c.CommandPath(), " ", "-") }

// Roff returns the page of a verb.
func (p Page) Roff(c *cobra.Command) string {
	c.InitDefaultHelpFlag()
	w := &writer{}
	date := ""
	if !p.Date.IsZero() {
		date = p.Date.UTC().Format(time.DateOnly)
	}
	w.macro("TH", strings.ToUpper(Name(c)), "1", date, "postern "+p.Version, "Postern")
	w.macro("SH", "NAME")
	w.text(Name(c) + " - " + c.Short)
	w.macro("SH", "SYNOPSIS")
	use := c.UseLine()
	if !c.HasParent() {
		use = c.Name() + " VERB [flags] [arguments]"
	}
	rest := strings.TrimPrefix(use, c.CommandPath())
	w.raw(`\fB` + Escape(c.CommandPath()) + `\fR` + Escape(rest))
	w.macro("SH", "DESCRIPTION")
	w.paragraphs(c.Long, c.Short)
	var verbs []Entry
	see := related(c)
	for _, sub := range c.Commands() {
		if sub.IsAvailableCommand() {
			verbs = append(verbs, Entry{sub.Name(), sub.Short})
		}
	}
	w.list("VERBS", verbs)
	w.options(c)
	w.macro("SH", "EXAMPLES")
	w.verbatim(strings.Split(c.Example, "\n"))
	w.list("EXIT STATUS", p.Exits)
	w.list("FILES", p.Files)
	w.macro("SH", "SEE ALSO")
	w.text(strings.Join(see, ", "))
	return w.b.String()
}

// related are the pages of the verb above and of those beneath.
func related(c *cobra.Command) []string {
	var see []string
	if c.HasParent() {
		see = append(see, Name(c.Parent())+"(1)")
	}
	for _, sub := range c.Commands() {
		if sub.IsAvailableCommand() && sub.Name() != "help" {
			see = append(see, Name(sub)+"(1)")
		}
	}
	return see
}

// writer writes lines of roff. Every text passes Escape.
type writer struct{ b strings.Builder }

func (w *writer) raw(line string) { w.b.WriteString(line + "\n") }

func (w *writer) text(s string) { w.raw(Escape(s)) }

func (w *writer) macro(name string, args ...string) {
	line := "." + name
	for _, a := range args {
		line += ` "` + Escape(a) + `"`
	}
	w.raw(line)
}

// paragraphs are texts with an empty line between them. What is indented keeps
// its lines.
func (w *writer) paragraphs(s, instead string) {
	if s == "" {
		s = instead
	}
	for i, part := range strings.Split(s, "\n\n") {
		if i > 0 {
			w.macro("PP")
		}
		var block []string
		for _, line := range strings.Split(part, "\n") {
			if strings.HasPrefix(line, "  ") {
				block = append(block, line)
				continue
			}
			w.verbatim(block)
			block = nil
			w.text(line)
		}
		w.verbatim(block)
	}
}

// verbatim are lines that are not filled.
func (w *writer) verbatim(lines []string) {
	if len(lines) == 0 {
		return
	}
	w.macro("PP")
	w.macro("nf")
	for _, line := range lines {
		w.text(line)
	}
	w.macro("fi")
	w.macro("PP")
}

func (w *writer) list(title string, entries []Entry) {
	if len(entries) == 0 {
		return
	}
	w.macro("SH", title)
	for _, e := range entries {
		w.macro("TP")
		w.raw(`\fB` + Escape(e.Term) + `\fR`)
		w.text(e.Text)
	}
}

func (w *writer) options(c *cobra.Command) {
	w.macro("SH", "OPTIONS")
	c.LocalFlags().VisitAll(func(f *pflag.Flag) {
		if f.Hidden {
			return
		}
		w.macro("TP")
		head := ""
		if f.Shorthand != "" {
			head = `\fB` + Escape("-"+f.Shorthand) + `\fR, `
		}
		head += `\fB` + Escape("--"+f.Name) + `\fR`
		kind, about := pflag.UnquoteUsage(f)
		if kind != "" {
			head += ` \fI` + Escape(kind) + `\fR`
		}
		w.raw(head)
		w.text(about)
	})
}

// Escape returns one line of text that roff shows as it is, wherever in a line
// or in quotes it stands: no escape, request or typographic sign comes of it.
// Line ends and other controls become blanks.
func Escape(s string) string {
	var b strings.Builder
	b.WriteString(lead(s))
	for _, r := range s {
		switch {
		case r == '\\':
			b.WriteString(`\e`)
		case r == '-':
			b.WriteString(`\-`)
		case r == '\'':
			b.WriteString(`\(aq`)
		case r == '"':
			b.WriteString(`\(dq`)
		case r == '`':
			b.WriteString(`\(ga`)
		case r == '^':
			b.WriteString(`\(ha`)
		case r == '~':
			b.WriteString(`\(ti`)
		case r < ' ' || r == 0x7f:
			b.WriteByte(' ')
		case r > 0x7f:
			fmt.Fprintf(&b, `\[u%s]`, strings.ToUpper(fmt.Sprintf("%04s", strconv.FormatInt(int64(r), 16))))
		default:
			b.WriteRune(r)
		}
	}
	return b.String()
}

// lead goes before a text that would begin with a request or be no line at all.
func lead(s string) string {
	if s == "" || s[0] == '.' || s[0] == '\'' {
		return `\&`
	}
	return ""
}
