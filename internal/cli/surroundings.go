// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"os/exec"
	"runtime"
	"strconv"
	"strings"

	"github.com/postern-gate/postern/core"
	"github.com/postern-gate/postern/core/fault"
	"github.com/postern-gate/postern/core/textsafe"
	"github.com/postern-gate/postern/internal/attach"
	"github.com/postern-gate/postern/internal/config"
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
		Weaker: weaker(cfg), Silent: append([]config.Idle{}, cfg.Idle...),
	}
	s.clients(attach.World{
		Home: homeOf(env), Project: w.folders()[0], GOOS: runtime.GOOS, Getenv: env.Getenv, LookPath: exec.LookPath,
	})
	for _, e := range endpoint.Open(w.stateDir).List(ctx) {
		if !e.Held {
			continue
		}
		s.Endpoints = append(s.Endpoints, servedJSON{"http://" + e.Address + mcpPath, e.Folders, e.PID, e.Exposed})
		if e.Exposed {
			s.Weaker = append(s.Weaker, "other machines can reach http://"+e.Address+mcpPath+", and nothing is encrypted")
		}
	}
	return s
}

func (s *surroundings) clients(world attach.World) {
	attached, errs := attach.Attached(world)
	for _, err := range errs {
		s.Unread = append(s.Unread, fault.As(err).Error())
	}
	seen := map[string]bool{}
	for _, a := range attached {
		seen[a.Client.ID] = seen[a.Client.ID] || !a.Foreign
		agent := agentJSON{
			a.Client.ID, a.Client.Name, a.File, a.Entry, a.Command, append([]string{}, a.Args...), a.InProject, a.Foreign,
			core.LevelSDK.String(), a.Client.Own + ", unless they are turned off there (docs/clients.md)",
		}
		if a.Foreign {
			agent.Level, agent.Escapes = core.LevelNone.String(), "everything: the entry has our name and runs another program"
		}
		s.Agents = append(s.Agents, agent)
	}
	for _, f := range attach.Find(world) {
		if !seen[f.Client.ID] {
			s.Others = append(s.Others, clientJSON{f.Client.ID, f.Client.Name, f.Why})
		}
	}
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
	if why := walks(); why != "" {
		out = append(out, why)
	}
	return out
}

func (s *surroundings) print(line func(what, text string)) {
	for _, a := range s.Agents {
		args := ""
		for _, arg := range a.Args {
			args += " " + textsafe.Name(arg)
		}
		text := a.Name + ", " + textsafe.Name(a.Entry) + " in " + textsafe.Name(a.File) + ": " + textsafe.Name(a.Command) + args
		line("agent", text+" ("+a.Level+")")
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
