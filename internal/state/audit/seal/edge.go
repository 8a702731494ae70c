// SPDX-License-Identifier: Apache-2.0

// Package seal makes a sequence of lines one that can't change unseen: an
// RFC 6962 tree over the exact bytes of each line, whose root is signed from
// time to time as a C2SP checkpoint. It does no I/O.
//
// Guaranteed: two different sequences of lines never have the same root, and a
// checkpoint that opens was signed by its key. Not guaranteed: that there is
// no later checkpoint; whoever cuts off the newest ones can only be found out
// by somebody who kept one elsewhere.
package seal

import (
	"crypto/sha256"
	"errors"
	"math/bits"
	"slices"

	"golang.org/x/mod/sumdb/tlog"
)

// Hash is a node of the tree.
type Hash = tlog.Hash

// HashSize is the size of a Hash in bytes.
const HashSize = tlog.HashSize

// Edge is the right edge of a tree: the roots of its perfect subtrees, the
// largest first. It is all that is needed to add leaves and to tell the root;
// for size leaves it holds as many hashes as size has one-bits. The zero value
// is the empty tree.
type Edge struct {
	size  int64
	roots []Hash
	buf   []byte // of AddLine
}

// NewEdge returns the edge with the given hashes, or an error where their
// number doesn't fit the size.
func NewEdge(size int64, roots []Hash) (Edge, error) {
	if size < 0 || bits.OnesCount64(uint64(size)) != len(roots) {
		return Edge{}, errors.New("the edge doesn't fit its size")
	}
	return Edge{size: size, roots: slices.Clone(roots)}, nil
}

// Clone returns an edge that grows by itself.
func (e *Edge) Clone() Edge { return Edge{size: e.size, roots: slices.Clone(e.roots)} }

// Size returns the number of leaves.
func (e *Edge) Size() int64 { return e.size }

// Hashes returns the roots of the perfect subtrees, the largest first.
func (e *Edge) Hashes() []Hash { return slices.Clone(e.roots) }

// AddLine adds a leaf: the bytes of a line without its line end.
func (e *Edge) AddLine(line []byte) {
	e.buf = append(append(e.buf[:0], 0), line...) // RFC 6962, section 2.1: leaves are hashed after a zero byte
	e.Add(sha256.Sum256(e.buf))
}

// Leaf returns the hash of a line as AddLine adds it.
func Leaf(line []byte) Hash { return tlog.RecordHash(line) }

// Add adds a leaf by its hash.
func (e *Edge) Add(leaf Hash) {
	h := leaf
	for n := e.size; n&1 == 1; n >>= 1 {
		last := len(e.roots) - 1
		h = node(e.roots[last], h)
		e.roots = e.roots[:last]
	}
	e.roots = append(e.roots, h)
	e.size++
}

// Root returns the root of the tree, for no leaves the hash of nothing.
func (e *Edge) Root() Hash {
	if e.size == 0 {
		return sha256.Sum256(nil)
	}
	h := e.roots[len(e.roots)-1]
	for _, left := range slices.Backward(e.roots[:len(e.roots)-1]) {
		h = node(left, h)
	}
	return h
}

// node is the hash of an inner node, without tlog.NodeHash's allocation.
func node(left, right Hash) Hash {
	var b [1 + 2*HashSize]byte
	b[0] = 1
	copy(b[1:], left[:])
	copy(b[1+HashSize:], right[:])
	return sha256.Sum256(b[:])
}
