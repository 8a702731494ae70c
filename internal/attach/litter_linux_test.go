// SPDX-License-Identifier: Apache-2.0

package attach

import (
	"os"
	"path/filepath"
	"testing"
)

// TestLitter: what a killed init left goes with the next one and with undo, and
// nothing that isn't surely that.
func TestLitter(t *testing.T) {
	const name = ".postern-tmp-0123456789abcdef"
	for what, again := range map[string]func(p *place){
		"undo": func(p *place) { p.apply(p.undo()) },
		"init": func(p *place) { p.apply(p.attach("cursor", "codex", "claude-code")) },
		"more": func(p *place) { p.apply(p.attach("gemini-cli")) },
	} {
		p := newPlace(t)
		p.put(p.home(".codex/config.toml"), "a = 1\n")
		p.apply(p.attach("cursor", "codex", "claude-code"))
		gone := []string{p.project(filepath.Join(".cursor", name)), p.home(filepath.Join(".codex", name)), p.project(".postern-tmp-fedcba9876543210")}
		p.put(gone[0], p.get(p.project(".cursor/mcp.json"))) // the new content
		p.put(gone[1], "a = 1\n")                            // the displaced one
		p.put(gone[2], "")
		stays := []string{
			p.project(".postern-tmp-0000000000000001"), p.project(".postern-tmp-notes"), p.home(name), p.project(".postern-tmp-0000000000000003"),
		}
		p.put(stays[0], "somebody's")
		p.put(stays[1], "")
		p.put(stays[2], "a = 1\n") // in no folder of the journal
		p.put(stays[3], "")
		held, err := os.Open(stays[3]) // by a process that lives
		if err != nil {
			t.Fatal(err)
		}
		twice := p.project(".postern-tmp-0000000000000002")
		if err := os.Link(stays[1], twice); err != nil {
			t.Fatal(err)
		}
		again(p)
		for _, path := range gone {
			if there(path) {
				t.Errorf("%s: %s is left", what, path)
			}
		}
		for _, path := range append(stays, twice) {
			if !there(path) {
				t.Errorf("%s: %s is gone", what, path)
			}
		}
		if err := held.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

// TestLitterOfAKilledUndo: it may have left the text that it was writing.
func TestLitterOfAKilledUndo(t *testing.T) {
	p := newPlace(t)
	p.put(p.home(".codex/config.toml"), "a = 1\n")
	p.apply(p.attach("codex"))
	p.put(p.home(".codex/config.toml"), p.get(p.home(".codex/config.toml"))+"[b]\n")
	plan := p.undo()
	b, err := openBook(t.Context(), p.state, p.w.Project)
	if err != nil {
		t.Fatal(err)
	}
	b.expect(plan.Changes[0])
	if err := b.save(); err != nil {
		t.Fatal(err)
	}
	b.release()
	left := p.home(".codex/.postern-tmp-0123456789abcdef")
	p.put(left, string(plan.Changes[0].After))
	p.apply(p.undo())
	if there(left) {
		t.Error("it is left")
	}
}
