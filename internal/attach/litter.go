// SPDX-License-Identifier: Apache-2.0

package attach

import (
	"io"
	"math"
	"path/filepath"
	"slices"

	"github.com/postern-gate/postern/core/pathguard"
	"github.com/postern-gate/postern/internal/state/litter"
)

// sweep removes what a killed init has left beside the files that it is
// remembered to have written. That is ours, and nothing else is taken for it, if
// beside what litter.Sweep wants it is this user's, and it is empty, or its
// content is one that was being written or displaced.
func (d *disk) sweep(all []record) {
	for _, r := range all {
		root, real := d.project, r.Path
		if !d.holds(r.Path) {
			var err error
			if real, err = resolve(r.Path); err != nil {
				continue
			}
			root = existing(filepath.Dir(real))
		}
		name, err := d.parse(root, real)
		if err != nil {
			continue
		}
		if dir, ok := name.Parent(); ok {
			sums := append(slices.Clone(r.Temps), r.Sum)
			litter.Sweep(dir, math.MaxInt, func(n pathguard.Name, _ pathguard.Info) bool { return remembered(n, sums) && ours(n) })
		}
	}
}

// remembered reports whether the file is empty or has one of the sums.
func remembered(name pathguard.Name, sums []string) bool {
	f, err := name.Open()
	if err != nil {
		return false
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, maxFile+1))
	return err == nil && (len(text) == 0 || slices.Contains(sums, hash(text)))
}
