// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"strings"

	"github.com/spf13/cobra"

	"github.com/postern-gate/postern/core"
	"github.com/postern-gate/postern/core/fault"
	"github.com/postern-gate/postern/enforce"
	"github.com/postern-gate/postern/internal/listen"
	"github.com/postern-gate/postern/internal/page"
)

func newPage(env *Env) *cobra.Command {
	var o options
	cmd := &cobra.Command{
		Use:   "page [flags] [DIR...]",
		Short: "answer, look and undo in a browser",
		Example: `  postern page
  postern page ~/notes`,
		Long: `serves the local page of this user's postern, and prints the link that opens it:
questions of agents to answer, what was decided and done, what can be undone,
approvals to take back, agents to pause, and what is guarded. it is about every
postern of this user; DIR is only for what is shown as guarded

the link works once, and for a minute; enter prints another. it is printed on a
terminal only. while the page is open in a browser, calls that ask wait for it.
ctrl-c ends it`,
		DisableFlagsInUseLine: true,
		RunE:                  func(cmd *cobra.Command, dirs []string) error { return o.page(cmd.Context(), env, dirs) },
		ValidArgsFunction: func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
			return nil, cobra.ShellCompDirectiveFilterDirs
		},
	}
	policyFlag(cmd, &o)
	return cmd
}

// page serves the page until it is interrupted.
func (o *options) page(ctx context.Context, env *Env, dirs []string) (err error) {
	if err := aPerson(env, "page"); err != nil {
		return err
	}
	if !onTerminal(env.Err) {
		return &fault.Error{
			Code: fault.PolicyAsk, Op: "page", Rule: "its link is for a person, and there is no terminal to print it on",
			Hint: "run it on a terminal, with stderr left alone",
		}
	}
	load := o.load
	if len(dirs) == 0 {
		load = func(env *Env, _ []string) (*workspace, error) { return o.loadHere(env) }
	}
	w, err := load(env, dirs)
	if err != nil {
		return err
	}
	state, err := enforce.OpenState(w.stateDir, stateOptions(w.live.Current())) //nolint:contextcheck // an older state directory is brought up to date whole
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, state.Close()) }() //nolint:contextcheck // an interrupt does not keep it from the disk
	if err := w.open(env); err != nil {
		return err
	}
	defer lookAfter(ctx, env, state)()
	p, err := o.openPage(ctx, env, w, state)
	if err != nil {
		return err
	}
	defer p.close(ctx)
	p.links(env)
	select {
	case err := <-p.served:
		return &fault.Error{Code: fault.IOFailed, Op: "page", Rule: "the listener broke", Hint: "start it again", Err: err}
	case <-ctx.Done():
		return nil
	}
}

// servedPage is a page and the listener that it is on.
type servedPage struct {
	page   *page.Page
	l      *listen.Server
	served chan error
}

// openPage serves the page at a port that is free.
func (o *options) openPage(ctx context.Context, env *Env, w *workspace, state *enforce.State) (*servedPage, error) {
	if err := page.CloseMemory(); err != nil {
		fmt.Fprintln(env.Err, "warning: other programs of this user may be able to read the page's secrets from memory")
	}
	p, err := page.New(page.Options{ //nolint:contextcheck // the page has no context but that of each request
		State: state, Grants: state.Grants(page.Approver), Log: (&logState{dir: w.stateDir}).audit(),
		Person:  func() enforce.Person { return o.person(env, w, page.Approver) },
		Reach:   func(ctx context.Context) page.Reach { return w.reach(ctx, env) },
		Explain: func(ctx context.Context, id string) (string, error) { return o.explainedText(ctx, env, w, id) },
		Problem: func() error {
			w.live.Current() // which looks whether a file changed
			return w.live.Problem()
		},
		Refused: func(f *fault.Error) { o.refusedByPage(w, state, f) },
	})
	if err != nil {
		return nil, err
	}
	l, err := listen.Open(ctx, netip.MustParseAddrPort("127.0.0.1:0"), false, slog.New(slog.NewTextHandler(env.Err, nil)))
	if err != nil {
		return nil, &fault.Error{Code: fault.IOFailed, Op: "page", Rule: "it can't listen at 127.0.0.1", Err: errors.Join(err, p.Close())}
	}
	s := &servedPage{p, l, make(chan error, 1)}
	rules := p.Rules(l.Address())
	go func() { s.served <- l.Serve(p.Handler(), rules) }()
	return s, nil
}

func (s *servedPage) close(ctx context.Context) {
	_ = s.page.Close() // its sessions end with the process in any case
	drain, stop := context.WithTimeout(context.WithoutCancel(ctx), lastWords)
	defer stop()
	_ = s.l.Close(drain)
}

// say prints a new link.
func (s *servedPage) say(env *Env) {
	fmt.Fprintf(env.Err, "the page, in the next minute and once: %s\n", s.page.Link())
}

// links prints a link, and another one for each line that a person enters.
func (s *servedPage) links(env *Env) {
	s.say(env)
	fmt.Fprintln(env.Err, "what asks waits for you while the page is open in a browser; when nobody looks it is refused at once")
	if !terminal(env.In) {
		return
	}
	fmt.Fprintln(env.Err, "enter prints another link; ctrl-c ends it")
	go func() {
		for lines := bufio.NewScanner(env.In); lines.Scan(); {
			s.say(env)
		}
	}()
}

// refusedByPage records what the page refused. Nothing depends on it: nothing
// happened.
func (o *options) refusedByPage(w *workspace, state *enforce.State, f *fault.Error) {
	parts := o.gate(w, state, state, nil)
	parts.Subject = core.Subject{Source: page.Approver, Level: core.LevelSDK}
	if gate, err := enforce.New(parts); err == nil {
		_ = gate.Refuse(core.ToolCall, core.Resource{Name: f.Resource}, f)
	}
}

// reach is what status knows, for the page.
func (w *workspace) reach(ctx context.Context, env *Env) page.Reach {
	s := w.status(ctx, env)
	r := page.Reach{
		Files: s.Files, Version: s.Policy, State: s.State, Log: s.Log.String(), Broken: s.Log.Code != "", Undo: s.Undone,
		Enforced: s.Levels, Not: s.Gaps, Weaker: s.Weaker, Warnings: s.Warnings, Known: append([]string{}, w.live.Current().Agents...),
	}
	if s.Envelope != "on" {
		r.Warnings = append(r.Warnings, "the envelope is off")
	}
	for _, each := range s.Roots {
		r.Roots = append(r.Roots, page.Root(each))
	}
	for _, a := range s.Agents {
		r.Known = append(r.Known, a.Client)
		r.Agents = append(r.Agents, page.Agent{Name: a.Name, Where: a.Entry + " in " + a.File, Serves: strings.Join(append([]string{a.Command}, a.Args...), " "), Level: a.Level, Escapes: a.Escapes})
	}
	for _, e := range s.Endpoints {
		r.Agents = append(r.Agents, page.Agent{Name: "any client with its token", Where: e.URL, Serves: strings.Join(e.Folders, ", "), Level: core.LevelSDK.String(), Escapes: "what doesn't go through it"})
	}
	for _, c := range s.Others {
		r.Others = append(r.Others, c.Name+" is here ("+c.Why+") and not attached: postern init")
	}
	r.Others = append(r.Others, s.Unread...)
	for _, i := range s.Silent {
		r.Warnings = append(r.Warnings, i.File+": without effect in this release: "+strings.Join(i.Keys, ", "))
	}
	return r
}
