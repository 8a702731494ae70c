// SPDX-License-Identifier: Apache-2.0

package pathguard

import "golang.org/x/sys/unix"

// oPath opens a name without opening what it names; O_PATH of FreeBSD 13,
// sys/fcntl.h, which x/sys does not name.
const oPath = 0x400000

func fromStat(st *unix.Stat_t) stat {
	return stat{
		ident: ident{uint64(st.Dev), st.Ino}, size: st.Size, mode: uint32(st.Mode), nlink: uint32(st.Nlink),
		uid: st.Uid, gid: st.Gid, atime: st.Atim.Nano(), mtime: st.Mtim.Nano(), ctime: st.Ctim.Nano(), btime: st.Btim.Nano(),
	}
}

func renameExchange(int, string, string) error { return unix.ENOSYS }

func renameNew(int, string, int, string) error { return unix.ENOSYS }
