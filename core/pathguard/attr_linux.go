// SPDX-License-Identifier: Apache-2.0

package pathguard

import (
	"bytes"
	"strings"

	"golang.org/x/sys/unix"
)

const aclName = "system.posix_acl_access"

// copyAttributes makes user.* and the ACL of one file those of the other, or
// fails. security.* belongs to the kernel: a difference is a warning, as is
// any other attribute that could be seen and was not carried over. The warning
// doesn't name it: a name is whatever somebody chose.
func copyAttributes(to, from int) (warnings []string, err error) {
	have, err := attributes(from)
	if err != nil {
		return nil, err
	}
	now, err := attributes(to)
	if err != nil {
		return nil, err
	}
	for name, value := range have {
		switch {
		case bytes.Equal(now[name], value) && now[name] != nil:
		case ours(name):
			if err := unix.Fsetxattr(to, name, value, 0); err != nil {
				return nil, err
			}
		default:
			warnings = []string{"an attribute of the kernel or the administrator is not kept"}
		}
	}
	for name := range now {
		if _, ok := have[name]; !ok && ours(name) {
			// From the directory's default ACL.
			if err := unix.Fremovexattr(to, name); err != nil {
				return nil, err
			}
		}
	}
	return warnings, nil
}

func ours(name string) bool { return name == aclName || strings.HasPrefix(name, "user.") }

// attributes reads all extended attributes; none where there are none.
func attributes(fd int) (map[string][]byte, error) {
	list, err := sized(func(b []byte) (int, error) { return unix.Flistxattr(fd, b) })
	if err == unix.ENOTSUP || err == unix.ENOSYS {
		return map[string][]byte{}, nil // none here
	}
	if err != nil {
		return nil, err
	}
	all := map[string][]byte{}
	for name := range strings.SplitSeq(string(list), "\x00") {
		if name == "" {
			continue
		}
		value, err := sized(func(b []byte) (int, error) { return unix.Fgetxattr(fd, name, b) })
		switch {
		case err == unix.ENODATA:
			continue
		case err != nil && ours(name):
			return nil, err
		}
		all[name] = value
	}
	return all, nil
}

// maxAttribute is XATTR_SIZE_MAX of linux/limits.h, also the longest list.
const maxAttribute = 64 << 10

// sized calls with a small buffer first, then with the largest there can be.
func sized(get func([]byte) (int, error)) ([]byte, error) {
	buf := make([]byte, 256)
	n, err := get(buf)
	if err == unix.ERANGE {
		buf = make([]byte, maxAttribute)
		n, err = get(buf)
	}
	if err != nil {
		return nil, err
	}
	return buf[:n], nil
}
