// SPDX-License-Identifier: Apache-2.0

package config

import (
	"fmt"
	"path/filepath"
	"strconv"
	"strings"
)

// snippet is a line of policy that gives each folder of the command line a
// name of its own, to be pasted.
func (l *loader) snippet() string {
	var roots []string
	taken := map[string]bool{}
	for _, dir := range l.Dirs {
		path := l.abs(l.WorkDir, dir)
		roots = append(roots, fmt.Sprintf("%s: { path: %s }", suggest(filepath.Base(path), taken), strconv.Quote(path)))
	}
	return "roots: { " + strings.Join(roots, ", ") + " }"
}

// suggest makes a root's name of a folder's, one that is not taken yet.
func suggest(folder string, taken map[string]bool) string {
	plain := strings.Trim(strings.Map(func(r rune) rune {
		if !strings.ContainsRune("abcdefghijklmnopqrstuvwxyz0123456789._", r) {
			return '-'
		}
		return r
	}, strings.ToLower(folder)), "-.")
	plain = plain[:min(len(plain), 48)]
	if plain == "" || reserved(plain) {
		plain = strings.TrimSuffix("folder-"+plain, "-")
	}
	name := plain
	for n := 2; taken[name]; n++ {
		name = plain + "-" + strconv.Itoa(n)
	}
	taken[name] = true
	return name
}
