// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/postern-gate/postern/core/fault"
	"github.com/postern-gate/postern/internal/state/audit/seal"
	"github.com/postern-gate/postern/internal/state/audit/verify"
)

// noteMost bounds what is read of a file with keys or anchors.
const noteMost = 16 << 20

// readAnchors reads the checkpoints in a file, in their order, each once: the
// notes themselves, or what --json printed. What they say is not checked.
func readAnchors(env *Env, name string) ([]seal.Checkpoint, error) {
	text, err := readKept(env, name)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, &fault.Error{
			Code: fault.PathMissing, Op: opVerify, Resource: name, Rule: "there is no such file",
			Hint: "give the file that an anchor was kept in", Err: err,
		}
	case err != nil:
		return nil, &fault.Error{Code: fault.IOFailed, Op: opVerify, Resource: name, Rule: "the anchors can't be read", Err: err}
	case strings.TrimSpace(text) == "":
		return nil, noAnchors(name, "there is no anchor in it: it is empty")
	}
	kept := notes(text)
	if strings.HasPrefix(strings.TrimSpace(text), "{") {
		if kept, err = jsonNotes(text); err != nil {
			return nil, noAnchors(name, "it is JSON, and not what postern log anchor --json printed")
		}
	}
	var all []seal.Checkpoint
	seen := map[string]bool{}
	for i, note := range kept {
		c, err := seal.Peek(note)
		if err != nil {
			return nil, noAnchors(name, fmt.Sprintf("checkpoint %d of it is none: there is other text, or half of one", i+1))
		}
		if !seen[note] {
			all = append(all, c)
		}
		seen[note] = true
	}
	return all, nil
}

func noAnchors(name, because string) error {
	return &fault.Error{
		Code: fault.RequestInvalid, Op: opVerify, Resource: name, Rule: because,
		Hint: "give a file that holds only what postern log anchor printed, as often as you like",
	}
}

func readKept(env *Env, name string) (string, error) {
	if name != "-" {
		return readSmall(name)
	}
	b, err := io.ReadAll(io.LimitReader(env.In, noteMost))
	return string(b), err
}

// jsonNotes are the notes in documents of log anchor --json, one after the other.
func jsonNotes(text string) (all []string, err error) {
	for d := json.NewDecoder(strings.NewReader(text)); ; {
		var one anchorJSON
		err := d.Decode(&one)
		if errors.Is(err, io.EOF) {
			return all, nil
		}
		if err == nil && one.Note == "" {
			err = errors.New("no note")
		}
		if err != nil {
			return nil, err
		}
		all = append(all, one.Note)
	}
}

func readSmall(name string) (string, error) {
	f, err := os.Open(name)
	if err != nil {
		return "", err
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, noteMost))
	return string(b), err
}

// notes splits a text into signed notes. Each ends with its signature; blank
// lines may be between them.
func notes(text string) []string {
	const signature = "\u2014 "
	var all []string
	var note strings.Builder
	for line := range strings.Lines(strings.ReplaceAll(text, "\r\n", "\n")) {
		line = strings.TrimSuffix(line, "\n") + "\n"
		if note.Len() == 0 && line == "\n" {
			continue
		}
		note.WriteString(line)
		if strings.HasPrefix(line, signature) {
			all = append(all, note.String())
			note.Reset()
		}
	}
	if note.Len() > 0 {
		all = append(all, note.String())
	}
	return all
}

// byLog tells apart which anchors are of the log with that origin, and of which
// log the others are.
func byLog(all []seal.Checkpoint, origin string) (own []seal.Checkpoint, others map[string][]seal.Checkpoint) {
	others = map[string][]seal.Checkpoint{}
	for _, c := range all {
		if c.Origin == origin {
			own = append(own, c)
			continue
		}
		others[c.Origin] = append(others[c.Origin], c)
	}
	return own, others
}

// asideName is a folder that a renewal makes beside the segments.
var asideName = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^ended-([0-9a-f]{32}|unknown)(-[0-9]+)?$`) })

// settle compares the anchors of other logs with the logs that were put aside,
// as far as renewals lead from one to the next. An anchor of a log that no
// renewal names is a problem: nobody else says where that log went.
func settle(ctx context.Context, dir string, others map[string][]seal.Checkpoint, r *verify.Report) error {
	if len(others) == 0 {
		return nil
	}
	if r.Anchors == nil {
		r.Anchors = &verify.Anchors{}
	}
	left, todo, seen := maps.Clone(others), slices.Clone(r.Renewed), map[string]bool{}
	for len(todo) > 0 && len(left) > 0 {
		name := todo[0]
		todo = todo[1:]
		if seen[name] || !asideName().MatchString(name) {
			continue
		}
		seen[name] = true
		before, err := settleOne(ctx, aside(dir, name), left, r)
		if err != nil {
			return err
		}
		todo = append(todo, before...)
	}
	for _, origin := range slices.Sorted(maps.Keys(left)) {
		addProblem(r, verify.UnknownKey, fmt.Sprintf("%s of %s, and no renewal of this log leads to it: the log was replaced by another one, or these are anchors of another machine",
			isAre(len(left[origin])), origin))
	}
	return nil
}

func isAre(n int) string {
	if n == 1 {
		return "1 anchor is"
	}
	return fmt.Sprintf("%d anchors are", n)
}

// aside is where a renewal put a log: beside the segments, or beside the folder
// of a log that was itself put aside.
func aside(dir, name string) string {
	if asideName().MatchString(filepath.Base(dir)) {
		return filepath.Join(filepath.Dir(dir), name)
	}
	return filepath.Join(dir, name)
}

// settleOne strikes out the anchors of the log in a folder, and returns the
// renewals that it has itself.
func settleOne(ctx context.Context, dir string, left map[string][]seal.Checkpoint, r *verify.Report) ([]string, error) {
	v, err := readVerifier(filepath.Join(dir, "key"))
	if err != nil {
		return nil, nil //nolint:nilerr // what is left of the anchors is told
	}
	kept := left[v.Origin()]
	old, err := verify.Check(ctx, verify.Options{Dir: dir, Verifier: v, Anchors: kept})
	if err != nil {
		return nil, err
	}
	delete(left, v.Origin())
	if old.Anchors == nil {
		return old.Renewed, nil
	}
	r.Anchors.Ended += old.Anchors.Checked
	if bad := len(kept) - old.Anchors.Checked; bad > 0 {
		addProblem(r, verify.EndedAnchor, fmt.Sprintf("%d of %d anchors of the log that was put aside in %s don't fit it", bad, len(kept), filepath.Base(dir)))
	}
	return old.Renewed, nil
}

func addProblem(r *verify.Report, kind verify.Kind, text string) {
	if len(r.Problems) >= verify.Most {
		r.More++
		return
	}
	r.Problems = append(r.Problems, verify.Finding{Kind: kind, Text: text})
}
