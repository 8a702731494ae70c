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
)

// nonblock keeps a fifo in a policy's place from holding up the start.
const nonblock = syscall.O_NONBLOCK

// exposed says how somebody else could change the file, or a link that leads to it,
// "" when nobody can, and whether that is sure.
func exposed(path string, info fs.FileInfo, accounts string) (how string, sure bool) {
	if st, ok := info.Sys().(*syscall.Stat_t); !ok || st.Uid != 0 && int(st.Uid) != os.Geteuid() {
		return "the file belongs to somebody else: a policy must be yours or root's", true
	}
	if access.File(path, info, accounts) != access.Nobody { // umask 002 is usual where everybody has a group of their own
		return "others can write the file: chmod go-w it, and setfacl -b it where it has an access list", true
	}
	for range maxLinks {
		folder, err := filepath.EvalSymlinks(filepath.Dir(path))
		if err != nil {
			return "its folder can't be found", true
		}
		doubt, sure := replaceable(folder, accounts)
		if sure {
			return doubt, true
		}
		how = cmp.Or(how, doubt)
		to, err := os.Readlink(path)
		if err != nil {
			return how, false
		}
		if !filepath.IsAbs(to) {
			to = filepath.Join(folder, to)
		}
		path = to
	}
	return "it is reached through too many links", true
}

// maxLinks is how many the kernel follows.
const maxLinks = 40

// replaceable says who else can put another file, or another link, in the place of
// one in the folder.
func replaceable(folder, accounts string) (how string, sure bool) {
	dir, err := os.Stat(folder)
	others := access.Anybody
	if err == nil {
		others = access.Folder(folder, dir, accounts)
	}
	switch others {
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
