// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"context"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// checkProcesses finds processes that have this state directory open and run
// another program than this one.
func checkProcesses(ctx context.Context, l *look) []Result {
	all, err := os.ReadDir("/proc")
	if err != nil {
		return one(skip("the processes can't be seen"))
	}
	dir := l.Policy.StateDir
	if real, err := filepath.EvalSymlinks(dir); err == nil {
		dir = real
	}
	same := 0
	var found []Result
	for _, p := range all {
		pid, err := strconv.Atoi(p.Name())
		if err != nil || pid == os.Getpid() || ctx.Err() != nil || !uses(p.Name(), dir) {
			continue
		}
		exe := filepath.Join("/proc", p.Name(), "exe")
		if sameFile(exe, l.Self) {
			same++
			continue
		}
		path, _ := os.Readlink(exe) // shown only
		found = append(found, warn("start it again with this one, once its client can be interrupted",
			"process %d has the same state directory and runs another program: %s", pid, path))
	}
	if len(found) > 0 {
		return found
	}
	return one(pass("%d other processes have the state directory open, all of this program", same))
}

// uses reports whether a process of this user has a file beneath the folder open.
func uses(pid, dir string) bool {
	fds := filepath.Join("/proc", pid, "fd")
	entries, _ := os.ReadDir(fds) // those of other users can't be read
	for _, fd := range entries {
		to, err := os.Readlink(filepath.Join(fds, fd.Name()))
		if err == nil && strings.HasPrefix(to, dir+"/") {
			return true
		}
	}
	return false
}
