// SPDX-License-Identifier: Apache-2.0

package enforce

import (
	"context"

	"github.com/postern-gate/postern/core"
	"github.com/postern-gate/postern/core/pathguard"
)

// Open returns the judged file for reading; the caller closes it.
func (g *Gate) Open(ctx context.Context, spelling string) (*pathguard.File, error) {
	return g.openFor(ctx, spelling, readActions)
}

// OpenListed is Open for a call that lists what its path names, and reads it since
// that is a file: both are judged, and asked about at once.
func (g *Gate) OpenListed(ctx context.Context, spelling string) (*pathguard.File, error) {
	return g.openFor(ctx, spelling, []core.Action{core.FSList, core.FSRead})
}

func (g *Gate) openFor(ctx context.Context, spelling string, actions []core.Action) (*pathguard.File, error) {
	var file *pathguard.File
	c := &crossing{action: core.FSRead, operands: []operand{{spelling: spelling, use: useFile, actions: actions}}}
	c.perform = func(context.Context) error {
		file, c.operands[0].file = c.operands[0].file, nil
		return nil
	}
	_, err := g.cross(ctx, c)
	return file, err
}

var (
	readActions = []core.Action{core.FSRead}
	listActions = []core.Action{core.FSList}
)

// Stat returns facts about what the name leads to: its canonical name, and
// never anything about what lies outside.
func (g *Gate) Stat(ctx context.Context, spelling string) (pathguard.Name, pathguard.Info, error) {
	c := &crossing{action: core.FSList, operands: []operand{{spelling: spelling, use: useFacts, actions: listActions}}}
	_, err := g.cross(ctx, c)
	return c.operands[0].name, c.operands[0].info, err
}
