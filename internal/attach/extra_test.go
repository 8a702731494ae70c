// SPDX-License-Identifier: Apache-2.0

package attach

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// TestOdd: what makes a client start something else than the line is told, and
// what only says what holds anyway is not.
func TestOdd(t *testing.T) {
	const line = `"command":"/b/postern","args":["serve","--agent","x","/p"]`
	for more, want := range map[string][]string{
		``: nil, // the control
		`,"type":"stdio","env":{},"disabled":false,"enabled":true,"tools":["*"],"timeout":60`: nil,
		`,"env":{"POSTERN_STATE":"/x"}`:         {"env"},
		`,"type":"http","url":"http://x"`:       {"type", "url"},
		`,"disabled":true`:                      {"disabled"},
		`,"enabled":false`:                      {"enabled"},
		`,"cwd":"/x","Command":"/evil"`:         {"Command", "cwd"},
		`,"envFile":"x","headers":{},"tools":1`: {"envFile", "headers", "tools"},
	} {
		dir := t.TempDir()
		w := World{Home: filepath.Join(dir, "home"), Project: dir, GOOS: "linux", Getenv: func(string) string { return "" }}
		user := `{"projects":{"` + dir + `":{"mcpServers":{"mine":{` + line + more + `}}}}}`
		if err := errors.Join(os.Mkdir(w.Home, 0o700), os.WriteFile(filepath.Join(w.Home, ".claude.json"), []byte(user), 0o600),
			os.WriteFile(filepath.Join(dir, ".mcp.json"), []byte(`{"mcpServers":{"postern":{`+line+more+`}}}`), 0o600)); err != nil {
			t.Fatal(err)
		}
		got, errs := Attached(w)
		if len(got) != 2 || errs != nil {
			t.Fatalf("%s: %+v, %v", more, got, errs)
		}
		for _, a := range got {
			if !slices.Equal(a.Odd, want) {
				t.Errorf("%s: %s: %q, want %q", more, a.File, a.Odd, want)
			}
		}
	}
}

// TestOddTOML: the same of a table.
func TestOddTOML(t *testing.T) {
	const line = "[mcp_servers.postern]\ncommand = \"/b/postern\"\nargs = [\"serve\", \"--agent\", \"codex\", \"/p\"]\n"
	c, _ := ByID("codex")
	for more, want := range map[string][]string{
		"":                                   nil, // the control
		"startup_timeout_sec = 20\n":         nil,
		"[other]\nenv = 1\n":                 nil,
		"env = { POSTERN_STATE = \"/x\" }\n": {"env"},
		"env.POSTERN_STATE = \"/x\"\n":       {"env"},
		"[mcp_servers.postern.env]\nPOSTERN_STATE = \"/x\"\nA=1\n": {"env"},
		"enabled = false\nurl = \"http://x\"\n":                    {"enabled", "url"},
	} {
		all, prob := c.form.entries([]byte(line + more))
		if prob != nil || len(all) != 1 || !slices.Equal(all[0].odd, want) {
			t.Errorf("%q: %+v, %v, want %q", more, all, prob, want)
		}
	}
}

// TestOddFlags: a project's file can't name a policy, the user's can.
func TestOddFlags(t *testing.T) {
	for flags, want := range map[string][]string{
		"--read-only":       nil,
		"--policy=./p.yaml": {"--policy"},
		"--http":            {"--http"},
	} {
		e := entry{args: []string{"serve", "--agent", "x", flags, "/p"}}
		if got := e.oddFlags(); !slices.Equal(got, want) {
			t.Errorf("%s: %q, want %q", flags, got, want)
		}
	}
}

func TestBrief(t *testing.T) {
	long := strings.Repeat("\u00e9", mostShown)
	for name, want := range map[string]string{
		"postern":          "postern",
		"":                 `""`,
		"a b":              `"a b"`,
		"a\u2003b":         `"a\u2003b"`,
		"\x1b[2K":          `"\u001b[2K"`,
		long:               long,
		long + "x":         long + "...",
		" " + long + "end": `" ` + long[2:] + `"...`,
	} {
		if got := Brief(name); got != want {
			t.Errorf("%q: %s, want %s", name, got, want)
		}
	}
}
