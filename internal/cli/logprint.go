// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/postern-gate/postern/core"
	"github.com/postern-gate/postern/core/textsafe"
	"github.com/postern-gate/postern/enforce"
	"github.com/postern-gate/postern/internal/state/audit"
	"github.com/postern-gate/postern/internal/state/audit/records"
)

// logPrinter draws records for a person. Everything in a record was written by
// somebody else: it passes textsafe.
type logPrinter struct {
	long  bool
	known bool     // the id of the call is told already
	here  []string // folders that need not be told, nor those above them
	home  string
}

// The widths of the columns that are read downwards. A longer text moves what
// is right of it.
const (
	agentWidth = 12
	eventWidth = 8
	opWidth    = 9
)

const logTime = "2006-01-02 15:04:05.000"

func (p *logPrinter) text(w io.Writer, e *records.Entry) error {
	if e.Err != nil {
		_, err := fmt.Fprintf(w, "%-*s %-*s not a record: %s\n", len(logTime), e.Place(), agentWidth, "-", garbage(e.Text))
		return err
	}
	r := &e.Record
	agent := "-"
	switch {
	case r.Agent != "":
		agent = textsafe.Word(r.Agent)
	case r.Undoes != "":
		agent = "undo" // a person's
	}
	op := plain(r.Op)
	if op == core.Action(0).String() {
		op = "-" // a pause is of no operation
	}
	columns := []string{
		r.Time.Local().Format(logTime), padded(agent, agentWidth), padded(plain(r.Event), eventWidth), padded(op, opWidth),
	}
	if r.Resource != "" {
		columns = append(columns, textsafe.Word(r.Resource)) // a blank in a name begins no column
	}
	if r.Folder != "" && !p.isHere(r.Folder) {
		columns = append(columns, "in", textsafe.Word(tilde(r.Folder, p.home)))
	}
	if why := because(r); why != "" {
		columns = append(columns, why)
	}
	if (r.Event == string(audit.Refusal) || r.Event == string(audit.Failure)) && r.Corr != "" && !p.known {
		columns = append(columns, "id="+plain(r.Corr)) // for postern explain
	}
	line := strings.TrimRight(strings.Join(columns, " "), " ") + "\n"
	if p.long {
		line += details(e)
	}
	_, err := io.WriteString(w, line)
	return err
}

// isHere reports whether somebody who reads this thinks of that folder anyway.
func (p *logPrinter) isHere(folder string) bool {
	return slices.ContainsFunc(p.here, func(here string) bool {
		rel, err := filepath.Rel(folder, here)
		return err == nil && filepath.IsLocal(rel)
	})
}

// tilde is the path, or what follows home in it.
func tilde(path, home string) string {
	if rel, err := filepath.Rel(home, path); home != "" && err == nil && filepath.IsLocal(rel) {
		return strings.TrimSuffix("~/"+filepath.ToSlash(rel), "/.")
	}
	return path
}

// because is what a person wants to know at once: why not, or what happened.
func because(r *records.Record) string {
	switch {
	case r.Code != "" && r.Decision == "allow" && r.Event != string(audit.Failure):
		return plain(r.Code) // the reason is why it was allowed
	case r.Code != "":
		return plain(r.Code) + ": " + plain(r.Reason)
	case r.Source == enforce.WatcherSource && r.N > 0:
		return strconv.FormatInt(r.N, 10) + ": " + plain(r.Reason)
	case r.Event == "approved":
		return plain(r.Kind) + ", by " + plain(r.Approver)
	case ofItself(r):
		return plain(r.Reason)
	case r.Found != "":
		return "found " + plain(r.Found)
	default:
		return ""
	}
}

// ofItself reports whether the reason is all that a record tells.
func ofItself(r *records.Record) bool {
	return r.Op == "log" || r.Source == enforce.WatcherSource && r.Resource == "" ||
		r.Event == "expired" || r.Event == "withdrawn" || r.Event == "paused" || r.Event == "resumed"
}

// details are the other fields, one a line.
func details(e *records.Entry) string {
	r := &e.Record
	n := ""
	if r.N != 0 {
		n = strconv.FormatInt(r.N, 10)
	}
	var b strings.Builder
	for _, f := range [...][2]string{
		{"time", r.Time.Format(time.RFC3339Nano)},
		{"decision", r.Decision},
		{"reason", r.Reason},
		{"code", r.Code},
		{"was", r.Was},
		{"found", r.Found},
		{"undoes", r.Undoes},
		{"n", n},
		{"approval", r.Approval},
		{"kind", r.Kind},
		{"approver", r.Approver},
		{"shown", r.Shown},
		{"folder", r.Folder},
		{"corr", r.Corr},
		{"session", r.Session},
		{"source", r.Source},
		{"level", r.Level},
		{"policy", r.Policy},
		{"place", e.Place()},
	} {
		if f[1] != "" {
			fmt.Fprintf(&b, "    %-9s %s\n", f[0], plain(f[1]))
		}
	}
	return b.String()
}

func plain(s string) string { return textsafe.Clean(s).String() }

// counted is a number of things.
func counted(n int, thing string) string {
	if n == 1 {
		return "1 " + thing
	}
	return strconv.Itoa(n) + " " + thing + "s"
}

// sizeText is a number of bytes, in the larger unit from 1 MiB on.
func sizeText(n int64) string {
	if n < 1<<20 {
		return strconv.FormatInt((n+1<<10-1)>>10, 10) + " KiB"
	}
	return strconv.FormatInt(n>>20, 10) + " MiB"
}

// ageText is a length of time as a policy has it.
func ageText(d time.Duration) string {
	if day := 24 * time.Hour; d >= day && d%day == 0 {
		return strconv.FormatInt(int64(d/day), 10) + "d"
	}
	return d.String()
}

func padded(s string, width int) string {
	return s + strings.Repeat(" ", max(0, width-utf8.RuneCountInString(s)))
}

// garbageMost is how much of a line that is not a record is shown.
const garbageMost = 4096

// garbage is such a line in printable ASCII: what is not is written as Go
// writes it in a string.
func garbage(line []byte) string {
	shown := line[:min(len(line), garbageMost)]
	quoted := strconv.QuoteToASCII(string(shown))
	if len(shown) < len(line) {
		quoted += fmt.Sprintf(" and %d bytes more", len(line)-len(shown))
	}
	return quoted
}

type garbageJSON struct {
	Place   string `json:"place"`
	Garbage string `json:"garbage"`
}

// printJSON prints a record as it is stored. A line that parses is printable
// ASCII, so it can be shown; any other goes out as a text in an object.
func printJSON(w io.Writer, e *records.Entry) error {
	if e.Err != nil {
		return encode(w, garbageJSON{e.Place(), garbage(e.Text)}, "")
	}
	_, err := fmt.Fprintf(w, "%s\n", e.Text)
	return err
}
