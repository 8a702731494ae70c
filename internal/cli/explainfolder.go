// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/postern-gate/postern/core/fault"
	"github.com/postern-gate/postern/core/textsafe"
	"github.com/postern-gate/postern/internal/config"
)

// load finds what the call is judged by again: what is here, or given, where the
// call was there too; else the folder that it was in, as if this ran there.
func (x *explanation) load(env *Env, given *workspace) (w *workspace, err error) {
	if w = given; w == nil {
		w, err = x.o.loadHere(env)
	}
	if x.told.Folder == "" || err == nil && x.servedBy(w) {
		if err == nil && given == nil {
			err = w.open(env)
		}
		return w, err
	}
	if matched(cut, x.told.Folder) {
		return nil, &fault.Error{Code: fault.PathMissing, Rule: "the log has only a part of that folder's path, so whether it is there can't be told"}
	}
	if info, err := os.Stat(x.told.Folder); err != nil || !info.IsDir() {
		return nil, &fault.Error{Code: fault.PathMissing, Rule: "that folder is not there any more"}
	}
	o, there := *x.o, *env
	if o.policy, err = absoluteFrom(env, o.policy); err != nil {
		return nil, err
	}
	if there.Getwd = func() (string, error) { return x.told.Folder, nil }; given != nil {
		there.Err = io.Discard // the page's warnings are of what it was started for
	}
	x.there = true
	if w, err = o.loadHere(&there); err == nil {
		err = w.open(&there)
	}
	return w, err
}

// absoluteFrom is the path of a flag wherever the command would run.
func absoluteFrom(env *Env, path string) (string, error) {
	if path == "" || filepath.IsAbs(path) {
		return path, nil
	}
	here, err := env.Getwd()
	return filepath.Join(here, path), err
}

// close lets go of a folder that was opened for this explanation.
func (x *explanation) close() {
	if !x.there || x.w == nil {
		return
	}
	for _, r := range x.w.Roots() {
		_ = r.Close()
	}
}

// servedBy reports whether the roots are those that the records are about.
func (x *explanation) servedBy(w *workspace) bool {
	for _, e := range x.entries {
		root, _, file := strings.Cut(e.Record.Resource, "://")
		file = file && e.Record.Op != "tool.call"
		if e.Record.Folder != "" && !slices.ContainsFunc(w.live.Current().Roots, func(r config.Root) bool {
			return (!file || r.Name == root) && resolved(r.Path) == e.Record.Folder
		}) {
			return false
		}
	}
	return true
}

// resolved is the path without links, as records have it.
func resolved(path string) string {
	if real, err := filepath.EvalSymlinks(path); err == nil {
		return real
	}
	return path
}

// where is where it was judged again, for a sentence.
func (x *explanation) where() string {
	if x.there || x.told.Folder != "" && x.w == nil {
		return "in " + textsafe.Name(x.told.Folder)
	}
	return "here"
}

// moved says why the root is not the folder that it was, "" where it is.
func (x *explanation) moved(name string) string {
	root, _, _ := strings.Cut(name, "://")
	for _, e := range x.entries {
		if e.Record.Resource != name || e.Record.Folder == "" {
			continue
		}
		for _, r := range x.w.Roots() {
			if r.Name() == root && r.Resolved() != e.Record.Folder {
				return "the root " + root + " was " + textsafe.Name(e.Record.Folder) + " then, and is " + textsafe.Name(r.Resolved()) + " now"
			}
		}
	}
	return ""
}
