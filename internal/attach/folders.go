// SPDX-License-Identifier: Apache-2.0

package attach

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// Folders are the projects that some client is attached to, as far as init is
// remembered to have done it, sorted. One may be gone. They come from a file: draw
// them safely.
func Folders(stateDir string) (folders []string) {
	all, _ := journals(filepath.Join(stateDir, "attached"), "")
	for _, j := range all {
		if attaches(j.Files) && filepath.IsAbs(j.Project) {
			folders = append(folders, j.Project)
		}
	}
	slices.Sort(folders)
	return slices.Compact(folders)
}

// journals are those in a folder but for one, and the paths of those that can't be
// read.
func journals(dir, but string) (all []journal, unread []string) {
	names, _ := os.ReadDir(dir) // what isn't there remembers nothing
	for _, f := range names {
		at := filepath.Join(dir, f.Name())
		if strings.HasPrefix(f.Name(), ".") || filepath.Ext(at) != ".json" || at == but {
			continue
		}
		var j journal
		if j.read(at) == nil {
			all = append(all, j)
		} else {
			unread = append(unread, at)
		}
	}
	return all, unread
}

// still says why the user's policy still holds for other folders than the one of this
// journal, "" if it doesn't: one is attached, as far as it is there, or it can't be
// told. It names files: draw it safely.
func still(path string) string {
	all, unread := journals(filepath.Dir(path), path)
	for _, j := range all {
		if _, err := os.Lstat(j.Project); attaches(j.Files) && !errors.Is(err, fs.ErrNotExist) {
			return j.Project + " is attached, and it holds for that folder too; it goes with the last"
		}
	}
	if len(unread) > 0 {
		return "what init remembers of another folder can't be read: " + unread[0]
	}
	return ""
}

// Agent is the name whose rules an entry's line is under, "" where it is none or
// not one alone. It comes from the file: draw it safely.
func (a Attachment) Agent() string {
	if agents, _ := a.line(); len(agents) == 1 {
		return agents[0]
	}
	return ""
}
