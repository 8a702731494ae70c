// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"github.com/postern-gate/postern/core"
	"github.com/postern-gate/postern/core/fault"
	"github.com/postern-gate/postern/core/textsafe"
	"github.com/postern-gate/postern/internal/attach"
	"github.com/postern-gate/postern/internal/config"
	"github.com/postern-gate/postern/internal/state/audit/records"
)

func newUp(env *Env) *cobra.Command {
	o := serveOptions{http: automatic, up: true}
	cmd := &cobra.Command{
		Use:   "up [flags] [DIR]",
		Short: "guard a folder, say how to attach, and show what is decided",
		Example: `  postern up .
  postern up --read-only ~/notes`,
		Long: `first which clients are attached here, and of each other one the entry to
paste, by which it starts postern by itself, on stdio. then an endpoint that any
number of clients reach on HTTP, whose port and token stay the same for the
folder. then a line for each decision, as it is recorded: of every postern of
this user, so of those too that clients start. a refusal ends with its id, for
postern explain

on a terminal it also serves the page on which you see, answer and undo, and
prints its link, which works once and for a minute; postern page gives another.
questions are shown here too, and lines wait meanwhile

an edit of the policy that is not valid is said here, and when it is mended

without DIR it is this folder. nothing is written into it; postern init attaches
clients for good. ctrl-c ends it

what other programs change beneath the folder is counted, for postern undo list,
and neither shown nor decided

who calls on HTTP is recorded by the name given with --agent; the entries have
their clients' own

with --json the endpoint is the first line, then each record is one`,
		DisableFlagsInUseLine: true,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) > 1 {
				return exactly("DIR")(cmd, args)
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			return o.serve(cmd.Context(), o.aside(env), append(args, ".")[:1])
		},
		ValidArgsFunction: func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
			return nil, cobra.ShellCompDirectiveFilterDirs
		},
	}
	agentFlag(cmd, &o.options)
	policyFlag(cmd, &o.options)
	cmd.Flags().BoolVar(&o.readOnly, "read-only", false, "nothing can be changed, and no tool that would is offered")
	jsonFlag(cmd, &o.json)
	return cmd
}

// common are the clients that up has entries for.
func common() []string {
	return []string{"claude-code", "claude-desktop", "cursor", "vscode", "codex", "gemini-cli"}
}

type entryJSON struct {
	Client string `json:"client"`
	Name   string `json:"name"`
	File   string `json:"file"`
	Text   string `json:"text"`
	Shell  string `json:"shell,omitempty"`
}

type upJSON struct {
	endpointJSON
	Entries   []entryJSON `json:"entries"`
	Installed bool        `json:"installed"` // the program that the entries name is there
}

// attachable are the entries, and the program that they name: this one, or
// where it goes once it is installed.
func (o *serveOptions) attachable(env *Env, w *workspace) (entries []entryJSON, program string, installed error) {
	program = w.self
	if installed = attach.Installed(program); installed != nil {
		program = installedAt(env)
	}
	folders := w.folders()
	world := attach.World{Home: homeOf(env), Project: folders[0], GOOS: runtime.GOOS, Getenv: env.Getenv, LookPath: exec.LookPath}
	server := attach.Server{Command: program, Args: folders}
	if o.readOnly {
		server.Args = append([]string{readOnlyFlag}, server.Args...)
	}
	if o.policy != "" {
		server.Args = append([]string{"--policy", w.live.Current().UserFile}, server.Args...)
	}
	for _, id := range common() {
		if c, ok := attach.ByID(id); ok {
			s := c.Paste(world, server)
			entries = append(entries, entryJSON{c.ID, c.Name, s.Where, s.Text, s.Shell})
		}
	}
	return entries, program, installed
}

// installedAt is where go install puts the program.
func installedAt(env *Env) string {
	name := "postern"
	if runtime.GOOS == "windows" {
		name += ".exe"
	}
	switch {
	case env.Getenv("GOBIN") != "":
		return filepath.Join(env.Getenv("GOBIN"), name)
	case env.Getenv("GOPATH") != "":
		return filepath.Join(filepath.SplitList(env.Getenv("GOPATH"))[0], "bin", name)
	}
	return filepath.Join(homeOf(env), "go", "bin", name)
}

// attachedHere are the clients whose entry guards this folder, by id, and their
// names for a person, each once. A file of the user has entries of any folder.
func attachedHere(ctx context.Context, env *Env, w *workspace) (ids, names []string) {
	folder := w.folders()[0]
	for _, a := range w.surroundings(ctx, env).Agents {
		here := a.Level == core.LevelSDK.String() && (a.InProject || slices.Contains(a.Args, folder))
		if here && !slices.Contains(ids, a.Client) {
			ids, names = append(ids, a.Client), append(names, a.Name)
		}
	}
	return ids, names
}

// entries prints how each client is attached that isn't yet.
func (o *serveOptions) entries(ctx context.Context, env *Env, w *workspace) {
	ids, names := attachedHere(ctx, env, w)
	if len(names) > 0 {
		fmt.Fprintf(env.Out, "attached here: %s\n", strings.Join(names, ", "))
	}
	entries, program, installed := o.attachable(env, w)
	entries = slices.DeleteFunc(entries, func(e entryJSON) bool { return slices.Contains(ids, e.Client) })
	if len(w.live.Current().Files) == 0 {
		fmt.Fprintln(env.Err, "no policy file is in force here, the shipped default is; postern init writes one and attaches clients for good")
	}
	fmt.Fprintln(env.Out, "attach a client by its entry, which starts postern by itself; to have it done: postern init")
	if f := fault.As(installed); f != nil {
		fmt.Fprintf(env.Out, "install it first: %s\n", f.Next())
		fmt.Fprintf(env.Out, "the entries name the place where that puts it: %s\n", textsafe.Name(program))
	}
	for _, e := range entries {
		if e.Shell != "" {
			fmt.Fprintf(env.Out, "%s, in a shell:\n  %s\n", e.Name, plain(e.Shell))
			continue
		}
		fmt.Fprintf(env.Out, "%s, in %s:\n%s", e.Name, textsafe.Name(e.File), textsafe.Block(e.Text).String())
	}
	fmt.Fprintln(env.Out, "or on HTTP, while this runs:")
}

// upEndpoint is the first line of --json.
func (o *serveOptions) upEndpoint(env *Env, w *workspace, e endpointJSON) error {
	entries, _, installed := o.attachable(env, w)
	e.document = newDocument("up")
	return encode(env.Out, upJSON{e, entries, installed == nil}, "")
}

// lookEvery is how often up has the policy looked at, which else only calls do.
const lookEvery = 2 * time.Second

// followPolicy has the policy looked at until ctx ends, so that what is wrong with an edit,
// and that it is mended, is said without a call.
func followPolicy(ctx context.Context, live *config.Live) {
	tick := time.NewTicker(lookEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			live.Current()
		}
	}
}

// watch shows what is recorded from now on and what is wrong with the policy, until
// the returned function is called. Whoever reads too slowly is waited for by nobody
// but this.
func (o *serveOptions) watch(ctx context.Context, env *Env, w *workspace) (stop func(), err error) {
	dir := filepath.Join(w.stateDir, "audit")
	from, _, err := records.Newest(ctx, dir, &records.Filter{}, 0)
	if err != nil {
		return nil, readError(ctx, err)
	}
	print := (&logPrinter{here: w.folders(), home: homeOf(env)}).text
	if o.json {
		print = printJSON
	}
	ctx, cancel := context.WithCancel(ctx)
	ended := make(chan struct{})
	var both sync.WaitGroup
	both.Go(func() { followPolicy(ctx, w.live) })
	both.Go(func() {
		r := records.NewReader(dir, from)
		defer r.Close()
		err := r.Follow(ctx, func(e records.Entry) error {
			if !o.shownByUp(&e) {
				return nil
			}
			return print(env.Out, &e)
		})
		if err != nil && !errors.Is(err, io.ErrClosedPipe) && !errors.Is(err, os.ErrClosed) {
			fmt.Fprintln(env.Err, "decisions are not shown any more; postern log --follow does too")
		}
	})
	go func() { both.Wait(); close(ended) }()
	return func() {
		cancel()
		select {
		case <-ended:
		case <-time.After(lastWords): // somebody stopped reading
		}
	}, nil
}
