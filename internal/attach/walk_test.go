// SPDX-License-Identifier: Apache-2.0

package attach

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// says sets variables, HOME among them as init doesn't tidy it up.
func (d *dotfiles) says(env map[string]string) {
	d.w.Getenv = func(name string) string { return env[name] }
	if home := env["HOME"]; home != "" {
		d.w.Home = home
	}
}

// TestUpBehindALink: .. after a link is above what the link leads to, and for a
// program that takes a path as text first it isn't.
func TestUpBehindALink(t *testing.T) {
	d := newDotfiles(t)
	d.put(d.at("set/v1/x"), "")
	d.link(d.home("cur"), d.at("set/v1"))
	d.link(d.home(".bashrc"), "cur/../rc/bashrc")
	d.link(d.home(".zshrc"), d.home("cur")+"/../rc/zshrc")
	d.link(d.home(".config/nvim"), "../cur/../nvim")
	d.link(d.home(".cursor/hooks.json"), "../cur/../hooks.json")
	for name, entry := range map[string]string{"set/rc/bashrc": "shell", "set/rc/zshrc": "shell", "set/nvim": "editors", "set/hooks.json": agents} {
		if got := d.entries(name); !slices.Contains(got, entry) {
			t.Errorf("%s belongs to %q, want %s", name, got, entry)
		}
	}
	for _, entry := range []string{"shell", "editors"} {
		for _, name := range []string{"rc/bashrc", "nvim"} {
			if places := entrust(d.w, d.state).Places[entry]; slices.Contains(places, d.home(name)) {
				t.Errorf("control: %s is held, which nothing leads to", name)
			}
		}
	}
	home, up := d.w.Home, d.home("cur")+"/.."
	d.link(d.home("codex"), d.at("text"))
	for variable, c := range map[string]struct{ value, kernel, text, entry string }{
		"HOME":            {up, "set/.profile", ".profile", "shell"},
		"XDG_CONFIG_HOME": {up + "/xdg", "set/xdg/fish", "xdg/fish", "shell"},
		"CODEX_HOME":      {up + "/codex", "set/codex/config.toml", "codex/config.toml", agents},
		"ENV":             {up + "/env", "set/env", "env", "shell"},
	} {
		d.says(map[string]string{variable: c.value})
		places := entrust(d.w, d.state).Places[c.entry]
		for _, want := range []string{d.at(c.kernel), filepath.Join(home, c.text)} {
			if !slices.Contains(places, want) {
				t.Errorf("%s: %s is not held", variable, want)
			}
		}
		if got := d.entries("text/config.toml"); (got != nil) != (variable == "CODEX_HOME") {
			t.Errorf("%s: what a link there leads to belongs to %q", variable, got)
		}
	}
}

// bomb makes links through links, that many levels of 30, and returns what leads
// through all of them.
func (d dotfiles) bomb(levels int) string {
	in, through := d.dir, d.dir
	for i := range levels {
		for j := range 30 {
			d.link(filepath.Join(in, fmt.Sprint(i, "-", j)), filepath.Join(through, fmt.Sprint(i, "-", j+1)))
		}
		d.put(filepath.Join(in, fmt.Sprint(i, "-30"), "f"), "")
		in, through = filepath.Join(in, fmt.Sprint(i, "-30")), filepath.Join(through, fmt.Sprint(i, "-0"))
	}
	return filepath.Join(through, "f")
}

// TestLinksDontMultiply: links that lead through links are as many places as the
// kernel follows links, and none after that.
func TestLinksDontMultiply(t *testing.T) {
	for levels := range 6 {
		d := newDotfiles(t)
		to := d.bomb(levels)
		d.link(d.home(".bashrc"), to)
		d.link(d.home(".codex/config.toml"), to)
		e := entrust(d.w, d.state)
		for _, entry := range []string{"shell", agents} {
			if n := len(e.Places[entry]); n > 200 || !slices.Contains(e.Places[entry], to) {
				t.Fatalf("%d levels: %d places of %s", levels, n, entry)
			}
		}
		if e.Beyond != nil {
			t.Errorf("%d levels: %q", levels, e.Beyond)
		}
	}
}

// TestPlacesAreBounded: what is found in all folders is bounded, and so is what it
// costs to find it; what isn't looked at is told.
func TestPlacesAreBounded(t *testing.T) {
	long := strings.Repeat("x/../", 700)
	for name, c := range map[string]struct {
		target func(i int) string
		want   []string
	}{
		"few":  {func(i int) string { return fmt.Sprint(i) }, nil},
		"same": {func(int) string { return "hop0/f" }, nil},
		"many": {func(i int) string { return fmt.Sprint("hop0/", i) }, []string{".codex", ".kiro"}},
		"long": {func(i int) string { return long + fmt.Sprint(i) }, []string{".codex", ".kiro"}},
	} {
		d := newDotfiles(t)
		d.put(d.at("x/f"), "")
		d.link(d.at("hop20"), "x")
		for i := range 20 {
			d.link(d.at(fmt.Sprint("hop", i)), fmt.Sprint("hop", i+1))
		}
		for i := range 300 {
			d.link(d.home(fmt.Sprint(".codex/l", i)), filepath.Join(d.dir, "l")+"/../"+c.target(i))
		}
		d.link(d.at("l"), "x")
		d.link(d.home(".kiro/x"), d.at("y"))
		d.link(d.home(".zshrc"), d.at("zshrc"))
		e := entrust(d.w, d.state)
		var got []string
		for _, path := range e.Beyond {
			got = append(got, filepath.Base(path))
		}
		if diff := cmp.Diff(c.want, got); diff != "" || len(e.Places[agents]) > maxFound+500 {
			t.Errorf("%s: %d places, %s", name, len(e.Places[agents]), diff)
		}
		if !slices.Contains(e.Places["shell"], d.at("zshrc")) {
			t.Errorf("%s: what lies at home by itself is not held", name)
		}
	}
}

// TestFrontsAreKnown: an editor that isn't there yet is known where a variable or a
// link has moved the folder of settings, as it is at home.
func TestFrontsAreKnown(t *testing.T) {
	for how, move := range map[string]func(d *dotfiles){
		"variable": func(d *dotfiles) { d.says(map[string]string{"XDG_CONFIG_HOME": d.at("xdg")}) },
		"link":     func(d *dotfiles) { d.link(d.home(".config"), d.at("xdg")) },
		"behind": func(d *dotfiles) {
			d.link(d.home("l"), d.at("a"))
			d.says(map[string]string{"XDG_CONFIG_HOME": d.home("l") + "/../xdg"})
		},
	} {
		d := newDotfiles(t)
		d.put(d.at("a/x"), "")
		front := Front{"editors", d.at("xdg"), "*/User/**"}
		if slices.Contains(entrust(d.w, d.state).Fronts, front) {
			t.Errorf("control: %s", how)
		}
		move(&d)
		d.link(d.at("xdg/Kode"), d.at("kode")) // not there yet
		e := entrust(d.w, d.state)
		if !slices.Contains(e.Fronts, front) || !slices.Contains(e.Fronts, Front{"editors", d.home(".config"), "*/User/**"}) {
			t.Errorf("%s: %q", how, e.Fronts)
		}
		if got := d.entries("kode/User"); !slices.Contains(got, "editors") {
			t.Errorf("%s: what a link there leads to belongs to %q", how, got)
		}
	}
}

// TestRulesOfAModel: the folders whose rules the built-in lists know are left to them,
// wherever they lie by that name, and what links in them lead to is held.
func TestRulesOfAModel(t *testing.T) {
	d := newDotfiles(t)
	d.says(map[string]string{"CLAUDE_CONFIG_DIR": d.at("claude")})
	d.put(d.at(".cursor/x"), "")
	d.link(d.home(".cursor"), d.at(".cursor"))
	d.link(d.home(".codex"), d.at("x/.claude")) // of another client
	d.link(d.home(".claude/output-styles/x.md"), "../rules/x.md")
	d.link(d.home(".claude/self"), ".")
	e := entrust(d.w, d.state)
	for path, want := range map[string]bool{
		d.home(".claude"): false, d.home(".cursor"): false, d.at(".cursor"): false,
		d.at("claude"): true, d.at("x/.claude"): true, d.home(".claude/hooks"): true, d.home(".claude/rules/x.md"): true,
	} {
		if slices.Contains(e.Places[agents], path) != want {
			t.Errorf("%s is held: %v", path, !want)
		}
	}
	if e.Beyond != nil {
		t.Errorf("%q", e.Beyond)
	}
	d.link(d.home(".claude/all"), d.w.Home)
	if e := entrust(d.w, d.state); len(e.Beyond) != 1 || slices.Contains(e.Places[agents], d.w.Home) {
		t.Errorf("%q", e.Beyond)
	}
}
