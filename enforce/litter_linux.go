// SPDX-License-Identifier: Apache-2.0

package enforce

import (
	"errors"
	"io"
	"regexp"
	"time"

	"github.com/postern-gate/postern/core/pathguard"
	"github.com/postern-gate/postern/internal/state/live"
)

// litterName is what pathguard calls a file that does not yet have its name.
func litterName() *regexp.Regexp { return regexp.MustCompile(`^\.postern-tmp-[0-9a-f]{16}$`) }

const (
	// clockSlack is how far the time of a file may lie before that of a record
	// which was made before it: file systems take it from a coarser clock.
	clockSlack = 20 * time.Millisecond
	// litterLook bounds how many entries of a folder are looked at.
	litterLook = 10_000
)

// sweep removes from the folders of killed writes what those left unfinished.
// It is theirs, and nothing else is taken for it, if all of this holds: every
// killed change in that folder is known to have had no effect, so that nothing
// there is a former content; there are no more such files than changes; the
// file was born after the record of the earliest of them, and has one name; no
// process has it open, as one that still lives would. Whatever is not sure
// stays, hidden from agents by its name, and postern doctor tells a person.
func sweep(all []casualty) {
	folders := map[pathguard.Name][]casualty{}
	for _, c := range all {
		if dir, ok := c.name.Parent(); ok && c.known {
			folders[dir] = append(folders[dir], c)
		}
	}
	for dir, dead := range folders {
		since := dead[0].Time
		for _, c := range dead {
			if c.found != foundUnchanged {
				since = time.Time{}
				break
			}
			if c.Time.Before(since) {
				since = c.Time
			}
		}
		if !since.IsZero() {
			sweepFolder(dir, since.Add(-clockSlack), len(dead))
		}
	}
}

// sweepFolder leaves all where anything is unclear.
func sweepFolder(dir pathguard.Name, since time.Time, most int) {
	d, err := dir.OpenDir()
	if err != nil {
		return
	}
	defer d.Close()
	var found []string
	for looked := 0; looked < litterLook; {
		entries, err := d.Entries(1024)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return
		}
		looked += len(entries)
		for _, e := range entries {
			if litterName().MatchString(e.Name) && bornAfter(d, e.Name, since) {
				found = append(found, e.Name)
			}
		}
	}
	if len(found) > most {
		return
	}
	for _, entry := range found {
		if info, err := d.Lstat(entry); err == nil && unopened(d, entry) {
			removeLitter(dir, entry, info.Fingerprint)
		}
	}
}

// bornAfter is false where the file system doesn't know when a file was born.
func bornAfter(d *pathguard.Dir, entry string, since time.Time) bool {
	info, err := d.Lstat(entry)
	return err == nil && info.Kind == pathguard.KindFile && info.Nlink == 1 && info.BirthTime.After(since)
}

func unopened(d *pathguard.Dir, entry string) (free bool) {
	_ = d.Lend(func(fd int) error { // it returns what the function does
		free = live.Unopened(fd, entry)
		return nil
	})
	return free
}

// removeLitter removes exactly the file that was looked at.
func removeLitter(dir pathguard.Name, entry string, was pathguard.Fingerprint) {
	name, err := dir.Join(entry)
	if err != nil {
		return
	}
	target, err := name.PinEntry()
	if err != nil {
		return
	}
	defer target.Close()
	if target.Fingerprint() == was {
		_ = target.Remove(pathguard.WriteOptions{}) // what stays is told by doctor
	}
}
