// SPDX-License-Identifier: Apache-2.0

package agents

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// runGroup runs the command in a process group of its own, which is killed
// when the command's context ends and in any case afterwards.
func runGroup(cmd *exec.Cmd) (output string, err error) {
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.WaitDelay = grace // for who has left the group and holds the output
	if err := cmd.Start(); err != nil {
		return "", err
	}
	defer func() { _ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }()
	err = cmd.Wait()
	return out.String(), err
}

// grace is how long what an agent started may take to see that the agent has gone.
const grace = 30 * time.Second

// orphans returns the command lines of the processes of that home that go on
// running, in whatever group and session, and ends them.
func orphans(home string) []string {
	var left []int
	for deadline := time.Now().Add(grace); time.Now().Before(deadline); time.Sleep(20 * time.Millisecond) {
		if left = processes(home); len(left) == 0 {
			return nil
		}
	}
	return end(left)
}

// end kills the processes and returns their command lines.
func end(pids []int) []string {
	var lines []string
	for _, pid := range pids {
		line, _ := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "cmdline"))
		lines = append(lines, strings.ReplaceAll(string(line), "\x00", " "))
		_ = syscall.Kill(pid, syscall.SIGKILL)
	}
	return lines
}

// processes are those that were started with that home, which no other test has.
func processes(home string) []int {
	environs, _ := filepath.Glob("/proc/[0-9]*/environ") // an error is one of the pattern
	var found []int
	for _, path := range environs {
		data, err := os.ReadFile(path)
		if err != nil || !slices.Contains(strings.Split(string(data), "\x00"), "HOME="+home) {
			continue // gone meanwhile, or not ours
		}
		if pid, err := strconv.Atoi(filepath.Base(filepath.Dir(path))); err == nil {
			found = append(found, pid)
		}
	}
	return found
}
