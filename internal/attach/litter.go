// SPDX-License-Identifier: Apache-2.0

package attach

import (
	"errors"
	"io"
	"path/filepath"
	"regexp"
	"slices"

	"github.com/postern-gate/postern/core/pathguard"
)

// litterName is what a file is called that doesn't have its name yet, or not any
// more.
func litterName() *regexp.Regexp { return regexp.MustCompile(`^\.postern-tmp-[0-9a-f]{16}$`) }

// maxLook bounds how many entries of a folder are looked at for litter.
const maxLook = 10_000

// sweep removes what a killed init has left beside the files that it is
// remembered to have written. That is ours, and nothing else is taken for it, if
// all of this holds: its name is of exactly our form; it is a regular file of
// this user with one name; no process has it open, as one that still lives would;
// it is empty, or its content is one that was being written or displaced.
// Whatever is not sure stays, and postern doctor tells a person.
func (d *disk) sweep(all []record) {
	for _, r := range all {
		if !r.fits(d.project) {
			continue
		}
		root, real := d.project, r.Path
		if !r.InProject {
			var err error
			if real, err = resolve(r.Path); err != nil {
				continue
			}
			root = existing(filepath.Dir(real))
		}
		name, err := d.parse(root, real)
		if err != nil {
			continue
		}
		if dir, ok := name.Parent(); ok {
			sweepFolder(dir, append(slices.Clone(r.Temps), r.Sum))
		}
	}
}

func sweepFolder(dir pathguard.Name, sums []string) {
	opened, err := dir.OpenDir()
	if err != nil {
		return
	}
	defer opened.Close()
	var found []string
	for looked := 0; looked < maxLook; {
		entries, err := opened.Entries(1024)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return
		}
		looked += len(entries)
		for _, e := range entries {
			if e.Kind == pathguard.KindFile && litterName().MatchString(e.Name) {
				found = append(found, e.Name)
			}
		}
	}
	for _, entry := range found {
		name, err := dir.Join(entry)
		if err != nil {
			continue
		}
		info, err := opened.Lstat(entry)
		if err == nil && info.Kind == pathguard.KindFile && info.Nlink == 1 && remembered(name, sums) && abandoned(opened, name) {
			removeSame(name, info.Fingerprint)
		}
	}
}

// remembered reports whether the file is empty or has one of the sums.
func remembered(name pathguard.Name, sums []string) bool {
	f, err := name.Open()
	if err != nil {
		return false
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, maxFile+1))
	return err == nil && (len(text) == 0 || slices.Contains(sums, hash(text)))
}

// removeSame removes exactly the file that was looked at.
func removeSame(name pathguard.Name, was pathguard.Fingerprint) {
	target, err := name.PinEntry()
	if err != nil {
		return
	}
	defer target.Close()
	if target.Fingerprint() == was {
		_ = target.Remove(pathguard.WriteOptions{}) // what stays is told by doctor
	}
}
