// SPDX-License-Identifier: Apache-2.0

//go:build linux

package ignore

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/postern-gate/postern/internal/testenv"
)

// repo is a git repository with a fixed tree.
type repo struct {
	dir   string
	paths []string // directories end in a slash
}

func newRepo(t *testing.T) *repo {
	t.Helper()
	if _, err := exec.LookPath("git"); err != nil {
		testenv.Missing(t, "git")
	}
	r := &repo{dir: t.TempDir()}
	r.git(t, nil, "init", "-q")
	names := []string{"a", "b", "ab", "a.o", "#a", "!a", "a ", "[a]", "é", "abc", "-", "]"}
	for _, dir := range []string{"", "a-dir/", "b.d/", "b.d/a-dir/", "x/", "x/y/", "x/y/z/"} {
		if err := os.MkdirAll(filepath.Join(r.dir, dir), 0o755); err != nil {
			t.Fatal(err)
		}
		if dir != "" {
			r.paths = append(r.paths, dir)
		}
		for _, name := range names {
			if err := os.WriteFile(filepath.Join(r.dir, dir, name), nil, 0o600); err != nil {
				t.Fatal(err)
			}
			r.paths = append(r.paths, dir+name)
		}
	}
	return r
}

func (r *repo) git(t testing.TB, in []byte, arguments ...string) []byte {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "git", arguments...)
	cmd.Dir, cmd.Stdin = r.dir, bytes.NewReader(in)
	cmd.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_SYSTEM=/dev/null")
	out, err := cmd.Output()
	if exit, ok := err.(*exec.ExitError); ok && exit.ExitCode() == 1 && len(exit.Stderr) == 0 { //nolint:errorlint // exec returns it as it is
		return nil // nothing is ignored
	}
	if err != nil {
		t.Fatalf("git %q: %v", arguments, err)
	}
	return out
}

// theirs is what git ignores under the two lists, ours what we do.
func (r *repo) theirs(t testing.TB, top, nested []byte) []string {
	t.Helper()
	for path, content := range map[string][]byte{".gitignore": top, "x/.gitignore": nested} {
		if err := os.WriteFile(filepath.Join(r.dir, path), content, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	var in string
	for _, path := range r.paths {
		in += strings.TrimSuffix(path, "/") + "\x00" // with a slash it would be part of the name
	}
	out := r.git(t, []byte(in), "check-ignore", "--no-index", "--stdin", "-z")
	list := strings.Split(strings.TrimSuffix(string(out), "\x00"), "\x00")
	slices.Sort(list)
	return list
}

func (r *repo) ours(top, nested []byte) []string {
	outer, inner := parse(string(top)), parse(string(nested))
	list := []string{}
	for _, path := range r.paths {
		if ignoredWithin(outer, inner, path) {
			list = append(list, strings.TrimSuffix(path, "/"))
		}
	}
	if len(list) == 0 {
		list = append(list, "")
	}
	slices.Sort(list)
	return list
}

// ignoredWithin looks at every directory on the way, from above.
func ignoredWithin(outer, inner List, path string) bool {
	for i := 1; i <= len(path); i++ {
		if i < len(path) && path[i] != '/' {
			continue
		}
		part, dir := path[:i], i < len(path)
		if strings.HasSuffix(part, "/") {
			return false
		}
		v := Silent
		if rel, within := strings.CutPrefix(part, "x/"); within {
			v = verdict(inner, rel, dir)
		}
		if v == Silent {
			v = verdict(outer, part, dir)
		}
		if v == Ignored {
			return true
		}
	}
	return false
}

// corpus are lists that once differed, or that are easily got wrong.
var corpus = []struct{ top, nested string }{
	{"a", "!a"},
	{"x/", "!a"},
	{"*\n!*/\n!*.o", ""},
	{"/*\n!/x\n/x/*\n!/x/y", ""},
	{"a-dir", ""},
	{"a-dir/\n!b.d/a-dir", ""},
	{"b.d/**\n!b.d/a", ""},
	{"**/y/**", ""},
	{"x/**/a", ""},
	{"x**/a", ""},
	{"x/y**/z", ""},
	{"x/***/a", ""},
	{`x/**\/a`, ""},
	{"***", ""},
	{"a \n", ""},
	{"a\\ \n", ""},
	{"a\\  \n", ""},
	{"a \\\n", ""},
	{"[[]a]", ""},
	{"[]-]", ""},
	{"[!]a-]", ""},
	{"[a-", ""},
	{"[[:alpha:]", ""},
	{"[[:x]", ""},
	{"[[:alpha]]", ""},
	{`\#a`, ""},
	{`\!a`, ""},
	{"!!a", ""},
	{"\\", ""},
	{"a\\", ""},
	{"/", ""},
	{"//a", ""},
	{"x//a", ""},
	{"./a", ""},
	{"x/./a", ""},
	{"\xef\xbb\xbfa", ""},
	{"a\r\nb\r", ""},
	{"\r", ""},
	{"?", ""},
	{"\u00e9", ""},
	{"[\u00e9]", ""},
	{"*/a", ""},
	{"x/*/a", ""},
	{"*/*/a", ""},
	{"x/y/", ""},
	{"x/a/", ""},
	{"x/y", "!y"},
	{"*", "!*"},
	{"*", "!*\n!y/a"},
	{"**", ""},
	{"**/", ""},
	{"/**", ""},
	{"/**/a", ""},
	{"a/**", ""},
	{"x/y/**/", ""},
	{"[z-a]", ""},
}

// TestAgainstGit: a name is ignored here if and only if git ignores it.
func TestAgainstGit(t *testing.T) {
	r := newRepo(t)
	for _, c := range corpus {
		if d := cmp.Diff(r.theirs(t, []byte(c.top), []byte(c.nested)), r.ours([]byte(c.top), []byte(c.nested))); d != "" {
			t.Errorf("%q and %q: -git +ours\n%s", c.top, c.nested, d)
		}
	}
	if t.Failed() {
		return
	}
	piece := rapid.SampledFrom([]string{
		"a", "b", "x", "y", "z", "*", "*", "**", "/", "/", "?", ".o", ".d", "-dir", "[", "]", "[ab]", "[!a]", "[a-x]", "[[:alpha:]]", "-", "\\", "!", "#", " ", "é", "^", ":",
	})
	line := rapid.Custom(func(t *rapid.T) string {
		return rapid.SampledFrom([]string{"", "", "", "!", "/", "**/"}).Draw(t, "begin") +
			strings.Join(rapid.SliceOfN(piece, 1, 5).Draw(t, "pieces"), "") + rapid.SampledFrom([]string{"", "", "/", "/**"}).Draw(t, "end")
	})
	lines := rapid.SliceOfN(line, 1, 5)
	named := 0
	rapid.Check(t, func(rt *rapid.T) {
		top, nested := strings.Join(lines.Draw(rt, "top"), "\n"), strings.Join(lines.Draw(rt, "nested"), "\n")
		theirs := r.theirs(t, []byte(top), []byte(nested))
		if d := cmp.Diff(theirs, r.ours([]byte(top), []byte(nested))); d != "" {
			rt.Fatalf("%q and %q: -git +ours\n%s", top, nested, d)
		}
		if theirs[0] != "" {
			named++
		}
	})
	if named == 0 {
		t.Error("git ignored nothing, so this proves nothing")
	}
}
