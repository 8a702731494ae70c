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

// watch adds a checkpoint that was signed by the key of this log.
func (c *checker) watch(cp *seal.Checkpoint, kind Kind, name string) {
	if cp == nil {
		return
	}
	opened, err := c.o.Verifier.Open(cp.Note)
	switch {
	case err == nil:
		c.watches = append(c.watches, &watch{cp: opened, kind: kind, name: name})
	case kind != Anchor:
		c.problem(kind, "%s is not one of this log", name)
	case errors.Is(err, seal.ErrUnknownKey):
		c.problem(UnknownKey, "%s is of another log or key", name)
	default:
		c.problem(BadAnchor, "%s is not a signed checkpoint", name)
	}
}

// passed compares the tree with what is watched for at its size.
func (c *checker) passed() {
	for _, w := range c.watches {
		if w.cp.Size == c.edge.Size() {
			w.seen, w.fits, w.hashed = true, w.cp.Root == c.edge.Root(), c.file.Pruned
		}
	}
}

// present notices a checkpoint that is watched for.
func (c *checker) present(signed string) {
	for _, w := range c.watches {
		w.present = w.present || w.cp.Note == signed
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
	case !w.present && !w.hashed:
		c.problem(Checkpoint, "%s, of %d records, is no longer among the checkpoints of the log", w.name, w.cp.Size)
	}
}
