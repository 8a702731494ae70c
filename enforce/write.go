// SPDX-License-Identifier: Apache-2.0

package enforce

import (
	"bytes"
	"context"
	"errors"
	"io"

	"github.com/postern-gate/postern/core"
	"github.com/postern-gate/postern/core/fault"
	"github.com/postern-gate/postern/core/pathguard"
	"github.com/postern-gate/postern/core/untrusted"
	"github.com/postern-gate/postern/internal/state/undo"
)

// MaxEdit bounds the size in bytes of a file that Edit takes into memory.
const MaxEdit = 16 << 20

var (
	writeActions  = []core.Action{core.FSWrite}
	createActions = []core.Action{core.FSCreate}
	editActions   = []core.Action{core.FSRead, core.FSWrite}
)

// fileMode is the mode of a new file before the umask, dirMode of a directory.
const (
	fileMode = 0o666
	dirMode  = 0o777
)

// Write replaces the whole content of a file, or makes it. Mode, owner and
// attributes of an existing file stay, or the call is refused. A content that
// carries the envelope's escaped form of a tag, where the file has not, is
// refused with text.escaped: it would write back what only the reader saw.
func (g *Gate) Write(ctx context.Context, spelling string, content []byte, call Call) (Outcome, error) {
	c := writing(spelling, call)
	c.proposed = &content
	c.check = func(context.Context) error {
		if err := c.canPut((*pathguard.Target).CanReplace); err != nil {
			return err
		}
		return c.keepsEscapes(content)
	}
	c.writes(func() io.Reader { return bytes.NewReader(content) }, fileMode)
	return g.cross(ctx, c)
}

// Edit replaces the content by what change makes of it. Read and write happen
// under one lock, so that parallel edits all land. change sees the bytes that
// are replaced and no others; its error refuses the call. The diff of an edit
// shows content, so reading must be allowed too. Where a person is asked about
// that, nothing that depends on the content is told before the yes, which is for
// what Asking.Digest stands for: change is called before it for the person's card
// alone.
func (g *Gate) Edit(ctx context.Context, spelling string, change func([]byte) ([]byte, error), call Call) (Outcome, error) {
	c := writing(spelling, call)
	c.operands[0].actions, c.operands[0].onNew = editActions, nil
	var changed []byte
	c.proposed = &changed
	c.edits = change
	c.check = func(context.Context) error {
		o := &c.operands[0]
		if !o.target.Exists() {
			return missing(o)
		}
		known, err := c.mayRead(o.name.Resource())
		var before []byte
		if err == nil && known {
			before, err = o.content()
		}
		if err == nil {
			err = o.target.CanReplace()
		}
		if err == nil && known {
			changed, err = change(before)
		}
		return err
	}
	c.writes(func() io.Reader { return bytes.NewReader(changed) }, fileMode)
	return g.cross(ctx, c)
}

// Append adds to the end of a file, or makes it.
func (g *Gate) Append(ctx context.Context, spelling string, content []byte, call Call) (Outcome, error) {
	c := writing(spelling, call)
	c.proposed, c.appends, c.flags = &content, true, []Detail{{"mode", "append"}}
	c.check = func(context.Context) error {
		if err := c.canPut((*pathguard.Target).CanAppend); err != nil {
			return err
		}
		return c.keepsEscapes(content)
	}
	c.writes(func() io.Reader { return bytes.NewReader(content) }, fileMode)
	c.appending(content)
	return g.cross(ctx, c)
}

// appending makes a write one that adds to the file, where there is one.
func (c *crossing) appending(content []byte) {
	o, steps, stage := &c.operands[0], c.steps, c.stage
	c.steps = func(ctx context.Context) ([]*undo.Planned, error) {
		if !o.target.Exists() {
			return steps(ctx)
		}
		p := planned(undo.Append, o.target)
		p.Added = int64(len(content))
		return one(p)
	}
	c.stage = func(w pathguard.WriteOptions) (*pathguard.Staged, error) {
		if !o.target.Exists() {
			return stage(w)
		}
		return nil, nil //nolint:nilnil // nothing is staged
	}
	c.perform = func(context.Context) error {
		if c.staged != nil {
			return c.put()
		}
		return c.wrote(o.target.Append(content, c.options()))
	}
}

func writing(spelling string, call Call) *crossing {
	return &crossing{
		action: core.FSWrite, call: call, discards: "This call overwrites " + spelling,
		operands: []operand{{spelling: spelling, use: useTarget, actions: writeActions, onNew: createActions}},
	}
}

func (c *crossing) wrote(w pathguard.Written, err error) error {
	if err == nil {
		c.outcome.written(w)
		c.did(0, w.Info.Fingerprint.Facts())
	}
	return err
}

// keepsEscapes refuses content that may carry what only a reader was shown: the
// escaped form of a tag that the file has not, or that it has beside live
// ones. A file that can't be read tells nothing here either.
func (c *crossing) keepsEscapes(content []byte) error {
	o := &c.operands[0]
	escapes := untrusted.Escapes(string(content))
	if escapes == 0 {
		return nil
	}
	refusal := &fault.Error{Code: fault.TextEscaped, Resource: o.name.Resource().String()}
	if !o.target.Exists() {
		refusal.Rule = "the content holds the escaped form of an envelope's tag, which may come from what was shown of another file"
		refusal.Hint = "write the file without that place, and put it in with edit_file"
		return refusal
	}
	if c.gate.evaluate(core.FSRead, o.name.Resource()).Decision != core.Allow {
		return refusal
	}
	before, err := o.content()
	if err != nil {
		return err
	}
	shown := untrusted.Bare(untrusted.File, string(before)).String()
	if escapes > untrusted.Escapes(string(before)) || shown != string(before) {
		return refusal
	}
	return nil
}

// canPut refuses what the system would, before anything is done.
func (c *crossing) canPut(change func(*pathguard.Target) error) error {
	t := c.operands[0].target
	if !t.Exists() {
		return t.CanCreate()
	}
	return change(t)
}

// content reads the file that the target holds, by the judged name, and makes
// sure that it is the same one.
func (o *operand) content() ([]byte, error) {
	if !o.target.Exists() {
		return nil, &fault.Error{Code: fault.PathMissing, Resource: o.name.Resource().String()}
	}
	f, err := o.name.Open()
	if err != nil {
		return nil, err
	}
	defer f.Close()
	if err := contentRule(o.name.Resource(), f); err != nil {
		return nil, err
	}
	if f.Fingerprint() != o.target.Fingerprint() {
		return nil, &fault.Error{Code: fault.PreconditionFailed, Resource: o.name.Resource().String(), Retry: true}
	}
	return readAtMost(f, o.name, MaxEdit)
}

func readAtMost(f *pathguard.File, name pathguard.Name, limit int64) ([]byte, error) {
	if f.Size() > limit {
		return nil, &fault.Error{Code: fault.LimitExceeded, Resource: name.Resource().String(), Rule: "the file is larger than what is edited in memory"}
	}
	buf := make([]byte, f.Size())
	n, err := io.ReadFull(f, buf)
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		err = nil
	}
	return buf[:n], err
}
