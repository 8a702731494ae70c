// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
)

// makeable says why a folder that isn't there could not be made, and in which one
// that is; nil for no reason. It makes nothing, so what only the attempt would
// tell, as a full disk, isn't known.
func makeable(path string) (above string, err error) {
	for above = filepath.Dir(path); ; above = filepath.Dir(above) {
		info, err := os.Stat(above)
		switch {
		case errors.Is(err, fs.ErrNotExist) && above != filepath.Dir(above):
			continue
		case errors.Is(err, syscall.ENOTDIR) && above != filepath.Dir(above):
			continue // the one that is no folder is above
		case err != nil:
			return above, cause(err)
		case !info.IsDir():
			return above, syscall.ENOTDIR
		}
		return above, writable(above)
	}
}

// cause is an error of the system without the name that it is about.
func cause(err error) error {
	var p *fs.PathError
	if errors.As(err, &p) {
		return p.Err
	}
	return err
}
