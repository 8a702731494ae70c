// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"

	"github.com/postern-gate/postern/core/fault"
	"github.com/postern-gate/postern/internal/state/audit/seal"
	"github.com/postern-gate/postern/internal/state/audit/segment"
	"github.com/postern-gate/postern/internal/state/audit/verify"
)

// noteMost bounds what is read of a file with keys or anchors.
const noteMost = 16 << 20

// readAnchors reads the checkpoints in a file, in their order. What they say
// is not checked.
func readAnchors(env *Env, name string) ([]seal.Checkpoint, error) {
	var text string
	var err error
	if name == "-" {
		var b []byte
		b, err = io.ReadAll(io.LimitReader(env.In, noteMost))
		text = string(b)
	} else {
		text, err = readSmall(name)
	}
	if errors.Is(err, fs.ErrNotExist) {
		return nil, &fault.Error{
			Code: fault.PathMissing, Op: opVerify, Resource: name, Rule: "there is no such file",
			Hint: "give the file that an anchor was kept in", Err: err,
		}
	}
	var all []seal.Checkpoint
	for _, note := range notes(text) {
		c, bad := seal.Peek(note)
		if bad != nil {
			all, err = nil, bad
			break
		}
		all = append(all, c)
	}
	if err != nil || len(all) == 0 {
		return nil, &fault.Error{
			Code: fault.ConfigInvalid, Op: opVerify, Resource: name, Rule: "it is not a file of checkpoints",
			Hint: "give a file that holds only what postern log anchor printed", Err: err,
		}
	}
	return all, nil
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

// anchors are checkpoints that were kept elsewhere.
type anchors struct {
	newest *seal.Checkpoint            // the largest one of this log, or else the last
	older  map[string]*seal.Checkpoint // the others of this log, by their notes
	others int                         // those of other logs, as before a renewal
}

// ofLog tells apart which of them are of the log with that origin.
func ofLog(all []seal.Checkpoint, origin string) anchors {
	a := anchors{older: map[string]*seal.Checkpoint{}}
	for i := range all {
		if all[i].Origin != origin {
			a.others++
			continue
		}
		a.older[all[i].Note] = &all[i]
		if a.newest == nil || all[i].Size >= a.newest.Size {
			a.newest = &all[i]
		}
	}
	if a.newest == nil && len(all) > 0 {
		a.newest = &all[len(all)-1] // which the check will refuse
	}
	if a.newest != nil {
		delete(a.older, a.newest.Note)
	}
	return a
}

// look adds to the report what became of the older anchors. Each must be among
// the checkpoints of the log, which the check has compared with its records: of
// a log that was written anew only the newest anchors would fit.
func (a *anchors) look(dir string, r *verify.Report) error {
	if a.newest == nil {
		return nil
	}
	if a.others > 0 && r.Origin == a.newest.Origin {
		r.Notes = append(r.Notes, verify.Finding{
			Kind: verify.Unchecked, Text: fmt.Sprintf("of the anchors %d are of other logs", a.others),
		})
	}
	pruned, err := a.remove(dir)
	if err != nil {
		return err
	}
	unchecked := 0
	for _, c := range a.older {
		switch {
		case c.Size < pruned:
			unchecked++
		case len(r.Problems) < verify.Most:
			r.Problems = append(r.Problems, verify.Finding{
				Kind: verify.Anchor, Text: fmt.Sprintf("an anchor of %d records is not among the checkpoints of the log", c.Size),
			})
		default:
			r.More++
		}
	}
	if unchecked > 0 {
		r.Notes = append(r.Notes, verify.Finding{
			Kind: verify.Unchecked, Text: fmt.Sprintf("%d older anchors lie where only hashes are left", unchecked),
		})
	}
	return nil
}

// remove strikes out the anchors that are in the log. It returns how many
// records are pruned.
func (a *anchors) remove(dir string) (pruned int64, err error) {
	if len(a.older) == 0 {
		return 0, nil
	}
	files, err := segment.List(dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return 0, err
	}
	first := true
	for _, f := range files {
		if f.Pruned {
			continue
		}
		err := eachCheckpoint(f.Path, func(c seal.Checkpoint) {
			if first {
				first, pruned = false, c.Size
			}
			delete(a.older, c.Note)
		})
		if err != nil {
			return 0, err
		}
	}
	return pruned, nil
}

// eachCheckpoint visits the checkpoints of a segment, with the one that it
// goes on from.
func eachCheckpoint(path string, visit func(seal.Checkpoint)) error {
	file, err := os.Open(path)
	if err != nil {
		return err
	}
	defer file.Close()
	lines := segment.NewReader(file, 0, 0)
	for {
		line, err := lines.Next()
		if errors.Is(err, io.EOF) || errors.Is(err, segment.ErrTorn) {
			return nil
		}
		if err != nil {
			return err
		}
		switch seal.KindOf(line) {
		case seal.KindCheckpoint:
			if c, err := seal.ParseCheckpoint(line); err == nil {
				visit(c)
			}
		case seal.KindHead:
			if h, err := seal.ParseHead(line); err == nil && lines.Line() == 1 {
				if c, err := seal.Peek(h.Note); err == nil {
					visit(c)
				}
			}
		default:
		}
	}
}
