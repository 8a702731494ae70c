// SPDX-License-Identifier: Apache-2.0

package attach

import (
	"path/filepath"
	"strings"
	"unicode/utf8"
)

// Snippet is what a person pastes to attach a client by hand. Its texts hold
// the paths of this machine: draw them safely.
type Snippet struct {
	Where string // the absolute path of the file
	Text  string // a whole file in that file's own format, ends with a newline
	Entry string // the entry alone, to go beside others
	Shell string // one command that does the same, "" where the client has none
}

// Paste returns what attaches the client by hand.
func (c Client) Paste(w World, s Server) Snippet {
	inProject := c.project != nil && w.Project != ""
	e := entry{name: s.serverName(w, inProject), command: s.Command, args: s.args(w, c)}
	p := Snippet{Where: c.userFile(w)}
	if inProject {
		p.Where = filepath.Join(w.Project, filepath.FromSlash(c.project[0]))
	}
	if c.form.toml {
		p.Text = c.form.table(e, "\n")
		p.Entry = p.Text
	} else {
		style := style{eol: "\n", unit: "  "}
		p.Text = c.form.document(e, style)
		p.Entry = quote(e.name) + ": " + c.form.object(e, style)
	}
	p.Shell = c.shell(e)
	return p
}

// shell is the client's own command for adding a server, for a POSIX shell.
func (c Client) shell(e entry) string {
	line := func(words ...string) string {
		for i, word := range words {
			q, ok := ShellWord(word)
			if !ok {
				return ""
			}
			words[i] = q
		}
		return strings.Join(words, " ")
	}
	run := append([]string{e.command}, e.args...)
	switch c.ID {
	case "claude-code":
		return line(append([]string{"claude", "mcp", "add", e.name, "--"}, run...)...)
	case "codex":
		return line(append([]string{"codex", "mcp", "add", e.name, "--"}, run...)...)
	case "vscode":
		return line("code", "--add-mcp", `{"name": `+quote(e.name)+`, "command": `+quote(e.command)+`, "args": `+list(e.args)+`}`)
	}
	return ""
}

// ShellWord quotes a word for a POSIX shell; ok is false for one that holds
// a character which no reader of the line would see: a shell has no spelling for
// it that shows and that every shell reads.
func ShellWord(s string) (string, bool) {
	if !utf8.ValidString(s) || strings.ContainsFunc(s, unseen) {
		return "", false
	}
	plain := func(r rune) bool {
		return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("-_./:=+@%,", r)
	}
	if s != "" && !strings.ContainsFunc(s, func(r rune) bool { return !plain(r) }) {
		return s, true
	}
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'", true
}

// entry is one server of a client's file.
type entry struct {
	name, command string
	args          []string
	odd           []string // members that init doesn't write and that may matter
}

// style is how a file is written.
type style struct {
	eol    string // its line end
	unit   string // one level of indentation
	indent string // that of the entry
	inline bool   // all on one line
}

// document is a whole file that holds the entry alone.
func (f form) document(e entry, s style) string {
	inner := s.deeper().deeper()
	return "{" + s.eol + s.unit + quote(f.key) + ": {" + s.eol + inner.indent + quote(e.name) + ": " + f.object(e, inner) +
		s.eol + s.unit + "}" + s.eol + "}" + s.eol
}

func (s style) deeper() style {
	s.indent += s.unit
	return s
}

// object is the entry's value.
func (f form) object(e entry, s style) string {
	var members []string
	add := func(name, value string) { members = append(members, quote(name)+": "+value) }
	if f.kind != "" {
		add("type", quote(f.kind))
	}
	if f.array {
		add("command", list(append([]string{e.command}, e.args...)))
	} else {
		add("command", quote(e.command))
		add("args", list(e.args))
	}
	if f.enabled {
		add("enabled", "true")
	}
	if f.tools {
		add("tools", list([]string{"*"}))
	}
	if s.inline {
		return "{" + strings.Join(members, ", ") + "}"
	}
	inner := s.eol + s.indent + s.unit
	return "{" + inner + strings.Join(members, ","+inner) + s.eol + s.indent + "}"
}

// table is the entry as a table of TOML. The end is marked on its last line: a
// client that writes its file anew keeps a comment there in its place.
func (f form) table(e entry, eol string) string {
	return "# " + beginMark + e.name + eol +
		"[" + f.key + "." + e.name + "]" + eol +
		"command = " + quoteTOML(e.command) + eol +
		"args = " + listTOML(e.args) + " # " + endMark + e.name + eol
}

// The marks of a block that was added to a TOML file, each before the entry's name.
const (
	beginMark = "added by postern init: "
	endMark   = "end of "
)
