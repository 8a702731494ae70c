// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"context"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/postern-gate/postern/internal/attach"
)

// checkProgram: whoever can replace the program is the guard.
func checkProgram(_ context.Context, l *look) []Result {
	if attach.Installed(l.Self) != nil {
		return one(warn("go install ./cmd/postern, and run that one", "%s is a temporary program of go run: no client can start it later", l.Self))
	}
	if who := changeable(l.Self); who != "" {
		return one(fail("put it where only you and root can write, as with: install -m 755 "+l.Self+" ~/.local/bin/postern", "%s: %s", l.Self, who))
	}
	at, err := l.lookPath("postern")
	switch {
	case err != nil:
		return one(pass("%s, version %s; there is no postern in PATH", l.Self, l.Version))
	case !sameFile(at, l.Self):
		return one(warn("remove one of the two", "%s, version %s; in PATH there is another one: %s", l.Self, l.Version, at))
	}
	return one(pass("%s, version %s", l.Self, l.Version))
}

func (l *look) lookPath(name string) (string, error) {
	if l.World.LookPath == nil {
		return "", fs.ErrNotExist
	}
	at, err := l.World.LookPath(name)
	if err == nil {
		at, err = filepath.Abs(at)
	}
	return at, err
}

func sameFile(a, b string) bool {
	one, err1 := os.Stat(a)
	two, err2 := os.Stat(b)
	return err1 == nil && err2 == nil && os.SameFile(one, two)
}

// changeable says how somebody else than this user and root could change the
// file or put another one in its place, "" where nobody can.
func changeable(path string) string {
	real, err := filepath.EvalSymlinks(path)
	if err != nil {
		return "it can't be found"
	}
	info, err := os.Stat(real)
	switch {
	case err != nil || !info.Mode().IsRegular():
		return "it is not a file"
	case info.Mode().Perm()&0o022 != 0 && posix:
		return "others can write it"
	case foreign(info):
		return "it belongs to another user"
	}
	for dir := filepath.Dir(real); ; dir = filepath.Dir(dir) {
		info, err := os.Stat(dir)
		if err != nil {
			return "its folder can't be looked at"
		}
		if posix && info.Mode().Perm()&0o002 != 0 && info.Mode()&fs.ModeSticky == 0 || foreign(info) {
			return "somebody else can replace it, in " + dir
		}
		if dir == filepath.Dir(dir) {
			return ""
		}
	}
}
