// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"encoding/json"
	"runtime/debug"
	"testing"
)

// TestVersionOf: what a build knows is said, and nothing else.
func TestVersionOf(t *testing.T) {
	const commit = "0123456789abcdef0123456789abcdef01234567"
	built := func(version string, settings ...debug.BuildSetting) *debug.BuildInfo {
		return &debug.BuildInfo{Main: debug.Module{Version: version}, Settings: settings}
	}
	at := debug.BuildSetting{Key: "vcs.revision", Value: commit}
	short := debug.BuildSetting{Key: "vcs.revision", Value: "12"}
	clean := debug.BuildSetting{Key: "vcs.modified", Value: "false"}
	dirty := debug.BuildSetting{Key: "vcs.modified", Value: "true"}
	for _, c := range []struct {
		name             string
		info             *debug.BuildInfo
		version, commit  string
		known, isChanged bool
	}{
		{"no build info", nil, "unknown", "", false, false},
		{"go test, or without a repository", built(""), "devel", "", false, false},
		{"the same as go says it", built("(devel)"), "devel", "", false, false},
		{"a clone, version not derived", built("(devel)", at, clean), "devel-0123456789ab", commit, true, false},
		{"a commit too short to name", built("", short), "devel", "12", false, false},
		{"a tag", built("v1.2.3", at, clean), "v1.2.3", commit, true, false},
		{"a changed tree", built("v1.2.3+dirty", at, dirty), "v1.2.3+dirty", commit, true, true},
		{"from the module proxy", built("v1.2.3"), "v1.2.3", "", false, false},
	} {
		v := versionOf(c.info)
		changed := v.Modified != nil && *v.Modified
		if v.Postern != c.version || v.Commit != c.commit || (v.Modified != nil) != c.known || changed != c.isChanged {
			t.Errorf("%s: %+v", c.name, v)
		}
	}
	text, err := json.Marshal(versionOf(built("v1.2.3")))
	if err != nil {
		t.Fatal(err)
	}
	var fields map[string]any
	if err := json.Unmarshal(text, &fields); err != nil {
		t.Fatal(err)
	}
	for _, absent := range []string{"commit", "modified"} {
		if _, ok := fields[absent]; ok {
			t.Errorf("%s is said of a build that doesn't know it: %s", absent, text)
		}
	}
}
