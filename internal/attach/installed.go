// SPDX-License-Identifier: Apache-2.0

package attach

import (
	"path"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/postern-gate/postern/core/fault"
)

// Installed refuses a program that `go run` made: it is gone when it ends, so
// that no client could start it later.
func Installed(program string) error {
	dir := path.Dir(filepath.ToSlash(program))
	if !built().MatchString(dir) && !cached(dir) {
		return nil
	}
	return &fault.Error{
		Code: fault.RequestInvalid, Op: "attach", Resource: program,
		Rule: "this program is a temporary one of go run, and a client needs one that stays",
		Hint: "go install github.com/postern-gate/postern/cmd/postern@latest (in a clone: go install ./cmd/postern)",
	}
}

// built is where go run, and go test, link a program that they don't cache.
func built() *regexp.Regexp { return regexp.MustCompile(`(^|/)go-build[0-9]+/b[0-9]+(/exe)?$`) }

// cached holds for a folder of the build cache that a program lies in, wherever
// the cache is.
func cached(dir string) bool {
	sum, ok := strings.CutSuffix(path.Base(dir), "-d")
	return ok && len(sum) == 64 && strings.Trim(sum, "0123456789abcdef") == "" && path.Base(path.Dir(dir)) == sum[:2]
}
