// SPDX-License-Identifier: Apache-2.0

package enforce

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/postern-gate/postern/core"
	"github.com/postern-gate/postern/core/fault"
)

const sentinel = "S3NT1NEL"

// holds returns the files beneath dir that hold the sentinel.
func holds(t *testing.T, dir string) (found []string) {
	t.Helper()
	must(filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		data, err := os.ReadFile(path)
		if strings.Contains(path+string(data), sentinel) {
			found = append(found, filepath.Base(path))
		}
		return err
	}))
	return found
}

// leaky is a recorder that also writes down whatever it is given.
type leaky struct {
	*State
	path string
}

func (l leaky) Record(e core.Event, sync bool) error {
	f, err := os.OpenFile(l.path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	must(err)
	_, err = fmt.Fprintf(f, "%+v\n", e)
	must(err, f.Close())
	return l.State.Record(e, sync)
}

// TestWrappedHandlersKeepSecrets: of a call of a wrapped handler neither
// arguments, nor names of those that aren't declared, nor what the handler
// says is recorded, however the call ends.
func TestWrappedHandlersKeepSecrets(t *testing.T) {
	outside := "/outside/" + sentinel
	calls := []map[string]any{
		{"action": "create", "token": "Bearer " + sentinel, "path": "project://f"},
		{"body": map[string]any{"national_id": sentinel}, "path": []any{"project://f"}},
		{sentinel: 1, "path": "project://none"},
		{"path": outside},
		{"path": map[string]any{sentinel: sentinel}},
		{"path": "\x00" + sentinel},
		{"path": []any{"project://f", outside, 7}},
	}
	errs := []error{
		nil, errors.New("token " + sentinel),
		&fault.Error{Code: fault.TextUnsafe, Op: sentinel, Resource: sentinel, Rule: sentinel, Hint: sentinel, Err: errors.New(sentinel)},
		&fs.PathError{Op: "open", Path: outside, Err: fs.ErrNotExist},
	}
	shows := func(record func(*State, string) Recorder, deny map[string]core.Decision) (in []string, n int) {
		w := newWorld(t, rules{deny: deny}, map[string]string{"f": sentinel})
		dir := filepath.Join(t.TempDir(), "state")
		s, err := OpenState(dir, StateOptions{})
		must(err)
		g := w.open(rules{deny: deny}, func(o *Options) { o.Recorder, o.Locker = record(s, dir), s })
		for _, class := range []core.Class{core.ClassUnknown, core.ReadOnly, core.Mutating} {
			for _, args := range calls {
				for _, own := range errs {
					h := g.Guard(Tool{Server: "n8n", Name: "n8n_manage_credentials", Class: class, Params: []Param{Project("path", core.FSRead)}},
						func(context.Context, ToolCall) (any, error) { return sentinel, own })
					_, _ = h(t.Context(), ToolCall{Args: args})
				}
			}
		}
		must(s.Close())
		for _, m := range records(t, dir) {
			if m["resource"] == "n8n://n8n_manage_credentials" {
				n++
			}
		}
		return holds(t, dir), n
	}
	plain := func(s *State, _ string) Recorder { return s }
	for name, deny := range map[string]map[string]core.Decision{
		"allowed": nil, "denied": {"tool.call n8n": core.Deny}, "asked": {"tool.call n8n": core.Ask},
	} {
		in, n := shows(plain, deny)
		if len(in) > 0 {
			t.Errorf("%s: found in %v", name, in)
		}
		if want := len(calls) * len(errs) * 3; n < want {
			t.Errorf("%s: %d records of %d calls", name, n, want)
		}
	}
	in, _ := shows(func(s *State, dir string) Recorder { return leaky{s, filepath.Join(dir, "leak")} }, nil) // control
	if len(in) != 1 || in[0] != "leak" {
		t.Errorf("a recorder that leaks: found in %v", in)
	}
}
