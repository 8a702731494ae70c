// SPDX-License-Identifier: Apache-2.0

//go:build linux

package fsserver

import (
	"context"
	"encoding/json"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/postern-gate/postern/internal/mcpserver"
)

// deaf is a locker that ends with its channel and not with the context, as a
// file system that doesn't answer.
type deaf chan struct{}

func (d deaf) LockWith(context.Context, []int64, []int64) (func(), error) {
	<-d
	return func() {}, nil
}

// serveWith starts a server whose options the test changes.
func (w *world) serveWith(change func(*Options)) *client {
	w.Helper()
	o, closer, err := w.setup.options()
	w.must(err)
	w.Cleanup(closer)
	change(&o)
	srv, err := New(o)
	w.must(err)
	return connect(w.T, srv, nil)
}

// TestLateMutation: a mutation whose time is over before it says how it ended
// may have been applied, and says so; others are answered meanwhile.
func TestLateMutation(t *testing.T) {
	w := newWorld(t, map[string]string{"f": "F"}, later)
	locks := make(deaf)
	c := w.serveWith(func(o *Options) { o.Gate.Locker, o.CallTime = locks, 100*time.Millisecond })
	_, late := c.startCall("write_file", args{"path": w.at("f"), "content": "new"})
	c.call("read_text_file", args{"path": w.at("f")}).ok()
	r := c.result(c.await(late)).refused("call.cancelled").has("ran out of time", "may_have_applied: true")
	if r.outcome()["may_have_applied"] != true {
		t.Error(r.raw)
	}
	close(locks)
	w.must(os.Remove(w.at("f")))
}

// TestNoPlace: when the calls that a file system holds have taken every place,
// the next one is refused in time, and nothing was done.
func TestNoPlace(t *testing.T) {
	w := newWorld(t, map[string]string{"f": "F"}, later)
	o, closer, err := w.setup.options()
	w.must(err)
	t.Cleanup(closer)
	o.CallTime = 50 * time.Millisecond
	s, err := newServer(o)
	w.must(err)
	s.places[mcpserver.Small] = make(chan struct{}) // no place is ever free
	m, err := s.mcp()
	w.must(err)
	c := connect(t, m, nil)
	r := c.call("write_file", args{"path": w.at("f"), "content": "new"}).refused("call.cancelled")
	if r.outcome()["may_have_applied"] != nil {
		t.Error(r.raw)
	}
	w.is(w.at("f"), "F")
	c.call("search_files", args{"path": w.root, "pattern": "*"}).ok() // another load
}

// TestHardLinks: a file with other names is read and marked.
func TestHardLinks(t *testing.T) {
	w := newWorld(t, map[string]string{"f": "F"})
	w.must(os.Link(w.at("f"), w.outside+"/g"))
	w.call("read_text_file", args{"path": w.at("f")}).ok().has("hard_links: 2")
	w.call("get_file_info", args{"path": w.at("f")}).ok().has("hard_links: 2")
	w.must(os.Remove(w.outside + "/g"))
	w.call("read_text_file", args{"path": w.at("f")}).ok().lacks("hard_links")
}

// TestStructuredParts: what is missing from a tree or list is said in the
// structured content too.
func TestStructuredParts(t *testing.T) {
	w := newWorld(t, map[string]string{"priv/x": "X", "a": "A", "emptydir/y/z": ""}, func(w *world) { w.setup.Bare = true })
	w.must(os.Chmod(w.at("priv"), 0))
	c := w.client
	if os.Getuid() == 0 {
		c = w.spawn(w.as(nobody))
	}
	var tree struct {
		Tree []struct {
			Name, Type string
			Unreadable bool
			Children   []any
		}
	}
	r := c.call("directory_tree", args{"path": w.root}).ok()
	w.must(json.Unmarshal(r.Structured, &tree))
	if len(tree.Tree) != 3 || tree.Tree[2].Name != "priv" || !tree.Tree[2].Unreadable || tree.Tree[2].Children == nil {
		t.Errorf("%s", r.Structured)
	}
	for _, r := range []result{r, c.call("search_files", args{"path": w.root, "pattern": "**"})} {
		if !strings.HasSuffix(string(r.Structured), `,"partial":true}`) {
			t.Errorf("%s", r.Structured)
		}
	}
	c.call("list_directory", args{"path": w.at("priv")}).refused("io.failed").has("no permission")
	small := w.serveWith(func(o *Options) { o.Bare, o.WalkEntries = true, 2 })
	r = small.call("list_directory", args{"path": w.root}).ok()
	if !strings.Contains(string(r.Structured), `"partial":true`) {
		t.Errorf("%s", r.Structured)
	}
}

// TestProgress: a walk reports how far it is, to a client that asked for it.
func TestProgress(t *testing.T) {
	w := newWorld(t, map[string]string{"a/b/c": "", "d": ""})
	for _, tool := range []string{"search_files", "directory_tree"} {
		a := args{"path": w.root}
		if tool == "search_files" {
			a["pattern"] = "**"
		}
		w.call(tool, a).ok()
		w.result(w.request("tools/call", map[string]any{
			"name": tool, "arguments": a, "_meta": map[string]any{"progressToken": tool},
		})).ok()
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	for i, tool := range []string{"search_files", "directory_tree"} {
		if i >= len(w.progress) || !strings.Contains(w.progress[i], `"progressToken":"`+tool+`","progress":2`) {
			t.Fatalf("%q", w.progress)
		}
	}
}
