// SPDX-License-Identifier: Apache-2.0

package access

import (
	"encoding/binary"
	"errors"

	"golang.org/x/sys/unix"
)

// A POSIX access list as linux/posix_acl_xattr.h has it: a version, then entries
// of a tag, what they permit, and for whom.
const (
	aclName    = "system.posix_acl_access"
	aclVersion = 2
	aclHead    = 4
	aclEntry   = 8
	aclWrite   = 2
	aclUser    = 0x02
	aclOwning  = 0x04 // the file's group
	aclGroup   = 0x08
)

// named are the users and groups that the access list lets write if its mask does;
// listed is false where there is no list, ok where that can't be told.
func named(path string) (users, groups []uint32, listed, ok bool) {
	var space [64 << 10]byte // the most that the kernel gives
	n, err := unix.Getxattr(path, aclName, space[:])
	if errors.Is(err, unix.ENODATA) || errors.Is(err, unix.ENOTSUP) {
		return nil, nil, false, true
	}
	list := space[:max(n, 0)]
	if err != nil || len(list) < aclHead || binary.LittleEndian.Uint32(list) != aclVersion || (len(list)-aclHead)%aclEntry != 0 {
		return nil, nil, true, false
	}
	for e := list[aclHead:]; len(e) > 0; e = e[aclEntry:] {
		id := binary.LittleEndian.Uint32(e[4:])
		switch tag := binary.LittleEndian.Uint16(e); {
		case binary.LittleEndian.Uint16(e[2:])&aclWrite == 0:
		case tag == aclUser:
			users = append(users, id)
		case tag == aclOwning:
			groups = append(groups, ownGroup)
		case tag == aclGroup:
			groups = append(groups, id)
		}
	}
	return users, groups, true, true
}
