// SPDX-License-Identifier: Apache-2.0

//go:build unix

package pathguard

import (
	"strings"

	"golang.org/x/sys/unix"
)

// Seam makes the system calls of one root fail or misbehave.
type Seam = seam

// SetSeam changes the seam of r; before any use of r.
func SetSeam(r *Root, change func(*Seam)) { change(&r.seam) }

// WithoutOpenat2 makes openat2 of r fail as if it were not there.
func WithoutOpenat2(r *Root, errno unix.Errno) {
	r.seam.open = func(int, string, int, uint32) (int, error) { return -1, errno }
}

// FailExchange, FailRename and FailWrite replace one call each.
func (s *seam) FailExchange(f func(dir int, a, b string) error) { s.exchange = f }

func (s *seam) FailOpen(f func(int, string, int, uint32) (int, error)) { s.open = f }

func (s *seam) Open(dir int, rel string, flags int, mode uint32) (int, error) {
	return s.open(dir, rel, flags, mode)
}

func (s *seam) FailRename(f func(int, string, int, string) error) { s.rename = f }

func (s *seam) FailRenameTo(f func(int, string, int, string) error) { s.renameTo = f }

func (s *seam) FailWrite(f func(fd int, p []byte) (int, error)) { s.write = f }

const TempPrefix = tempPrefix

var RenameExchange = renameExchange

func (f *File) FD() int { return f.fd }

func (r *Root) SetFolds(folds bool) { r.fs.folds = folds }

var (
	CleanRel     = cleanRel
	MayHaveEqual = mayHaveEqual
)

// Lexical makes a workspace of roots that are nowhere on the disk.
type Lexical struct{ Name, Alias, Given, Resolved string }

func NewLexical(roots ...Lexical) (*Workspace, error) {
	var all []*Root
	for _, l := range roots {
		all = append(all, &Root{name: l.Name, given: l.Given, resolved: l.Resolved, opts: Options{Alias: l.Alias}})
	}
	return NewWorkspace(all...)
}

// BeneathWindows says what path is beneath root under the rules of Windows.
func BeneathWindows(root, path string) (rest, code string) {
	r, why := native(root, true)
	if why != "" {
		return "", "root: " + why
	}
	p, why := native(path, true)
	if why != "" {
		return "", "path.denied"
	}
	top := rootLen(p, true)
	clean, ok := cleanRel(p[top:])
	rel, in := beneath(p[:top]+clean, strings.TrimSuffix(r, "/"))
	if p[:top]+clean == r {
		rel, in = "", true
	}
	if !ok || !in || top == 0 {
		return "", "path.escape"
	}
	return strings.ReplaceAll(rel, "/", `\`), ""
}

var FileURIFor = fileURI
