// SPDX-License-Identifier: Apache-2.0

package config

import (
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/postern-gate/postern/core"
	"github.com/postern-gate/postern/core/fault"
	"github.com/postern-gate/postern/core/policy"
	"github.com/postern-gate/postern/internal/links"
)

// SystemFile is where the system's policy lies.
const SystemFile = "/etc/postern/policy.yaml"

// Options says where to look. Nothing else is read from the environment.
type Options struct {
	// Dirs are the folders of the command line.
	Dirs []string
	// PolicyFile takes the place of the user's policy and must exist; "" for
	// the user's own.
	PolicyFile string
	// WorkDir is the absolute working directory.
	WorkDir string
	// StateDir is where the state directory is, made or not; "" for none.
	StateDir string
	// Env looks up an environment variable: HOME and XDG_CONFIG_HOME are asked
	// for.
	Env func(string) string
	// SystemFile stands in for the constant when it isn't "".
	SystemFile string
	// Accounts stands in for the folder of the system's files passwd and group
	// when it isn't "".
	Accounts string
	// Binary is the running program, which no root may change; "" for none.
	Binary string
	// Entrusted tells what else no root may change; nil for nothing.
	Entrusted func(*links.Look) Entrusted

	before *Config           // what is in force
	opened map[string]opened // the roots at the start of a server, by their paths
	now    func() time.Time
}

// Entrusted are absolute paths of files and folders beside the policy files.
type Entrusted struct {
	Places   map[string][]string // by the built-in entry that they belong to, each as its links lead too
	Over     map[string][]string // links and folders that must stay for the places to lead there
	Fronts   []Front             // by entry and folder
	Warnings []string            // of what can't be told, for a person
}

// Front is a folder, an absolute path, of which a part belongs to a built-in entry:
// Below is the pattern for it.
type Front struct{ Entry, Dir, Below string }

// Config is everything that policy files say, checked and compiled.
type Config struct {
	Policy   *policy.Policy
	Roots    []Root
	Settings Settings
	// Files are the policy files that were there, in the order of layers.
	Files []string
	// UserFile is the user's own policy, whether it exists or not: where a
	// person would allow something.
	UserFile string
	// Agents are the names that some file has rules for, sorted. An agent that
	// none of them names has the general rules.
	Agents []string
	// Warnings are for a person, one line each.
	Warnings []string
	// Idle are the keys that a file states and this release doesn't heed.
	Idle []Idle

	sources   []source
	entrusted Entrusted
	said      []string // the warnings that aren't of what is around
	around    around
	finder    *finder
	parts     Parts
}

// Places are where policy files are looked for, whether one is there or not.
func (c *Config) Places() []string { return places(c.sources) }

func places(all []source) (paths []string) {
	for _, s := range all {
		paths = append(paths, s.path)
	}
	return paths
}

// Idle are keys of one file.
type Idle struct {
	File string   `json:"file"`
	Keys []string `json:"keys"`
}

// Load reads every layer. Errors are faults: ConfigInvalid with an *Invalid as
// cause for what the files say (all of it in one go), RequestInvalid when
// there is nothing to guard, PathMissing when no root is there.
func Load(o Options) (*Config, error) {
	l := loader{Options: o, out: &Config{}}
	return l.load()
}

func (l *loader) load() (*Config, error) {
	if l.Env == nil {
		l.Env = func(string) string { return "" }
	}
	l.readTrusted()
	err := l.failed()
	if err == nil {
		err = l.placeRoots()
	}
	l.look = l.glance(l.out.Roots, places(l.out.sources)...)
	if fault.CodeOf(err) != fault.RequestInvalid { // then the caller asks again, for other folders
		l.out.entrusted = l.held(l.before, l.look)
	}
	l.out.around.warnings = l.out.entrusted.Warnings
	if err == nil {
		l.readProjects()
		l.compile()
		err = l.failed()
	}
	l.out.said, l.out.Warnings = l.out.Warnings, slices.Concat(l.out.Warnings, l.out.around.warnings)
	return l.out, err
}

type loader struct {
	Options
	out      *Config
	look     *links.Look
	docs     []*document
	problems []Problem
	roots    []policy.Root
	trying   bool  // examples that fail are told, not refused
	unusable error // the first folder of the command line that can't be served
}

// failed returns the fault of what was found so far, across files.
func (l *loader) failed() error {
	all := slices.Clone(l.problems)
	for _, d := range l.docs {
		all = append(all, d.problems...)
	}
	return invalid(all)
}

func (l *loader) readTrusted() {
	system := SystemFile
	if l.SystemFile != "" {
		system = l.SystemFile
	}
	l.read(system, false)
	l.out.UserFile = UserFile(l.Env)
	if l.PolicyFile != "" {
		l.out.UserFile = l.abs(l.WorkDir, l.PolicyFile)
	}
	if l.out.UserFile != "" {
		l.read(l.out.UserFile, l.PolicyFile != "")
	}
}

// UserFile is where the user's own policy lies, made or not: "" where neither
// XDG_CONFIG_HOME nor HOME says so.
func UserFile(getenv func(string) string) string {
	if dir := getenv("XDG_CONFIG_HOME"); filepath.IsAbs(dir) {
		return filepath.Join(dir, "postern", "policy.yaml")
	}
	if home := getenv("HOME"); filepath.IsAbs(home) {
		return filepath.Join(home, ".config", "postern", "policy.yaml")
	}
	return ""
}

func (l *loader) readProjects() {
	for _, r := range l.out.Roots {
		if doc := l.take(l.project(r)); doc != nil {
			doc.layer.Root = r.Name
		}
	}
}

// project is the policy file of a root: as it was, where another folder lies there now.
func (l *loader) project(r Root) (source, []Problem) {
	path := filepath.Join(r.Path, ".postern", "policy.yaml")
	if _, moved := l.dirs(r.Path); moved && l.before != nil {
		if i := slices.IndexFunc(l.before.sources, func(s source) bool { return s.path == path }); i >= 0 {
			return l.before.sources[i], nil
		}
	}
	s := source{path: path, root: r.Path}
	if s.mount = l.look.Follow(path).Mount; s.mount != "" {
		return s, s.away()
	}
	return l.open(s, false)
}

func (l *loader) read(path string, needed bool) {
	l.take(l.open(source{path: path}, needed))
}

// take reads what a file says, nil for nothing.
func (l *loader) take(s source, problems []Problem) *document {
	l.problems = append(l.problems, problems...)
	l.out.sources = append(l.out.sources, s)
	if s.info == nil || len(problems) > 0 {
		return nil
	}
	if s.doubt != "" {
		l.out.Warnings = append(l.out.Warnings, s.path+": "+s.doubt)
	}
	doc := read(s.path, s.src, s.root != "")
	l.docs = append(l.docs, doc)
	l.out.Files = append(l.out.Files, s.path)
	return doc
}

// compile checks what needs the roots, then compiles the layers one after
// another: a file's examples are about the layers up to its own, so that a
// project that tightens doesn't break those of its user.
func (l *loader) compile() {
	for _, d := range l.docs {
		for _, check := range d.later {
			check(l.roots)
		}
	}
	if l.failed() != nil {
		return
	}
	settings := merge{Settings: defaults(), stated: map[string]bool{}}
	fallback := policy.Default()
	var known *finder
	if l.before != nil {
		known = l.before.finder
	}
	l.surround(l.out, l.roots, known, l.look)
	c := policy.Config{Roots: l.roots, Fallback: &fallback, Protected: l.out.around.protected, Links: l.out.around.links}
	var examples []Example
	var lifts []int
	for _, d := range l.docs {
		c.Layers, c.Lift = append(c.Layers, d.layer), append(c.Lift, d.lift...)
		lifts = append(lifts, len(c.Lift))
		if len(d.examples) > 0 {
			d.try(l.compiled(c), l.roots, !l.trying)
			examples = append(examples, d.stated...)
		}
		for _, apply := range d.settings {
			apply(&settings)
		}
	}
	l.tell()
	l.out.Policy = l.compiled(c)
	l.out.parts = Parts{Config: c, Files: l.out.Files, Lifting: l.lifting(), Lifts: lifts, Examples: examples}
	l.out.Settings = settings.Settings
}

// lifting are the files that have allow_sensitive.
func (l *loader) lifting() (files []string) {
	for _, d := range l.docs {
		if d.lift != nil {
			files = append(files, d.name)
		}
	}
	return files
}

// tell says who has rules of their own, and what a person states in vain.
func (l *loader) tell() {
	agents := map[string]bool{}
	for _, d := range l.docs {
		for name := range d.layer.Agents {
			agents[name] = true
		}
		if len(d.idle) > 0 {
			l.out.Idle = append(l.out.Idle, Idle{d.name, slices.Clone(d.idle)})
		}
		if len(d.idle) > 0 && !d.project {
			l.out.Warnings = append(l.out.Warnings, d.name+": set but without effect in this release: "+strings.Join(d.idle, ", "))
		}
	}
	l.out.Agents = slices.Sorted(maps.Keys(agents))
}

// compiled: patterns are checked by now, so an error here is one of ours.
func (l *loader) compiled(c policy.Config) *policy.Policy {
	p, err := policy.Compile(c)
	if err != nil {
		l.problems = append(l.problems, Problem{Pos: core.Position{File: "policy"}, Message: fault.As(err).Error()})
	}
	return p
}

func (l *loader) abs(base, path string) string {
	if filepath.IsAbs(path) {
		return filepath.Clean(path)
	}
	return filepath.Join(base, path)
}
