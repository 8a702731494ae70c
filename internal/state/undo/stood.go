// SPDX-License-Identifier: Apache-2.0

package undo

import (
	"crypto/sha256"
	"fmt"
	"slices"

	"github.com/postern-gate/postern/core/pathguard"
)

// maxStood is how many folders of one that is moved are written down. What more it
// holds is not known to have been there.
const maxStood = 4096

// stoodSum tells one folder at one name, in less than its name takes.
type stoodSum [8]byte

func sumOf(rel string, f Folder, mode uint32) stoodSum {
	sum := sha256.Sum256(fmt.Appendf(nil, "%d %d %o %s", f.Ino, f.Born, mode, rel))
	return stoodSum(sum[:len(stoodSum{})])
}

// Stand notes what stands beneath a folder that the step is about to move. Only folders
// are noted: of anything else its own time of change tells whether it came since, but of
// a folder that time tells as well that a change was made in it.
func (s *Step) Stand(rel string, f pathguard.Facts) {
	if sum := sumOf(rel, folderIn(f), f.Mode); f.Kind() == pathguard.KindDir && len(s.Stood) < maxStood*len(sum) {
		s.Stood = append(s.Stood, sum[:]...)
	}
}

// StoodAt returns what is true for a folder that was beneath the moved one under this
// name when the step moved it, or that an undo made in the place of such a one. Its mode
// is what it was then. A step of an older postern knows of none.
func (x *Index) StoodAt(s *Step) func(rel string, now pathguard.Facts) bool {
	stood := map[stoodSum]bool{}
	for sum := range slices.Chunk(s.Stood, len(stoodSum{})) {
		if len(sum) == len(stoodSum{}) {
			stood[stoodSum(sum)] = true
		}
	}
	return func(rel string, now pathguard.Facts) bool {
		if now.Kind() != pathguard.KindDir || len(stood) == 0 {
			return false
		}
		f := folderIn(now)
		for range len(x.remade) + 1 {
			if stood[sumOf(rel, f, now.Mode)] {
				return true
			}
			next, ok := x.remade[f]
			if !ok {
				break
			}
			f = next
		}
		return false
	}
}
