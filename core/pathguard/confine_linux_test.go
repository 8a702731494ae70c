// SPDX-License-Identifier: Apache-2.0

package pathguard_test

import (
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/postern-gate/postern/core/pathguard"
	"github.com/postern-gate/postern/internal/testenv"
)

const nobody = testenv.Nobody

// confine makes openat2 answer with an errno in every thread of this process,
// through a seccomp filter; "as-is" installs none, "old" takes statx away too.
func confine(mode string) error {
	errno := map[string]uint32{"as-is": 0, "ENOSYS": uint32(unix.ENOSYS), "EPERM": uint32(unix.EPERM), "old": uint32(unix.ENOSYS)}[mode]
	if errno == 0 {
		return nil
	}
	const nrOffset = 0 // struct seccomp_data
	statx := uint32(unix.SYS_OPENAT2)
	if mode == "old" { // as before Linux 4.11
		statx = unix.SYS_STATX
	}
	prog := []unix.SockFilter{
		{Code: unix.BPF_LD | unix.BPF_W | unix.BPF_ABS, K: nrOffset},
		{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, K: unix.SYS_OPENAT2, Jt: 1, Jf: 0},
		{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, K: statx, Jt: 0, Jf: 1},
		{Code: unix.BPF_RET | unix.BPF_K, K: unix.SECCOMP_RET_ERRNO | errno},
		{Code: unix.BPF_RET | unix.BPF_K, K: unix.SECCOMP_RET_ALLOW},
	}
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return err
	}
	fprog := unix.SockFprog{Len: uint16(len(prog)), Filter: &prog[0]}
	_, _, e := unix.Syscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER,
		unix.SECCOMP_FILTER_FLAG_TSYNC, uintptr(unsafe.Pointer(&fprog)))
	if e != 0 {
		return e
	}
	if _, err := unix.Openat2(unix.AT_FDCWD, "/", &unix.OpenHow{Flags: unix.O_PATH}); err != unix.Errno(errno) {
		return fmt.Errorf("openat2 still answers %w", err)
	}
	return nil
}

// publicBinary is a copy of this test binary that every user may run.
func publicBinary(t *testing.T) (binary, dir string) {
	t.Helper()
	dir, err := os.MkdirTemp("", "pathguard") //nolint:usetesting // that one is closed to other users
	must(t, err)
	t.Cleanup(func() { must(t, os.RemoveAll(dir)) })
	must(t, os.Chmod(dir, 0o755))
	must(t, os.Mkdir(dir+"/tmp", 0o777))
	must(t, os.Chmod(dir+"/tmp", 0o777|os.ModeSticky))
	in, err := os.Open("/proc/self/exe")
	must(t, err)
	defer in.Close()
	binary = filepath.Join(dir, "pathguard.test")
	out, err := os.OpenFile(binary, os.O_CREATE|os.O_WRONLY, 0o755)
	must(t, err)
	_, err = io.Copy(out, in)
	must(t, err)
	must(t, out.Close())
	return binary, dir
}

// TestConfined runs the tests of the guard's verdicts again: with openat2, and
// with a kernel that answers ENOSYS and EPERM to it; as root and as nobody.
func TestConfined(t *testing.T) {
	if os.Getuid() != 0 {
		testenv.Missing(t, "needs root to become another user")
	}
	if testing.Short() {
		t.Skip("short")
	}
	binary, dir := publicBinary(t)
	for _, mode := range []string{"as-is", "ENOSYS", "EPERM", "old"} {
		for _, uid := range []uint32{0, nobody} {
			t.Run(fmt.Sprintf("%s-uid-%d", mode, uid), func(t *testing.T) {
				runConfined(t, binary, dir, mode, uid)
			})
		}
	}
}

func runConfined(t *testing.T, binary, dir, mode string, uid uint32) {
	tests := "TestCases|TestNames[EI].*|TestMaze|TestMetadata|TestLeak|TestLaundering|TestOverlap|TestRoots.*|TestProtect.*|TestHardlinks|TestReadOnly|TestLink.*"
	if mode == "ENOSYS" && uid == 0 || mode == "EPERM" && uid != 0 {
		tests += "|TestRace.*" // each walk once; with openat2 they run in this process
	}
	cmd := exec.Command(binary, "-test.v", "-rapid.checks=30", "-test.run", "^("+tests+")$")
	cmd.Env = append(os.Environ(), childEnv+"="+mode, "TMPDIR="+dir+"/tmp", raceEnv+"=300ms")
	cmd.Dir = dir
	if uid != 0 {
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uid, Gid: uid}}
	}
	out, err := cmd.CombinedOutput()
	passed := len(regexp.MustCompile(`(?m)^ +--- PASS: TestCases/`).FindAll(out, -1))
	if err != nil || passed != len(testCases) {
		t.Errorf("%v, %d of %d cases passed:\n%s", err, passed, len(testCases), failures(string(out)))
	}
}

// failures drops what passed.
func failures(out string) string {
	var kept []string
	for line := range strings.SplitSeq(out, "\n") {
		if !strings.Contains(line, "--- PASS") && !strings.Contains(line, "=== ") {
			kept = append(kept, line)
		}
	}
	return strings.Join(kept, "\n")
}

// TestWalk runs the same cases in this process with openat2 taken away at the
// seam, so that the walk counts in the coverage.
func TestWalk(t *testing.T) {
	for _, errno := range []unix.Errno{unix.ENOSYS, unix.EPERM} {
		for name, c := range testCases {
			t.Run(errno.Error()+"/"+name, func(t *testing.T) {
				runCase(t, name, &c, func(r *pathguard.Root) { pathguard.WithoutOpenat2(r, errno) })
			})
		}
	}
}

// TestFolding runs them once more as if the file system might fold names.
func TestFolding(t *testing.T) {
	for name, c := range testCases {
		t.Run(name, func(t *testing.T) {
			runCase(t, name, &c, func(r *pathguard.Root) { r.SetFolds(true) })
		})
	}
}
