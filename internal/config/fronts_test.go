// SPDX-License-Identifier: Apache-2.0

package config_test

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/postern-gate/postern/internal/config"
	"github.com/postern-gate/postern/internal/links"
)

// TestFronts: a part of a folder is held where the folder lies in a root or is one.
func TestFronts(t *testing.T) {
	for dir, want := range map[string]map[string]string{
		"xdg":    {"write xdg/Kode/User/tasks.json": "editors", "move xdg/Kode/User": "editors", "write xdg/Kode/x": "", "write Kode/User/x": "", "link xdg/Kode": "editors"},
		".":      {"write Kode/User/tasks.json": "editors", "write xdg/Kode/User/x": ""},
		"..":     {"write Kode/User/x": ""}, // above the root
		"../xdg": {"write Kode/User/x": "", "write xdg/Kode/User/x": ""},
	} {
		p := newPlace(t)
		p.opts.Entrusted = func(*links.Look) config.Entrusted {
			return config.Entrusted{Fronts: []config.Front{{Entry: "editors", Dir: filepath.Join(p.dir, dir), Below: "*/User/**"}}}
		}
		if wrong := denials(p.load().Policy, want); wrong != nil {
			t.Errorf("%s:\n%s", dir, strings.Join(wrong, "\n"))
		}
	}
}
