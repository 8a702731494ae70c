// SPDX-License-Identifier: Apache-2.0

package undo

import (
	"os"
	"strings"
	"time"

	"github.com/postern-gate/postern/core/pathguard"
)

// tidy removes what is older than Options.Keep, and counts what is left. An image
// that no journal knows goes no sooner: its line may be one that can't be read,
// and it the only one of its kind.
func (l *Log) tidy(x *Index) error {
	all, err := l.list()
	if err != nil {
		return err
	}
	pinned, err := l.pinned(all)
	if err != nil {
		return err
	}
	old := l.now().Add(-l.o.Keep)
	known := map[string]bool{}
	for _, t := range x.Txns {
		for _, e := range t.Steps {
			if e.Image != "" && (t.Time.After(old) || pinned[t.ID]) {
				known[e.Image] = true
			}
		}
	}
	for _, k := range all {
		name := strings.TrimSuffix(k.path[strings.LastIndexByte(k.path, os.PathSeparator)+1:], pathguard.OldSuffix)
		if !known[name] && k.at.Before(old) {
			_ = remove(k.path)
		}
	}
	if err := l.dropJournals(old); err != nil {
		return err
	}
	return l.recount()
}

// dropJournals removes those that were last written before the oldest change
// that is kept, and brings the others to their bound.
func (l *Log) dropJournals(old time.Time) error {
	names, _, err := journals(l.join())
	if err != nil {
		return err
	}
	own := l.journalName()
	for _, name := range names {
		info, err := os.Lstat(name)
		if err == nil && info.ModTime().Before(old) && name != own {
			_ = os.Remove(name)
		}
	}
	if total(names) <= l.o.Journals {
		return nil
	}
	return l.compact()
}

// journalName is the journal that this process writes, "" for none.
func (l *Log) journalName() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.file == nil {
		return ""
	}
	return l.file.Name()
}

// recount makes the count right.
func (l *Log) recount() error {
	release, err := l.counting()
	if err != nil {
		return unusable("the lock of the images can't be had", err)
	}
	defer release()
	all, err := l.list()
	if err != nil {
		return err
	}
	var have counters
	for _, k := range all {
		have.bytes, have.entries = have.bytes+k.bytes, have.entries+k.entries
	}
	return l.writeRoom(have)
}
