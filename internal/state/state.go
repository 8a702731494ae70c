// SPDX-License-Identifier: Apache-2.0

// Package state finds and prepares the state directory that every postern
// process of one user shares. There is no daemon: equal processes coordinate
// through plain files and kernel locks.
package state

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/postern-gate/postern/core/fault"
	"github.com/postern-gate/postern/internal/state/lock"
)

// Version is the layout that this program reads and writes.
const Version = "2"

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
// A relative POSTERN_STATE is refused; a relative XDG_STATE_HOME is ignored, as
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
		return "", invalid("neither POSTERN_STATE, XDG_STATE_HOME nor HOME is set", "set POSTERN_STATE to an absolute path", nil)
	}
	return absolute("HOME", filepath.Join(home, ".local", "state", "postern"))
}

func absolute(name, p string) (string, error) {
	if !filepath.IsAbs(p) {
		return "", invalid(name+" is not an absolute path", "set "+name+" to an absolute path", nil)
	}
	return filepath.Clean(p), nil
}

// Open prepares the directory at path: made with mode 0700, owned by this
// user and closed to others, and of a layout version that this program knows.
// Anything else is refused, since the log and its keys live there.
func Open(path string) (Dir, error) {
	if err := os.MkdirAll(path, 0o700); err != nil {
		return Dir{}, invalid("the state directory can't be made", "make it, or set POSTERN_STATE to another place", err)
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

// Check returns the refusal that Open would begin with, and makes nothing: nil
// for a directory that is absent.
func Check(path string) error {
	if _, err := os.Lstat(path); errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	real, err := filepath.EvalSymlinks(path)
	if err != nil {
		return invalid("the state directory can't be resolved", "set POSTERN_STATE to another place", err)
	}
	return private(real)
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
		return d.writeVersion(file)
	case err == nil && got == "1":
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

func readVersion(file string) (string, error) {
	data, err := os.ReadFile(file)
	return strings.TrimSpace(string(data)), err
}

// upgradeKey is the lock of an upgrade: no file's, whose keys are hashes.
const upgradeKey = 1

// upgrade goes on from layout 1, whose log was one unsigned file: that is put
// aside as it is. A process that still writes to it does so there.
func (d Dir) upgrade(file string) error {
	release, err := lock.Open(d.Join("locks")).Lock(context.Background(), upgradeKey)
	if err != nil {
		return err
	}
	defer release()
	if got, err := readVersion(file); err != nil || got != "1" {
		return CheckVersion(d.path) // somebody else was first
	}
	old, aside := d.Join("audit", "000001.jsonl"), d.Join("audit", "unsigned-000001.jsonl")
	if err := os.Link(old, aside); err != nil && !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, fs.ErrExist) {
		return invalid("the unsigned log of an earlier version can't be put aside", "move it yourself", err)
	}
	if err := os.Remove(old); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return invalid("the unsigned log of an earlier version can't be put aside", "move it yourself", err)
	}
	return d.writeVersion(file)
}

// writeVersion lets the first of several starting processes win; the content
// is the same for all of them.
func (d Dir) writeVersion(file string) error {
	tmp, err := os.CreateTemp(d.path, ".version-*")
	if err != nil {
		return invalid("the state directory can't be written", "free space, or set POSTERN_STATE to another place", err)
	}
	defer os.Remove(tmp.Name())
	_, werr := tmp.WriteString(Version + "\n")
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
