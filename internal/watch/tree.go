// SPDX-License-Identifier: Apache-2.0

package watch

import (
	"errors"

	"github.com/postern-gate/postern/core/pathguard"
)

// MostFolders is how many folders a Tree watches at most. It takes fewer where
// the system lets a user watch less than twice as many, so that others can too.
const MostFolders = 20_000

// ErrNoTree says that this system can't watch a tree.
var ErrNoTree = errors.New("changes beneath a folder can't be watched on this system")

// What says what happened to an entry.
type What uint8

// What a Tree tells. An entry that lost or got its name by a rename is Left and
// Arrived. Of a folder nothing else is told: what it holds tells of itself.
const (
	Made    What = iota + 1 // a file that was not there before
	Written                 // its content
	Left                    // its name is gone
	Arrived                 // something else has the name now
	// Missed: the kernel's queue ran over, or what is in a new folder is not
	// known. There is no name.
	Missed
	// Lost: the root Dir was removed or moved: nothing is seen there any more.
	Lost
	// Ready: every folder that was there at the start has been looked at.
	Ready
)

// TreeEvent is one change. Entry is a name in the directory Dir as the file
// system has it, not always one that can be joined to it.
type TreeEvent struct {
	What  What
	Dir   pathguard.Name
	Entry string
}

// TreeOptions are what a Tree watches.
type TreeOptions struct {
	Roots []pathguard.Name
	// Skip leaves an entry out, and what is beneath it.
	Skip func(entry string) bool
	// Tell is called from one goroutine. It must not block.
	Tell func(TreeEvent)
	// Most bounds the folders, 0 for MostFolders.
	Most int
}

// Extent is how much a Tree watches.
type Extent struct {
	Folders int
	Partial bool // there are more folders than it may watch
	Closed  int  // folders that can't be looked into
}
