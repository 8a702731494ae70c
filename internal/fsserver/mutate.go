// SPDX-License-Identifier: Apache-2.0

package fsserver

import (
	"context"
	"errors"

	"github.com/postern-gate/postern/core/fault"
	"github.com/postern-gate/postern/core/textsafe"
	"github.com/postern-gate/postern/core/untrusted"
	"github.com/postern-gate/postern/enforce"
	"github.com/postern-gate/postern/internal/fsserver/edit"
)

// done is the reply to a mutation: did says what was done, would what a dry
// run found that it would do. Both hold our words and the caller's own paths.
func (c *call) done(o enforce.Outcome, err error, did, would string) (reply, error) {
	r := reply{own: did, outcome: o}
	if o.DryRun {
		r.own = would
	}
	return r, err
}

func writeFile(ctx context.Context, c *call) (reply, error) {
	o, err := c.gate.Write(ctx, c.args.path, []byte(c.args.content), c.enforceCall())
	name := textsafe.Name(c.args.path)
	return c.done(o, err, "Successfully wrote to "+name, "Would write to "+name)
}

func appendFile(ctx context.Context, c *call) (reply, error) {
	o, err := c.gate.Append(ctx, c.args.path, []byte(c.args.content), c.enforceCall())
	name := textsafe.Name(c.args.path)
	return c.done(o, err, "Successfully appended to "+name, "Would append to "+name)
}

func createDirectory(ctx context.Context, c *call) (reply, error) {
	o, err := c.gate.MakeDir(ctx, c.args.path, c.enforceCall())
	name := textsafe.Name(c.args.path)
	return c.done(o, err, "Successfully created directory "+name, "Would create directory "+name)
}

func moveFile(ctx context.Context, c *call) (reply, error) {
	o, err := c.gate.Move(ctx, c.args.source, c.args.destination, c.enforceCall())
	names := textsafe.Name(c.args.source) + " to " + textsafe.Name(c.args.destination)
	return c.done(o, err, "Successfully moved "+names, "Would move "+names)
}

func copyFile(ctx context.Context, c *call) (reply, error) {
	o, err := c.gate.Copy(ctx, c.args.source, c.args.destination, c.enforceCall())
	names := textsafe.Name(c.args.source) + " to " + textsafe.Name(c.args.destination)
	return c.done(o, err, "Successfully copied "+names, "Would copy "+names)
}

func deleteFile(ctx context.Context, c *call) (reply, error) {
	o, err := c.gate.Delete(ctx, c.args.path, c.args.recursive, c.enforceCall())
	name := textsafe.Name(c.args.path)
	return c.done(o, err, "Successfully deleted "+name, "Would delete "+name)
}

// editFile answers with the diff, which a dry run shows too. Where an edit is
// refused, what the file has instead is shown apart from our words.
func editFile(ctx context.Context, c *call) (reply, error) {
	if err := edit.Check(c.args.edits); err != nil {
		return reply{}, refusedEdit(err)
	}
	var before, after []byte
	change := func(content []byte) ([]byte, error) {
		var err error
		before = content
		after, err = edit.Apply(content, c.args.edits)
		return after, refusedEdit(err)
	}
	o, err := c.gate.Edit(ctx, c.args.path, change, c.enforceCall())
	r := reply{outcome: o, kind: untrusted.File, etag: o.Etag}
	if err != nil {
		var refused *edit.Refusal
		if errors.As(err, &refused) { // that of the call, not one on a person's card
			c.detail = refused.Near
		}
		return r, err
	}
	diff, complete := edit.Diff(shown(o.Name), before, after)
	r.source, r.body = o.Name.String(), diff
	if complete {
		r.body = edit.Fence(diff)
	}
	return r, nil
}

func refusedEdit(err error) error {
	var r *edit.Refusal
	if !errors.As(err, &r) {
		return err
	}
	return &fault.Error{Code: r.Code, Rule: r.Because, Hint: r.Next, Err: r}
}
