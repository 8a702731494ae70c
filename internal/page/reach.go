// SPDX-License-Identifier: Apache-2.0

package page

import "net/http"

// Reach is what is guarded now, and how: what postern status tells.
type Reach struct {
	Roots  []Root
	Agents []Agent
	// Known are names of agents that the policy or the clients here name.
	Known []string
	// Others are clients that are here and not attached.
	Others []string
	// Files are the policy files in force, Version is that of the policy.
	Files   []string
	Version string
	State   string // the state directory
	Log     string // one line about the log
	Broken  bool   // of the log: changes are refused
	Undo    string
	// Enforced, Not, Weaker and Warnings are sentences.
	Enforced, Not, Weaker, Warnings []string
}

// Root is a folder that is guarded.
type Root struct {
	Name, Path, Access string
	Present            bool
}

// Agent is a client or an endpoint through which agents come.
type Agent struct {
	Name, Where, Serves, Level, Escapes string
}

func (p *Page) reach(r *http.Request, _ *session) (*content, error) {
	return &content{Name: "reach", Title: "reach", Data: p.o.Reach(r.Context())}, nil
}
