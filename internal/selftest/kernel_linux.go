// SPDX-License-Identifier: Apache-2.0

package selftest

import (
	"errors"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"

	"github.com/postern-gate/postern/internal/state/disk"
)

// kernelOpen tells by which call names are opened beneath a root. What it
// guarantees is attacked above; where the call is missing a slower walk does
// the same, and needs mount ids to tell a bind mount from a folder.
func kernelOpen(l *lab, t *trial) {
	dir, err := unix.Open(l.root, unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if !t.needs("the folder", err) {
		return
	}
	defer unix.Close(dir)
	how := unix.OpenHow{
		Flags:   unix.O_PATH | unix.O_CLOEXEC,
		Resolve: unix.RESOLVE_BENEATH | unix.RESOLVE_NO_SYMLINKS | unix.RESOLVE_NO_MAGICLINKS | unix.RESOLVE_NO_XDEV,
	}
	t.tried++
	fd, err := unix.Openat2(dir, ".", &how)
	if err == nil {
		unix.Close(fd)
		t.about = "openat2 opens beneath the root in one call"
		return
	}
	t.about = "openat2 is not available (" + err.Error() + "): each component is opened by itself, which is slower"
	var x unix.Statx_t
	if err := unix.Statx(dir, "", unix.AT_EMPTY_PATH, unix.STATX_MNT_ID, &x); err != nil || x.Mask&unix.STATX_MNT_ID == 0 {
		t.weaker = append(t.weaker, "a bind mount of the root's own device is not told from a folder")
	}
}

// kernelExchange: a file is replaced by exchanging it for the new one, so that
// a change by another program in the last moment is seen and kept.
func kernelExchange(l *lab, t *trial) {
	a, b := filepath.Join(l.box, "exchange-a"), filepath.Join(l.box, "exchange-b")
	if !t.needs("files", errors.Join(os.WriteFile(a, []byte("a"), 0o600), os.WriteFile(b, []byte("b"), 0o600))) {
		return
	}
	t.tried++
	t.about = "two files change names in one step (RENAME_EXCHANGE)"
	err := unix.Renameat2(unix.AT_FDCWD, a, unix.AT_FDCWD, b, unix.RENAME_EXCHANGE)
	if err == nil {
		err = errors.Join(holds(a, "b"), holds(b, "a"))
	}
	if err != nil {
		t.about = "two files can't change names in one step"
		t.weaker = append(t.weaker, "a change by another program in the moment before a replacement is lost; such results say cas: false")
	}
}

// fileSystem names what the folder lies on, and tells whether two writes at
// once have two etags there.
func fileSystem(l *lab, t *trial) {
	kind, err := disk.Of(l.root)
	if !t.needs("the file system", err) {
		return
	}
	t.tried++
	name := kind.Name
	if !kind.Exact {
		name += ", whose names are compared with the folder's entries"
	}
	t.about = name + "; two writes of one length within a clock tick have two etags"
	if kind.Remote {
		t.weaker = append(t.weaker, "locks and times are only as good as what is behind this file system")
	}
	path := l.at("tick")
	for range 20 {
		var etags [2]string
		for i := range etags {
			if err := os.WriteFile(path, []byte{byte('a' + i)}, 0o600); !t.needs("a file", err) {
				return
			}
			_, info, err := l.main.gate.Stat(l.ctx, "tick")
			if !t.needs("its etag", err) {
				return
			}
			etags[i] = info.Fingerprint.String()
		}
		if etags[0] == etags[1] {
			t.about = name
			t.weaker = append(t.weaker, "two writes of one length within a clock tick may have one etag, as before Linux 6.13")
			return
		}
	}
}
