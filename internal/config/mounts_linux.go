// SPDX-License-Identifier: Apache-2.0

package config

import (
	"os"
	"strconv"
	"strings"
)

// mounted are the mount points of this process, without asking one of them: a
// server that is away would not answer. See proc_pid_mountinfo(5).
func mounted() (all []string) {
	text, _ := os.ReadFile("/proc/self/mountinfo") // without it none is known
	for line := range strings.Lines(string(text)) {
		const point = 4
		if fields := strings.Fields(line); len(fields) > point {
			all = append(all, unescaped(fields[point]))
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
