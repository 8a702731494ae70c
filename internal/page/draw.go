// SPDX-License-Identifier: Apache-2.0

package page

import (
	"bytes"
	"embed"
	"html/template"
	"net/http"
	"strings"
	"time"

	"github.com/postern-gate/postern/core/fault"
	"github.com/postern-gate/postern/core/textsafe"
)

//go:embed files
var files embed.FS

// templates are read when a page is made, so that no other verb pays for them.
func templates() (*template.Template, error) {
	return template.New("").Funcs(template.FuncMap{
		"name": textsafe.Name,
		"line": func(s string) string { return textsafe.Clean(s).String() },
		"when": func(t time.Time) string { return t.Local().Format(time.DateTime) },
		"or": func(s, otherwise string) string {
			if s == "" {
				return otherwise
			}
			return s
		},
		"join":  strings.Join,
		"heads": headsOf,
		"lines": diffLines,
	}).ParseFS(files, "files/*.html")
}

// heads are what a card begins with: its first targets, and of a move or a copy
// the old name, which is no target.
type heads struct {
	From  []part
	First []part
	More  int // that are listed at the end of the card
}

// maxHeads bounds them: a card of many begins with what it is about all the same.
const maxHeads = 3

func headsOf(parts []part) (h heads) {
	for _, p := range parts {
		switch {
		case p.Kind == "field" && p.Name == "from":
			h.From = append(h.From, p)
		case p.Kind != "target":
		case len(h.First) < maxHeads:
			h.First = append(h.First, p)
		default:
			h.More++
		}
	}
	return h
}

// diffLine is a line of a diff, which its first character says the kind of.
type diffLine struct{ Kind, Text string }

// diffLines cuts a text that passed textsafe.
func diffLines(text string) (all []diffLine) {
	begun := false // what comes before the first place is about the diff
	for l := range strings.Lines(text) {
		d := diffLine{"same", strings.TrimSuffix(l, "\n")}
		begun = begun || strings.HasPrefix(l, "@@")
		switch {
		case !begun && (strings.HasPrefix(l, "+++ ") || strings.HasPrefix(l, "--- ")):
		case strings.HasPrefix(l, "+"):
			d.Kind = "added"
		case strings.HasPrefix(l, "-"):
			d.Kind = "removed"
		case strings.HasPrefix(l, "@@"):
			d.Kind = "place"
		}
		all = append(all, d)
	}
	return all
}

// content is what a view shows.
type content struct {
	Name, Title string
	Data        any
}

// shown is what every template gets.
type shown struct {
	Base, View, Title string
	In                bool // somebody is
	Waiting           int
	Notice            *notice
	Problem           []string // why an edited policy is not in force
	Out               stamp    // of the way out
	Data              any
}

func (p *Page) draw(w http.ResponseWriter, status int, r *http.Request, s *session, c *content) {
	v := shown{Base: p.base, View: c.Name, Title: c.Title, In: s != nil, Data: c.Data}
	if s != nil {
		v.Waiting = len(p.o.Grants.Pending())
		v.Notice, v.Problem = p.sinceTold(s.notice(r)), p.problem()
		v.Out = s.stamp("logout", "", "", p.o.Now())
	}
	p.write(w, status, c.Name, v)
}

// problem is the lines that say why an edited policy is not in force.
func (p *Page) problem() []string {
	if p.o.Problem == nil {
		return nil
	}
	err := p.o.Problem()
	if err == nil {
		return nil
	}
	lines := failure(err).Lines
	if f := fault.As(err); f.Err != nil { // each problem with its place
		lines = append(lines, strings.Split(strings.TrimSuffix(textsafe.Block(f.Err.Error()).String(), "\n"), "\n")...)
	}
	return lines
}

// refuse shows the three lines of a fault.
func (p *Page) refuse(w http.ResponseWriter, status int, f *fault.Error) {
	p.write(w, status, "refused", shown{Base: p.base, View: "refused", Title: "refused", Data: strings.Split(f.Lines(), "\n")})
}

// write draws all of it before the first byte is sent, so that no half of a
// card is ever shown.
func (p *Page) write(w http.ResponseWriter, status int, name string, v shown) {
	var b bytes.Buffer
	if err := p.templates.ExecuteTemplate(&b, name+".html", v); err != nil {
		http.Error(w, "failed: page\nbecause: it can't be drawn", http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.WriteHeader(status)
	_, _ = w.Write(b.Bytes()) // a browser that has gone is none of our business
}

// file serves one of the page's own.
func file(name, kind string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		data, err := files.ReadFile(name)
		if err != nil {
			http.Error(w, "failed: page", http.StatusInternalServerError)
			return
		}
		w.Header().Set("Content-Type", kind)
		_, _ = w.Write(data)
	}
}
