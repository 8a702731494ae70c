// SPDX-License-Identifier: Apache-2.0

package attach

import (
	"os"
	"path/filepath"
)

// Found is a client that seems to be here.
type Found struct {
	Client Client
	// Why is what was found: a path, or a name beneath the project. Draw it safely.
	Why string
}

// Find returns the clients that seem to be here: a program, a folder of
// settings, a file in the project. Nothing is opened and no program started.
func Find(w World) []Found {
	var found []Found
	for _, c := range Clients() {
		if why := w.sign(c.signs); why != "" {
			found = append(found, Found{c, why})
		}
	}
	return found
}

func (w World) sign(s signs) string {
	for _, name := range s.programs {
		if w.LookPath == nil {
			break
		}
		if at, err := w.LookPath(name); err == nil {
			return at
		}
	}
	for _, place := range s.home {
		if at := w.path(place); at != "" && there(at) {
			return at
		}
	}
	for _, name := range s.project {
		if w.Project != "" && there(filepath.Join(w.Project, filepath.FromSlash(name))) {
			return name
		}
	}
	return ""
}

func there(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}
