// SPDX-License-Identifier: Apache-2.0

package links

import (
	"os"
	"slices"
	"strconv"
	"strings"
)

// mount is one of this process.
type mount struct {
	point   string
	answers bool
}

// local are file systems that the kernel alone answers for, on a disk or in memory.
// Those with links that lead each process elsewhere, as proc, are none of them.
var local = []string{
	"bcachefs", "btrfs", "devtmpfs", "ecryptfs", "erofs", "exfat", "ext2", "ext3", "ext4", "f2fs", "hfs", "hfsplus", "iso9660", "jfs", "msdos", "nilfs2",
	"ntfs", "ntfs3", "overlay", "ramfs", "reiserfs", "rootfs", "squashfs", "tmpfs", "udf", "ufs", "vfat", "xfs", "zfs",
}

// mounted are the mounts of this process in their order, without asking one of them:
// a server that is away would not answer. See proc_pid_mountinfo(5).
func mounted() (all []mount) {
	text, _ := os.ReadFile("/proc/self/mountinfo") // without it none is known
	for line := range strings.Lines(string(text)) {
		const point = 4
		fields := strings.Fields(line)
		rest := slices.Index(fields, "-") + 1 // after which the type is
		if len(fields) > point && rest > point && rest < len(fields) {
			all = append(all, mount{unescaped(fields[point]), slices.Contains(local, fields[rest])})
		}
	}
	return all
}

// unescaped is a path as the kernel has it, which writes blanks and backslashes as
// \ooo there.
func unescaped(s string) string {
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		if s[i] == '\\' && i+3 < len(s) {
			if n, err := strconv.ParseUint(s[i+1:i+4], 8, 8); err == nil {
				b.WriteByte(byte(n))
				i += 3
				continue
			}
		}
		b.WriteByte(s[i])
	}
	return b.String()
}
