// SPDX-License-Identifier: Apache-2.0

package disk

import (
	"fmt"

	"golang.org/x/sys/unix"
)

// Of returns the type of the file system that holds the path.
func Of(path string) (Kind, error) {
	var f unix.Statfs_t
	if err := unix.Statfs(path, &f); err != nil {
		return Kind{}, err
	}
	return kindOf(int64(f.Type)), nil //nolint:unconvert // 32 bits on some processors
}

func kindOf(number int64) Kind {
	switch number {
	case unix.EXT4_SUPER_MAGIC:
		return Kind{Name: "ext4", Exact: true}
	case unix.XFS_SUPER_MAGIC:
		return Kind{Name: "xfs", Exact: true}
	case unix.BTRFS_SUPER_MAGIC:
		return Kind{Name: "btrfs", Exact: true}
	case unix.TMPFS_MAGIC:
		return Kind{Name: "tmpfs", Exact: true}
	case unix.OVERLAYFS_SUPER_MAGIC:
		return Kind{Name: "overlay", Exact: true}
	case unix.NFS_SUPER_MAGIC:
		return Kind{Name: "nfs", Remote: true}
	case unix.SMB_SUPER_MAGIC, unix.CIFS_SUPER_MAGIC, unix.SMB2_SUPER_MAGIC:
		return Kind{Name: "smb", Remote: true}
	case unix.V9FS_MAGIC:
		return Kind{Name: "9p", Remote: true}
	case unix.FUSE_SUPER_MAGIC:
		return Kind{Name: "fuse", Remote: true}
	}
	return Kind{Name: fmt.Sprintf("type %#x", number)}
}

// Free returns how many bytes a user may still write there.
func Free(path string) (int64, error) {
	var f unix.Statfs_t
	if err := unix.Statfs(path, &f); err != nil {
		return 0, err
	}
	return int64(f.Bavail) * int64(f.Bsize), nil //nolint:unconvert,gosec // no disk has 2^63 bytes
}

// OpensBeneath reports whether the kernel opens a name beneath a folder in one
// call, with no link followed.
func OpensBeneath(path string) bool {
	dir, err := unix.Open(path, unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return false
	}
	defer unix.Close(dir)
	fd, err := unix.Openat2(dir, ".", &unix.OpenHow{
		Flags:   unix.O_PATH | unix.O_CLOEXEC,
		Resolve: unix.RESOLVE_BENEATH | unix.RESOLVE_NO_SYMLINKS | unix.RESOLVE_NO_MAGICLINKS | unix.RESOLVE_NO_XDEV,
	})
	if err == nil {
		unix.Close(fd)
	}
	return err == nil
}
