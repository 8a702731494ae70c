// SPDX-License-Identifier: Apache-2.0

package config

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/postern-gate/postern/core"
	"github.com/postern-gate/postern/internal/links"
)

// source is a policy file as it was found, or its absence: what a later look
// at the same name is compared with.
type source struct {
	path string
	root string      // of the root that it is the project's of, "" for one that may loosen
	info fs.FileInfo // nil when there is none
	src  []byte
	// doubt says who may perhaps change it, "" for nobody.
	doubt string
	// broken is the link on the way to it that leads to nothing, "" for none.
	broken string
	// mount is a mount on the way that may not answer, so that it isn't asked.
	mount string
}

// changed reports whether the file at the same name is another one by now.
func (s source) changed(look *links.Look) bool {
	if mount := look.Follow(s.path).Mount; mount != "" || s.mount != "" {
		return mount != s.mount
	}
	info, err := os.Stat(s.path)
	if err != nil || s.info == nil {
		return (err == nil) != (s.info != nil) || broken(s.path) != s.broken
	}
	return !os.SameFile(info, s.info) || info.Size() != s.info.Size() ||
		info.Mode() != s.info.Mode() || !info.ModTime().Equal(s.info.ModTime()) || !changeTime(info).Equal(changeTime(s.info))
}

// broken is the link on the way to the file that leads to nothing, "" for none.
func broken(path string) string {
	for _, link := range links.Follow(path).Links {
		if _, err := os.Stat(link); errors.Is(err, fs.ErrNotExist) {
			return link
		}
	}
	return ""
}

// absent is what is wrong with there being no such file. Whoever could take away what
// a link leads to would else lift what the policy says.
func (s source) absent(needed bool) []Problem {
	p := Problem{Pos: core.Position{File: s.path}}
	switch {
	case s.broken != "":
		p.Message, p.next = "the link "+s.broken+" leads to nothing", "make what it leads to, or remove the link"
	case needed:
		p.Message, p.next = "there is no such file", "create it, or leave --policy out"
	default:
		return nil
	}
	return []Problem{p}
}

// trusted are the paths of files that may loosen.
func trusted(all []source) (paths []string) {
	for _, s := range all {
		if s.root == "" {
			paths = append(paths, s.path)
		}
	}
	return paths
}

// away is what is wrong with a file that can't be asked.
func (s source) away() []Problem {
	return []Problem{{Pos: core.Position{File: s.path}, Message: "it lies on a mount that may not answer, " + s.mount, next: "unmount it, or list it in the root's mounts in your own policy"}}
}

// open reads a policy file. Others must not be able to write one that may loosen. One
// that may not must not be a link, since an error shows lines of it. A missing file
// is no error unless needed.
func (o *Options) open(s source, needed bool) (source, []Problem) {
	path, trusted := s.path, s.root == ""
	s.broken = broken(path)
	refuse := func(format string, args ...any) (source, []Problem) {
		return s, []Problem{{Pos: core.Position{File: path}, Message: fmt.Sprintf(format, args...)}}
	}
	if !trusted {
		for _, p := range []string{filepath.Dir(path), path} {
			if info, err := os.Lstat(p); err == nil && info.Mode()&fs.ModeSymlink != 0 {
				return refuse("a project's policy must not be reached through a link")
			}
		}
	}
	file, err := os.OpenFile(path, os.O_RDONLY|nonblock, 0)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return s, s.absent(needed)
	case err != nil:
		return refuse("the file can't be read: %v", errors.Unwrap(err))
	}
	defer file.Close()
	if s.info, err = file.Stat(); err != nil || !s.info.Mode().IsRegular() {
		return refuse("it is not a regular file")
	}
	if trusted {
		msg, sure := exposed(path, s.info, o.Accounts)
		if sure {
			return refuse("%s", msg)
		}
		s.doubt = msg
	}
	if s.src, err = io.ReadAll(io.LimitReader(file, maxSource+1)); err != nil {
		return refuse("the file can't be read")
	}
	return s, nil
}
