// SPDX-License-Identifier: Apache-2.0

//go:build postern_next_layout

package state

// Version is one that no release has. Tests build this program with the tag
// postern_next_layout and run it beside one without: what happens when a newer
// postern changes the layout can't be left to the day when one does.
const Version = "3"

func later() []step {
	return []step{{"2", "3", func(Dir) error { return nil }}}
}
