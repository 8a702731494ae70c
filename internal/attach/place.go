// SPDX-License-Identifier: Apache-2.0

package attach

import (
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/postern-gate/postern/core/policy"
)

// A place is how a file or folder is written here: ~ is the home folder, {app}
// the system's folder of programs' settings, {config} and the others what their
// variables say, as each client looks them up, and $NAME what a variable says
// that has no default.

// front is what a place starts with: the variable's value if that is an absolute
// path, else the name beneath the home folder.
type front struct{ variable, home string }

// surroundings are a world's fronts.
type surroundings struct {
	World
	fronts map[string]front
}

func (w World) surroundings() surroundings {
	app := front{"XDG_CONFIG_HOME", ".config"}
	switch w.GOOS {
	case "darwin":
		app = front{"", "Library/Application Support"}
	case "windows":
		app = front{"APPDATA", "AppData/Roaming"}
	}
	return surroundings{w, map[string]front{
		"~":             {"", ""},
		"{app}":         app,
		"{config}":      {"XDG_CONFIG_HOME", ".config"},
		"{codex}":       {"CODEX_HOME", ".codex"},
		"{claude}":      {"CLAUDE_CONFIG_DIR", ".claude"},
		"{claude.json}": {"CLAUDE_CONFIG_DIR", ""},
		"{copilot}":     {"COPILOT_HOME", ".copilot"},
		"{cursor}":      {"CURSOR_CONFIG_DIR", ".cursor"},
		"{gemini}":      {"GEMINI_CLI_HOME", ""},
		"{zsh}":         {"ZDOTDIR", ""},
		"{git}":         {"GIT_CONFIG_GLOBAL", ".gitconfig"},
	}}
}

// path returns where a place is, "" where that can't be told.
func (w World) path(place string) string { return w.surroundings().path(place) }

func (s surroundings) path(place string) string {
	name, rest, _ := strings.Cut(place, "/")
	variable, alone := strings.CutPrefix(name, "$")
	if !alone {
		variable = s.fronts[name].variable
	}
	base := s.absolute(variable)
	if base == "" && !alone && s.Home != "" {
		base = filepath.Join(s.Home, filepath.FromSlash(s.fronts[name].home))
	}
	if base == "" {
		return ""
	}
	return filepath.Join(base, filepath.FromSlash(rest))
}

// absolute is what the variable says if that is an absolute path.
func (s surroundings) absolute(variable string) string {
	if variable == "" {
		return ""
	}
	if p := s.Getenv(variable); filepath.IsAbs(p) {
		return p
	}
	return ""
}

// moved are the places of what runs by itself that a variable alone can move, by
// the entry of the built-in lists.
func moved() map[string][]string {
	return map[string][]string{
		"git":   {"{git}"},
		"shell": {"{zsh}/.zshenv", "{zsh}/.zprofile", "{zsh}/.zshrc", "{zsh}/.zlogin", "{zsh}/.zlogout", "$BASH_ENV", "$ENV"},
	}
}

// places are those of all entries: of clients, and what the built-in lists know
// to run by itself in a home folder.
func (s surroundings) places() map[string][]string {
	all := moved()
	for _, c := range Clients() {
		all[agents] = append(append(all[agents], c.user), c.more...)
	}
	for entry, patterns := range policy.HomePatterns() {
		for _, pattern := range patterns {
			all[entry] = append(all[entry], s.atHome(pattern))
		}
		slices.Sort(all[entry])
		all[entry] = slices.Compact(all[entry])
	}
	return all
}

// agents is the built-in entry of clients.
const agents = "agents"

// atHome is the place that a pattern for home folders names in this person's.
func (s surroundings) atHome(pattern string) string {
	name := strings.TrimSuffix(pattern, "/**")
	if rest, ok := strings.CutPrefix(name, ".config/"); ok {
		return "{config}/" + rest
	}
	if app := s.fronts["{app}"].home + "/"; strings.HasPrefix(name, app) {
		return "{app}/" + name[len(app):]
	}
	return "~/" + name
}

// paths are where a place is; a segment * in it stands for whatever is there.
func (s surroundings) paths(place string) (all []string) {
	before, after, many := strings.Cut(place, "/*/")
	if !many {
		return []string{s.path(place)}
	}
	dir := s.path(before)
	names, _, err := entriesOf(dir, maxEntries)
	if err != nil {
		return nil
	}
	for _, e := range names {
		if at := filepath.Join(dir, path.Join(e.Name(), after)); there(at) {
			all = append(all, at)
		}
	}
	return all
}
