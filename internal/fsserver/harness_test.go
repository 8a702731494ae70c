// SPDX-License-Identifier: Apache-2.0

//go:build linux

package fsserver

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/postern-gate/postern/core"
	"github.com/postern-gate/postern/core/pathguard"
	"github.com/postern-gate/postern/core/policy"
	"github.com/postern-gate/postern/enforce"
	"github.com/postern-gate/postern/internal/mcpserver"
	"github.com/postern-gate/postern/internal/testenv"
)

// setup is what a server of a test is made of. It travels as JSON to servers
// that are processes of their own.
type setup struct {
	Roots    []string // name=path[=alias]
	State    string
	Rules    map[string]string // action → decision, over the shipped default
	IfMatch  []string
	Deny     []string
	Bare     bool
	ReadOnly bool
	UID      int
	CallTime time.Duration
	Off      []string
}

const childEnv = "POSTERN_TEST_SERVER"

// TestMain serves on stdio where a test starts its own program as a server.
func TestMain(m *testing.M) {
	var err error
	switch spec, pair := os.Getenv(childEnv), os.Getenv(swapEnv); {
	case spec != "":
		err = serveChild(spec)
	case pair != "":
		err = swapForever(pair)
	default:
		goleak.VerifyTestMain(m)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func serveChild(spec string) error {
	var s setup
	if err := json.Unmarshal([]byte(spec), &s); err != nil {
		return err
	}
	if s.UID != 0 {
		if err := become(s.UID); err != nil {
			return err
		}
	}
	o, closer, err := s.options()
	if err != nil {
		return err
	}
	defer closer()
	srv, err := New(o)
	if err != nil {
		return err
	}
	return srv.ServeStdio(context.Background(), os.Stdin, os.Stdout)
}

func become(uid int) error {
	if err := syscall.Setgroups(nil); err != nil {
		return err
	}
	if err := syscall.Setgid(uid); err != nil {
		return err
	}
	return syscall.Setuid(uid)
}

// options opens the roots and the state, and compiles the policy.
func (s setup) options() (Options, func(), error) {
	var o Options
	state, err := enforce.OpenState(s.State, enforce.StateOptions{})
	if err != nil {
		return o, nil, err
	}
	var roots []*pathguard.Root
	var named []policy.Root
	for _, spec := range s.Roots {
		part := strings.Split(spec+"=", "=")
		r, err := pathguard.OpenRoot(part[1], pathguard.Options{Name: part[0], Alias: part[2], Forbidden: []string{state.Path()}})
		if err != nil {
			return o, nil, err
		}
		roots, named = append(roots, r), append(named, policy.Root{Name: part[0], Alias: part[2]})
	}
	ws, err := pathguard.NewWorkspace(roots...)
	if err == nil {
		err = ws.Protect(state.Path())
	}
	if err != nil {
		return o, nil, err
	}
	p, err := s.policy(named)
	if err != nil {
		return o, nil, err
	}
	o = Options{
		Gate: enforce.Options{
			Workspace: ws, Decider: p, Recorder: state, Locker: state,
			Subject: core.Subject{Agent: "test", Source: "serve", Level: core.LevelSDK}, PolicyFile: "policy.yaml",
			Watcher: &enforce.Watcher{},
		},
		Bare: s.Bare, ReadOnly: s.ReadOnly, Off: s.Off, CallTime: s.CallTime, Version: "test",
	}
	return o, func() {
		for _, r := range roots {
			_ = r.Close()
		}
		_ = state.Close()
	}, nil
}

func (s setup) policy(roots []policy.Root) (*policy.Policy, error) {
	l := policy.Default()
	for name, decision := range s.Rules {
		a, _ := core.ParseAction(name)
		d, _ := core.ParseDecision(decision)
		l.Rules[a] = policy.Rules{Else: &policy.Outcome{Decision: d}}
	}
	for _, name := range s.IfMatch {
		a, _ := core.ParseAction(name)
		l.IfMatch = append(l.IfMatch, a)
	}
	for _, text := range s.Deny {
		l.Deny = append(l.Deny, policy.Pattern{Text: text})
	}
	return policy.Compile(policy.Config{Roots: roots, Layers: []policy.Layer{l}})
}

// world is a box with a root R and a folder O beside it, and a client of the
// server that guards R.
type world struct {
	*testing.T
	box, root, outside string
	setup              setup
	*client
}

// newWorld makes the box and starts the server. change may alter the setup
// before that; files go into the root as path → content.
func newWorld(t *testing.T, files map[string]string, change ...func(*world)) *world {
	t.Helper()
	w := &world{T: t}
	var err error
	w.box, err = filepath.EvalSymlinks(t.TempDir())
	w.must(err)
	t.Cleanup(func() { _ = exec.Command("chmod", "-R", "u+rwx", w.box).Run() })
	for _, dir := range []string{w.box, filepath.Dir(w.box)} {
		w.must(os.Chmod(dir, 0o755)) // servers of other users get there
	}
	w.root, w.outside = filepath.Join(w.box, "root"), filepath.Join(w.box, "outside")
	w.must(os.Mkdir(w.root, 0o755))
	w.must(os.Mkdir(w.outside, 0o755))
	for name, content := range files {
		w.put(w.at(name), content)
	}
	w.setup = setup{Roots: []string{"project=" + w.root}, State: filepath.Join(w.box, "state")}
	for _, f := range change {
		f(w)
	}
	if w.client == nil {
		w.client = w.serve(w.setup, nil)
	}
	return w
}

// later makes newWorld start no server, since the test does.
func later(w *world) { w.client = &client{} }

func (w *world) must(err error) {
	w.Helper()
	if err != nil {
		w.Fatal(err)
	}
}

func (w *world) at(name string) string { return filepath.Join(w.root, name) }

func (w *world) put(path, content string) {
	w.Helper()
	w.must(os.MkdirAll(filepath.Dir(path), 0o755))
	w.must(os.WriteFile(path, []byte(content), 0o644))
}

func (w *world) link(target, name string) {
	w.Helper()
	w.must(os.MkdirAll(filepath.Dir(w.at(name)), 0o755))
	w.must(os.Symlink(target, w.at(name)))
}

func (w *world) is(path, content string) {
	w.Helper()
	got, err := os.ReadFile(path)
	if err != nil || string(got) != content {
		w.Errorf("%s holds %.80q (%v), want %.80q", path, got, err, content)
	}
}

func (w *world) absent(path string) {
	w.Helper()
	if _, err := os.Lstat(path); !os.IsNotExist(err) {
		w.Errorf("%s exists (%v)", path, err)
	}
}

// names are the entries of a directory.
func (w *world) names(dir string) []string {
	w.Helper()
	entries, err := os.ReadDir(dir)
	w.must(err)
	all := make([]string, len(entries))
	for i, e := range entries {
		all[i] = e.Name()
	}
	return all
}

// serve starts a server in this process and connects to it. roots are what the
// client reports, nil for a client without.
func (w *world) serve(s setup, roots []string) *client {
	w.Helper()
	o, closer, err := s.options()
	w.must(err)
	w.Cleanup(closer)
	srv, err := New(o)
	w.must(err)
	return connect(w.T, srv, roots)
}

func connect(t *testing.T, srv *mcpserver.Server, roots []string) *client {
	t.Helper()
	in, toServer := io.Pipe()
	fromServer, out := io.Pipe()
	ended := make(chan error, 1)
	go func() {
		ended <- srv.ServeStdio(context.Background(), in, out)
		_ = out.Close()
	}()
	c := newClient(t, fromServer, toServer, roots)
	c.hangUp = sync.OnceFunc(func() {
		_ = toServer.Close()
		if err := <-ended; err != nil {
			t.Errorf("the server ended with %v", err)
		}
	})
	t.Cleanup(c.hangUp)
	return c
}

// spawn starts the server as a process of its own.
func (w *world) spawn(s setup) *client {
	w.Helper()
	if s.UID != 0 && os.Getuid() != 0 {
		testenv.Missing(w.T, "root, to run a server as another user")
	}
	spec, err := json.Marshal(s)
	w.must(err)
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), childEnv+"="+string(spec))
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	w.must(err)
	out, err := cmd.StdoutPipe()
	w.must(err)
	w.must(cmd.Start())
	w.Cleanup(func() {
		_ = in.Close()
		_ = cmd.Wait()
	})
	c := newClient(w.T, out, in, nil)
	c.pid = cmd.Process.Pid
	return c
}
