// SPDX-License-Identifier: Apache-2.0

package edit_test

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/postern-gate/postern/internal/fsserver/edit"
	"github.com/postern-gate/postern/internal/testenv"
)

// The form is the reference server's: these are its own answers.
func TestDiffForm(t *testing.T) {
	many := func(change func(lines []string) []string) string {
		lines := make([]string, 40)
		for i := range lines {
			lines[i] = fmt.Sprintf("l%d\n", i)
		}
		return strings.Join(change(lines), "")
	}
	same := many(func(l []string) []string { return l })
	tests := map[string]struct{ before, after, want string }{
		"one line":    {"a\nb\nc\n", "a\nB\nc\n", "@@ -1,3 +1,3 @@\n a\n-b\n+B\n c\n"},
		"no newline":  {"a", "b", "@@ -1,1 +1,1 @@\n-a\n\\ No newline at end of file\n+b\n\\ No newline at end of file\n"},
		"from empty":  {"", "x\n", "@@ -0,0 +1,1 @@\n+x\n"},
		"to empty":    {"x\n", "", "@@ -1,1 +0,0 @@\n-x\n"},
		"newline too": {"a\nb", "a\nb\nc\n", "@@ -1,2 +1,3 @@\n a\n-b\n\\ No newline at end of file\n+b\n+c\n"},
		"two hunks": {
			same, many(func(l []string) []string { l[3], l[12], l[22] = "X\n", "Y\n", "Z\n"; return l }),
			"@@ -1,17 +1,17 @@\n l0\n l1\n l2\n-l3\n+X\n l4\n l5\n l6\n l7\n l8\n l9\n l10\n l11\n-l12\n+Y\n l13\n l14\n l15\n l16\n" +
				"@@ -19,9 +19,9 @@\n l18\n l19\n l20\n l21\n-l22\n+Z\n l23\n l24\n l25\n l26\n",
		},
		"moved numbers": {
			same, many(func(l []string) []string {
				l = append(l[:5:5], append([]string{"new\n"}, l[5:]...)...)
				return append(l[:20:20], l[21:]...)
			}),
			"@@ -2,8 +2,9 @@\n l1\n l2\n l3\n l4\n+new\n l5\n l6\n l7\n l8\n" +
				"@@ -16,9 +17,8 @@\n l15\n l16\n l17\n l18\n-l19\n l20\n l21\n l22\n l23\n",
		},
		"carriage returns": {"a\r\nb\r\n", "a\r\nB\r\n", "@@ -1,2 +1,2 @@\n a\r\n-b\r\n+B\r\n"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			head := "Index: e\n===================================================================\n--- e\toriginal\n+++ e\tmodified\n"
			got, ok := edit.Diff("e", []byte(tt.before), []byte(tt.after))
			if got != head+tt.want || !ok {
				t.Errorf("got\n%s\nwant\n%s", got, head+tt.want)
			}
		})
	}
	if got, ok := edit.Diff("e", []byte("a"), []byte("a")); got != "" || !ok {
		t.Errorf("no change is %q", got)
	}
	if got, _ := edit.Diff("a\nb", []byte("a"), []byte("b")); !strings.Contains(got, `--- "a\u000ab"`) {
		t.Errorf("a name forges a line:\n%s", got)
	}
}

func TestFence(t *testing.T) {
	for diff, want := range map[string]string{
		"-a\n":          "```diff\n-a\n```\n\n",
		"-```\n+````\n": "`````diff\n-```\n+````\n`````\n\n",
	} {
		if got := edit.Fence(diff); got != want {
			t.Errorf("Fence(%q) = %q", diff, got)
		}
	}
}

func TestDiffLimit(t *testing.T) {
	before := strings.Repeat("a\n", 15000)
	text, ok := edit.Diff("e", []byte("top\n"+before+"end\n"), []byte("top\n"+strings.ReplaceAll(before, "a", "b")+"end\n"))
	if ok || text != "the change is too large to show: of 15002 lines, 15000 are replaced by 15000\n" {
		t.Errorf("%v %q", ok, text)
	}
	if text, ok = edit.Diff("e", []byte(before), []byte(before+"b\n")); !ok || len(text) > 300 {
		t.Errorf("a small change of a large text is %v, %d bytes", ok, len(text))
	}
}

// patched applies a unified diff as patch does, strictly: every line of
// context must be where the hunk says.
func patched(t testing.TB, src []byte, diff string) []byte {
	t.Helper()
	if diff == "" {
		return src
	}
	lines := strings.SplitAfter(diff, "\n")
	in := strings.SplitAfter(string(src), "\n")
	var out strings.Builder
	at := 0
	for i := 4; i < len(lines) && lines[i] != ""; i++ {
		line := lines[i]
		var a, n, b, m int
		if _, err := fmt.Sscanf(line, "@@ -%d,%d +%d,%d @@", &a, &n, &b, &m); err == nil && line[0] == '@' {
			for start := a - min(n, 1); at < start; at++ {
				out.WriteString(in[at])
			}
			continue
		}
		text := line[1:]
		if i+1 < len(lines) && strings.HasPrefix(lines[i+1], `\ No newline`) {
			text = strings.TrimSuffix(text, "\n")
		}
		switch line[0] {
		case '\\':
		case '+':
			out.WriteString(text)
		case ' ', '-':
			if in[at] != text {
				t.Fatalf("line %d is %q, the diff says %q", at+1, in[at], text)
			}
			at++
			if line[0] == ' ' {
				out.WriteString(text)
			}
		default:
			t.Fatalf("not a line of a diff: %q", line)
		}
	}
	return []byte(out.String() + strings.Join(in[at:], ""))
}

func pairs() *rapid.Generator[[2]string] {
	line := rapid.SampledFrom([]string{"a\n", "b\n", "c\r\n", "\n", "-a\n", "+ b\n", "\\ x\n", "@@ -1,1 +1,1 @@\n", "--- e\n", "caf\xe9\n", "d\r", "```\n"})
	text := rapid.Map(rapid.SliceOfN(line, 0, 30), func(l []string) string { return strings.Join(l, "") })
	last := rapid.SampledFrom([]string{"", "", "end"})
	return rapid.Custom(func(t *rapid.T) [2]string {
		common, a, b := text.Draw(t, "common"), text.Draw(t, "a"), text.Draw(t, "b")
		tail := text.Draw(t, "tail")
		return [2]string{common + a + tail + last.Draw(t, "last"), common + b + tail + last.Draw(t, "last")}
	})
}

func TestDiffGivesTheSameText(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		p := pairs().Draw(r, "texts")
		diff, ok := edit.Diff("e", []byte(p[0]), []byte(p[1]))
		if got := patched(t, []byte(p[0]), diff); !ok || string(got) != p[1] {
			r.Fatalf("the diff gives %q, want %q:\n%s", got, p[1], diff)
		}
	})
}

// The real tools agree, on a sample.
func TestRealTools(t *testing.T) {
	tools := map[string]func(dir, diff string) *exec.Cmd{
		"patch": func(dir, diff string) *exec.Cmd {
			return exec.CommandContext(t.Context(), "patch", "--binary", "--fuzz=0", "-s", filepath.Join(dir, "e"), diff)
		},
		"git": func(dir, diff string) *exec.Cmd {
			return exec.CommandContext(t.Context(), "git", "-c", "core.autocrlf=false", "apply", "-p0", "--whitespace=nowarn", diff)
		},
	}
	gen := pairs()
	for tool, run := range tools {
		t.Run(tool, func(t *testing.T) {
			if _, err := exec.LookPath(tool); err != nil {
				testenv.Missing(t, tool)
			}
			for seed := range 40 {
				p := gen.Example(seed)
				if p[0] == p[1] || p[0] == "" || p[1] == "" {
					continue // patch removes an emptied file, git needs other headers for it
				}
				applyWith(t, run, p)
			}
		})
	}
}

func applyWith(t *testing.T, run func(dir, diff string) *exec.Cmd, p [2]string) {
	t.Helper()
	dir := t.TempDir()
	text, _ := edit.Diff("e", []byte(p[0]), []byte(p[1]))
	diff := filepath.Join(dir, "diff")
	for path, content := range map[string]string{filepath.Join(dir, "e"): p[0], diff: text} {
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	cmd := run(dir, diff)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "GIT_CEILING_DIRECTORIES="+filepath.Dir(dir), "GIT_DIR=/nonexistent")
	out, err := cmd.CombinedOutput()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	got, readErr := os.ReadFile(filepath.Join(dir, "e"))
	if readErr != nil || !bytes.Equal(got, []byte(p[1])) {
		t.Fatalf("%v %s: %q became %q, want %q:\n%s", err, out, p[0], got, p[1], text)
	}
}
