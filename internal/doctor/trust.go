// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/postern-gate/postern/internal/attach"
	"github.com/postern-gate/postern/internal/config"
)

// Trust tells which program of a client's entry may be called a guard, and be
// started to look at it. A client's file may have come with a project, and so
// may what it names.
type Trust struct {
	Self     string // the absolute path of this program
	StateDir string // where init remembers what it wrote
	World    attach.World
	// Places are the folders that come from elsewhere or that agents change:
	// nothing beneath one is trusted.
	Places []string
	// Unknown says that nobody can tell which folders are served.
	Unknown bool
	// Accounts is as in config.Options.
	Accounts string
}

// Program is the file that an entry's command means: an absolute path, or a bare
// name that is looked up. A relative path is fs.ErrInvalid: it means another file
// in each folder that a client starts in. A name of the network is not asked for:
// that would tell somebody who we are.
func (t Trust) Program(a attach.Attachment) (string, error) {
	switch {
	case t.World.GOOS == "windows" && strings.HasPrefix(filepath.ToSlash(a.Command), "//"):
		return "", fs.ErrPermission
	case filepath.IsAbs(a.Command):
		return exec.LookPath(a.Command)
	case strings.ContainsAny(a.Command, `/\`):
		return "", &fs.PathError{Op: "look up", Path: a.Command, Err: fs.ErrInvalid}
	case t.World.LookPath == nil:
		return "", fs.ErrNotExist
	}
	at, err := t.World.LookPath(a.Command)
	if err == nil {
		at, err = filepath.Abs(at)
	}
	return at, err
}

// Of reports whether an entry's program is trusted: it is this one, or has its
// name, lies in no project and can be changed by this user and root alone. In a
// project's file it has to be this one, or what init wrote there.
func (t Trust) Of(a attach.Attachment, program string) bool {
	if t.self(program) {
		return true
	}
	name := strings.TrimSuffix(filepath.Base(program), ".exe")
	if name != "postern" || !t.outside(program) {
		return false
	}
	return !a.InProject || attach.Remembers(t.StateDir, t.World.Project, a)
}

// self reports whether it is this program. A link to it that lies in a project
// is another one tomorrow.
func (t Trust) self(program string) bool {
	return filepath.Clean(program) == filepath.Clean(t.Self) || sameFile(program, t.Self) && !t.inside(program)
}

// outside reports whether no agent and nobody but this user and root can have put
// the program there, as far as can be told.
func (t Trust) outside(program string) bool {
	return !t.Unknown && changeable(program, t.Accounts).how == "" && !t.inside(program)
}

// inside reports whether the program, or the link to it, lies beneath one of the
// places or in a work tree of git: what is cloned is somebody else's. The home
// folder itself may be one, which is the user's own.
func (t Trust) inside(program string) bool {
	real, err := filepath.EvalSymlinks(program)
	if err != nil {
		return true
	}
	for _, path := range []string{program, real} {
		for dir := filepath.Dir(path); dir != filepath.Dir(dir); dir = filepath.Dir(dir) {
			if t.place(dir) {
				return true
			}
		}
	}
	return false
}

func (t Trust) place(dir string) bool {
	for _, p := range t.Places {
		if p != "" && sameFile(dir, p) {
			return true
		}
	}
	_, err := os.Lstat(filepath.Join(dir, ".git"))
	return err == nil && !sameFile(dir, t.World.Home)
}

// NewTrust is what is trusted of this program, which serves the roots. The
// working directory counts as a project too, but for the home folder and a root
// of the file system, which hold every program.
func NewTrust(self, stateDir, workDir string, world attach.World, roots []config.Root) Trust {
	t := Trust{Self: self, StateDir: stateDir, World: world, Places: []string{world.Project}}
	if !sameFile(workDir, world.Home) && filepath.Dir(workDir) != workDir {
		t.Places = append(t.Places, workDir)
	}
	for _, r := range roots {
		t.Places = append(t.Places, r.Path)
	}
	return t
}

// trust is what this run trusts.
func (l *look) trust() Trust {
	var roots []config.Root
	if l.cfg != nil {
		roots = l.cfg.Roots
	}
	t := NewTrust(l.Self, l.Policy.StateDir, l.Policy.WorkDir, l.World, roots)
	t.Unknown, t.Accounts = l.cfg == nil, l.Policy.Accounts
	return t
}
