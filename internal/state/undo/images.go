// SPDX-License-Identifier: Apache-2.0

package undo

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/postern-gate/postern/core/pathguard"
	"github.com/postern-gate/postern/internal/state/regular"
)

// Alone waits until no other undo runs, and keeps others from it until the
// returned function is called.
func (l *Log) Alone(ctx context.Context) (func(), error) { return l.lock.Lock(ctx, runKey) }

// Present reports whether the image of a step is still there, as it was kept.
func (l *Log) Present(e *Entered) bool {
	if e.Image == "" {
		return true
	}
	store, err := l.images()
	if err != nil {
		return false
	}
	now, was := store.Facts(e.Image), e.Kept
	if now.Kind() == pathguard.KindDir {
		return was.Moved(now)
	}
	now.Dev, was.Dev = 0, 0 // numbered anew at each start of the machine, perhaps
	return now == was && !none(now)
}

// Image is what the image of a step is now, zero for one that is gone.
func (l *Log) Image(e *Entered) pathguard.Facts {
	store, err := l.images()
	if err != nil {
		return pathguard.Facts{}
	}
	return store.Facts(e.Image)
}

// Within visits the image of a step and what lies beneath it, each by its path
// beneath it, which is "." for itself. No link is followed. What can't be looked at
// has the zero Facts.
func (l *Log) Within(e *Entered, visit func(rel string, f pathguard.Facts) error) error {
	store, err := l.images()
	if err != nil {
		return err
	}
	top := l.join(imagesName, e.Image)
	return filepath.WalkDir(top, func(path string, _ fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(top, path)
		if err != nil {
			return err
		}
		rel = filepath.ToSlash(rel)
		return visit(rel, store.Facts(filepath.Join(e.Image, rel)))
	})
}

// In is what a folder that a step kept holds under this path, zero for nothing. No
// link is followed.
func (l *Log) In(e *Entered, rel string) (f pathguard.Facts) {
	store, err := l.images()
	if err != nil || e.Image == "" {
		return f
	}
	at := e.Image
	for entry := range strings.SplitSeq(rel, "/") {
		if store.Facts(at).Kind() != pathguard.KindDir {
			return pathguard.Facts{}
		}
		at += "/" + entry
		f = store.Facts(at)
	}
	return f
}

// Read reads the journals.
func (l *Log) Read() (*Index, error) { return Read(l.dir) }

// Odd names, by their base names, what lies among the journals under the name of
// one, and is none.
func (l *Log) Odd() ([]string, error) {
	_, odd, err := journals(l.join())
	return odd, err
}

// OpenImage opens the file that a step kept. A link that was displaced is an image
// too, and is not followed.
func (l *Log) OpenImage(e *Entered) (*os.File, error) {
	path := l.join(imagesName, e.Image)
	named, err := os.Lstat(path)
	if err != nil {
		return nil, err
	}
	if !named.Mode().IsRegular() {
		return nil, &os.PathError{Op: "open", Path: path, Err: regular.Err}
	}
	f, err := regular.Open(path)
	if err != nil {
		return nil, err
	}
	if info, err := f.Stat(); err != nil || !os.SameFile(named, info) {
		return nil, errors.Join(&os.PathError{Op: "open", Path: path, Err: regular.Err}, err, f.Close())
	}
	return f, nil
}
