// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/postern-gate/postern/core/fault"
	"github.com/postern-gate/postern/core/textsafe"
	"github.com/postern-gate/postern/internal/state/audit"
	"github.com/postern-gate/postern/internal/state/audit/records"
)

// logFilter are the flags that choose among records.
type logFilter struct {
	agent, op, resource, decision, event, code, corr, session, source, since, until string
}

func (f *logFilter) flags(cmd *cobra.Command) {
	textFlag(cmd, &f.agent, "agent", "NAME", "of this agent")
	textFlag(cmd, &f.op, "op", "ACTION", "of this action, as fs.write or 'fs.*'; log: about the log itself")
	textFlag(cmd, &f.resource, "resource", "PATTERN", "about what the pattern names, and all beneath")
	textFlag(cmd, &f.decision, "decision", "DECISION", "what the policy said: allow, ask, deny, or none", "allow", "ask", "deny", "none")
	textFlag(cmd, &f.event, "event", "EVENT", "one of docs/events.md, as refusal", eventNames()...)
	textFlag(cmd, &f.code, "code", "CODE", "refused or failed with it, as policy.denied or 'path.*'")
	textFlag(cmd, &f.corr, "corr", "ID", "of one call: its decision, intent and outcome, in full")
	textFlag(cmd, &f.session, "session", "ID", "of one session of a client")
	textFlag(cmd, &f.source, "source", "DOOR", "that came in by this door, as serve")
	textFlag(cmd, &f.since, "since", "TIME", "not before that time")
	textFlag(cmd, &f.until, "until", "TIME", "before that time")
}

func eventNames() []string {
	var names []string
	for _, e := range audit.Events() {
		names = append(names, string(e.Event))
	}
	return names
}

// logOps are the values of op.
func logOps() []string { return append(actionNames(), "log") }

// codeNames are the codes that a record may have.
func codeNames() []string {
	var names []string
	for _, c := range fault.Codes() {
		names = append(names, c.String())
	}
	return names
}

// parse reads the flags. A name that no record can have is an error rather
// than an empty answer.
func (f *logFilter) parse(verb string, now time.Time) (records.Filter, error) {
	out := records.Filter{
		Agent: f.agent, Decision: f.decision, Event: f.event, Corr: f.corr, Session: f.session, Source: f.source,
		Op: f.op, Code: f.code,
	}
	if !begins(logOps(), f.op) {
		return out, usage(verb, "--op: there is no action "+textsafe.Name(f.op), "one of "+strings.Join(logOps(), " "))
	}
	if !begins(codeNames(), f.code) {
		return out, usage(verb, "--code: there is no code "+textsafe.Name(f.code), "docs/errors.md lists them")
	}
	var err error
	if f.resource != "" {
		if out.Resource, err = records.ParseResource(f.resource); err != nil {
			return out, usage(verb, "--resource "+textsafe.Name(f.resource)+": "+fault.As(err).Because(), "")
		}
	}
	for flag, at := range map[string]struct {
		given string
		time  *time.Time
	}{"--since": {f.since, &out.Since}, "--until": {f.until, &out.Until}} {
		if at.given == "" {
			continue
		}
		if *at.time, err = records.ParseTime(at.given, now); err != nil {
			return out, usage(verb, flag+" "+textsafe.Name(at.given)+": "+err.Error(), "")
		}
	}
	return out, nil
}

// begins reports whether one of the names is s, or begins as s does before its
// star. Nothing given fits.
func begins(names []string, s string) bool {
	if s == "" {
		return true
	}
	start, open := strings.CutSuffix(s, "*")
	for _, name := range names {
		if name == s || open && strings.HasPrefix(name, start) {
			return true
		}
	}
	return false
}
