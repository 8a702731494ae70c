// SPDX-License-Identifier: Apache-2.0

package config

import (
	"cmp"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"time"

	"github.com/postern-gate/postern/core"
	"github.com/postern-gate/postern/core/policy"
	"github.com/postern-gate/postern/internal/links"
)

// patience bounds how long one look may take. A tree of ten thousand links and
// folders takes a small part of it.
const patience = 5 * time.Second

// around is what a policy has to know besides the files, as of one look: places of our
// own and of what runs by itself, and where links lead.
type around struct {
	protected []policy.Protected
	links     []policy.Link
	warnings  []string
}

// opened is what a root was when it was opened.
type opened struct {
	info os.FileInfo
	dirs []string
}

// glance is a look for links by the options: it waits for no mount but those that the
// roots, what is listed beneath them, and our own files lie on.
func (o *Options) glance(roots []Root, trusted ...string) *links.Look {
	own := append(trusted, o.StateDir, o.Binary, o.Env("HOME"))
	for _, r := range roots {
		own = append(own, r.Path)
		for _, m := range r.Mounts {
			own = append(own, filepath.Join(r.Path, filepath.FromSlash(m)))
		}
	}
	return links.NewLook(patience, own...)
}

// dirs are a root's spellings, and whether another folder has its place, or none.
// What lay there when a server started is what it goes on to serve.
func (o *Options) dirs(path string) (dirs []string, moved bool) {
	was, ok := o.opened[path]
	if info, err := os.Stat(path); ok && (err != nil || !os.SameFile(info, was.info)) {
		return was.dirs, true
	}
	return slices.Compact([]string{path, real(path)}), false
}

// surround finds what there is around the policy of c.
func (o *Options) surround(c *Config, roots []policy.Root, before *finder, look *links.Look) {
	a := around{warnings: slices.Clone(c.entrusted.Warnings)}
	var tops []top
	for _, r := range c.Roots {
		t := top{name: r.Name}
		if t.dirs, t.moved = o.dirs(r.Path); t.moved {
			a.warnings = append(a.warnings, "root "+r.Name+": the folder that is served isn't at "+r.Path+" any more: its project's policy and its links are held as they were; start again to serve what is there")
		}
		tops = append(tops, t)
	}
	places, over := o.own(c, look)
	for _, t := range tops {
		for _, by := range []map[string][]string{places, c.entrusted.Places} {
			for entry, all := range by {
				for _, rel := range inside(t.dirs, all) {
					a.protected = append(a.protected, policy.Protected{Root: t.name, Path: rel, Entry: entry})
				}
			}
		}
		for _, f := range c.entrusted.Fronts {
			for _, rel := range ends(t.dirs, []string{f.Dir}) {
				a.protected = append(a.protected, policy.Protected{Root: t.name, Path: rel, Entry: f.Entry, Below: f.Below})
			}
		}
	}
	slices.SortFunc(a.protected, func(a, b policy.Protected) int {
		return cmp.Or(cmp.Compare(a.Root, b.Root), cmp.Compare(a.Path, b.Path), cmp.Compare(a.Entry, b.Entry), cmp.Compare(a.Below, b.Below))
	})
	a.protected = slices.Compact(a.protected)
	a.stay(tops, over, c.entrusted.Over)
	c.finder = finderOf(before, roots, a.protected, o.now)
	found := c.finder.find(tops, look)
	a.links, a.warnings = append(a.links, found.links...), append(a.warnings, found.warnings...)
	c.around = a
}

// own are the places of our own files by the entry that they belong to, each as its
// links lead too, and what must stay for them to lead there.
func (o *Options) own(c *Config, look *links.Look) (places, over map[string][]string) {
	own := map[string]string{o.Binary: "postern", o.StateDir: "postern-state"}
	for _, s := range c.sources {
		own[s.path] = "postern"
	}
	delete(own, "")
	places, over = map[string][]string{}, map[string][]string{}
	for path, entry := range own {
		way := look.Follow(path)
		places[entry] = append(append(places[entry], filepath.Clean(path)), way.Spelled...)
		over[entry] = append(over[entry], way.Stays()...)
	}
	return places, over
}

// stay adds what must stay where it is, within the bounds for links.
func (a *around) stay(tops []top, all ...map[string][]string) {
	for _, over := range all {
		for entry, places := range over {
			for _, t := range tops {
				for _, rel := range inside(t.dirs, places) {
					a.links = append(a.links, policy.Link{Entry: entry, ToRoot: t.name, To: rel, Over: true})
				}
			}
		}
	}
	slices.SortFunc(a.links, func(a, b policy.Link) int {
		return cmp.Or(cmp.Compare(a.Entry, b.Entry), cmp.Compare(a.ToRoot, b.ToRoot), cmp.Compare(a.To, b.To))
	})
	if a.links = slices.Compact(a.links); len(a.links) > maxFound {
		a.warnings = append(a.warnings, "not every link and folder stays that leads to a place of a client or to what runs by itself, "+a.links[maxFound].To+
			" in the root "+a.links[maxFound].ToRoot+" doesn't: there are too many: serve a smaller folder")
		a.links = a.links[:maxFound]
	}
}

// finderOf is that of the policy before as long as it looks for the same names, and
// else one that knows what that one has found.
func finderOf(before *finder, roots []policy.Root, places []policy.Protected, now func() time.Time) *finder {
	fallback := policy.Default()
	// Lifted or not: what belongs to an entry that is lifted is known by links too.
	of := policy.Config{Roots: roots, Fallback: &fallback, Protected: places}
	if before != nil && reflect.DeepEqual(before.of, of) {
		return before
	}
	lists, _ := policy.Compile(of) // an error is told of the policy itself
	f := newFinder(now, func(root, rel string) bool {
		return lists.Evaluate(core.Request{Action: core.FSRead, Resource: core.File(root, rel), Link: true}).Reason.Builtin != ""
	})
	if f.of = of; before != nil {
		f.last = before.last
	}
	return f
}

// held is what else no root may change: what was known before, where it takes too long.
func (o *Options) held(before *Config, look *links.Look) Entrusted {
	if o.Entrusted == nil {
		return Entrusted{}
	}
	now := o.Entrusted(look)
	if before != nil && look.Late() {
		return before.entrusted
	}
	return now
}

// again is c with what there is around it now: c itself where that is the same.
func (o *Options) again(c *Config, look *links.Look) *Config {
	next := *c
	next.entrusted = o.held(c, look)
	o.surround(&next, c.parts.Roots, c.finder, look)
	if reflect.DeepEqual(next.around, c.around) {
		return c
	}
	next.parts.Protected, next.parts.Links = next.around.protected, next.around.links
	next.Policy, _ = policy.Compile(next.parts.Config) // as it was compiled, but for places that aren't checked
	next.Warnings = slices.Concat(next.said, next.around.warnings)
	return &next
}
