// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"

	"github.com/postern-gate/postern/core"
	"github.com/postern-gate/postern/core/fault"
	"github.com/postern-gate/postern/core/textsafe"
	"github.com/postern-gate/postern/internal/attach"
	"github.com/postern-gate/postern/internal/config"
	"github.com/postern-gate/postern/internal/doctor"
	"github.com/postern-gate/postern/internal/state/endpoint"
)

// surroundings are who uses postern here and what is weaker or says nothing.
type surroundings struct {
	Agents    []agentJSON   `json:"agents"`       // clients that are attached
	Others    []clientJSON  `json:"not_attached"` // clients that seem to be here and aren't
	Unread    []string      `json:"clients_unread"`
	Endpoints []servedJSON  `json:"endpoints"` // that a process serves now
	Weaker    []string      `json:"weaker"`
	Silent    []config.Idle `json:"silent"` // keys of the policy without effect in this release
}

type agentJSON struct {
	Client    string   `json:"client"`
	Name      string   `json:"name"`
	File      string   `json:"file"`
	Entry     string   `json:"entry"`
	Command   string   `json:"command"`
	Args      []string `json:"args"`
	InProject bool     `json:"in_project"`
	Foreign   bool     `json:"foreign"` // it has our name and runs something else
	Missing   bool     `json:"missing"` // there is no such program
	Level     string   `json:"level"`   // of enforcement of what goes through it
	Escapes   string   `json:"escapes"` // what doesn't go through it
}

type clientJSON struct {
	Client string `json:"client"`
	Name   string `json:"name"`
	Why    string `json:"why"` // what was found of it
}

type servedJSON struct {
	URL     string   `json:"url"`
	Folders []string `json:"folders"`
	PID     int      `json:"pid"`
	Exposed bool     `json:"exposed"`
}

// surroundings looks at clients' files and kept endpoints, and changes nothing.
func (w *workspace) surroundings(ctx context.Context, env *Env) surroundings {
	cfg := w.live.Current()
	s := surroundings{
		Agents: []agentJSON{}, Others: []clientJSON{}, Unread: []string{}, Endpoints: []servedJSON{},
		Weaker: append(weaker(cfg), w.wide(env)...), Silent: append([]config.Idle{}, cfg.Idle...),
	}
	world := attach.World{
		Home: homeOf(env), Project: w.folders()[0], GOOS: runtime.GOOS, Getenv: env.Getenv, LookPath: exec.LookPath,
	}
	here, err := env.Getwd()
	if err != nil {
		here = world.Project
	}
	s.clients(doctor.NewTrust(w.self, w.stateDir, here, world, cfg.Roots))
	s.served(ctx, w.stateDir)
	return s
}

// served are the endpoints that a process serves now.
func (s *surroundings) served(ctx context.Context, stateDir string) {
	for _, e := range endpoint.Open(stateDir).List(ctx) {
		if !e.Held {
			continue
		}
		s.Endpoints = append(s.Endpoints, servedJSON{"http://" + e.Address + mcpPath, e.Folders, e.PID, e.Exposed})
		if e.Exposed {
			s.Weaker = append(s.Weaker, "other machines can reach http://"+e.Address+mcpPath+", and nothing is encrypted")
		}
	}
}

func (s *surroundings) clients(trust doctor.Trust) {
	world := trust.World
	attached, errs := attach.Attached(world)
	for _, err := range errs {
		s.Unread = append(s.Unread, fault.As(err).Error())
	}
	s.Weaker = append(s.Weaker, shared(attached)...)
	seen := map[string]bool{}
	for _, a := range attached {
		seen[a.Client.ID] = seen[a.Client.ID] || !a.Foreign
		level, escapes := guards(trust, a)
		agent := agentJSON{
			a.Client.ID, a.Client.Name, a.File, a.Entry, a.Command, append([]string{}, a.Args...), a.InProject, a.Foreign, missing(a.Command, world.LookPath),
			level, escapes,
		}
		s.Agents = append(s.Agents, agent)
	}
	for _, f := range attach.Find(world) {
		if !seen[f.Client.ID] {
			s.Others = append(s.Others, clientJSON{f.Client.ID, f.Client.Name, f.Why})
		}
	}
}

// unknown is the level of an entry that may start something else than a guard.
const unknown = "unknown"

// guards says at which level what goes through an entry is enforced, and what
// goes another way.
func guards(trust doctor.Trust, a attach.Attachment) (level, escapes string) {
	if a.Foreign {
		return core.LevelNone.String(), "everything: the entry has our name and runs another program"
	}
	switch program, err := trust.Program(a); {
	case errors.Is(err, fs.ErrInvalid):
		return unknown, "perhaps everything: the program is a relative path, which means another file in each folder"
	case err != nil:
		return unknown, "perhaps everything: the program is not found from here"
	case !trust.Of(a, program):
		return unknown, "perhaps everything: the program is neither this one nor one that init wrote there"
	}
	if doubt := doubted(trust.World.Project, a); doubt != "" {
		return unknown, "perhaps everything: " + doubt
	}
	return core.LevelSDK.String(), a.Client.Own + ", unless they are turned off there (" + attach.ClientsPage + ")"
}

// doubted says why an entry may guard nothing, and what to do; "" for no doubt.
func doubted(project string, a attach.Attachment) string {
	doubt, step := a.Doubt(project), a.Step()
	if doubt == "" {
		return ""
	}
	if step != "" {
		step = "; next: " + step
	}
	return "the entry " + doubt + step
}

// mostEntries and mostArgs are how many entries of a file, and of one how many
// arguments, are shown to a person: a file can come with a project.
const (
	mostEntries = 20
	mostArgs    = 20
)

// shared says which clients offer the servers of several folders to each of
// their sessions.
func shared(attached []attach.Attachment) (lines []string) {
	entries := map[string][]string{}
	var names []string
	for _, a := range attached {
		if !a.Everywhere || a.Foreign {
			continue
		}
		if entries[a.Client.Name] == nil {
			names = append(names, a.Client.Name)
		}
		entries[a.Client.Name] = append(entries[a.Client.Name], attach.Brief(a.Entry))
	}
	for _, name := range names {
		if all := entries[name]; len(all) > 1 {
			n := len(all)
			if n > mostEntries {
				all = append(all[:mostEntries:mostEntries], "...")
			}
			lines = append(lines, fmt.Sprintf("%s offers each of its sessions %d servers: one in a folder can use those of the others (%s)", name, n, strings.Join(all, ", ")))
		}
	}
	return lines
}

// missing reports whether a client could not start the command. A name of the
// network is not asked for: that would tell somebody who we are.
func missing(command string, look func(string) (string, error)) bool {
	if !filepath.IsAbs(command) {
		_, err := look(command)
		return err != nil
	}
	if runtime.GOOS == "windows" && strings.HasPrefix(filepath.ToSlash(command), "//") {
		return false
	}
	_, err := os.Stat(command)
	return errors.Is(err, fs.ErrNotExist)
}

// weaker are the settings and the parts of this machine that give up something.
func weaker(cfg *config.Config) []string {
	out := []string{}
	if !cfg.Settings.Envelope {
		out = append(out, "envelope is off: what comes from files is not marked as data for a model")
	}
	if !cfg.Settings.Audit.PlainPaths {
		out = append(out, "audit.paths is hashed: the log tells no name, and explain can't judge one again")
	}
	if parts := cfg.Parts(); len(parts.Lift) > 0 {
		slices.Sort(parts.Lift)
		out = append(out, "allow_sensitive lifts "+strings.Join(slices.Compact(parts.Lift), ", ")+" of the built-in lists, in "+strings.Join(parts.Lifting, ", "))
	}
	if why := walks(); why != "" {
		out = append(out, why)
	}
	return out
}

func (s *surroundings) print(line func(what, text string)) {
	shown := map[[2]string]int{}
	for _, a := range s.Agents {
		of := [2]string{a.Client, a.File}
		if shown[of]++; shown[of] > mostEntries {
			if shown[of] == mostEntries+1 { // a file with thousands hides none of another one
				line("agent", a.Name+", "+textsafe.Word(a.File)+": it has more entries: postern status --json")
			}
			continue
		}
		args := ""
		for i, arg := range a.Args {
			if i == mostArgs {
				args += " ..."
				break
			}
			args += " " + attach.Brief(arg)
		}
		text := a.Name + ", " + attach.Brief(a.Entry) + " in " + textsafe.Word(a.File) + ": " + attach.Brief(a.Command) + args
		level := a.Level
		if a.Missing {
			level += ", missing program"
		}
		line("agent", text+" ("+level+")")
		line("escapes", a.Escapes)
	}
	for _, c := range s.Others {
		line("client", c.Name+" is here ("+textsafe.Name(c.Why)+") and not attached: postern init")
	}
	for _, u := range s.Unread {
		line("client", plain(u))
	}
	for _, e := range s.Endpoints {
		line("http", plain(e.URL)+" serves "+plain(strings.Join(e.Folders, ", "))+", process "+strconv.Itoa(e.PID))
	}
	for _, w := range s.Weaker {
		line("weaker", plain(w))
	}
	for _, i := range s.Silent {
		line("silent", textsafe.Name(i.File)+": without effect in this release: "+plain(strings.Join(i.Keys, ", ")))
	}
}
