// SPDX-License-Identifier: Apache-2.0

package verify

import (
	"errors"

	"github.com/postern-gate/postern/internal/state/audit/seal"
)

// watch is a checkpoint from outside the log, whose tree the log must have had
// at its size.
type watch struct {
	cp      seal.Checkpoint
	kind    Kind
	name    string
	seen    bool // the tree had this size
	fits    bool // with this root
	present bool // the log has this very checkpoint
	hashed  bool // that size lies where only hashes are left
}

// watches are found by the size and by the note, since there may be thousands.
type watches struct {
	all    []*watch
	bySize map[int64][]*watch
	byNote map[string][]*watch
}

func (w *watches) add(one *watch) {
	w.all = append(w.all, one)
	w.bySize[one.cp.Size] = append(w.bySize[one.cp.Size], one)
	w.byNote[one.cp.Note] = append(w.byNote[one.cp.Note], one)
}

// anchors watches for each checkpoint that was kept elsewhere, once.
func (c *checker) anchors() {
	all := c.o.Anchors
	if c.o.Anchor != nil {
		all = append(all[:len(all):len(all)], *c.o.Anchor)
	}
	if len(all) > 0 {
		c.r.Anchors = &Anchors{}
	}
	seen := map[string]bool{}
	for i := range all {
		if !seen[all[i].Note] {
			c.watch(&all[i], Anchor, "the anchor")
		}
		seen[all[i].Note] = true
	}
}

// watch adds a checkpoint that was signed by the key of this log.
func (c *checker) watch(cp *seal.Checkpoint, kind Kind, name string) {
	if cp == nil {
		return
	}
	opened, err := c.o.Verifier.Open(cp.Note)
	switch {
	case err == nil:
		c.watches.add(&watch{cp: opened, kind: kind, name: name})
	case kind != Anchor:
		c.problem(kind, "%s is not one of this log", name)
	case errors.Is(err, seal.ErrUnknownKey):
		c.problem(UnknownKey, "%s is of another log or key%s", name, whose(cp.Note, c.r.Origin))
	default:
		c.problem(BadAnchor, "%s is not a signed checkpoint", name)
	}
}

// passed compares the tree with what is watched for at its size.
func (c *checker) passed() {
	for _, w := range c.watches.bySize[c.edge.Size()] {
		w.seen, w.fits, w.hashed = true, w.cp.Root == c.edge.Root(), c.file.Pruned
	}
}

// present notices a checkpoint that is watched for.
func (c *checker) present(signed string) {
	for _, w := range c.watches.byNote[signed] {
		w.present = true
	}
}

// outcome reports what became of a watched checkpoint.
func (c *checker) outcome(w *watch) {
	switch have := c.edge.Size(); {
	case have < w.cp.Size || c.r.Segments == 0:
		c.problem(Truncated, "%s is of %d records, and the log has %d", w.name, w.cp.Size, have)
	case !w.seen:
		c.note(Unchecked, "", 0, "%s is of %d records, which lie where records are lost", w.name, w.cp.Size)
	case !w.fits:
		c.problem(w.kind, "the first %d records are not those of %s", w.cp.Size, w.name)
	case !w.present && !w.hashed && (w.cp.Size > 0 || c.r.Pruned == 0):
		c.problem(Checkpoint, "%s, of %d records, is no longer among the checkpoints of the log", w.name, w.cp.Size)
	case w.kind == Anchor:
		c.r.Anchors.Checked++
		c.r.Anchors.Newest = max(c.r.Anchors.Newest, w.cp.Size)
	}
}

// whose names the log of a note that is of another one.
func whose(signed, origin string) string {
	cp, err := seal.Peek(signed)
	if err != nil || cp.Origin == origin {
		return ""
	}
	return ": " + cp.Origin
}
