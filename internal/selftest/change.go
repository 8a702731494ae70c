// SPDX-License-Identifier: Apache-2.0

package selftest

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"github.com/postern-gate/postern/core"
	"github.com/postern-gate/postern/core/fault"
	"github.com/postern-gate/postern/enforce"
)

// tree is everything beneath a folder that a refused call must leave alone.
func tree(dir string) (map[string]string, error) {
	all := map[string]string{}
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		what := fmt.Sprint(info.Mode(), info.ModTime().UnixNano())
		if info.Mode().IsRegular() {
			data, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			what += fmt.Sprintf(" %x", sha256.Sum256(data))
		}
		all[path] = what
		return nil
	})
	return all, err
}

func refusalChangesNothing(l *lab, t *trial) {
	dir := filepath.Join(l.box, "refusals")
	if !t.needs("files", errors.Join(l.put(filepath.Join(dir, "f"), "f"), l.put(filepath.Join(dir, "g"), "g"),
		l.put(filepath.Join(dir, ".git", "config"), "c"), l.put(filepath.Join(dir, "d", ".env"), "e"))) {
		return
	}
	g, err := l.guard(setting{dir: dir})
	if !t.needs("a guard", err) {
		return
	}
	calls := []struct {
		tool string
		args args
	}{
		{"write_file", args{"path": ".git/config", "content": "x"}},
		{"write_file", args{"path": "f", "content": "x", "ifMatch": "1aaaaaaaaaaaaaaaaaaaa"}},
		{"edit_file", args{"path": "f", "edits": []args{{"oldText": "no such text", "newText": "x"}}}},
		{"move_file", args{"source": "f", "destination": "g"}},
		{"move_file", args{"source": "d", "destination": "e"}},
		{"move_file", args{"source": "f", "destination": ".env"}},
		{"copy_file", args{"source": "f", "destination": "g"}},
		{"delete_file", args{"path": "f", "confirm": true}},
		{"delete_file", args{"path": "f"}},
		{"write_file", args{"path": "new/deep/.env", "content": "x"}},
	}
	t.about = fmt.Sprintf("the whole folder compared after each of %d refusals", len(calls))
	sees := func() error {
		before, err1 := tree(dir)
		_, err2 := g.client.does("write_file", args{"path": "seen", "content": "x"})
		after, err3 := tree(dir)
		if maps.Equal(before, after) {
			return errors.New("the comparison sees no change")
		}
		return errors.Join(err1, err2, err3, os.Remove(filepath.Join(dir, "seen")))
	}
	for _, c := range calls {
		t.against(fmt.Sprint(c.tool, c.args), sees, func() error {
			before, err1 := tree(dir)
			refused := l.refused(g.client.call(c.tool, c.args))
			after, err2 := tree(dir)
			if !maps.Equal(before, after) {
				return errors.New("the refused call left a change")
			}
			return errors.Join(refused, err1, err2)
		})
	}
}

// etagHolds: a change that was meant for another state of the file is refused.
func etagHolds(l *lab, t *trial) {
	t.about = "a file that another program changes between a read and a write with ifMatch"
	path := l.at("etag")
	for _, tool := range []string{"write_file", "append_file"} {
		var etag string
		t.against(tool, func() error {
			if err := l.put(path, "first"); err != nil {
				return err
			}
			_, info, err := l.main.gate.Stat(l.ctx, "etag")
			etag = info.Fingerprint.String()
			if err == nil {
				err = l.put(path, "changed by somebody else")
			}
			return errors.Join(err, holds(path, "changed by somebody else"))
		}, func() error {
			a, err := l.main.client.call(tool, args{"path": "etag", "content": "x", "ifMatch": etag})
			if err == nil && a.code != fault.PreconditionFailed.String() {
				err = errors.New("it was not refused as changed")
			}
			return errors.Join(err, holds(path, "changed by somebody else"))
		})
	}
}

// losesOne tells what a program does that takes no lock: both read, then
// both write, and one change is lost.
func losesOne(path string) error {
	if err := os.WriteFile(path, nil, 0o600); err != nil {
		return err
	}
	a, err1 := os.ReadFile(path)
	b, err2 := os.ReadFile(path)
	err3 := os.WriteFile(path, append(a, "one\n"...), 0o600)
	err4 := os.WriteFile(path, append(b, "two\n"...), 0o600)
	got, err5 := os.ReadFile(path)
	if bytes.Count(got, []byte("\n")) != 1 {
		return errors.New("nothing was lost without the guard either")
	}
	return errors.Join(err1, err2, err3, err4, err5)
}

const (
	editors      = 4
	editsOfEach  = 4
	editedByMany = "edited"
)

// parallelEdits: of edits at once, through two states as two processes have
// them, every one that was not refused is in the file.
func parallelEdits(l *lab, t *trial) {
	t.about = fmt.Sprintf("%d edits of one file by %d editors at once, of two servers", editors*editsOfEach, editors)
	other, err := l.guard(setting{dir: l.root, state: filepath.Base(l.main.stateDir)})
	if !t.needs("a second server", err) {
		return
	}
	path := l.at(editedByMany)
	t.against("edits", func() error { return losesOne(path) }, func() error {
		if err := os.WriteFile(path, nil, 0o600); err != nil {
			return err
		}
		landed := l.editAtOnce([]*guard{l.main, other})
		got, err := os.ReadFile(path)
		for _, line := range landed {
			if !strings.Contains(string(got), line) {
				err = errors.Join(err, errors.New("an edit that was reported as done is lost"))
			}
		}
		if len(landed) == 0 {
			err = errors.Join(err, errors.New("no edit was done"))
		}
		return err
	})
}

// editAtOnce returns the lines whose edits were reported as done.
func (l *lab) editAtOnce(guards []*guard) (landed []string) {
	var mu sync.Mutex
	var wg sync.WaitGroup
	for i := range editors {
		wg.Add(1)
		go func() {
			defer wg.Done()
			for n := range editsOfEach {
				line := fmt.Sprintf("editor %d, line %d\n", i, n)
				_, err := guards[i%len(guards)].gate.Edit(l.ctx, editedByMany, func(b []byte) ([]byte, error) {
					return append(bytes.Clone(b), line...), nil
				}, enforce.Call{})
				if err == nil {
					mu.Lock()
					landed = append(landed, line)
					mu.Unlock()
				}
			}
		}()
	}
	wg.Wait()
	return landed
}

// witness looks, when an intent is on disk, whether its effect is there
// already.
type witness struct {
	enforce.Recorder
	intents int
	early   func() bool
	ahead   bool
}

func (w *witness) Record(e core.Event, sync bool) error {
	err := w.Recorder.Record(e, sync)
	if e.Phase == core.PhaseIntent && sync {
		w.intents++
		w.ahead = w.ahead || w.early()
	}
	return err
}
