// SPDX-License-Identifier: Apache-2.0

package enforce

import (
	"context"
	"io"
	"io/fs"
	"os"

	"github.com/postern-gate/postern/core"
	"github.com/postern-gate/postern/core/fault"
	"github.com/postern-gate/postern/core/pathguard"
	"github.com/postern-gate/postern/internal/state/undo"
)

// takeBack is one step that is taken back, as a crossing of its own.
type takeBack struct {
	gate  *Gate
	log   *undo.Log
	index *undo.Index
	e     *undo.Entered
	id    string
	n     int
	image *os.File // of a copy
	lost  string   // why what it would take away could not be kept
	left  map[pathguard.Facts]bool
	needs map[string]bool
	made  []string // images of what it took away
}

const (
	ruleImageGone    = "what was there before is no longer kept: it was removed by the bounds, or by somebody"
	ruleImageChanged = "what was kept of it was changed since"
	ruleChanged      = "it changed since"
	ruleLink         = "a folder of its name is a link now"
	ruleTaken        = "something has the name now"
	ruleGone         = "it is gone"
	ruleNoFolder     = "the folder that it was in is gone"
)

func (b *takeBack) run(ctx context.Context) (pathguard.Facts, error) {
	defer func() {
		if b.image != nil {
			_ = b.image.Close()
		}
	}()
	c := &crossing{corr: b.id, call: Call{Confirm: true}, discards: "This undo changes " + b.e.String()}
	c.undoes, c.first, c.takesBack, c.wanted = true, b.n, b.e.Txn.Corr, b.needs
	at := b.e.Place
	if b.e.Do == undo.Rename {
		at = *b.e.To
	}
	c.operands = []operand{{spelling: at.String(), use: useEntry}}
	c.check = func(ctx context.Context) error { return b.check(ctx, c) }
	b.choose(c)
	c.operands[0].actions = []core.Action{c.action}
	_, err := b.gate.cross(ctx, c)
	b.lost = c.lost
	if c.taking != nil {
		for _, s := range c.taking.Steps {
			b.made = append(b.made, s.Image)
		}
	}
	return c.now, err
}

// choose picks what takes the step back.
func (b *takeBack) choose(c *crossing) {
	switch b.e.Do {
	case undo.Replace:
		b.restore(c)
	case undo.Create, undo.Mkdir:
		b.remove(c)
	case undo.Remove:
		b.recreate(c)
	case undo.Rename:
		b.renameBack(c)
	case undo.Append:
		b.shorten(c)
	case undo.Truncate:
		b.lengthen(c)
	}
}

// check is the conflict check: what is there must be what the step left, under
// the name that it had, with no link on the way.
func (b *takeBack) check(ctx context.Context, c *crossing) error {
	for i := range c.operands {
		if o := &c.operands[i]; o.name.String() != o.spelling {
			return b.conflict(o, ruleLink)
		}
	}
	last := &c.operands[len(c.operands)-1] // the name that it had: of a rename the second
	if b.e.Up != (undo.Folder{}) && !b.index.SameFolder(folderOf(last.target), b.e.Up) {
		return b.conflict(last, undo.RuleFolder)
	}
	o, t := &c.operands[0], c.operands[0].target
	var now, back pathguard.Facts
	if t.Exists() {
		now = t.Fingerprint().Facts()
	}
	if b.e.Do == undo.Rename && last.target.Exists() {
		back = last.target.Fingerprint().Facts()
	}
	switch rule := asLeft(b.index, b.e, now, back); rule {
	case "":
	case ruleTaken:
		return b.conflict(last, rule)
	default:
		return b.conflict(o, rule)
	}
	left := func(_ pathguard.Name, f pathguard.Facts) bool { return b.left[f] }
	if err := untouched(b.e, now, b.beneath(ctx, t), left); err != nil {
		return err
	}
	return b.kept()
}

// asLeft is why what is there is not what the step left. back is what has the name
// that it would get back.
func asLeft(x *undo.Index, e *undo.Entered, now, back pathguard.Facts) string {
	none := now == pathguard.Facts{}
	switch {
	case e.Do == undo.Remove && !none:
		return ruleTaken
	case e.Do != undo.Remove && none:
		return ruleGone
	case !x.Left(e, now):
		return ruleChanged
	case back != pathguard.Facts{}:
		return ruleTaken
	}
	return ""
}

func (b *takeBack) conflict(o *operand, rule string) error {
	return &fault.Error{Code: fault.PreconditionFailed, Resource: o.spelling, Rule: rule}
}

func (b *takeBack) beneath(ctx context.Context, t *pathguard.Target) folder {
	return func(visit func(pathguard.Name, pathguard.Facts) error) error {
		return t.Descendants(ctx, b.gate.o.MaxEntries, func(n pathguard.Name, info pathguard.Info) error {
			return visit(n, info.Fingerprint.Facts())
		})
	}
}

// untouched makes sure that a directory which would be taken away holds
// nothing that came after it, or changed since. left are what the undo itself left.
func untouched(e *undo.Entered, now pathguard.Facts, beneath folder, left func(pathguard.Name, pathguard.Facts) bool) error {
	if e.Do != undo.Mkdir && e.Do != undo.Create || now.Kind() != pathguard.KindDir {
		return nil
	}
	return beneath(func(n pathguard.Name, f pathguard.Facts) error {
		if e.Do == undo.Mkdir {
			return &fault.Error{Code: fault.PreconditionFailed, Resource: n.String(), Rule: "it is not empty"}
		}
		if f.CTime > e.Began.UnixNano() && !left(n, f) {
			return &fault.Error{Code: fault.PreconditionFailed, Resource: n.String(), Rule: "something beneath it changed since"}
		}
		return nil
	})
}

// kept makes sure that the image is what it was.
func (b *takeBack) kept() error {
	if b.e.Image == "" || b.e.Do == undo.Create || b.log.Present(b.e) {
		return nil
	}
	rule := ruleImageChanged
	if b.log.Image(b.e) == (pathguard.Facts{}) {
		rule = ruleImageGone
	}
	return &fault.Error{Code: fault.IOFailed, Resource: b.e.String(), Rule: rule}
}

// planned is the step that takes this one back.
func (b *takeBack) planned(do undo.Do, c *crossing) *undo.Planned {
	p := planned(do, c.operands[0].target)
	p.Of = &undo.Ref{ID: b.e.Txn.ID, N: b.e.N}
	return p
}

func (b *takeBack) steps(c *crossing, do undo.Do, fill func(*undo.Planned)) {
	c.steps = func(context.Context) ([]*undo.Planned, error) {
		p := b.planned(do, c)
		fill(p)
		return one(p)
	}
}

// restore gives a file its former content.
func (b *takeBack) restore(c *crossing) {
	c.action = core.FSWrite
	if b.e.How == undo.Copied {
		b.fromCopy(c, undo.Replace)
		return
	}
	b.bring(c, undo.Replace, undo.Exchanged, (*pathguard.Target).Exchange)
}

// recreate gives a name back what it had.
func (b *takeBack) recreate(c *crossing) {
	c.action = core.FSCreate
	defer b.judged(c, func(ctx context.Context, of policies) error { return of.judgeKept(ctx, b.log, b.e, c.operands[0].name) })
	switch b.e.How {
	case undo.Copied:
		b.fromCopy(c, undo.Create)
	case "":
		b.steps(c, undo.Mkdir, func(*undo.Planned) {})
		c.perform = func(context.Context) error {
			err := c.operands[0].target.Mkdir(fs.FileMode(b.e.Was.Mode & 0o777))
			if err == nil {
				c.did(0, facts(c.operands[0].name))
			}
			return err
		}
	default:
		b.bring(c, undo.Create, undo.Adopted, (*pathguard.Target).Adopt)
	}
}

// bring gives the place to the image itself.
func (b *takeBack) bring(c *crossing, do undo.Do, how undo.How, move func(*pathguard.Target, *pathguard.Store, string, pathguard.Facts) (pathguard.Written, error)) {
	var held pathguard.Facts
	b.steps(c, do, func(p *undo.Planned) {
		held = b.log.Image(b.e)
		p.How, p.Bring, p.Held = how, b.e.Image, held
	})
	c.perform = func(context.Context) error {
		if c.entry == nil {
			return &fault.Error{Code: fault.IOFailed, Resource: b.e.String(), Rule: c.lost}
		}
		return c.wrote(move(c.operands[0].target, c.entry.Store(), b.e.Image, held))
	}
}

// fromCopy writes what an image holds, and gives it what the file had.
func (b *takeBack) fromCopy(c *crossing, do undo.Do) {
	b.steps(c, do, func(*undo.Planned) {})
	c.stage = func(o pathguard.WriteOptions) (*pathguard.Staged, error) {
		var err error
		if b.image, err = b.log.OpenImage(b.e); err != nil {
			return nil, &fault.Error{Code: fault.IOFailed, Resource: b.e.String(), Rule: ruleImageGone, Err: err}
		}
		o.Like = b.e.Like
		if do == undo.Replace {
			return c.operands[0].target.StageReplace(b.image, o)
		}
		return c.operands[0].target.StageCreate(b.image, 0o600, o)
	}
	c.perform = func(context.Context) error { return c.put() }
}

// remove takes away what was made.
func (b *takeBack) remove(c *crossing) {
	c.action = core.FSDelete
	c.steps = func(ctx context.Context) ([]*undo.Planned, error) {
		steps, err := c.removal(ctx)
		if err == nil {
			steps[0].Of = &undo.Ref{ID: b.e.Txn.ID, N: b.e.N}
		}
		return steps, err
	}
	c.perform = func(ctx context.Context) error {
		err := c.operands[0].target.RemoveAll(ctx, func(pathguard.Name) error { return nil }, c.options())
		if err == nil {
			c.did(0, pathguard.Facts{})
		}
		return err
	}
}

// renameBack moves an entry to the name that it had.
func (b *takeBack) renameBack(c *crossing) {
	c.action = core.FSRename
	c.operands = append(c.operands, operand{spelling: b.e.String(), use: useEntry, actions: []core.Action{core.FSRename}})
	from, to := &c.operands[0], &c.operands[1]
	c.moves(from, to)
	steps := c.steps
	c.steps = func(ctx context.Context) ([]*undo.Planned, error) {
		all, err := steps(ctx)
		if err == nil {
			all[0].Of = &undo.Ref{ID: b.e.Txn.ID, N: b.e.N}
		}
		return all, err
	}
	b.judged(c, func(ctx context.Context, of policies) error {
		return of.judgeMoved(b.index, b.e, from.name, to.name, from.target.Fingerprint().Facts(), b.beneath(ctx, from.target))
	})
}

// shorten takes away what was added.
func (b *takeBack) shorten(c *crossing) {
	c.action = core.FSWrite
	added := b.e.Now.Size - b.e.Was.Size
	b.steps(c, undo.Truncate, func(p *undo.Planned) { p.Tail, p.Added = added, added })
	c.perform = func(context.Context) error {
		return c.wrote(c.operands[0].target.Truncate(b.e.Was.Size, b.e.Was.MTime, pathguard.WriteOptions{}))
	}
}

// lengthen adds again what was taken away.
func (b *takeBack) lengthen(c *crossing) {
	c.action = core.FSWrite
	var tail []byte
	b.steps(c, undo.Append, func(p *undo.Planned) { p.Added = b.e.Added })
	c.perform = func(context.Context) error {
		f, err := b.log.OpenImage(b.e)
		if err != nil {
			return &fault.Error{Code: fault.IOFailed, Resource: b.e.String(), Rule: ruleImageGone, Err: err}
		}
		tail, err = io.ReadAll(f)
		_ = f.Close()
		if err != nil {
			return err
		}
		return c.wrote(c.operands[0].target.Append(tail, pathguard.WriteOptions{}))
	}
}
