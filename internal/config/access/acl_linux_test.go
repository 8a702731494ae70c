// SPDX-License-Identifier: Apache-2.0

package access

import (
	"encoding/binary"
	"os"
	"path/filepath"
	"strconv"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/postern-gate/postern/internal/testenv"
)

type permit struct {
	tag, perm uint16
	id        uint32
}

// listing is an access list; the kernel wants an owner, a group, others and a mask.
func listing(mask uint16, some ...permit) []byte {
	const aclMask, aclOther, aclOwner = 0x10, 0x20, 0x01
	out := binary.LittleEndian.AppendUint32(nil, aclVersion)
	add := func(p permit) {
		out = binary.LittleEndian.AppendUint16(out, p.tag)
		out = binary.LittleEndian.AppendUint16(out, p.perm)
		out = binary.LittleEndian.AppendUint32(out, p.id)
	}
	add(permit{aclOwner, 6, ownGroup})
	for _, p := range some {
		if p.tag == aclUser {
			add(p)
		}
	}
	owning := permit{aclOwning, 4, ownGroup}
	for _, p := range some {
		if p.tag == aclOwning {
			owning = p
		}
	}
	add(owning)
	for _, p := range some {
		if p.tag == aclGroup {
			add(p)
		}
	}
	add(permit{aclMask, mask, ownGroup})
	add(permit{aclOther, 4, ownGroup})
	return out
}

// TestAccessList: an access list says who may write, and the mode's bits for the
// group are its mask.
func TestAccessList(t *testing.T) {
	path, accounts := filepath.Join(t.TempDir(), "f"), t.TempDir()
	put(t, path, "")
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	gid, uid := info.Sys().(*syscall.Stat_t).Gid, uint32(os.Geteuid())
	const mates, own = 4711, 4712
	put(t, filepath.Join(accounts, "passwd"), "me:x:"+strconv.Itoa(int(uid))+":"+strconv.Itoa(int(gid))+"::/:\nmate:x:1001:1001::/:\n")
	put(t, filepath.Join(accounts, "group"), "me:x:"+strconv.Itoa(int(gid))+":\nmates:x:4711:mate\nalso:x:4712:me\n")
	for what, tc := range map[string]struct {
		list []byte
		want Others
	}{
		"somebody":                       {listing(6, permit{aclUser, 6, 65534}), Members},
		"somebody, to read":              {listing(6, permit{aclUser, 4, 65534}), Nobody},
		"somebody, masked":               {listing(4, permit{aclUser, 6, 65534}), Nobody},
		"this user":                      {listing(6, permit{aclUser, 6, uid}), Nobody},
		"root":                           {listing(6, permit{aclUser, 6, 0}), Nobody},
		"the file's group":               {listing(6, permit{aclOwning, 6, ownGroup}), Nobody},
		"a group of others":              {listing(6, permit{aclGroup, 6, mates}), Members},
		"a group of others, to read":     {listing(6, permit{aclGroup, 4, mates}), Nobody},
		"a group of one's own":           {listing(6, permit{aclGroup, 6, own}), Nobody},
		"a group that is not listed":     {listing(6, permit{aclGroup, 6, 4713}), Unknown},
		"one that is not, and a mate":    {listing(6, permit{aclGroup, 6, 4713}, permit{aclUser, 6, 1001}), Members},
		"one's own group, and of others": {listing(6, permit{aclOwning, 6, ownGroup}, permit{aclGroup, 6, mates}), Members},
	} {
		if err := unix.Setxattr(path, aclName, tc.list, 0); err != nil {
			testenv.Missing(t, "POSIX access lists: "+err.Error())
		}
		if info, err = os.Stat(path); err != nil {
			t.Fatal(err)
		}
		if got := File(path, info, accounts); got != tc.want {
			t.Errorf("%s: %v, want %v", what, got, tc.want)
		}
	}
}
