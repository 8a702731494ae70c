// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"time"

	"github.com/spf13/cobra"

	"github.com/postern-gate/postern/core/fault"
	"github.com/postern-gate/postern/core/textsafe"
	"github.com/postern-gate/postern/enforce"
	"github.com/postern-gate/postern/internal/config"
	"github.com/postern-gate/postern/internal/state/audit"
	"github.com/postern-gate/postern/internal/state/audit/segment"
	"github.com/postern-gate/postern/internal/state/grant"
	"github.com/postern-gate/postern/internal/state/regular"
)

type rootJSON struct {
	Name    string `json:"name"`
	Path    string `json:"path"`
	Access  string `json:"access"`
	Present bool   `json:"present"`
}

type statusJSON struct {
	document
	Roots    []rootJSON `json:"roots"`
	Files    []string   `json:"policy_files"`
	Policy   string     `json:"policy"`
	State    string     `json:"state"`
	Made     bool       `json:"state_made"`
	Log      logJSON    `json:"log"`
	Envelope string     `json:"envelope"`
	Undo     bool       `json:"undo"`
	Undone   string     `json:"undo_bounds"`
	Approver bool       `json:"approver"`
	Yeses    int        `json:"approvals"` // in force
	Paused   []string   `json:"paused"`    // agents that a person has to resume
	Levels   []string   `json:"levels"`
	Gaps     []string   `json:"gaps"`
	Warnings []string   `json:"warnings"`
	surroundings
	beyond
}

// logJSON is what can be seen of the log without changing anything.
type logJSON struct {
	Segments   int        `json:"segments"`
	Bytes      int64      `json:"bytes"`
	Signed     int64      `json:"signed_records"`
	LastSigned *time.Time `json:"last_signed"` // null for a log that isn't signed yet
	Code       string     `json:"code"`        // why changes are refused, "" where nothing is seen
	Problem    string     `json:"problem"`
}

func newStatus(env *Env) *cobra.Command {
	var o options
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "status [flags] [DIR...]",
		Short: "show roots, policy, and what is enforced",
		Example: `  postern status
  postern status --json ~/notes`,
		Long: `what serve would guard from here: the roots, the policy files in force, the
state directory, and how each part is enforced. what is weaker or missing is
named. without DIR the roots are those that the policy names, or this folder

of a policy that is not valid it shows what it can and ends with exit 5, with
--json with the error alone; a server that already runs keeps the last good one`,
		DisableFlagsInUseLine: true,
		RunE:                  func(cmd *cobra.Command, dirs []string) error { return o.status(cmd.Context(), env, dirs, asJSON) },
		ValidArgsFunction: func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
			return nil, cobra.ShellCompDirectiveFilterDirs
		},
	}
	policyFlag(cmd, &o)
	jsonFlag(cmd, &asJSON)
	return cmd
}

func (o *options) status(ctx context.Context, env *Env, dirs []string, asJSON bool) error {
	load := o.load
	if len(dirs) == 0 {
		load = func(env *Env, _ []string) (*workspace, error) { return o.loadHere(env) }
	}
	w, err := load(env, dirs)
	if err == nil {
		err = w.open(env)
	}
	if err == nil {
		err = enforce.CheckState(w.stateDir)
	}
	if fault.CodeOf(err) == fault.ConfigInvalid && w == nil && !asJSON {
		statusUnread(ctx, env, dirs, err)
	}
	if err != nil {
		return err
	}
	s := w.status(ctx, env)
	s.beyond = lookBeyond(ctx, env, config.Options{WorkDir: w.folders()[0], StateDir: w.stateDir, Env: env.Getenv, Binary: w.self}, w.live.Current())
	return answer(env.Out, asJSON, s, s.print)
}

// status is what is guarded now, by roots that are open.
func (w *workspace) status(ctx context.Context, env *Env) statusJSON {
	cfg := w.live.Current()
	_, stateErr := os.Stat(w.stateDir)
	grants := grant.Open(w.stateDir, grant.Options{})
	s := statusJSON{
		document: newDocument("status"), Roots: []rootJSON{}, Files: append([]string{}, cfg.Files...),
		Policy: cfg.Policy.Version(), State: w.stateDir, Made: stateErr == nil, Log: logOf(w.stateDir), Envelope: "on", Undo: true,
		Warnings: append([]string{}, cfg.Warnings...), Yeses: len(grants.Grants()), Paused: append([]string{}, grants.PausedAgents()...),
		Levels: []string{"sdk: files through postern serve, by handle"},
		Gaps: []string{
			"programs that don't go through postern are not confined",
			"an agent's own shell can't be told from a person's: who can run postern approve can say yes",
			"what programs change that don't go through postern can't be undone, nor what is larger than the bounds of undo",
			"against a program of this user the audit log shows accidents, not forgery, unless an anchor is kept elsewhere: postern log anchor",
		},
	}
	if runtime.GOOS != "linux" {
		s.Gaps = append(s.Gaps, notWatched)
	}
	if !cfg.Settings.Envelope {
		s.Envelope = "off"
	}
	u := cfg.Settings.Undo
	s.Undone = fmt.Sprintf("on: files of up to %s, %s in all, for %s", sizeText(u.PerFile), sizeText(u.Total), ageText(u.Keep))
	s.surroundings = w.surroundings(ctx, env)
	for i, r := range w.Roots() {
		access := "write"
		if cfg.Roots[i].ReadOnly {
			access = "read"
		}
		s.Roots = append(s.Roots, rootJSON{r.Name(), r.Given(), access, !r.Missing()})
	}
	s.Approver = true
	return s
}

func (s statusJSON) print(w io.Writer) {
	line := func(what, text string) { fmt.Fprintf(w, "%-9s %s\n", what, text) }
	for _, r := range s.Roots {
		missing := ""
		if !r.Present {
			missing = ", missing"
		}
		line("root", r.Name+":// "+textsafe.Name(r.Path)+" ("+r.Access+missing+")")
	}
	if len(s.Files) == 0 {
		line("policy", "the shipped default, no file")
	}
	for _, f := range s.Files {
		line("policy", textsafe.Name(f))
	}
	line("rules", "hash "+s.Policy)
	state := textsafe.Name(s.State)
	if !s.Made {
		state += " (not made yet)"
	}
	line("state", state)
	line("log", s.Log.String())
	line("envelope", s.Envelope)
	line("undo", s.Undone)
	if s.Yeses > 0 {
		line("approved", counted(s.Yeses, "approval")+" in force: postern grants")
	}
	for _, a := range s.Paused {
		line("paused", agentName(a)+"; "+plain(grant.ResumeCommand(a)))
	}
	for _, l := range s.Levels {
		line("enforced", l)
	}
	for _, g := range s.Gaps {
		line("not", g)
	}
	s.surroundings.print(line)
	for _, l := range s.lines() {
		line("warning", l)
	}
}

// logOf looks at the ends of the log as a start does before it answers, and
// changes nothing: not even a missing one is made. What lies between them is
// not read, since that takes time: doctor and log verify do.
func logOf(stateDir string) (l logJSON) {
	size, err := l.measure(stateDir)
	if err != nil {
		err = &fault.Error{Code: fault.AuditUnwritable, Err: err}
	}
	if look := audit.Look(stateDir); look != nil {
		err = look
	}
	if f := fault.As(err); f != nil {
		l.Code, l.Problem = f.Code.String(), f.Because()
	}
	l.Bytes = size
	return l
}

func (l *logJSON) measure(stateDir string) (size int64, err error) {
	signed, err := audit.LastSigned(stateDir)
	if err != nil {
		return 0, err
	}
	if signed != nil {
		l.Signed = signed.Size
		if info, err := os.Stat(filepath.Join(stateDir, "checkpoint")); err == nil {
			at := info.ModTime().UTC()
			l.LastSigned = &at
		}
	}
	dir := filepath.Join(stateDir, "audit")
	segments, err := segment.List(dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return 0, err
	}
	l.Segments = len(segments)
	for i, s := range segments {
		info, err := os.Stat(s.Path)
		if err != nil {
			return size, err
		}
		size += info.Size()
		if i == len(segments)-1 {
			f, err := regular.OpenFile(s.Path, os.O_WRONLY|os.O_APPEND, 0)
			if err != nil {
				return size, err
			}
			_ = f.Close() // nothing was written
		}
	}
	return size, nil
}

// String is the line of status.
func (l logJSON) String() string {
	if l.Code != "" {
		return l.Code + ": " + l.Problem + "; postern log verify tells more"
	}
	if l.Segments == 0 {
		return "nothing is recorded yet"
	}
	text := sizeText(l.Bytes)
	if l.Segments > 1 {
		text += fmt.Sprintf(" in %d segments", l.Segments)
	}
	if l.LastSigned == nil {
		return text + ", not signed yet"
	}
	age := max(0, time.Since(*l.LastSigned)).Round(time.Second)
	return fmt.Sprintf("%s, %d records signed %s ago, not looked through: postern log verify", text, l.Signed, age)
}
