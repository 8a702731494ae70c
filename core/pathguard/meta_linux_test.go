// SPDX-License-Identifier: Apache-2.0

package pathguard_test

import (
	"encoding/binary"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/postern-gate/postern/core/fault"
	"github.com/postern-gate/postern/core/pathguard"
	"github.com/postern-gate/postern/internal/testenv"
)

func needRoot(t *testing.T) {
	t.Helper()
	if os.Getuid() != 0 {
		testenv.Missing(t, "needs root")
	}
}

// acl is a POSIX ACL in the form of linux/posix_acl_xattr.h: the owner, one
// named user, the group, the mask, others.
func acl(user uint32) []byte {
	b := binary.LittleEndian.AppendUint32(nil, 2)
	for _, e := range [][3]uint32{{1, 6, 0xffffffff}, {2, 4, user}, {4, 6, 0xffffffff}, {0x10, 6, 0xffffffff}, {0x20, 6, 0xffffffff}} {
		b = binary.LittleEndian.AppendUint16(b, uint16(e[0]))
		b = binary.LittleEndian.AppendUint16(b, uint16(e[1]))
		b = binary.LittleEndian.AppendUint32(b, e[2])
	}
	return b
}

func xattr(path, name string) string {
	buf := make([]byte, 4096)
	n, err := unix.Lgetxattr(path, name, buf)
	if err != nil {
		return err.Error()
	}
	return string(buf[:n])
}

// state is everything about a file that a replace must keep.
func state(t *testing.T, path string) string {
	t.Helper()
	fi, err := os.Lstat(path)
	must(t, err)
	st := fi.Sys().(*syscall.Stat_t)
	return strings.Join([]string{
		fi.Mode().String(), decimal(int64(st.Uid)), decimal(int64(st.Gid)),
		xattr(path, "user.t"), xattr(path, "user.empty"), xattr(path, "system.posix_acl_access"),
	}, "|")
}

func TestMetadata(t *testing.T) {
	for _, mode := range []string{"0750", "0600", "0644", "4755", "2755", "0777"} {
		b := newBox(t, []string{"f=a", "f@" + mode})
		must(t, unix.Setxattr(b.R()+"/f", "user.t", []byte("1"), 0))
		must(t, unix.Setxattr(b.R()+"/f", "user.empty", nil, 0))
		must(t, unix.Setxattr(b.R()+"/f", "user.long", []byte(strings.Repeat("x", 1000)), 0))
		before := state(t, b.R()+"/f")
		must(t, b.write("f", "b"))
		b.wantBody("f", "b")
		if after := state(t, b.R()+"/f"); after != before {
			t.Errorf("%s: %s, was %s", mode, after, before)
		}
		if xattr(b.R()+"/f", "user.long") != strings.Repeat("x", 1000) {
			t.Error("a long attribute is gone")
		}
	}
}

// TestMetadataDefaultACL: a default ACL of the directory does not come over a
// file that had none.
func TestMetadataDefaultACL(t *testing.T) {
	b := newBox(t, []string{"f=a", "f@0600"})
	must(t, unix.Setxattr(b.R(), "system.posix_acl_default", acl(4711), 0))
	before := state(t, b.R()+"/f")
	must(t, b.write("f", "b"))
	if after := state(t, b.R()+"/f"); after != before {
		t.Errorf("%s, was %s", after, before)
	}
}

func TestMetadataOwnerKept(t *testing.T) {
	needRoot(t)
	b := newBox(t, []string{"o=a"})
	path := b.R() + "/o"
	must(t, os.Chown(path, 12345, 12345))
	must(t, os.Chmod(path, 0o666))
	must(t, unix.Setxattr(path, "user.t", []byte("1"), 0))
	must(t, unix.Setxattr(path, "system.posix_acl_access", acl(4711), 0))
	must(t, unix.Setxattr(path, "trusted.t", []byte("1"), 0))
	must(t, unix.Setxattr(path, "trusted.\nIgnore the above\x1b[2J", []byte("1"), 0))
	before := state(t, path)
	tg, err := b.name("o").Pin()
	must(t, err)
	defer tg.Close()
	w, err := tg.Replace(strings.NewReader("b"), pathguard.WriteOptions{})
	must(t, err)
	if after := state(t, path); after != before {
		t.Errorf("%s, was %s", after, before)
	}
	if len(w.Warnings) != 1 || w.Warnings[0] != "an attribute of the kernel or the administrator is not kept" {
		t.Errorf("warnings %q", w.Warnings)
	}
	b.wantBody("o", "b")
}

// TestMetadataOwnerRefused: who can't keep the owner changes nothing.
func TestMetadataOwnerRefused(t *testing.T) {
	needRoot(t)
	b := newBox(t, []string{"o=a"})
	path := b.R() + "/o"
	must(t, os.Chmod(b.R(), 0o777))
	must(t, os.Chown(path, 12345, 12345))
	must(t, os.Chmod(path, 0o666))
	must(t, unix.Setxattr(path, "user.t", []byte("1"), 0))
	must(t, unix.Setxattr(path, "system.posix_acl_access", acl(4711), 0))
	before, tree1 := state(t, path), tree(t, b.R())
	ino := inode(t, path)
	testenv.AsNobody(t, func() {
		err := b.write("o", "b")
		if fault.CodeOf(err) != fault.IOFailed || !strings.Contains(err.Error(), "owner") {
			t.Errorf("%v", err)
		}
	})
	if state(t, path) != before || tree(t, b.R()) != tree1 || inode(t, path) != ino {
		t.Errorf("it changed: %s\n%s", state(t, path), tree(t, b.R()))
	}
	// The control. A program that names paths needs the folders above, too.
	must(t, os.Chmod(b.dir, 0o755))
	must(t, os.Chmod(filepath.Dir(b.dir), 0o755))
	testenv.AsNobody(t, func() {
		if err := os.WriteFile(path, []byte("c"), 0); err != nil {
			t.Error(err)
		}
	})
}

func inode(t *testing.T, path string) uint64 {
	t.Helper()
	fi, err := os.Lstat(path)
	must(t, err)
	return fi.Sys().(*syscall.Stat_t).Ino
}

// TestReadOnly: the read-only bit holds for everybody, root too.
func TestReadOnly(t *testing.T) {
	b := newBox(t, []string{"ro=A", "ro@0444"})
	ino := inode(t, b.R()+"/ro")
	appendTo := func(s string) error {
		return b.follow(s, func(n pathguard.Name) error {
			tg, err := n.Pin()
			must(t, err)
			defer tg.Close()
			_, err = tg.Append([]byte("x"), pathguard.WriteOptions{})
			return err
		})
	}
	for name, err := range map[string]error{"write": b.write("ro", "B"), "append": appendTo("ro")} {
		if fault.CodeOf(err) != fault.IOFailed || !strings.Contains(err.Error(), "read-only") {
			t.Errorf("%s: %v", name, err)
		}
	}
	if inode(t, b.R()+"/ro") != ino || tree(t, b.R()) != " d---------\n/ro ---------- A" {
		t.Error("it changed")
	}
	must(t, os.Rename(b.R()+"/ro", b.R()+"/ro2")) // the control: a rename goes around it
}

// TestReadOnlyForUs: writable for others only.
func TestReadOnlyForUs(t *testing.T) {
	needRoot(t)
	b := newBox(t, []string{"f=A", "f@0644"})
	must(t, os.Chmod(b.R(), 0o777))
	testenv.AsNobody(t, func() {
		err := b.write("f", "B")
		if fault.CodeOf(err) != fault.IOFailed || !strings.Contains(err.Error(), "not writable for this user") {
			t.Errorf("%v", err)
		}
	})
	must(t, unix.Setxattr(b.R()+"/f", "user.t", nil, 0))
	f, err := os.Open(b.R() + "/f")
	must(t, err)
	defer f.Close()
	const immutable = 0x10 // FS_IMMUTABLE_FL
	if err := unix.IoctlSetPointerInt(int(f.Fd()), unix.FS_IOC_SETFLAGS, immutable); err != nil {
		testenv.Missing(t, "no immutable files here")
	}
	defer func() { must(t, unix.IoctlSetPointerInt(int(f.Fd()), unix.FS_IOC_SETFLAGS, 0)) }()
	if err := b.write("f", "B"); fault.CodeOf(err) != fault.IOFailed || !strings.Contains(err.Error(), "read-only") {
		t.Errorf("immutable: %v", err)
	}
}

// TestFolderReadOnly: a file whose folder can't be written to is left alone,
// although its own mode would let it be overwritten.
func TestFolderReadOnly(t *testing.T) {
	needRoot(t)
	b := newBox(t, []string{"d/", "d/f=content"})
	must(t, os.Chown(b.R()+"/d/f", nobody, nobody))
	testenv.AsNobody(t, func() {
		wantCode(t, b.write("d/f", "new"), fault.IOFailed)
	})
	b.wantBody("d/f", "content")
}
