// SPDX-License-Identifier: Apache-2.0

package enforce

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/postern-gate/postern/core"
	"github.com/postern-gate/postern/core/pathguard"
	"github.com/postern-gate/postern/internal/state/lock"
)

// rules is a decider for tests: "fs.read project://a" → decision, the longest
// prefix of the resource first; everything else is allowed.
type rules struct {
	deny            map[string]core.Decision
	confirm, ifMate map[core.Action]bool
}

func (r rules) Evaluate(q core.Request) core.Verdict {
	if !q.Resource.Resolved {
		return core.Verdict{}
	}
	name := q.Resource.String()
	for prefix := name; prefix != ""; prefix = prefix[:len(prefix)-1] {
		if d, ok := r.deny[q.Action.String()+" "+prefix]; ok {
			return core.Verdict{Decision: d, Reason: core.Reason{Decision: d, Step: core.StepRule, Rule: d.String() + " " + prefix}}
		}
	}
	return core.Verdict{Decision: core.Allow, Reason: core.Reason{Decision: core.Allow, Step: core.StepRule, Rule: "allow"}}
}
func (r rules) ConfirmRequired(a core.Action) bool { return r.confirm[a] }
func (r rules) IfMatchRequired(a core.Action) bool { return r.ifMate[a] }
func (r rules) Version() string                    { return "v1" }
func (rules) Agents() []string                     { return nil }

// log is a recorder for tests.
type log struct {
	mu     sync.Mutex
	events []core.Event
	synced []bool
	fail   error
	seen   func(core.Event)
}

func (l *log) Record(e core.Event, sync bool) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.seen != nil {
		l.seen(e)
	}
	if l.fail != nil {
		return l.fail
	}
	l.events, l.synced = append(l.events, e), append(l.synced, sync)
	return nil
}

type world struct {
	t    testing.TB
	dir  string
	gate *Gate
	log  *log
}

// newWorld makes a root "project" with the files of the spec, name → content;
// a name that ends in a slash is a directory, a content "-> x" a link.
func newWorld(t testing.TB, d Decider, spec map[string]string, change ...func(*Options)) *world {
	t.Helper()
	w := &world{t: t, dir: filepath.Join(t.TempDir(), "root"), log: &log{}}
	w.must(os.Mkdir(w.dir, 0o755))
	for name, content := range spec {
		w.put(name, content)
	}
	w.gate = w.open(d, change...)
	return w
}

func (w *world) open(d Decider, change ...func(*Options)) *Gate {
	w.t.Helper()
	root, err := pathguard.OpenRoot(w.dir, pathguard.Options{Name: "project"})
	w.must(err)
	w.t.Cleanup(func() { _ = root.Close() })
	ws, err := pathguard.NewWorkspace(root)
	w.must(err)
	o := Options{
		Workspace: ws, Decider: d, Recorder: w.log,
		Locker:     lock.Open(filepath.Join(filepath.Dir(w.dir), "locks")),
		Subject:    core.Subject{Agent: "test", Source: "sdk", Level: core.LevelSDK},
		PolicyFile: "policy.yaml",
	}
	for _, f := range change {
		f(&o)
	}
	g, err := New(o)
	w.must(err)
	return g
}

func (w *world) must(err error) {
	w.t.Helper()
	if err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) path(name string) string { return filepath.Join(w.dir, name) }

func (w *world) put(name, content string) {
	w.t.Helper()
	path := w.path(name)
	w.must(os.MkdirAll(filepath.Dir(path), 0o755))
	target, isLink := strings.CutPrefix(content, "-> ")
	switch {
	case strings.HasSuffix(name, "/"):
		w.must(os.MkdirAll(path, 0o755))
	case isLink:
		w.must(os.Symlink(target, path))
	default:
		w.must(os.WriteFile(path, []byte(content), 0o644))
	}
}

func (w *world) read(name string) string {
	w.t.Helper()
	data, err := os.ReadFile(w.path(name))
	w.must(err)
	return string(data)
}

// tree is everything that a denied call must leave as it was.
func (w *world) tree() map[string]string {
	w.t.Helper()
	all := map[string]string{}
	w.must(filepath.WalkDir(w.dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		what := fmt.Sprintf("%v %v", info.Mode(), info.ModTime().UnixNano())
		if d.Type().IsRegular() {
			data, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			what += fmt.Sprintf(" %x", sha256.Sum256(data))
		}
		all[path] = what
		return nil
	}))
	return all
}

func (w *world) unchanged(before map[string]string) {
	w.t.Helper()
	if after := w.tree(); !maps.Equal(before, after) {
		w.t.Errorf("the tree changed:\nbefore %v\nafter  %v", before, after)
	}
}

// approver answers with what it holds, after doing what it is told.
type approver struct {
	answer error
	during func()
	asked  []Question
	spent  []Question
}

func (a *approver) Approve(_ context.Context, q *Question) (Permission, error) {
	a.asked = append(a.asked, *q)
	if a.during != nil {
		a.during()
	}
	if a.answer != nil {
		return nil, a.answer
	}
	return a, nil
}

func (a *approver) Spend(_ context.Context, now *Question) (string, error) {
	a.spent = append(a.spent, *now)
	return "", nil
}

func (a *approver) Reaches(core.Resource) bool { return true }
func (cutOff) Reaches(core.Resource) bool      { return true }

// records are the lines about calls of a log.
func records(t testing.TB, state string) (all []map[string]any) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(state, "audit", "*.jsonl"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no log: %v", err)
	}
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(string(data)) {
			var m map[string]any
			if err := json.Unmarshal([]byte(line), &m); err != nil {
				t.Fatalf("%v: %s", err, line)
			}
			if m["event"] != nil && m["op"] != "log" {
				all = append(all, m)
			}
		}
	}
	return all
}

func must(errs ...error) {
	if err := errors.Join(errs...); err != nil {
		panic(err)
	}
}
