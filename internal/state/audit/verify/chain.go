// SPDX-License-Identifier: Apache-2.0

package verify

import (
	"errors"
	"fmt"

	"github.com/postern-gate/postern/internal/state/audit/seal"
)

// open opens a note and says what is wrong with one that doesn't.
func (c *checker) open(signed string) (seal.Checkpoint, bool) {
	cp, err := c.o.Verifier.Open(signed)
	switch {
	case err == nil:
		c.opened++
		c.present(signed)
		return cp, true
	case errors.Is(err, seal.ErrUnknownKey):
		c.others++
		if other, err := seal.Peek(signed); err == nil && c.r.Signer == "" && other.Origin != c.r.Origin {
			c.r.Signer = other.Origin
		}
		c.problem(Foreign, "the checkpoint is not signed by the key of this log")
	case errors.Is(err, seal.ErrSignature):
		c.problem(Signature, "the checkpoint's signature is wrong: it was changed, or never signed")
	default:
		c.problem(Checkpoint, "the line is not a checkpoint in the form in which they are written")
	}
	return seal.Checkpoint{}, false
}

// fits tells whether the tree is the signed one.
func (c *checker) fits(cp seal.Checkpoint) bool {
	return cp.Size == c.edge.Size() && cp.Root == c.edge.Root()
}

// checkpoint checks a checkpoint's line against the lines before it.
func (c *checker) checkpoint(line []byte) {
	p, err := seal.ParseCheckpoint(line)
	if err != nil {
		c.problem(Checkpoint, "the line is not a checkpoint in the form in which they are written")
		c.link = max(c.link, loose)
		return
	}
	cp, ok := c.open(p.Note)
	if !ok {
		c.link = max(c.link, loose)
		return
	}
	if c.last != nil && cp.Size <= c.last.Size {
		c.problem(Sequence, "the checkpoint is of %d records, the one before of %d: it was moved or repeated", cp.Size, c.last.Size)
		return
	}
	if c.last != nil && c.link == linked && cp.Previous != c.last.After() {
		c.problem(Previous, "the checkpoint before this one is not the one at %s: one between was left out", c.lastAt)
	}
	c.compare(cp)
	prior, at := c.last, c.lastAt
	c.pass(cp)
	c.prior, c.priorAt = prior, at
}

// compare reports where the tree is not that of the checkpoint. After that it
// stays silent until one fits again: the same change shows in all that follow.
func (c *checker) compare(cp seal.Checkpoint) {
	switch {
	case c.fits(cp):
		c.suspect = false
	case !c.suspect:
		c.suspect = true
		c.mismatch(cp)
	case c.last != nil && cp.Size-c.last.Size != c.tail.leaves:
		c.problem(Sequence, "%d records stand between this checkpoint and the one before, signed are %d", c.tail.leaves, cp.Size-c.last.Size)
	}
}

func (c *checker) mismatch(cp seal.Checkpoint) {
	from, to := c.good.size+1, cp.Size
	switch have := c.edge.Size(); {
	case have < cp.Size:
		c.problem(Sequence, "%d of the records %d to %d, signed here, are missing between %s and this line", cp.Size-have, from, to, c.good)
	case have > cp.Size:
		c.problem(Sequence, "%d records too many between %s and this line, where the records %d to %d are signed", have-cp.Size, c.good, from, to)
	default:
		c.problem(Root, "the records %d to %d, between %s and this line, are not those that were signed", from, to, c.good)
	}
}

// pass goes on from a checkpoint that opened.
func (c *checker) pass(cp seal.Checkpoint) {
	c.last, c.link, c.prior = &cp, linked, nil
	c.lastAt = place{c.file.name, c.line, cp.Size}
	if !c.suspect {
		c.good = c.lastAt
	}
	c.tail = tail{file: c.file, after: c.line}
}

// head checks the first line of a segment, and takes up the tree there: its
// edge is that of a root that was signed.
func (c *checker) head(line []byte) {
	c.tail.after = c.line
	h, err := seal.ParseHead(line)
	if err != nil {
		c.problem(BadHead, "the segment's head is damaged")
		c.link = max(c.link, loose)
		c.torn()
		return
	}
	cp, ok := c.open(h.Note)
	if !ok {
		c.link = max(c.link, loose)
		c.torn()
		return
	}
	c.follows(h.Segment, cp)
	if c.suspect {
		c.note(Unchecked, c.file.name, c.line, "after the first change, the records between %s and this line were counted, not compared", c.good)
	}
	if !c.fits(cp) {
		c.rebase(h.Edge)
	}
	c.suspect = false
	c.pass(cp)
}

// follows checks that a head belongs after the segment before.
func (c *checker) follows(number int, cp seal.Checkpoint) {
	switch {
	case number != c.file.Number:
		c.problem(BadHead, "the head is that of segment %d", number)
	case c.file.Number == 1:
		if cp.Size != 0 || cp.Previous != "" {
			c.problem(BadHead, "the first segment does not begin with the empty tree")
		}
	case c.last != nil && cp.Note == c.last.Note:
		c.giveUp()
	case c.prior != nil && c.link != apart && cp.Note == c.prior.Note && c.priorAt.file == c.before.file.name:
		c.giveUpMore()
	case c.link == apart:
		c.afterGap(cp)
	default:
		c.goesOn(cp)
	}
}

// giveUp leaves what the segment before has after the checkpoint that the head
// repeats: it is no part of the log. An event has to say so.
func (c *checker) giveUp() {
	if c.before.leaves > 0 || c.before.torn > 0 {
		c.events.tails = append(c.events.tails, c.before)
		c.events.drop(c.before.file.name, c.before.after)
	}
}

// giveUpMore is giveUp where the disk failed with a checkpoint: its line is
// there, but nobody was told that it is, and the head repeats the one before.
func (c *checker) giveUpMore() {
	c.before.after = c.priorAt.line
	c.before.leaves += c.last.Size - c.prior.Size
	c.giveUp()
}

// torn reports a line without its end in the segment before, where nothing
// else can explain it.
func (c *checker) torn() {
	if c.before.torn > 0 {
		c.problemAt(c.before.file.name, c.before.torn, Torn, "the line has no end")
	}
}

// afterGap checks a head that follows hashes or a segment that is missing.
func (c *checker) afterGap(cp seal.Checkpoint) {
	c.torn()
	switch have := c.edge.Size(); {
	case c.hashed:
		if !c.fits(cp) {
			c.mismatch(cp)
		}
	case cp.Size > have && c.lost >= 0:
		c.r.Problems[c.lost].Text += fmt.Sprintf(", and with it the records %d to %d", have+1, cp.Size)
	case c.last != nil && cp.Size < c.last.Size:
		c.problem(BadHead, "the head is of %d records, and %d were signed before", cp.Size, c.last.Size)
	}
}

// goesOn checks a head that is not simply the last checkpoint again.
func (c *checker) goesOn(cp seal.Checkpoint) {
	c.torn()
	switch {
	case c.fits(cp) && c.link == loose, c.suspect && c.link == loose:
		// The line that it repeats is damaged, and that was said.
	case c.fits(cp):
		c.problem(Checkpoint, "the head repeats a checkpoint that the segment before does not have")
	case c.link == loose:
		c.mismatch(cp)
	default:
		c.problem(BadHead, "the head is of %d records, the segment before ends with %d: it does not go on from there", cp.Size, c.edge.Size())
	}
}

// rebase takes up another tree.
func (c *checker) rebase(e seal.Edge) {
	c.edge = e.Clone()
	for _, w := range c.watches.all {
		if w.cp.Size > e.Size() {
			w.seen = false
		}
	}
	c.passed()
}
