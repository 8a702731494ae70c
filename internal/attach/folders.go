// SPDX-License-Identifier: Apache-2.0

package attach

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// Folders are the projects that some client is attached to, as far as init is
// remembered to have done it, sorted. One may be gone. They come from a file: draw
// them safely.
func Folders(stateDir string) (folders []string) {
	for _, j := range journals(filepath.Join(stateDir, "attached"), "") {
		if attaches(j.Files) && filepath.IsAbs(j.Project) {
			folders = append(folders, j.Project)
		}
	}
	slices.Sort(folders)
	return slices.Compact(folders)
}

// journals are those in a folder but for one, as far as they can be read.
func journals(dir, but string) (all []journal) {
	names, _ := os.ReadDir(dir) // what isn't there remembers nothing
	for _, f := range names {
		at := filepath.Join(dir, f.Name())
		if strings.HasPrefix(f.Name(), ".") || filepath.Ext(at) != ".json" || at == but {
			continue
		}
		var j journal
		if j.read(at) == nil {
			all = append(all, j)
		}
	}
	return all
}

// Agent is the name whose rules an entry's line is under, "" where it is none or
// not one alone. It comes from the file: draw it safely.
func (a Attachment) Agent() string {
	if agents, _ := a.line(); len(agents) == 1 {
		return agents[0]
	}
	return ""
}
