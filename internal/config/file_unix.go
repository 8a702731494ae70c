// SPDX-License-Identifier: Apache-2.0

//go:build unix

package config

import (
	"cmp"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"

	"github.com/postern-gate/postern/internal/config/access"
	"github.com/postern-gate/postern/internal/links"
)

// nonblock keeps a fifo in a policy's place from holding up the start.
const nonblock = syscall.O_NONBLOCK

// exposed says how somebody else could change the file, or a link on the way to it,
// "" when nobody can, and whether that is sure.
func exposed(path string, info fs.FileInfo, accounts string) (how string, sure bool) {
	if who := access.Stranger(info); who != "" {
		return "the file belongs to somebody else (" + who + "): a policy must be yours or root's", true
	}
	if access.File(path, info, accounts) != access.Nobody { // umask 002 is usual where everybody has a group of their own
		return "others can write the file: chmod go-w it, and setfacl -b it where it has an access list", true
	}
	way := links.Follow(path)
	for _, at := range append(way.Links, way.End) {
		doubt, sure := replaceable(at, accounts)
		if sure {
			return doubt, true
		}
		how = cmp.Or(how, doubt)
	}
	return how, false
}

// replaceable says who else can put another file, or another link, in the place of
// this one.
func replaceable(at, accounts string) (how string, sure bool) {
	folder := filepath.Dir(at)
	info, err := os.Lstat(at)
	dir, err2 := os.Stat(folder)
	if err != nil || err2 != nil {
		return "its folder can't be found", true
	}
	if who := access.Stranger(info); who != "" { // in a sticky folder its owner can
		return "the link " + at + " belongs to somebody else (" + who + "), who can replace it: use one of yours", true
	}
	if who := access.Stranger(dir); who != "" {
		return "the folder " + folder + " belongs to somebody else (" + who + "), who can replace the file: keep it in one of yours", true
	}
	switch access.Folder(folder, dir, accounts) {
	case access.Nobody:
		return "", false
	case access.Members:
		return "others can replace the file: chmod g-w its folder", true
	case access.Unknown:
		return "a group can replace the file, and who is in it can't be told: chmod g-w " + folder, false
	default:
		return "anybody can replace the file: chmod o-w its folder", true
	}
}
