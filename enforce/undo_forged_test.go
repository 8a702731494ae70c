// SPDX-License-Identifier: Apache-2.0

package enforce

import (
	"encoding/json"
	"fmt"
	"hash/crc32"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/postern-gate/postern/core/pathguard"
	"github.com/postern-gate/postern/internal/state/undo"
)

// forgedSeeds are journals that somebody wrote: each line without its checksum.
// @f and @d stand for the facts of a file and a folder that are there, @top for
// the root, @path for where it lies.
var forgedSeeds = map[string]string{
	"append that shrank": `{"k":"begin","id":"a-1","steps":[{"n":0,"root":"project","path":"@path","rel":"f","do":"append","top":@top,"was":{"size":1000,"ino":1}}]}
{"k":"end","id":"a-1","state":"committed","done":[{"n":0,"now":@f}]}`,
	"negative size": `{"k":"begin","id":"a-1","steps":[{"n":0,"root":"project","path":"@path","rel":"f","do":"append","top":@top,"was":{"size":-9223372036854775808,"ino":1}}]}
{"k":"end","id":"a-1","state":"committed","done":[{"n":0,"now":@f}]}`,
	"large tail": `{"k":"begin","id":"a-1","steps":[{"n":0,"root":"project","path":"@path","rel":"f","do":"truncate","top":@top,"was":{"size":9223372036854775807,"ino":1},"added":9223372036854775807,"image":"i","how":"copied"}]}
{"k":"end","id":"a-1","state":"committed","done":[{"n":0,"now":@f}]}`,
	"image that is not there": `{"k":"begin","id":"a-1","steps":[{"n":0,"root":"project","path":"@path","rel":"f","do":"replace","top":@top,"was":{"size":3,"ino":1},"image":"i","how":"moved"}]}
{"k":"end","id":"a-1","state":"committed","done":[{"n":0,"now":@f,"image":{"ino":3}}]}`,
	"somebody's folder": `{"k":"begin","id":"a-1","steps":[{"n":0,"root":"project","path":"@path","rel":"d","do":"mkdir","top":@top,"was":{}}]}
{"k":"end","id":"a-1","state":"committed","done":[{"n":0,"now":@d}]}`,
	"no end": `{"k":"begin","id":"a-1","steps":[{"n":0,"root":"project","path":"@path","rel":"d","do":"mkdir","top":@top,"was":{}},{"n":0,"root":"project","path":"@path","rel":"f","do":"rename","to":{"root":"project","path":"@path","rel":"d/f"},"top":@top,"was":@f}]}`,
	"its own undo": `{"k":"begin","id":"a-1","undoes":true,"steps":[{"n":0,"root":"project","path":"@path","rel":"f","do":"create","top":@top,"was":{},"of":{"id":"a-1","n":0}}]}
{"k":"end","id":"a-1","state":"committed","corr":"b-1","done":[{"n":0,"now":@f}]}`,
	"mounts": `{"k":"begin","id":"a-1","steps":[{"n":0,"root":"project","path":"@path","rel":"d/f","do":"create","mounts":["d"],"top":@top,"was":{}},{"n":1,"root":"project","path":"@path","rel":"f","do":"create","mounts":["../outside"],"top":@top,"was":{}}]}
{"k":"end","id":"a-1","state":"committed","done":[{"n":0,"now":@f}]}`,
	"to another root": `{"k":"begin","id":"a-1","steps":[{"n":0,"root":"project","path":"@path","rel":"x","do":"rename","to":{"root":"other","path":"@path/..","rel":"outside"},"top":@top,"was":@f}]}
{"k":"end","id":"a-1","state":"committed","done":[{"n":0,"now":@f}]}`,
	"out of the root": `{"k":"begin","id":"a-1","steps":[{"n":0,"root":"project","path":"@path","rel":"../outside","do":"create","top":@top,"was":{}}]}
{"k":"end","id":"a-1","state":"committed","done":[{"n":0,"now":@f}]}`,
}

func inJSON(t *testing.T, v any) string {
	t.Helper()
	b, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// forge writes a journal with right checksums about a tree, and returns the
// tree's folder and the state.
func forge(t *testing.T, lines string) (dir, stateDir string) {
	t.Helper()
	base := t.TempDir()
	dir, stateDir = filepath.Join(base, "tree"), filepath.Join(base, "state")
	for _, path := range []string{filepath.Join(dir, "d"), filepath.Join(stateDir, "undo", "images")} {
		if err := os.MkdirAll(path, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	for _, path := range []string{filepath.Join(dir, "f"), filepath.Join(base, "outside")} {
		if err := os.WriteFile(path, []byte("0123456789"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	root, err := pathguard.OpenRoot(dir, pathguard.Options{Name: "project"})
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	ws, err := pathguard.NewWorkspace(root)
	if err != nil {
		t.Fatal(err)
	}
	of := func(rel string) pathguard.Name {
		n, err := ws.Parse("project://" + rel)
		if err != nil || len(n) != 1 {
			t.Fatal(n, err)
		}
		return n[0]
	}
	lines = strings.NewReplacer(
		"@path", root.Resolved(), "@top", inJSON(t, undo.FolderOf(of(""))), "@f", inJSON(t, facts(of("f"))), "@d", inJSON(t, facts(of("d"))),
	).Replace(lines)
	var text strings.Builder
	for line := range strings.SplitSeq(lines, "\n") {
		fmt.Fprintf(&text, "%08x %s\n", crc32.Checksum([]byte(line), crc32.MakeTable(crc32.Castagnoli)), line)
	}
	if err := os.WriteFile(filepath.Join(stateDir, "undo", "0000000000000001-1.jsonl"), []byte(text.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	return dir, stateDir
}

// FuzzUndoForged: whatever a journal says, listing, planning and taking back
// end without a panic, and change nothing outside the root.
func FuzzUndoForged(f *testing.F) {
	for _, seed := range forgedSeeds {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, lines string) {
		dir, stateDir := forge(t, lines)
		state, err := OpenState(stateDir, StateOptions{})
		if err != nil {
			t.Fatal(err)
		}
		defer state.Close()
		_ = state.Recover(t.Context())
		list, _, _, err := state.UndoList("", -1)
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range list {
			if strings.ContainsFunc(e.ID+e.Op, func(c rune) bool { return c < ' ' || c > '~' }) {
				t.Errorf("%q %q reach a terminal", e.ID, e.Op)
			}
			if p, err := state.PlanUndo(t.Context(), UndoSelect{ID: e.ID}, person()); err == nil {
				_, _ = state.Undo(t.Context(), p, person())
			}
		}
		if b, err := os.ReadFile(filepath.Join(dir, "..", "outside")); err != nil || string(b) != "0123456789" {
			t.Errorf("outside the root: %q %v", b, err)
		}
	})
}
