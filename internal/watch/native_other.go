// SPDX-License-Identifier: Apache-2.0

//go:build !linux

package watch

import "github.com/postern-gate/postern/core/pathguard"

// native is nothing here: what these systems have takes a name.
type native struct{}

func (*native) add(*pathguard.Dir, func(Event)) (stop func(), err error) { return nil, errNoKernel }
