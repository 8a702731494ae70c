// SPDX-License-Identifier: Apache-2.0

package attach

import (
	"path/filepath"
	"strings"

	"github.com/postern-gate/postern/core/fault"
)

// Installed refuses a program that `go run` made: it is gone when it ends, so
// that no client could start it later.
func Installed(program string) error {
	slashed := filepath.ToSlash(program)
	for part := range strings.SplitSeq(slashed, "/") {
		if strings.HasPrefix(part, "go-build") || cached(part) {
			return &fault.Error{
				Code: fault.RequestInvalid, Op: "attach", Resource: program,
				Rule: "this program is a temporary one of go run, and a client needs one that stays",
				Hint: "go install github.com/postern-gate/postern/cmd/postern@latest (in a clone: go install ./cmd/postern)",
			}
		}
	}
	return nil
}

// cached holds for a folder of the build cache that a program lies in, wherever
// the cache is.
func cached(part string) bool {
	sum, ok := strings.CutSuffix(part, "-d")
	return ok && len(sum) == 64 && strings.Trim(sum, "0123456789abcdef") == ""
}
