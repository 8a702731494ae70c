// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"context"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/postern-gate/postern/core/textsafe"
	"github.com/postern-gate/postern/internal/attach"
	"github.com/postern-gate/postern/internal/config/access"
	"github.com/postern-gate/postern/internal/links"
)

// checkProgram: whoever can replace the program is the guard.
func checkProgram(_ context.Context, l *look) []Result {
	if attach.Installed(l.Self) != nil {
		return one(warn("go install ./cmd/postern, and run that one", "%s is a temporary program of go run: no client can start it later", l.Self))
	}
	if e := changeable(l.Self, l.Policy.Accounts); e.how != "" {
		return one(e.finding("put it where only you and root can write, as with: install -m 755 "+l.Self+" ~/.local/bin/postern", "%s: %s", l.Self, e.how))
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

// exposure is how somebody else than this user and root could change a file or
// put another one in its place. The zero value is that nobody can.
type exposure struct {
	how  string
	at   string // whose mode says so
	sure bool   // false where it can't be told who is in a group
	who  string // owns that, "" for this user or root
}

// hint is what to do about a file that stays where it is: no mode helps against who
// owns a folder above it.
func (e exposure) hint() string {
	if e.who != "" {
		return "keep it beneath folders that only you and root own, or ask " + e.who + " for " + textsafe.Word(e.at)
	}
	return "let nobody but you write it: chmod go-w " + textsafe.Word(e.at)
}

// finding is a failure, or a warning of what isn't sure.
func (e exposure) finding(hint, format string, a ...any) Result {
	if !e.sure {
		return warn("look who is in that group, or: chmod g-w "+textsafe.Word(e.at), format, a...)
	}
	return fail(hint, format, a...)
}

// changeable says how a file is exposed, by its own mode, by the links on the way to
// it and by the folders above each.
// Accounts is as in config.Options.
func changeable(path, accounts string) exposure {
	real, err := filepath.EvalSymlinks(path)
	if err != nil {
		return exposure{how: "it can't be found", at: path, sure: true}
	}
	info, err := os.Stat(real)
	switch {
	case err != nil || !info.Mode().IsRegular():
		return exposure{how: "it is not a file", at: real, sure: true}
	case info.Mode().Perm()&0o022 != 0 && posix:
		return exposure{how: "others can write it", at: real, sure: true}
	case access.Stranger(info) != "":
		return exposure{"it belongs to another user", real, true, access.Stranger(info)}
	}
	var doubt exposure
	way := links.Follow(path)
	for _, at := range append(way.Links, way.End) {
		switch e := replaceable(at, accounts); {
		case e.sure:
			return e
		case doubt.how == "":
			doubt = e
		}
	}
	return doubt
}

// replaceable says how another file, or another link, could come in the place of
// this one.
func replaceable(at, accounts string) (doubt exposure) {
	if info, err := os.Lstat(at); err != nil || access.Stranger(info) != "" {
		return exposure{how: "the link " + at + " to it belongs to another user", at: at, sure: true}
	}
	for dir := filepath.Dir(at); ; dir = filepath.Dir(dir) {
		info, err := os.Stat(dir)
		if err != nil {
			return exposure{how: "its folder can't be looked at", at: dir, sure: true}
		}
		who := access.Stranger(info)
		switch others := access.Folder(dir, info, accounts); {
		case who != "":
			return exposure{"somebody else can replace it, in " + dir + ", which belongs to " + who, dir, true, who}
		case others == access.Anybody, others == access.Members:
			return exposure{how: "somebody else can replace it, in " + dir, at: dir, sure: true}
		case others == access.Unknown && doubt.how == "":
			doubt = exposure{how: "a group can replace it, and who is in it can't be told, in " + dir, at: dir}
		}
		if dir == filepath.Dir(dir) {
			return doubt
		}
	}
}
