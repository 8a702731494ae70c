// SPDX-License-Identifier: Apache-2.0

package disk

import (
	"testing"

	"golang.org/x/sys/unix"
)

func TestKinds(t *testing.T) {
	for number, want := range map[int64]Kind{
		unix.EXT4_SUPER_MAGIC:  {Name: "ext4", Exact: true},
		unix.NFS_SUPER_MAGIC:   {Name: "nfs", Remote: true},
		unix.FUSE_SUPER_MAGIC:  {Name: "fuse", Remote: true},
		unix.MSDOS_SUPER_MAGIC: {Name: "type 0x4d44"},
	} {
		if got := kindOf(number); got != want {
			t.Errorf("%#x: %+v, want %+v", number, got, want)
		}
	}
}

func TestHere(t *testing.T) {
	dir := t.TempDir()
	if k, err := Of(dir); err != nil || k.Name == "" {
		t.Errorf("%+v, %v", k, err)
	}
	if n, err := Free(dir); err != nil || n <= 0 {
		t.Errorf("%d, %v", n, err)
	}
	if k, err := Of("/proc"); err != nil || k.Exact || k.Remote {
		t.Errorf("/proc: %+v, %v", k, err)
	}
	for _, absent := range []string{dir + "/absent"} {
		if _, err := Of(absent); err == nil {
			t.Error("an absent folder lies on something")
		}
		if _, err := Free(absent); err == nil {
			t.Error("an absent folder has space")
		}
		if OpensBeneath(absent) {
			t.Error("an absent folder can be opened")
		}
	}
}
