// SPDX-License-Identifier: Apache-2.0

// Package litter removes the unfinished files that killed writes left beside
// their targets. It never removes one that a process has open, as one that still
// lives would; nothing is removed where that can't be proven.
package litter

import (
	"errors"
	"io"
	"regexp"

	"github.com/postern-gate/postern/core/pathguard"
)

// named is what pathguard calls a file that doesn't have its name yet, or not any
// more.
func named() *regexp.Regexp { return regexp.MustCompile(`^\.postern-tmp-[0-9a-f]{16}$`) }

// look bounds how many entries of a folder are looked at.
const look = 10_000

// Sweep removes from a folder what is certainly litter: a regular file with one
// name, of exactly our form, that no process has open and that the caller knows
// to be theirs. Where more are the caller's than most, all stay: some are not of
// whom they are thought to be. What stays is told by postern doctor.
func Sweep(dir pathguard.Name, most int, theirs func(pathguard.Name, pathguard.Info) bool) {
	if !proven {
		return
	}
	d, err := dir.OpenDir()
	if err != nil {
		return
	}
	defer d.Close()
	found := map[pathguard.Name]pathguard.Fingerprint{}
	for looked := 0; looked < look; {
		entries, err := d.Entries(1024)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return
		}
		looked += len(entries)
		for _, e := range entries {
			if n, info, ok := candidate(d, dir, e.Name); ok && theirs(n, info) {
				found[n] = info.Fingerprint
			}
		}
	}
	if len(found) > most {
		return
	}
	for n, was := range found {
		if unopened(d, n.Base()) {
			removeSame(n, was)
		}
	}
}

func candidate(d *pathguard.Dir, dir pathguard.Name, entry string) (n pathguard.Name, info pathguard.Info, ok bool) {
	if !named().MatchString(entry) {
		return n, info, false
	}
	info, err := d.Lstat(entry)
	if err != nil || info.Kind != pathguard.KindFile || info.Nlink != 1 {
		return n, info, false
	}
	n, err = dir.Join(entry)
	return n, info, err == nil
}

// removeSame removes exactly the file that was looked at.
func removeSame(n pathguard.Name, was pathguard.Fingerprint) {
	target, err := n.PinEntry()
	if err != nil {
		return
	}
	defer target.Close()
	if target.Fingerprint() == was {
		_ = target.Remove(pathguard.WriteOptions{})
	}
}
