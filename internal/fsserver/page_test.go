// SPDX-License-Identifier: Apache-2.0

//go:build linux

package fsserver

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

// pages are the bodies of a call's pages.
func (c *client) pages(tool string, a args) []string {
	c.t.Helper()
	var all []string
	for range 1000 {
		r := c.call(tool, a).ok()
		all = append(all, r.body())
		cursor := r.next().Cursor
		if cursor == "" {
			return all
		}
		a["cursor"] = cursor
	}
	c.t.Error("the pages don't end")
	return all
}

// tidy is a tree with names whose orders differ by bytes, by words and by size.
func tidy() map[string]string {
	files := map[string]string{}
	for i, name := range []string{"B", "a", "b-1", "b", "b_", "é", "z", "a b", "10", "9", ".x", "c/1", "c/2/x", "c/2/y", "c/3", "c-", "d/e/f/g", "d/e/f/h"} {
		files[name] = strings.Repeat("x", i*7%5)
	}
	return files
}

// TestPages: whatever the limit, the pages of a list or search join to the
// whole of it.
func TestPages(t *testing.T) {
	w := newWorld(t, tidy())
	for name, a := range map[string]args{
		"list_directory": {}, "list_directory_with_sizes": {}, "list_directory_with_sizes ": {"sortBy": "size"},
		"search_files": {"pattern": "**"}, "search_files ": {"pattern": "C", "substring": true},
	} {
		tool := strings.TrimSpace(name)
		a["path"] = w.root
		whole := w.call(tool, a).ok()
		if whole.next().Cursor != "" {
			t.Errorf("%s without a limit has a cursor", tool)
		}
		lines, totals, _ := strings.Cut(whole.body(), "\n\nTotal: ")
		for _, limit := range []int{1, 2, 5, 100} {
			a["limit"] = limit
			var joined []string
			for _, page := range w.pages(tool, a) {
				part, rest, _ := strings.Cut(page, "\n\nTotal: ")
				joined = append(joined, part)
				if n := strings.Count(part, "\n") + 1; n > limit || rest != totals {
					t.Errorf("%s: %d lines of %d; %q", tool, n, limit, rest)
				}
			}
			if d := cmp.Diff(lines, strings.Join(joined, "\n")); d != "" {
				t.Errorf("%s, limit %d: %s", tool, limit, d)
			}
			delete(a, "cursor")
		}
		delete(a, "limit")
	}
	w.call("list_directory", args{"path": w.root, "limit": 3}).ok().has("3 of 14 entries, 11 left", "next: the same call with cursor ").lacks("partial")
	w.call("search_files", args{"path": w.root, "pattern": "**", "limit": 3}).ok().has("there is more").lacks("partial")
}

// branch is a node of a tree as clients read it.
type branch struct {
	Name, Type string
	Children   []branch
}

func (b branch) paths(at string) (all []string) {
	for _, child := range b.Children {
		all = append(all, at+child.Name)
		all = append(all, child.paths(at+child.Name+"/")...)
	}
	return all
}

// TestTreePages: a later page holds the directories on the way again, and
// nothing else twice.
func TestTreePages(t *testing.T) {
	w := newWorld(t, tidy())
	tree := func(body string) []string {
		var top branch
		w.must(json.Unmarshal([]byte(body), &top.Children))
		return top.paths("")
	}
	whole := tree(w.call("directory_tree", args{"path": w.root}).ok().body())
	for _, limit := range []int{1, 2, 3, 100} {
		var seen []string
		for _, page := range w.pages("directory_tree", args{"path": w.root, "limit": limit}) {
			fresh := slices.DeleteFunc(tree(page), func(path string) bool { return slices.Contains(seen, path) })
			if len(fresh) == 0 || len(fresh) > limit {
				t.Errorf("limit %d: %q", limit, fresh)
			}
			seen = append(seen, fresh...)
		}
		if d := cmp.Diff(whole, seen); d != "" {
			t.Errorf("limit %d: %s", limit, d)
		}
	}
}

// TestWalkGoesOn: a walk that ends at its limit of entries leads on, and what
// follows joins to the whole; the end is reached even where one directory alone
// has more entries than the limit.
func TestWalkGoesOn(t *testing.T) {
	files := map[string]string{}
	for i := range 60 {
		files[fmt.Sprintf("d%d/e%d/f%02d", i%3, i%5, i)] = "needle\n"
	}
	w := newWorld(t, files)
	c := w.serveWith(func(o *Options) { o.WalkEntries = 17 })
	for tool, a := range map[string]args{"search_files": {"pattern": "**/f*"}, "search_content": {"query": "needle"}} {
		a["path"] = w.root
		whole := w.call(tool, a).ok().body()
		pages := c.pages(tool, a)
		if d := cmp.Diff(whole, strings.Join(slices.DeleteFunc(pages, func(s string) bool { return s == "No matches found" }), "\n")); d != "" || len(pages) < 3 {
			t.Errorf("%s in %d pages: %s", tool, len(pages), d)
		}
	}
	for i := range 40 {
		w.put(w.at(fmt.Sprintf("d1/many/%02d", i)), "needle\n")
	}
	w.setup.State += "2"
	c = w.serveWith(func(o *Options) { o.WalkEntries = 17 })
	a := args{"path": w.root, "pattern": "**/f*"}
	if got := strings.Join(c.pages("search_files", a), "\n"); strings.Count(got, "/f") != 60 {
		t.Errorf("%d", strings.Count(got, "/f"))
	}
}

// TestCursorsOfOthers: a cursor belongs to its request, and nothing in it is
// believed.
func TestCursorsOfOthers(t *testing.T) {
	w := newWorld(t, tidy(), func(w *world) { w.setup.Deny = []string{"c/**"} })
	cursor := w.call("list_directory", args{"path": w.root, "limit": 2}).next().Cursor
	w.call("list_directory", args{"path": w.root, "limit": 9, "cursor": cursor}).ok()
	w.call("list_directory", args{"path": w.at("d"), "cursor": cursor}).refused("request.invalid").has("belongs to another request")
	w.call("directory_tree", args{"path": w.root, "cursor": cursor}).refused("request.invalid")
	w.call("list_directory_with_sizes", args{"path": w.root, "cursor": cursor}).refused("request.invalid")
	raw, err := base64.RawURLEncoding.DecodeString(cursor)
	w.must(err)
	for i := range raw {
		changed := slices.Clone(raw)
		changed[i] ^= 1
		r := w.call("list_directory", args{"path": w.root, "cursor": base64.RawURLEncoding.EncodeToString(changed)})
		if !r.IsError {
			r.lacks("\"c\"", "/c") // it leads to another place of the same list
		}
	}
	// A cursor that leads where nothing may be listed shows nothing of it.
	c := &call{server: &server{}, tool: &tool{name: "search_files"}, args: arguments{path: w.root, pattern: "**"}}
	forged := c.cursor(position{path: "c/1"})
	w.call("search_files", args{"path": w.root, "pattern": "**", "cursor": forged}).ok().lacks("/c/2", "/c/3")
	forged = c.cursor(position{path: "../outside/x"})
	w.put(w.outside+"/f", secret)
	w.call("search_files", args{"path": w.root, "pattern": "**", "cursor": forged}).ok().lacks(secret, "outside")
	// What it was told last is gone.
	cursor = w.call("search_files", args{"path": w.root, "pattern": "*", "limit": 2}).next().Cursor
	w.must(os.Remove(w.at("10")))
	w.call("search_files", args{"path": w.root, "pattern": "*", "cursor": cursor}).ok().has("rescan_pending: true", w.at("9"))
}

// TestCursorHidesNames: how a cursor reads tells nothing of the name in it.
func TestCursorHidesNames(t *testing.T) {
	c := &call{server: &server{}, tool: &tool{name: "t"}}
	rapid.Check(t, func(rt *rapid.T) {
		p := position{
			path: rapid.String().Draw(rt, "path"), past: rapid.Bool().Draw(rt, "past"),
			n: rapid.Int64().Draw(rt, "n"), tag: rapid.Uint64().Draw(rt, "tag"),
		}
		one, other := c.cursor(p), c.cursor(p)
		if one == other {
			rt.Fatalf("%q twice", one)
		}
		c.args.cursor = one
		if got, err := c.position(); err != nil || got != p {
			rt.Fatalf("%+v %v, want %+v", got, err, p)
		}
	})
}

// TestRelation holds the order of positions against the order of a walk.
func TestRelation(t *testing.T) {
	walk := []string{"a", "a/b", "a/b/c", "a/b-", "a-", "a-/x", "b"}
	for i, from := range walk {
		for j, path := range walk {
			p := position{path: from}
			want := onward
			switch {
			case path == from || strings.HasPrefix(from, path+"/"):
				want = onWay
			case j < i:
				want = passed
			}
			if got := p.relation(path); got != want {
				t.Errorf("%s from %s: %d, want %d", path, from, got, want)
			}
			p.past = true
			if path == from || strings.HasPrefix(path, from+"/") {
				want = passed
			}
			if got := p.relation(path); got != want {
				t.Errorf("%s past %s: %d, want %d", path, from, got, want)
			}
		}
	}
}
