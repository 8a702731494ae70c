// SPDX-License-Identifier: Apache-2.0

// Package state finds and prepares the state directory that every postern
// process of one user shares. There is no daemon: equal processes coordinate
// through plain files and kernel locks.
package state

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/postern-gate/postern/core/fault"
	"github.com/postern-gate/postern/core/textsafe"
	"github.com/postern-gate/postern/internal/state/lock"
	"github.com/postern-gate/postern/internal/state/regular"
)

// Dir is a prepared state directory.
type Dir struct{ path string }

// Path returns the absolute path.
func (d Dir) Path() string { return d.path }

// Join returns the path of name beneath the directory.
func (d Dir) Join(name ...string) string {
	return filepath.Join(append([]string{d.path}, name...)...)
}

// Locate returns where the state directory is, without touching it:
// POSTERN_STATE, else $XDG_STATE_HOME/postern, else ~/.local/state/postern.
// A relative POSTERN_STATE is refused, as request.invalid; a relative XDG_STATE_HOME is ignored, as
// the XDG Base Directory Specification asks.
func Locate(getenv func(string) string) (string, error) {
	if p := getenv("POSTERN_STATE"); p != "" {
		return absolute("POSTERN_STATE", p)
	}
	if p := getenv("XDG_STATE_HOME"); filepath.IsAbs(p) {
		return filepath.Join(p, "postern"), nil
	}
	home := getenv("HOME")
	if home == "" {
		return "", environment("neither POSTERN_STATE, XDG_STATE_HOME nor HOME is set", "set POSTERN_STATE to an absolute path")
	}
	return absolute("HOME", filepath.Join(home, ".local", "state", "postern"))
}

func absolute(name, p string) (string, error) {
	if !filepath.IsAbs(p) {
		return "", environment(name+" is not an absolute path", "set "+name+" to an absolute path")
	}
	return filepath.Clean(p), nil
}

// environment is the error of a command that was started so that it can't know
// its place: as with an argument that is wrong, nothing on the machine is.
func environment(rule, hint string) error {
	return &fault.Error{Code: fault.RequestInvalid, Op: "postern", Rule: rule, Hint: hint}
}

// Open prepares the directory at path: made with mode 0700, owned by this
// user and closed to others, and of a layout version that this program knows.
// Anything else is refused, since the log and its keys live there.
func Open(path string) (Dir, error) {
	if err := os.MkdirAll(path, 0o700); err != nil {
		return Dir{}, invalid("the state directory "+textsafe.Name(path)+" can't be made: "+cause(err, path), "make it, or set POSTERN_STATE to another place", err)
	}
	real, err := filepath.EvalSymlinks(path)
	if err != nil {
		return Dir{}, invalid("the state directory can't be resolved", "set POSTERN_STATE to another place", err)
	}
	if err := private(real); err != nil {
		return Dir{}, err
	}
	d := Dir{path: real}
	return d, d.checkVersion()
}

// cause is an error of the system, with the name that it is about where that is
// another one.
func cause(err error, path string) string {
	var p *fs.PathError
	switch {
	case !errors.As(err, &p):
		return textsafe.Clean(err.Error()).String()
	case p.Path == path:
		return p.Err.Error()
	}
	return textsafe.Name(p.Path) + ": " + p.Err.Error()
}

// Check returns the refusal that Open would end with, and makes nothing. Whoever
// only reads goes through it: nil is also for a directory that is absent, and for
// one of an earlier layout, which the next Open brings up to date.
func Check(path string) error {
	if _, err := os.Lstat(path); errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	real, err := filepath.EvalSymlinks(path)
	if err != nil {
		return invalid("the state directory can't be resolved", "set POSTERN_STATE to another place", err)
	}
	if err := private(real); err != nil {
		return err
	}
	switch got, err := readVersion(filepath.Join(real, "version")); {
	case errors.Is(err, fs.ErrNotExist), err == nil && (got == "" || stepFrom(got) != nil):
		return nil
	}
	return CheckVersion(real)
}

func private(path string) error {
	info, err := os.Lstat(path)
	if err != nil {
		return invalid("the state directory can't be read", "set POSTERN_STATE to another place", err)
	}
	if !info.IsDir() {
		return invalid("the state directory is not a directory", "set POSTERN_STATE to another place", nil)
	}
	return closedToOthers(path, info)
}

// checkVersion takes a file without content for one that is missing: a power
// cut may leave it so.
func (d Dir) checkVersion() error {
	file := d.Join("version")
	switch got, err := readVersion(file); {
	case errors.Is(err, fs.ErrNotExist), err == nil && got == "":
		return d.writeVersion(file, Version)
	case err == nil && stepFrom(got) != nil:
		return d.upgrade(file)
	}
	return CheckVersion(d.path)
}

// CheckVersion refuses a state directory whose layout isn't this program's.
func CheckVersion(path string) error {
	file := filepath.Join(path, "version")
	got, err := readVersion(file)
	if err != nil {
		return invalid("the state directory's version can't be read", "repair "+file, err)
	}
	if got != Version {
		return invalid(fmt.Sprintf("the state directory has layout %q, this program knows %q", got, Version),
			"use the postern that made it, or set POSTERN_STATE to another place", nil)
	}
	return nil
}

// longestVersion bounds what is read and told of a version file.
const longestVersion = 64

func readVersion(file string) (string, error) {
	f, err := regular.Open(file)
	if err != nil {
		return "", err
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, longestVersion))
	return strings.TrimSpace(string(data)), err
}

// upgradeKey is the lock of an upgrade: no file's, whose keys are hashes.
const upgradeKey = 1

// step brings a layout to the next one. A crash may come at any moment, so it
// may be run again, beside processes of the old layout that still write.
type step struct {
	from, to string
	run      func(Dir) error
}

func steps() []step { return append([]step{{"1", "2", Dir.putAside}}, later()...) }

// stepFrom is nil for a layout that nothing leads on from.
func stepFrom(version string) *step {
	for _, s := range steps() {
		if s.from == version {
			return &s
		}
	}
	return nil
}

// upgrade goes step by step; the version file says how far it is.
func (d Dir) upgrade(file string) error {
	release, err := lock.Open(d.Join("locks")).Lock(context.Background(), upgradeKey)
	if err != nil {
		return err
	}
	defer release()
	for {
		got, err := readVersion(file)
		s := stepFrom(got)
		if err != nil || s == nil {
			return CheckVersion(d.path) // it is done, or somebody else was first
		}
		if err := s.run(d); err != nil {
			return err
		}
		if err := d.writeVersion(file, s.to); err != nil {
			return err
		}
	}
}

// putAside goes on from layout 1, whose log was one unsigned file: that is put
// aside as it is. A process that still writes to it does so there. One that
// began another in between, before this was done, has it put aside too.
func (d Dir) putAside() error {
	old := d.Join("audit", "000001.jsonl")
	for n := 1; ; n++ {
		aside := d.Join("audit", fmt.Sprintf("unsigned-%06d.jsonl", n))
		err := os.Link(old, aside)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			return nil
		case errors.Is(err, fs.ErrExist) && !sameFile(old, aside):
			continue // what lies there is another log
		case err != nil && !errors.Is(err, fs.ErrExist):
			return invalid("the unsigned log of an earlier version can't be put aside", "move it yourself", err)
		}
		if err := os.Remove(old); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return invalid("the unsigned log of an earlier version can't be put aside", "move it yourself", err)
		}
		return nil
	}
}

func sameFile(a, b string) bool {
	one, err1 := os.Lstat(a)
	two, err2 := os.Lstat(b)
	return err1 == nil && err2 == nil && os.SameFile(one, two)
}

// writeVersion lets the first of several starting processes win; the content
// is the same for all of them.
func (d Dir) writeVersion(file, version string) error {
	tmp, err := os.CreateTemp(d.path, ".version-*")
	if err != nil {
		return invalid("the state directory can't be written", "free space, or set POSTERN_STATE to another place", err)
	}
	defer os.Remove(tmp.Name())
	_, werr := tmp.WriteString(version + "\n")
	if err := errors.Join(werr, tmp.Sync(), tmp.Close()); err != nil {
		return invalid("the state directory can't be written", "free space, or set POSTERN_STATE to another place", err)
	}
	if err := os.Rename(tmp.Name(), file); err != nil {
		return invalid("the state directory can't be written", "free space, or set POSTERN_STATE to another place", err)
	}
	return nil
}

func invalid(rule, hint string, err error) error {
	return &fault.Error{Code: fault.ConfigInvalid, Op: "start", Rule: rule, Hint: hint, Err: err}
}
