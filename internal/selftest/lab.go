// SPDX-License-Identifier: Apache-2.0

package selftest

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"time"

	"github.com/postern-gate/postern/core"
	"github.com/postern-gate/postern/core/pathguard"
	"github.com/postern-gate/postern/enforce"
	"github.com/postern-gate/postern/internal/config"
	"github.com/postern-gate/postern/internal/fsserver"
	"github.com/postern-gate/postern/internal/listen"
	"github.com/postern-gate/postern/internal/mcpserver"
	"github.com/postern-gate/postern/internal/state/audit/verify"
)

// hooks are where the tests of this package break the guard. Each is nil in
// the program.
type hooks struct {
	only     []string // the mechanisms that are attacked, nil for all
	decider  func(enforce.Decider) enforce.Decider
	recorder func(*enforce.State) enforce.Recorder
	server   func(fsserver.Options) fsserver.Options
	listener func(context.Context, http.Handler, listen.Rules) (address string, end func(), err error)
	verify   func(context.Context, verify.Options) (verify.Report, error)
}

// markerStart begins the text that must never come out. A search for it finds
// the rest.
const markerStart = "postern-selftest-marker-"

// lab is the folder in which everything happens:
//
//	root/      what is guarded
//	outside/   what must stay out of reach
//	home/      an empty HOME
//	state/     of the guard over root
type lab struct {
	ctx                context.Context //nolint:containedctx // of one run, as long as the lab is
	o                  Options
	box, root, outside string
	marker             string
	guards             []*guard
	n                  int
	main               *guard
}

func newLab(ctx context.Context, o Options) (*lab, error) {
	box, err := os.MkdirTemp(o.Dir, "postern-selftest-") // mode 0700
	if err != nil {
		return nil, err
	}
	var secret [12]byte
	_, _ = rand.Read(secret[:]) // never fails: crypto/rand ends the program instead
	l := &lab{ctx: ctx, o: o, box: box, marker: markerStart + hex.EncodeToString(secret[:])}
	if real, err := filepath.EvalSymlinks(box); err == nil {
		l.box = real
	}
	if l.box, err = filepath.Abs(l.box); err != nil {
		return nil, errors.Join(err, os.Remove(box))
	}
	l.root, l.outside = filepath.Join(l.box, "root"), filepath.Join(l.box, "outside")
	err = errors.Join(
		os.Mkdir(l.root, 0o700), os.Mkdir(l.outside, 0o700), os.Mkdir(filepath.Join(l.box, "home"), 0o700),
		os.WriteFile(filepath.Join(l.outside, "secret"), []byte(l.marker), 0o600),
	)
	if err == nil {
		l.main, err = l.guard(setting{dir: l.root}) //nolint:contextcheck // a state directory is made whole
	}
	if err != nil {
		return nil, errors.Join(err, l.close()) //nolint:contextcheck // it ends whole too
	}
	return l, nil
}

// close ends every guard and removes the folder, whatever modes it has by now.
func (l *lab) close() error {
	for _, g := range l.guards {
		g.close()
	}
	_ = filepath.WalkDir(l.box, func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.IsDir() {
			_ = os.Chmod(path, 0o700)
		}
		return nil
	})
	return os.RemoveAll(l.box)
}

// at is a path beneath the guarded folder.
func (l *lab) at(name string) string { return filepath.Join(l.root, filepath.FromSlash(name)) }

// put makes a file with its folders.
func (l *lab) put(path, content string) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	return os.WriteFile(path, []byte(content), 0o600)
}

// leaks reports whether an answer holds what must not come out.
func (l *lab) leaks(a answer) bool { return bytes.Contains(a.raw, []byte(l.marker)) }

// holds is the control of a read: the plain file system gives the content.
func holds(path, content string) error {
	got, err := os.ReadFile(path)
	if err == nil && string(got) != content {
		err = errors.New("the file holds something else")
	}
	return err
}

// setting says what a guard is made of.
type setting struct {
	dir      string
	policy   string // the user's policy, "" for the shipped default
	readOnly bool
	decider  enforce.Decider // in the place of the policy
	state    string          // name of the state directory, "" for one of its own
}

// guard is what serve makes of a folder, with a client.
type guard struct {
	state     *enforce.State
	gate      *enforce.Gate
	server    *mcpserver.Server
	workspace *pathguard.Workspace
	stateDir  string
	client    *client
	ended     bool
}

// guard builds one by the steps of serve.
func (l *lab) guard(s setting) (*guard, error) {
	l.n++
	number := string(rune('a' + l.n))
	g := &guard{stateDir: filepath.Join(l.box, "state-"+number)}
	if s.state != "" {
		g.stateDir = filepath.Join(l.box, s.state)
	}
	o := config.Options{
		Dirs: []string{s.dir}, WorkDir: l.box, StateDir: g.stateDir,
		Env: l.env, SystemFile: filepath.Join(l.box, "no-policy.yaml"),
	}
	if s.policy != "" {
		o.PolicyFile = filepath.Join(l.box, "policy-"+number+".yaml")
		if err := os.WriteFile(o.PolicyFile, []byte(s.policy), 0o600); err != nil {
			return nil, err
		}
	}
	live, err := config.OpenLive(o, time.Now, func(error) {})
	if err != nil {
		return nil, err
	}
	if g.state, err = enforce.OpenState(g.stateDir, enforce.StateOptions{}); err != nil {
		return nil, err
	}
	l.guards = append(l.guards, g)
	return g, l.open(g, s, live)
}

// env is the environment: nothing of the caller's.
func (l *lab) env(name string) string {
	if name == "HOME" {
		return filepath.Join(l.box, "home")
	}
	return ""
}

func (l *lab) open(g *guard, s setting, live *config.Live) error {
	cfg := live.Current()
	r := cfg.Roots[0]
	root, err := pathguard.OpenRoot(r.Path, pathguard.Options{
		Name: r.Name, Alias: r.Alias, Mounts: r.Mounts, DenyHardlinks: r.DenyHardlinks, Forbidden: []string{g.stateDir},
	})
	if err != nil {
		return err
	}
	if g.workspace, err = pathguard.NewWorkspace(root); err != nil {
		return err
	}
	if err := g.workspace.Protect(append([]string{g.stateDir}, cfg.Files...)...); err != nil {
		return err
	}
	var decider enforce.Decider = live
	if s.decider != nil {
		decider = s.decider
	}
	if s.readOnly && l.o.ReadOnly != nil {
		decider = l.o.ReadOnly(decider)
	}
	options := enforce.Options{
		Workspace: g.workspace, Decider: decider, Recorder: g.state, Locker: g.state,
		Subject: core.Subject{Agent: "selftest", Source: "selftest", Level: core.LevelSDK, Proven: true},
		Watcher: &enforce.Watcher{},
	}
	l.breakGuard(g, &options)
	if g.gate, err = enforce.New(options); err != nil {
		return err
	}
	served := fsserver.Options{Gate: options, ReadOnly: s.readOnly, Version: "selftest"}
	if l.o.hooks.server != nil {
		served = l.o.hooks.server(served)
	}
	if g.server, err = fsserver.New(served); err != nil {
		return err
	}
	g.client = connect(l.ctx, g.server)
	return nil
}

// breakGuard is what the tests of this package do to it.
func (l *lab) breakGuard(g *guard, o *enforce.Options) {
	h := l.o.hooks
	if h.decider != nil {
		o.Decider = h.decider(o.Decider)
	}
	if h.recorder != nil {
		o.Recorder = h.recorder(g.state)
	}
}

// close ends the client, then the log: what is buffered is written and signed.
func (g *guard) close() {
	if g.ended {
		return
	}
	g.ended = true
	if g.client != nil {
		g.client.close()
	}
	if g.workspace != nil {
		for _, r := range g.workspace.Roots() {
			_ = r.Close()
		}
	}
	_ = g.state.Close() // of a log that an attack has spoiled
}
