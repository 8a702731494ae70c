// SPDX-License-Identifier: Apache-2.0

package pathguard

import (
	"encoding/binary"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
)

// oPath opens a name without opening what it names: no permission on it is
// needed, a device sees nothing, a link is not followed.
const oPath = unix.O_PATH

// resolveHow lets one openat2 prove that a name is canonical: no component is
// a link, magic or not, and no mount point is crossed. See openat2(2).
const resolveHow = unix.RESOLVE_BENEATH | unix.RESOLVE_NO_SYMLINKS | unix.RESOLVE_NO_MAGICLINKS | unix.RESOLVE_NO_XDEV

func openBeneath(dir int, rel string, flags int, mode uint32) (int, error) {
	how := unix.OpenHow{Flags: uint64(flags), Mode: uint64(mode), Resolve: resolveHow}
	return unix.Openat2(dir, rel, &how)
}

// openPlain opens a directory by an absolute path in which nothing is a link;
// mount points are fine.
func openPlain(path string) (int, error) {
	const flags = oPath | unix.O_DIRECTORY | unix.O_NOFOLLOW | unix.O_CLOEXEC
	how := unix.OpenHow{Flags: flags, Resolve: unix.RESOLVE_NO_SYMLINKS | unix.RESOLVE_NO_MAGICLINKS}
	fd, err := unix.Openat2(unix.AT_FDCWD, path, &how)
	if err == unix.ENOSYS || err == unix.EPERM {
		return unix.Open(path, flags, 0)
	}
	return fd, err
}

const statMask = unix.STATX_BASIC_STATS | unix.STATX_BTIME | unix.STATX_MNT_ID

func statFD(fd int) (stat, error) { return statx(fd, "", unix.AT_EMPTY_PATH) }

// statAt looks at an entry itself, never through a link.
func statAt(dir int, entry string) (stat, error) {
	return statx(dir, entry, unix.AT_SYMLINK_NOFOLLOW|unix.AT_NO_AUTOMOUNT)
}

func statx(dir int, name string, flags int) (stat, error) {
	var x unix.Statx_t
	for {
		err := unix.Statx(dir, name, flags, statMask, &x)
		switch err {
		case nil:
			return fromStatx(&x), nil
		case unix.EINTR:
		case unix.ENOSYS, unix.EPERM:
			return fstatat(dir, name, flags)
		default:
			return stat{}, err
		}
	}
}

func fromStatx(x *unix.Statx_t) stat {
	s := stat{
		ident: ident{unix.Mkdev(x.Dev_major, x.Dev_minor), x.Ino},
		size:  int64(x.Size), mode: uint32(x.Mode), nlink: x.Nlink, uid: x.Uid, gid: x.Gid,
		atime: nanos(x.Atime), mtime: nanos(x.Mtime), ctime: nanos(x.Ctime),
		frozen: x.Attributes&(unix.STATX_ATTR_IMMUTABLE|unix.STATX_ATTR_APPEND) != 0,
	}
	if x.Mask&unix.STATX_BTIME != 0 {
		s.btime = nanos(x.Btime)
	}
	if x.Mask&unix.STATX_MNT_ID != 0 {
		s.mnt = x.Mnt_id
	}
	return s
}

func nanos(t unix.StatxTimestamp) int64 { return t.Sec*1e9 + int64(t.Nsec) }

// fstatat serves where statx is filtered: no birth time, no mount id.
func fstatat(dir int, name string, flags int) (stat, error) {
	var st unix.Stat_t
	if err := unix.Fstatat(dir, name, &st, flags); err != nil {
		return stat{}, err
	}
	return stat{
		//nolint:unconvert // wider or narrower on other processors
		ident: ident{uint64(st.Dev), st.Ino}, size: st.Size, mode: st.Mode, nlink: uint32(st.Nlink),
		uid: st.Uid, gid: st.Gid, atime: st.Atim.Nano(), mtime: st.Mtim.Nano(), ctime: st.Ctim.Nano(),
	}, nil
}

// kernelFS are the file systems whose files are switches and facts of the
// kernel, not data: never entered.
var kernelFS = [...]int64{
	unix.PROC_SUPER_MAGIC, unix.SYSFS_MAGIC, unix.CGROUP_SUPER_MAGIC, unix.CGROUP2_SUPER_MAGIC,
	unix.DEBUGFS_MAGIC, unix.TRACEFS_MAGIC, unix.BPF_FS_MAGIC, unix.SECURITYFS_MAGIC,
	unix.SELINUX_MAGIC, unix.SMACK_MAGIC, unix.EFIVARFS_MAGIC, unix.PSTOREFS_MAGIC,
	unix.BINFMTFS_MAGIC, unix.NSFS_MAGIC, unix.DEVPTS_SUPER_MAGIC, configFS, fuseCtlFS,
}

// Magic numbers that x/sys does not name: fs/configfs and fs/fuse/control.c.
const (
	configFS  = 0x62656570
	fuseCtlFS = 0x65735543
)

// exactFS compare names byte for byte, unless a directory has the casefold
// attribute; all others are taken to fold.
var exactFS = [...]int64{
	unix.EXT4_SUPER_MAGIC, unix.XFS_SUPER_MAGIC, unix.BTRFS_SUPER_MAGIC,
	unix.TMPFS_MAGIC, unix.OVERLAYFS_SUPER_MAGIC,
}

// casefoldFlag is FS_CASEFOLD_FL of linux/fs.h, chattr +F.
const casefoldFlag = 0x40000000

// traits looks at the file system that holds a directory.
func traits(dir int) (fsTraits, error) {
	var f unix.Statfs_t
	if err := unix.Fstatfs(dir, &f); err != nil {
		return fsTraits{}, err
	}
	st, err := statFD(dir)
	if err != nil {
		return fsTraits{}, err
	}
	kind := int64(f.Type) //nolint:unconvert // 32 bits on some processors
	return fsTraits{
		mount:  mount{st.mnt, st.dev},
		kernel: slices.Contains(kernelFS[:], kind),
		folds:  !slices.Contains(exactFS[:], kind) || casefolded(dir),
	}, nil
}

// casefolded is true too where the directory can't be asked.
func casefolded(dir int) bool {
	fd, err := unix.Openat(dir, ".", unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return true
	}
	defer unix.Close(fd)
	flags, err := unix.IoctlGetUint32(fd, unix.FS_IOC_GETFLAGS)
	if err == unix.ENOTTY || err == unix.ENOTSUP {
		return false // this file system has no such attributes
	}
	return err != nil || flags&casefoldFlag != 0
}

// readEntries returns further entries, none only at the end. One getdents64
// may return nothing but the two dots, when a signal came in between.
func readEntries(fd int, buf []byte) ([]Entry, error) {
	for {
		n, err := retry(func() (int, error) { return unix.Getdents(fd, buf) })
		if err != nil || n == 0 {
			return nil, err
		}
		batch, err := parseEntries(buf[:n])
		if err != nil || len(batch) > 0 {
			return batch, err
		}
	}
}

// parseEntries parses linux_dirent64; see getdents64(2).
func parseEntries(b []byte) (into []Entry, err error) {
	const inoOff, lenOff, typeOff, nameOff = 0, 16, 18, 19
	for len(b) > nameOff {
		size := int(binary.NativeEndian.Uint16(b[lenOff:]))
		if size <= nameOff || size > len(b) {
			return into, unix.EIO
		}
		name, _, _ := strings.Cut(string(b[nameOff:size]), "\x00")
		if ino := binary.NativeEndian.Uint64(b[inoOff:]); ino != 0 && name != "." && name != ".." {
			into = append(into, newEntry(name, kinds[b[typeOff]&15].kind))
		}
		b = b[size:]
	}
	return into, nil
}

func renameExchange(dir int, a, b string) error {
	return unix.Renameat2(dir, a, dir, b, unix.RENAME_EXCHANGE)
}

func renameAcross(oldDir int, old string, newDir int, name string) error {
	return unix.Renameat2(oldDir, old, newDir, name, unix.RENAME_EXCHANGE)
}

func renameNew(oldDir int, old string, newDir int, name string) error {
	return unix.Renameat2(oldDir, old, newDir, name, unix.RENAME_NOREPLACE)
}

func datasync(fd int) error { return unix.Fdatasync(fd) }

// may asks for the permission of the effective user: faccessat2 where the
// kernel has it, else by the mode.
func may(dir int, entry string, what uint32) error {
	return unix.Faccessat(dir, entry, what, unix.AT_EACCESS|unix.AT_SYMLINK_NOFOLLOW)
}

const (
	capChown  = unix.CAP_CHOWN
	capFowner = unix.CAP_FOWNER
	// groupFromDir is the bit of a directory whose new files get its group.
	groupFromDir = modeSetgid
)

// capable reports a capability of this thread, see capabilities(7).
func capable(what uint) bool {
	h := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var d [2]unix.CapUserData
	err := unix.Capget(&h, &d[0])
	return err == nil && d[0].Effective&(1<<what) != 0
}
