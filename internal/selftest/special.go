// SPDX-License-Identifier: Apache-2.0

package selftest

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// specialFiles: a pipe in the folder holds no call up and is never opened.
func specialFiles(l *lab, t *trial) {
	path := l.at("special/pipe")
	if !t.needs("a folder", os.MkdirAll(filepath.Dir(path), 0o700)) || !t.needs("a pipe", makeFIFO(path)) {
		return
	}
	calls := map[string]args{
		"read_text_file": {"path": "special/pipe"}, "read_media_file": {"path": "special/pipe"},
		"write_file":  {"path": "special/pipe", "content": "x"},
		"append_file": {"path": "special/pipe", "content": "x"},
		"copy_file":   {"source": "special/pipe", "destination": "special/copy"},
	}
	t.about = fmt.Sprintf("a pipe that nobody writes to, with %d tools and a search beside it", len(calls))
	blocks := func() error { return readerWaits(path) }
	for tool, a := range calls {
		t.against(tool, blocks, func() error { return l.refused(l.main.client.call(tool, a)) })
	}
	t.against("search_content", blocks, func() error {
		_, err := l.main.client.does("search_content", args{"path": "special", "query": "x"})
		return err
	})
}

// hardLinks: another name of a file outside is marked, and refused where the
// root says so.
func hardLinks(l *lab, t *trial) {
	t.about = "a second name of a file outside: marked, and refused where the root says hardlinks: deny"
	dir := filepath.Join(l.box, "linked")
	name := filepath.Join(dir, "name")
	if !t.needs("a folder", os.Mkdir(dir, 0o700)) || !t.needs("a hard link", os.Link(filepath.Join(l.outside, "secret"), name)) {
		return
	}
	control := func() error { return holds(name, l.marker) }
	open, err := l.guard(setting{dir: dir})
	if !t.needs("a guard", err) {
		return
	}
	t.against("the mark", control, func() error {
		a, err := open.client.does("read_text_file", args{"path": "name"})
		if err == nil && !strings.Contains(a.text, "hard_links: 2") {
			err = errors.New("a file with another name is not marked")
		}
		return err
	})
	strict, err := l.guard(setting{dir: dir, policy: "version: 1\nroots:\n  project: { path: ., access: write, hardlinks: deny }\n"})
	if !t.needs("a guard", err) {
		return
	}
	t.against("hardlinks: deny", control, func() error {
		return l.refused(strict.client.call("read_text_file", args{"path": "name"}))
	})
}
