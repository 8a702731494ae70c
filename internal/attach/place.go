// SPDX-License-Identifier: Apache-2.0

package attach

import (
	"io/fs"
	"path/filepath"
	"slices"
	"strings"

	"github.com/postern-gate/postern/core/policy"
	"github.com/postern-gate/postern/internal/links"
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
	starts map[string]front
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
func (w World) path(place string) string {
	if p := w.surroundings().path(place); p != "" {
		return filepath.Clean(p)
	}
	return ""
}

// path is World.path as it is said: with a .. that is after a link in what a variable
// says, one program goes to another place than the next.
func (s surroundings) path(place string) string {
	name, rest, _ := strings.Cut(place, "/")
	variable, alone := strings.CutPrefix(name, "$")
	if !alone {
		variable = s.starts[name].variable
	}
	base := s.absolute(variable)
	if base == "" && !alone && s.Home != "" {
		base = join(s.Home, filepath.FromSlash(s.starts[name].home))
	}
	if base == "" {
		return ""
	}
	return join(base, filepath.FromSlash(rest))
}

// join is filepath.Join that leaves .. to whoever follows links.
func join(dir, rest string) string {
	if rest == "" {
		return dir
	}
	return strings.TrimSuffix(dir, string(filepath.Separator)) + string(filepath.Separator) + rest
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
	if app := s.starts["{app}"].home + "/"; strings.HasPrefix(name, app) {
		return "{app}/" + name[len(app):]
	}
	return "~/" + name
}

// tops are where a place is; a segment * in it stands for whatever is there.
func (s surroundings) tops(look *links.Look, place string) (all []top) {
	before, after, many := strings.Cut(place, "/*/")
	if !many {
		return readings(top{path: s.path(place), known: known(place)})
	}
	for _, dir := range readings(top{path: s.path(before)}) {
		way := look.Follow(dir.path)
		names, _, err := entriesOf(way.End, maxEntries)
		if way.Mount != "" {
			all = append(all, dir) // so that it is told
		}
		if err != nil {
			continue
		}
		for _, e := range names {
			at := join(dir.path, filepath.Join(e.Name(), filepath.FromSlash(after)))
			if way := look.Follow(at); e.Type()&fs.ModeSymlink != 0 || way.Cut || there(way.End) { // the rest has its names in the front
				all = append(all, top{path: at, of: dir.path})
			}
		}
	}
	return all
}

// fronts are the folders in which a place of many has its names, and its pattern there.
func (s surroundings) fronts(look *links.Look, place string) (dirs []string, pattern string) {
	before, after, many := strings.Cut(place, "/*/")
	if !many {
		return nil, ""
	}
	for _, dir := range readings(top{path: s.path(before)}) {
		all, _, _ := spellings(look, dir.path)
		dirs = append(dirs, all...)
	}
	return dirs, "*/" + after + "/**"
}

// readings are a top as the kernel takes it and as programs do that tidy a path up as
// text before they open it.
func readings(t top) []top {
	if !filepath.IsAbs(t.path) {
		return nil
	}
	tidy := t
	if tidy.path = filepath.Clean(t.path); tidy.path == t.path {
		return []top{t}
	}
	return []top{t, tidy}
}

// known is the name by which the built-in lists know a place wherever it lies, and
// know what of it a model only reads.
func known(place string) string {
	switch place {
	case "{claude}":
		return ".claude"
	case "~/.cursor", "{cursor}":
		return ".cursor"
	default:
		return ""
	}
}
