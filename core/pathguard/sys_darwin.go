// SPDX-License-Identifier: Apache-2.0

package pathguard

import "golang.org/x/sys/unix"

// oPath is the nearest to an open that touches nothing: read permission is
// needed, nothing waits, a link is opened itself.
const oPath = unix.O_RDONLY | unix.O_NONBLOCK | unix.O_NOCTTY | unix.O_SYMLINK

func fromStat(st *unix.Stat_t) stat {
	return stat{
		ident: ident{uint64(st.Dev), st.Ino}, size: st.Size, mode: uint32(st.Mode), nlink: uint32(st.Nlink),
		uid: st.Uid, gid: st.Gid, atime: st.Atim.Nano(), mtime: st.Mtim.Nano(), ctime: st.Ctim.Nano(), btime: st.Btim.Nano(),
	}
}

func renameExchange(dir int, a, b string) error {
	return unix.RenameatxNp(dir, a, dir, b, unix.RENAME_SWAP)
}

func renameNew(oldDir int, old string, newDir int, name string) error {
	return unix.RenameatxNp(oldDir, old, newDir, name, unix.RENAME_EXCL)
}
