// SPDX-License-Identifier: Apache-2.0

package attach

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// dotfiles is a home folder whose files are kept in another place.
type dotfiles struct {
	*place
	dir string
}

func newDotfiles(t *testing.T) dotfiles {
	p := newPlace(t)
	dir, err := filepath.EvalSymlinks(filepath.Dir(p.w.Home))
	if err != nil {
		t.Fatal(err)
	}
	return dotfiles{p, filepath.Join(dir, "dotfiles")}
}

func (d dotfiles) at(name string) string { return filepath.Join(d.dir, filepath.FromSlash(name)) }

// link makes a link at home that leads to where it says, from the link's folder.
func (d dotfiles) link(at, to string) {
	d.t.Helper()
	if err := os.MkdirAll(filepath.Dir(at), 0o700); err != nil {
		d.t.Fatal(err)
	}
	if err := os.Symlink(to, at); err != nil {
		d.t.Fatal(err)
	}
}

func (d dotfiles) entries(name string) (entries []string) {
	for entry, places := range entrust(d.w, d.state).Places {
		if slices.Contains(places, d.at(name)) {
			entries = append(entries, entry)
		}
	}
	slices.Sort(entries)
	return entries
}

// TestLinksOfHome: what a link at home leads to belongs to the entry of what it
// is there, in a client's folder as deep as clients read.
func TestLinksOfHome(t *testing.T) {
	d := newDotfiles(t)
	n := 0
	for entry, names := range map[string]string{
		agents: ".cursor/hooks.json .claude/settings.json .claude/skills/a/SKILL.md .claude.json .codex/hooks.json .codex/rules/default.rules .config/opencode/opencode.jsonc .config/opencode/plugin/x.ts " +
			".gemini/policies/a.toml .copilot/config.json .kiro/agents/a.json .codeium/windsurf/hooks.json .config/Claude/claude_desktop_config.json",
		"editors":   ".config/VSCodium/User/tasks.json .config/nvim/lua/x.lua .vimrc",
		"autostart": ".config/systemd/user/a.service", "shell": ".bashrc .config/fish/conf.d/a.fish", "git": ".gitconfig .config/git/config",
	} {
		for at := range strings.FieldsSeq(names) {
			n++
			name := fmt.Sprintf("f%d", n)
			if got := d.entries(name); got != nil { // control
				t.Fatalf("%s: %q", at, got)
			}
			d.link(d.home(at), d.at(name))
			if got := d.entries(name); !slices.Contains(got, entry) {
				t.Errorf("%s: what it leads to belongs to %q, want %s", at, got, entry)
			}
		}
	}
	d.link(d.home(".config/other/settings.json"), d.at("other"))
	d.link(d.home(".claude/projects/a/x"), d.at("kept"))
	for _, name := range []string{"other", "kept", "f100"} {
		if got := d.entries(name); got != nil {
			t.Errorf("control: %s belongs to %q", name, got)
		}
	}
	if got := entrust(d.w, d.state).Beyond; got != nil {
		t.Errorf("%q", got)
	}
}

// TestLinksOfLinks: each step of a way is held, since who changes one changes
// where it ends; a folder holds what is in it, and its own links are followed.
func TestLinksOfLinks(t *testing.T) {
	d := newDotfiles(t)
	d.put(d.at("v1/opencode/plugin/readme"), "")
	d.put(d.at("real"), "")
	d.link(d.at("current"), "v1")
	d.link(d.at("hop"), "real")
	d.link(d.at("v1/opencode/plugin/x.ts"), "../../../common/x.ts")
	d.link(d.home(".config"), d.at("current"))
	d.link(d.home(".codex/config.toml"), d.at("hop"))
	d.link(d.home(".codex/loop"), "loop")
	d.link(d.home(".codex/through"), "through/more")
	d.link(d.home(".codex/again"), d.home(".codex"))
	d.link(d.home(".codex/own"), d.at("way"))
	d.link(d.at("way"), d.home(".codex/config.json"))
	d.link(d.home(".kiro/agents"), d.at("kiro"))
	d.link(d.at("kiro/back"), d.at("kiro"))
	for _, name := range []string{"current/opencode", "v1/opencode", "common/x.ts", "hop", "real", "way", "kiro", "current/Claude", "v1/Claude"} {
		if got := d.entries(name); !slices.Contains(got, agents) {
			t.Errorf("%s belongs to %q", name, got)
		}
	}
	if e := entrust(d.w, d.state); e.Beyond != nil {
		t.Errorf("%q", e.Beyond)
	}
	// To hold a folder above a client's would hold everything, so it is told.
	d.link(d.home(".copilot/x"), d.w.Home)
	e := entrust(d.w, d.state)
	if slices.Contains(e.Places[agents], d.w.Home) || len(e.Beyond) != 1 || filepath.Base(e.Beyond[0]) != ".copilot" {
		t.Errorf("%q", e.Beyond)
	}
}

// TestLinksAreBounded: what isn't looked through is told, by name.
func TestLinksAreBounded(t *testing.T) {
	for name, c := range map[string]struct {
		make func(dotfiles)
		want []string
	}{
		"few":     {func(d dotfiles) { d.put(d.home(".codex/a/b/c/d/e/x"), "") }, nil},
		"deep":    {func(d dotfiles) { d.put(d.home(".codex/a/b/c/d/e/f/x"), "") }, []string{".codex"}},
		"kept":    {func(d dotfiles) { d.put(d.home(".codex/sessions/b/c/d/e/f/x"), "") }, nil},
		"many":    {func(d dotfiles) { d.many(".cursor", maxEntries+1) }, []string{".cursor"}},
		"as many": {func(d dotfiles) { d.many(".cursor", maxEntries) }, nil},
		"many at all": {func(d dotfiles) {
			d.many(".cursor", 900)
			d.many(".codex", 900)
			d.many(".kiro", 900)
			d.many(".copilot", 900)
			d.many(".vim", 900)
		}, []string{".vim"}},
	} {
		t.Run(name, func(t *testing.T) {
			d := newDotfiles(t)
			c.make(d)
			var got []string
			for _, path := range entrust(d.w, d.state).Beyond {
				got = append(got, filepath.Base(path))
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// many fills a folder at home.
func (d dotfiles) many(name string, n int) {
	for i := range n {
		d.put(filepath.Join(d.home(name), fmt.Sprint(i)), "")
	}
}

// moves are variables with a value in the other place, and what they put where.
func moves() map[string]struct{ value, path, entry string } {
	return map[string]struct{ value, path, entry string }{
		"CODEX_HOME":                      {"x", "x", agents},
		"CLAUDE_CONFIG_DIR":               {"x", "x", agents},
		"COPILOT_HOME":                    {"x", "x", agents},
		"CURSOR_CONFIG_DIR":               {"x", "x", agents},
		"GEMINI_CLI_HOME":                 {"x", "x/.gemini", agents},
		"GEMINI_CLI_SYSTEM_SETTINGS_PATH": {"x.json", "x.json", agents},
		"GEMINI_CLI_SYSTEM_DEFAULTS_PATH": {"x.json", "x.json", agents},
		"GEMINI_CLI_TRUSTED_FOLDERS_PATH": {"x.json", "x.json", agents},
		"OPENCODE_CONFIG":                 {"x.json", "x.json", agents},
		"OPENCODE_CONFIG_DIR":             {"x", "x", agents},
		"OPENCODE_TUI_CONFIG":             {"x.json", "x.json", agents},
		"XDG_CONFIG_HOME":                 {"x", "x/cursor", agents},
		"GIT_CONFIG_GLOBAL":               {"x", "x", "git"},
		"ZDOTDIR":                         {"x", "x/.zshrc", "shell"},
		"BASH_ENV":                        {"x", "x", "shell"},
		"ENV":                             {"x", "x", "shell"},
	}
}

// TestVariables: what a variable moves is held there, and without it only where
// it lies by default.
func TestVariables(t *testing.T) {
	for variable, c := range moves() {
		d := newDotfiles(t)
		if got := d.entries(c.path); got != nil {
			t.Errorf("control: %s: %q", variable, got)
		}
		d.w.Getenv = func(name string) string {
			if name == variable {
				return d.at(c.value)
			}
			return ""
		}
		if got := d.entries(c.path); !slices.Contains(got, c.entry) {
			t.Errorf("%s: %s belongs to %q", variable, c.path, got)
		}
		if e := entrust(d.w, d.state); !slices.Contains(e.Places[agents], d.home(".codex")) || !slices.Contains(e.Places["git"], d.home(".gitconfig")) {
			t.Errorf("%s: the defaults are not held any more", variable)
		}
		d.w.Getenv = func(string) string { return "x" } // not absolute
		if got := d.entries(c.path); got != nil {
			t.Errorf("control: %s: %q", variable, got)
		}
	}
}

// TestFolderOfSettings: it moves what more than clients read.
func TestFolderOfSettings(t *testing.T) {
	d := newDotfiles(t)
	d.w.Getenv = func(string) string { return d.dir }
	for name, entry := range map[string]string{"git": "git", "fish": "shell", "environment.d": "shell", "autostart": "autostart", "systemd": "autostart", "zed": "editors"} {
		if got := d.entries(name); !slices.Contains(got, entry) {
			t.Errorf("XDG_CONFIG_HOME: %s belongs to %q", name, got)
		}
	}
}

// TestWaysStay: what a way from home leads over stays, a link or a folder that a ..
// leaves, also where a variable says the way and where a folder's link goes it; what is
// a place itself isn't named again.
func TestWaysStay(t *testing.T) {
	for at, want := range map[string]string{
		"lnk/../cfg/bashrc": "lnk o/t", "o/t/../cfg/bashrc": "o/t", "lnk/bashrc": "lnk", "o/cfg/bashrc": "", "hop": "",
		"lnk/../../../out": "lnk o o/t",
	} {
		d := newDotfiles(t)
		d.put(d.at("o/t/x"), "")
		d.put(d.at("o/cfg/x"), "")
		d.link(d.at("lnk"), "o/t")
		d.link(d.at("hop"), "o/cfg/bashrc")
		holds := func(entry string) {
			t.Helper()
			over := entrust(d.w, d.state).Over[entry]
			var got []string
			for _, path := range over {
				if rel, err := filepath.Rel(d.dir, path); err == nil && filepath.IsLocal(rel) {
					got = append(got, filepath.ToSlash(rel))
				}
			}
			slices.Sort(got)
			names := strings.Fields(want)
			slices.Sort(names)
			if diff := cmp.Diff(names, append([]string{}, got...)); diff != "" {
				t.Errorf("%s of %s: %s", at, entry, diff)
			}
		}
		d.link(d.home(".bashrc"), d.dir+"/"+at)
		holds("shell")
		d.link(d.home(".codex/skills"), d.dir+"/"+at)
		holds(agents)
		if err := os.RemoveAll(d.home(".codex")); err != nil {
			t.Fatal(err)
		}
		d.w.Getenv = func(name string) string { return map[string]string{"CLAUDE_CONFIG_DIR": d.dir + "/" + at}[name] }
		holds(agents)
	}
}
