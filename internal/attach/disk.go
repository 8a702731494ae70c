// SPDX-License-Identifier: Apache-2.0

package attach

import (
	"bytes"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/postern-gate/postern/core/fault"
	"github.com/postern-gate/postern/core/pathguard"
)

// The modes of what is made: a person's settings are their own, a project is
// shared.
const (
	homeFile, homeDir       fs.FileMode = 0o600, 0o700
	projectFile, projectDir fs.FileMode = 0o644, 0o755
)

// spot is one file as a client looks it up, and what it was when it was read.
type spot struct {
	path    string
	project bool
	policy  bool
	missing []string // directories that have to be made, the outermost first
	name    pathguard.Name
	text    []byte
	exists  bool
	print   pathguard.Fingerprint
}

// disk opens files beneath the project, whose links are not followed though the
// file is one of the user's, and elsewhere, where a link is followed to the file
// that is meant.
type disk struct {
	project string
	roots   map[string]*pathguard.Workspace
}

func newDisk(w World) *disk { return &disk{w.Project, map[string]*pathguard.Workspace{}} }

func (d *disk) close() {
	for _, w := range d.roots {
		for _, r := range w.Roots() {
			_ = r.Close() // nothing was written through it
		}
	}
}

// holds reports whether a path is beneath the project.
func (d *disk) holds(path string) bool {
	rel, err := filepath.Rel(d.project, path)
	return err == nil && filepath.IsLocal(rel)
}

// file is a place of a client's file, or of a policy, which no client has.
type file struct {
	path    string
	project bool
	policy  bool
}

// files are the places where the client's entries may be, the project's first.
func (c Client) files(w World) []file {
	var all []file
	if w.Project != "" {
		for _, name := range c.project {
			all = append(all, file{filepath.Join(w.Project, filepath.FromSlash(name)), true, false})
		}
	}
	if at := c.userFile(w); at != "" {
		all = append(all, file{at, false, false})
	}
	return all
}

// read opens a file and reads it. An absent one is no error.
func (d *disk) read(f file) (*spot, error) {
	s := &spot{path: f.path, project: f.project, policy: f.policy}
	root, real := d.project, f.path
	if !d.holds(f.path) {
		var err error
		if real, err = resolve(f.path); err != nil {
			return nil, d.refused(s, err)
		}
		root = existing(filepath.Dir(real))
	}
	name, err := d.parse(root, real)
	if err != nil {
		return nil, d.refused(s, err)
	}
	s.name = name
	got, err := name.Open()
	if fault.CodeOf(err) == fault.PathMissing {
		return s, d.refused(s, s.parents())
	}
	if err != nil {
		return nil, d.refused(s, err)
	}
	defer got.Close()
	if got.Size() > maxFile {
		return nil, &fault.Error{Code: fault.LimitExceeded, Op: op, Resource: f.path, Rule: "the file is larger than 4 MiB", Hint: leaveOut}
	}
	s.exists, s.print = true, got.Fingerprint()
	s.text, err = io.ReadAll(io.LimitReader(got, maxFile+1))
	return s, d.refused(s, err)
}

// op is what the refusals of this package are about.
const op = "init"

// leaveOut is the next step where a client's file can't be edited.
const leaveOut = "mend the file, or attach the others: postern init --client ID for each"

const linked = "a link in a project is not followed: it may lead to a file that is not the project's"

// resolve follows the links of a path in the home folder as far as it exists.
func resolve(path string) (string, error) {
	real, err := filepath.EvalSymlinks(path)
	if !errors.Is(err, fs.ErrNotExist) {
		return real, err
	}
	if _, err := os.Lstat(path); err == nil {
		return "", &fault.Error{Code: fault.PathSymlink, Rule: "it is a link that leads nowhere", Hint: "make what it leads to, or remove it"}
	}
	parent := filepath.Dir(path)
	if parent == path {
		return path, nil
	}
	if parent, err = resolve(parent); err != nil {
		return "", err
	}
	return filepath.Join(parent, filepath.Base(path)), nil
}

// existing is the innermost directory of the path that is there.
func existing(dir string) string {
	for {
		if _, err := os.Lstat(dir); err == nil || filepath.Dir(dir) == dir {
			return dir
		}
		dir = filepath.Dir(dir)
	}
}

// parse names a file beneath a root.
func (d *disk) parse(root, path string) (pathguard.Name, error) {
	w := d.roots[root]
	if w == nil {
		r, err := pathguard.OpenRoot(root, pathguard.Options{Name: "folder"})
		if err != nil {
			return pathguard.Name{}, err
		}
		if w, err = pathguard.NewWorkspace(r); err != nil {
			return pathguard.Name{}, err
		}
		d.roots[root] = w
	}
	names, err := w.Parse(path)
	if err != nil {
		return pathguard.Name{}, err
	}
	return names[0], nil
}

// parents looks which directories above an absent file have to be made, and
// that they can be.
func (s *spot) parents() error {
	at := s.name
	for {
		parent, ok := at.Parent()
		if !ok {
			return nil
		}
		info, err := parent.Lstat()
		switch {
		case fault.CodeOf(err) == fault.PathMissing:
			s.missing = append([]string{parent.Abs()}, s.missing...)
			at = parent
			continue
		case err != nil:
			return err
		case info.Kind == pathguard.KindLink:
			return &fault.Error{Code: fault.PathSymlink, Resource: parent.Abs()}
		case info.Kind != pathguard.KindDir:
			return &fault.Error{Code: fault.PathSpecial, Resource: parent.Abs(), Rule: "it is not a directory"}
		}
		target, err := at.Pin()
		if err != nil {
			return err
		}
		defer target.Close()
		if len(s.missing) > 0 {
			return target.CanMkdir()
		}
		return target.CanCreate()
	}
}

// refused is an error about the file, in words for a person at a shell.
func (d *disk) refused(s *spot, err error) error {
	if err == nil {
		return nil
	}
	f := *fault.As(err)
	var own *fault.Error
	if !errors.As(err, &own) {
		f = fault.Error{Code: fault.IOFailed, Rule: "the file can't be read", Err: err}
	}
	f.Op, f.Resource = op, s.path
	if f.Code == fault.PathEscape { // the name itself is beneath: a link leads away
		f.Code, f.Hint = fault.PathSymlink, ""
	}
	switch {
	case s.policy:
		refusedPolicy(&f, d.holds(s.path))
	case f.Code == fault.PathSymlink && d.holds(s.path):
		f.Rule = linked
		f.Hint = "replace the link by the file itself, or attach the others: postern init --client ID for each"
	case f.Code == fault.PathSymlink && f.Hint != "":
	case f.Code == fault.IOFailed:
		f.Hint = "give yourself access to the file, or attach the others: postern init --client ID for each"
	default: // the words of the guard are for an agent
		f.Hint = leaveOut
	}
	return &f
}

// refusedPolicy gives a policy's refusal its next step: it has no client that
// could be left out.
func refusedPolicy(f *fault.Error, inProject bool) {
	switch {
	case f.Code == fault.PathSymlink && inProject:
		f.Rule, f.Hint = linked, "replace the link by the file itself"
	case f.Code == fault.PathSymlink && f.Hint != "":
	case f.Code == fault.IOFailed:
		f.Hint = "give yourself access to it: every project gets a policy beside its clients' entries"
	default:
		f.Hint = "make it a file that can be read and written"
	}
}

// unchanged refuses a file that is not as it was read any more.
func (d *disk) unchanged(s *spot) error {
	now, err := d.read(file{s.path, s.project, s.policy})
	if err != nil {
		return err
	}
	if now.exists != s.exists || now.print != s.print || !bytes.Equal(now.text, s.text) {
		return changedMeanwhile(s.path)
	}
	return nil
}

func changedMeanwhile(path string) error {
	return &fault.Error{
		Code: fault.PreconditionFailed, Op: op, Resource: path,
		Rule: "the file has changed since the change was shown", Hint: "run postern init again",
	}
}

// write makes, replaces or removes the file; nil stands for removing. The
// kernel compares what is displaced with what was read.
func (d *disk) write(s *spot, text []byte) error {
	dirMode, mode := homeDir, homeFile
	if s.project {
		dirMode, mode = projectDir, projectFile
	}
	for _, dir := range s.missing {
		if err := d.mkdir(s, dir, dirMode); err != nil {
			return d.refused(s, err)
		}
	}
	target, err := s.name.Pin()
	if err != nil {
		return d.refused(s, err)
	}
	defer target.Close()
	if target.Exists() != s.exists || target.Fingerprint() != s.print {
		return changedMeanwhile(s.path)
	}
	switch {
	case text == nil:
		err = d.remove(s)
	case s.exists:
		_, err = target.Replace(bytes.NewReader(text), pathguard.WriteOptions{})
	default:
		_, err = target.Create(bytes.NewReader(text), mode)
	}
	return d.refused(s, err)
}

func (d *disk) remove(s *spot) error {
	target, err := s.name.PinEntry()
	if err != nil {
		return err
	}
	defer target.Close()
	if target.Fingerprint() != s.print {
		return changedMeanwhile(s.path)
	}
	return target.Remove(pathguard.WriteOptions{})
}

// mkdir makes a directory above the file; one that has appeared meanwhile is
// taken, as opening the file beneath it looks again.
func (d *disk) mkdir(s *spot, dir string, mode fs.FileMode) error {
	names, err := d.parse(s.name.Root().Given(), dir)
	if err != nil {
		return err
	}
	target, err := names.Pin()
	if err != nil {
		return err
	}
	defer target.Close()
	if target.Exists() {
		return nil
	}
	return target.Mkdir(mode)
}

// dropDir removes a directory that init made, if nothing is in it.
func (d *disk) dropDir(dir string) {
	root := d.project
	if !d.holds(dir) {
		root = existing(filepath.Dir(dir))
	}
	if name, err := d.parse(root, dir); err == nil {
		removeEntry(name)
	}
}

// removeEntry removes what has the name, if it can: a directory that isn't
// empty stays, as it must.
func removeEntry(name pathguard.Name) {
	target, err := name.PinEntry()
	if err != nil {
		return
	}
	defer target.Close()
	_ = target.Remove(pathguard.WriteOptions{})
}

// canWrite is the refusal that writing would begin with.
func (d *disk) canWrite(s *spot, removes bool) error {
	if !s.exists {
		return nil // looked at when it was read
	}
	if removes {
		target, err := s.name.PinEntry()
		if err != nil {
			return d.refused(s, err)
		}
		defer target.Close()
		return d.refused(s, target.CanRemove())
	}
	target, err := s.name.Pin()
	if err != nil {
		return d.refused(s, err)
	}
	defer target.Close()
	return d.refused(s, target.CanReplace())
}
