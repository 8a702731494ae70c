// SPDX-License-Identifier: Apache-2.0

package selftest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/postern-gate/postern/core"
	"github.com/postern-gate/postern/core/fault"
	"github.com/postern-gate/postern/enforce"
	"github.com/postern-gate/postern/internal/state/audit"
	"github.com/postern-gate/postern/internal/state/audit/seal"
	"github.com/postern-gate/postern/internal/state/audit/verify"
)

// recordedFirst: when a file appears, the log has had its line on disk before.
func recordedFirst(l *lab, t *trial) {
	t.about = "the disk looked at when the line of each change is written, and the log after it"
	for i, change := range []func(*enforce.Gate, string) error{
		func(g *enforce.Gate, n string) error {
			_, err := g.Write(l.ctx, n, []byte("x"), enforce.Call{})
			return err
		},
		func(g *enforce.Gate, n string) error { _, err := g.MakeDir(l.ctx, n, enforce.Call{}); return err },
		func(g *enforce.Gate, n string) error {
			_, err := g.Append(l.ctx, n, []byte("x"), enforce.Call{})
			return err
		},
	} {
		name := fmt.Sprintf("recorded-%d", i)
		path := l.at(name)
		w := &witness{Recorder: l.recorder(), early: func() bool {
			_, err := os.Lstat(path)
			return err == nil
		}}
		t.against(name, func() error {
			return errors.Join(l.put(path, "control"), os.Remove(path))
		}, func() error {
			g, err := enforce.New(enforce.Options{
				Workspace: l.main.workspace, Decider: allowed{nobody{}}, Recorder: w, Locker: l.main.state,
				Subject: core.Subject{Agent: "selftest", Source: "selftest", Level: core.LevelSDK},
			})
			if err == nil {
				err = change(g, name)
			}
			switch {
			case err != nil:
				return err
			case w.intents == 0:
				return errors.New("no line was written before the change")
			case w.ahead:
				return errors.New("the change was there before its line")
			case !l.logged(l.main.stateDir, name):
				return errors.New("the line is not on disk")
			}
			return nil
		})
	}
}

// allowed says yes to everything: what is looked at is what comes after that.
type allowed struct{ nobody }

func (allowed) Evaluate(core.Request) core.Verdict {
	return core.Verdict{Decision: core.Allow, Reason: core.Reason{Decision: core.Allow, Step: core.StepRule, Rule: "selftest"}}
}

func (l *lab) recorder() enforce.Recorder {
	if l.o.hooks.recorder != nil {
		return l.o.hooks.recorder(l.main.state)
	}
	return l.main.state
}

// logged reports whether the files of a log name something.
func (l *lab) logged(stateDir, name string) bool {
	files, _ := filepath.Glob(filepath.Join(stateDir, "audit", "*.jsonl")) // the pattern is well-formed
	for _, f := range files {
		if data, err := os.ReadFile(f); err == nil && bytes.Contains(data, []byte(`"project://`+name+`"`)) {
			return true
		}
	}
	return false
}

// unrecordedRefused: with a log that can't be written nothing is changed.
func unrecordedRefused(l *lab, t *trial) {
	dir := filepath.Join(l.box, "unrecorded")
	path := filepath.Join(dir, "f")
	breaks := map[string]func(state string) error{
		"the folder of the log is gone, and a file in its place": func(s string) error {
			return errors.Join(os.RemoveAll(filepath.Join(s, "audit")), os.WriteFile(filepath.Join(s, "audit"), nil, 0o600))
		},
		"the log is shorter than it was signed": func(s string) error {
			return os.Truncate(filepath.Join(s, "audit", "000001.jsonl"), 10)
		},
	}
	t.about = fmt.Sprintf("changes while the log is unusable, in %d ways", len(breaks))
	for what, spoil := range breaks {
		var g *guard
		t.against(what, func() (err error) {
			if err = l.put(path, "before"); err != nil {
				return err
			}
			if g, err = l.signedGuard(dir); err != nil {
				return err
			}
			_, err = g.client.does("write_file", args{"path": "f", "content": "before"})
			return err
		}, func() error {
			if err := spoil(g.stateDir); err != nil {
				return err
			}
			a, err := g.client.call("write_file", args{"path": "f", "content": "after"})
			if err == nil && a.code == "" {
				err = errors.New("it was not refused")
			}
			return errors.Join(err, holds(path, "before"))
		})
	}
}

// signedGuard is one over a state directory whose log is signed already.
func (l *lab) signedGuard(dir string) (*guard, error) {
	first, err := l.guard(setting{dir: dir})
	if err != nil {
		return nil, err
	}
	_, err = first.client.does("write_file", args{"path": "signed", "content": "x"})
	first.close()
	if err != nil {
		return nil, err
	}
	return l.guard(setting{dir: dir, state: filepath.Base(first.stateDir)})
}

// kept is a log that was signed twice, as it is on disk.
type kept struct {
	dir           string
	segment       []byte
	between       int // where the first checkpoint ends
	key           seal.Verifier
	first, second seal.Checkpoint
}

func (l *lab) keptLog() (k kept, err error) {
	dir := filepath.Join(l.box, "kept")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return k, err
	}
	state := "kept-state"
	var sizes []int
	for _, checkpoint := range []*seal.Checkpoint{&k.first, &k.second} {
		g, err := l.guard(setting{dir: dir, state: state})
		if err != nil {
			return k, err
		}
		_, err = g.client.does("write_file", args{"path": "f", "content": "x"})
		g.close()
		last, err2 := audit.LastSigned(g.stateDir)
		if err = errors.Join(err, err2); err != nil || last == nil {
			return k, errors.Join(err, errors.New("nothing was signed"))
		}
		*checkpoint = *last
		if k.segment, err = os.ReadFile(filepath.Join(g.stateDir, "audit", "000001.jsonl")); err != nil {
			return k, err
		}
		sizes = append(sizes, len(k.segment))
	}
	k.between, k.dir = sizes[0], filepath.Join(l.box, state)
	line, err := audit.VerifierLine(k.dir)
	if err == nil {
		k.key, err = seal.ParseVerifier(line)
	}
	return k, err
}

// check verifies a copy of the log that holds these bytes.
func (l *lab) check(k kept, segment []byte, anchors ...seal.Checkpoint) error {
	dir := filepath.Join(l.box, "copied-log")
	err := errors.Join(os.RemoveAll(dir), os.Mkdir(dir, 0o700), os.WriteFile(filepath.Join(dir, "000001.jsonl"), segment, 0o600))
	if err != nil {
		return err
	}
	check := verify.Check
	if l.o.hooks.verify != nil {
		check = l.o.hooks.verify
	}
	report, err := check(context.WithoutCancel(l.ctx), verify.Options{Dir: dir, Verifier: k.key, Anchors: anchors})
	if err != nil {
		return err
	}
	return report.Err()
}

// changedLog: one other byte anywhere in what was signed is found.
func changedLog(l *lab, t *trial) {
	k, err := l.keptLog()
	if !t.needs("a signed log", err) {
		return
	}
	const places = 40
	t.about = fmt.Sprintf("one byte changed, at %d places of a signed log", places)
	for i := range places {
		at := (len(k.segment) - 2) * i / (places - 1)
		t.against(fmt.Sprintf("byte %d", at), func() error { return l.check(k, k.segment) }, func() error {
			changed := bytes.Clone(k.segment)
			changed[at] ^= 1
			if l.check(k, changed) == nil {
				return errors.New("the changed log is taken for sound")
			}
			return nil
		})
	}
}

// cutLog: a log that was cut off at a checkpoint looks whole, and an anchor
// that was kept elsewhere finds it.
func cutLog(l *lab, t *trial) {
	t.about = "the newest records cut off at a checkpoint, and an anchor from before that"
	if err := os.RemoveAll(filepath.Join(l.box, "kept-state")); !t.needs("a folder", err) {
		return
	}
	k, err := l.keptLog()
	if !t.needs("a signed log", err) {
		return
	}
	cut := k.segment[:k.between]
	t.against("cut off", func() error { return l.check(k, cut, k.first) }, func() error {
		if got := fault.CodeOf(l.check(k, cut, k.second)); got != fault.AuditTruncated {
			return errors.New("the cut is not found with the anchor: " + got.String())
		}
		return nil
	})
}
