// SPDX-License-Identifier: Apache-2.0

package man

import (
	"bytes"
	"os/exec"
	"regexp"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/spf13/cobra"

	"github.com/postern-gate/postern/internal/testenv"
)

// shows is what a reader of the pages draws, as one line of plain text.
func shows(t *testing.T, page string) string {
	t.Helper()
	groff, err := exec.LookPath("groff")
	if err != nil {
		testenv.Missing(t, "groff (groff-base)")
	}
	cmd := exec.CommandContext(t.Context(), groff, "-ww", "-man", "-Tutf8", "-P-c", "-rLL=200n")
	cmd.Stdin = strings.NewReader(page)
	var out, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &stderr
	if err := cmd.Run(); err != nil || stderr.Len() > 0 {
		t.Errorf("%v: %s\n%s", err, &stderr, page)
	}
	return regexp.MustCompile(".\x08").ReplaceAllString(out.String(), "") // bold is struck twice
}

func sample(text string) *cobra.Command {
	root := &cobra.Command{Use: "postern", Short: "the gate"}
	c := &cobra.Command{Use: "verb [flags] [DIR...]", Short: text, Long: text + "\n\n  " + text + "\n" + text, Example: "  postern verb " + text, Run: func(*cobra.Command, []string) {}}
	c.Flags().String("name", "", text)
	root.AddCommand(c)
	return c
}

// A page shows the texts as they are, whatever stands in them.
func TestPageShows(t *testing.T) {
	for _, text := range []string{
		"plain", ".so /etc/passwd", "'sp 9", `\fB bold \e \n(.z`, `--flag -x a-b`, `"quoted" 'single' ` + "`back`", "~/x ^y", "a\\", `.TH "X`,
		"über é", `\!raw`, "...", `\X'tty: x'`,
	} {
		got := shows(t, Page{Version: "v1", Exits: []Entry{{text, text}}, Files: []Entry{{text, text}}}.Roff(sample(text)))
		if n := strings.Count(got, text); n < 9 {
			t.Errorf("%q is shown %d times:\n%s", text, n, got)
		}
	}
}

func TestPage(t *testing.T) {
	page := Page{Version: "v1", Date: time.Date(2026, 11, 30, 0, 0, 0, 0, time.UTC), Exits: []Entry{{"0", "done"}}}.Roff(sample("says it"))
	for _, want := range []string{
		`.TH "POSTERN\-VERB" "1" "2026\-11\-30" "postern v1" "Postern"` + "\n", ".SH \"NAME\"\npostern\\-verb \\- says it\n",
		".SH \"SYNOPSIS\"\n\\fBpostern verb\\fR [flags] [DIR...]\n", ".SH \"OPTIONS\"\n.TP\n\\fB\\-h\\fR, \\fB\\-\\-help\\fR\nhelp for verb\n",
		".SH \"EXIT STATUS\"\n.TP\n\\fB0\\fR\ndone\n", ".SH \"SEE ALSO\"\npostern(1)\n",
	} {
		if !strings.Contains(page, want) {
			t.Errorf("the page has no %q:\n%s", want, page)
		}
	}
}

// safe reports whether a reader takes the line as text: no request, and no
// escape but those that stand for one character.
func safe(line string) bool {
	if strings.HasPrefix(line, ".") || strings.HasPrefix(line, "'") || strings.ContainsAny(line, "\"\n\r\x00`^~'") {
		return false
	}
	for line != "" {
		i := strings.IndexByte(line, '\\')
		if i < 0 {
			break
		}
		line = line[i+1:]
		known := false
		for _, escape := range []string{"e", "-", "&", "(aq", "(dq", "(ga", "(ha", "(ti", "[u"} {
			if strings.HasPrefix(line, escape) {
				line, known = line[len(escape):], true
				break
			}
		}
		if !known {
			return false
		}
	}
	return true
}

func FuzzEscape(f *testing.F) {
	for _, s := range []string{"", ".so x", "'x", `\`, `a\`, "-", "\x00\n.TH", "é\u202e\U0001f600", "\xff", `"`} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		got := Escape(s)
		if !safe(got) || got == "" {
			t.Errorf("%q: %q", s, got)
		}
		for i := range len(got) {
			if got[i] < ' ' || got[i] > '~' {
				t.Errorf("%q: %q", s, got)
			}
		}
		if utf8.ValidString(s) && strings.Count(got, `\e`) != strings.Count(s, `\`) {
			t.Errorf("%q: %q", s, got)
		}
	})
}

// Controls of the checks above.
func TestUnsafe(t *testing.T) {
	for _, line := range []string{".so x", "'br", `a \fB b`, `\n(.z`, `"`, "a\n.b", `\`} {
		if safe(line) {
			t.Errorf("%q passes", line)
		}
	}
}
