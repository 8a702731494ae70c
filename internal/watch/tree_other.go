// SPDX-License-Identifier: Apache-2.0

//go:build !linux

package watch

import "context"

// Tree is nothing here: what these systems have takes a name.
type Tree struct{}

// OpenTree fails with ErrNoTree.
func OpenTree(TreeOptions) (*Tree, error) { return nil, ErrNoTree }

// Run does nothing.
func (*Tree) Run(context.Context) {}

// Extent is zero.
func (*Tree) Extent() Extent { return Extent{} }
