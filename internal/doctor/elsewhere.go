// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/postern-gate/postern/core/textsafe"
	"github.com/postern-gate/postern/internal/attach"
	"github.com/postern-gate/postern/internal/config"
)

const (
	// mostElsewhere and elsewhereTime bound how many other folders are looked at,
	// and how long.
	mostElsewhere = 64
	elsewhereTime = 2 * time.Second
)

// Broken is an attached folder whose server would not start. The texts may hold
// anybody's: draw them safely.
type Broken struct {
	Folder  string `json:"folder"`
	File    string `json:"file"`
	Line    int    `json:"line,omitempty"`
	Column  int    `json:"column,omitempty"`
	Message string `json:"message"`

	place string
}

// String is one line about it, with the next step.
func (b Broken) String() string {
	return "no server starts in " + textsafe.Word(b.Folder) + ": " + textsafe.Name(b.place) + ": " + b.Message + "; next: postern test there"
}

// Elsewhere are the attached folders, but for those that cfg is about, with a
// policy that doesn't load; a file of cfg itself is told by whoever loaded it.
// Unseen is how many there was no time for, or are too many.
func Elsewhere(ctx context.Context, o config.Options, cfg *config.Config) (broken []Broken, unseen int) {
	ctx, stop := context.WithTimeout(ctx, elsewhereTime)
	defer stop()
	folders := attach.Folders(o.StateDir)
	found := make(chan *Broken) // a folder may hang, and ends with this program then
	go func() {
		for _, f := range folders[:min(len(folders), mostElsewhere)] {
			b := inFolder(o, cfg, f)
			select {
			case found <- b:
			case <-ctx.Done():
				return
			}
		}
	}()
	for i := range min(len(folders), mostElsewhere) {
		select {
		case b := <-found:
			if b != nil {
				broken = append(broken, *b)
			}
		case <-ctx.Done():
			return broken, len(folders) - i
		}
	}
	return broken, max(0, len(folders)-mostElsewhere)
}

// inFolder is what is wrong with the policies of a folder, nil for nothing.
func inFolder(o config.Options, cfg *config.Config, folder string) *Broken {
	if slices.ContainsFunc(cfg.Roots, func(r config.Root) bool { return sameFile(r.Path, folder) }) {
		return nil
	}
	o.Dirs, o.WorkDir = []string{folder}, folder
	_, err := config.Load(o)
	var invalid *config.Invalid
	if !errors.As(err, &invalid) {
		return nil
	}
	for _, p := range invalid.Problems {
		if !slices.Contains(cfg.Files, p.Pos.File) {
			return &Broken{folder, p.Pos.File, p.Pos.Line, p.Pos.Column, p.Message, p.Pos.String()}
		}
	}
	return nil
}
