// SPDX-License-Identifier: Apache-2.0

package enforce

import (
	"time"

	"github.com/postern-gate/postern/core/pathguard"
	"github.com/postern-gate/postern/internal/state/litter"
)

// clockSlack is how far the time of a file may lie before that of a record
// which was made before it: file systems take it from a coarser clock.
const clockSlack = 20 * time.Millisecond

// sweep removes from the folders of killed writes what those left unfinished.
// It is theirs, and nothing else is taken for it, if all of this holds beside
// what litter.Sweep wants: every killed change in that folder is known to have
// had no effect, so that nothing there is a former content; there are no more
// such files than changes; the file was born after the record of the earliest
// of them. Whatever is not sure stays, hidden from agents by its name.
func sweep(all []casualty) {
	folders := map[pathguard.Name][]casualty{}
	for _, c := range all {
		if dir, ok := c.name.Parent(); ok && c.known {
			folders[dir] = append(folders[dir], c)
		}
	}
	for dir, dead := range folders {
		since := dead[0].Time
		for _, c := range dead {
			if c.found != foundUnchanged {
				since = time.Time{}
				break
			}
			if c.Time.Before(since) {
				since = c.Time
			}
		}
		if since.IsZero() {
			continue
		}
		litter.Sweep(dir, len(dead), func(_ pathguard.Name, info pathguard.Info) bool {
			return info.BirthTime.After(since.Add(-clockSlack)) // not known is never after
		})
	}
}
