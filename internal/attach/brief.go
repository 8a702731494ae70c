// SPDX-License-Identifier: Apache-2.0

package attach

import "github.com/postern-gate/postern/core/textsafe"

// mostShown is how many characters of a name from a client's file are shown: the
// names may be anybody's.
const mostShown = 80

// Brief draws a name from a client's file in a line that is read by its blanks:
// it is quoted where it holds one, and cut after 80 characters, "..." standing
// for the rest. Two names may look the same then.
func Brief(name string) string {
	n := 0
	for i := range name {
		if n++; n > mostShown {
			return textsafe.Word(name[:i]) + "..."
		}
	}
	return textsafe.Word(name)
}
