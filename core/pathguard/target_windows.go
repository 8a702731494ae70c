// SPDX-License-Identifier: Apache-2.0

package pathguard

import (
	"bytes"
	"errors"
	"io"
	"io/fs"
	"os"
	"time"

	"golang.org/x/sys/windows"

	"github.com/postern-gate/postern/core/fault"
)

// Pin pins the name for a change of what it names; a link is path.symlink.
func (n Name) Pin() (*Target, error) {
	t, err := n.PinEntry()
	switch {
	case err != nil || !t.exists || t.st.kind() == KindFile || t.st.kind() == KindDir:
		return t, err
	case t.st.kind() == KindLink:
		err = n.failure(errLink)
	default:
		err = n.fault(fault.PathSpecial, "", nil)
	}
	_ = t.Close()
	return nil, err
}

// PinEntry pins the entry itself, whatever it is.
func (n Name) PinEntry() (*Target, error) {
	up, err := n.pinnable()
	if err != nil {
		return nil, err
	}
	dir, err := n.root.walk(up.rel)
	if err != nil {
		return nil, n.failure(err)
	}
	t := &Target{name: n, parent: up, base: n.Base(), dir: dir}
	if err := t.look(); err != nil {
		_ = t.Close()
		return nil, n.failure(err)
	}
	return t, nil
}

func (t *Target) look() (err error) {
	if t.dirStat, err = lookAt(t.dir, "."); err != nil {
		return err
	}
	if err := t.name.known(t.dirStat.ident); err != nil {
		return err
	}
	t.st, err = lookAt(t.dir, t.base)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	t.exists = true
	if err := t.name.known(t.st.ident); err != nil {
		return err
	}
	return hasEntry(t.dir, t.base)
}

// Above identifies the directories that the entry's name leads over now, from the one
// that holds it up to its root's own. It fails where one is not there.
func (t *Target) Above() (ids []ID, err error) {
	for n, ok := t.parent, true; ok; n, ok = n.Parent() {
		dir, err := n.root.walk(n.rel)
		if err != nil {
			return nil, t.name.stale(ruleFolder)
		}
		st, err := lookAt(dir, ".")
		_ = dir.Close()
		if err != nil {
			return nil, t.name.stale(ruleFolder)
		}
		ids = append(ids, ID{st.dev, st.ino})
	}
	return ids, nil
}

// Close lets the directory go.
func (t *Target) Close() error {
	_ = t.dir.Close() // a second time is no error
	return nil
}

// What the system would say can't be asked beforehand here, but for the
// read-only attribute.

func (t *Target) mayReplace() error { return nil }
func (t *Target) mayTurn() error    { return nil }

func (t *Target) mayWrite() error {
	if t.st.mode&0o200 == 0 {
		return t.name.fault(fault.IOFailed, ruleReadOnly, nil)
	}
	return nil
}

// ready proves, before a change, that nothing changed since the judgement.
func (t *Target) ready() error {
	now, err := t.name.PinEntry()
	if err != nil {
		return t.name.stale(ruleFolder)
	}
	defer now.Close()
	if now.dirStat.ident != t.dirStat.ident || now.Fingerprint() != t.Fingerprint() {
		return t.name.stale(ruleGone)
	}
	return nil
}

// settled proves, after a change, that it happened under the judged name.
func (t *Target) settled() (Written, error) {
	now, err := t.name.PinEntry()
	if err != nil {
		return Written{}, t.name.halfway(err, ruleFolder)
	}
	defer now.Close()
	if now.dirStat.ident != t.dirStat.ident {
		return Written{}, t.name.halfway(nil, ruleFolder)
	}
	return Written{Info: now.Info(), Warnings: []string{"the access list is the folder's, not the old file's"}}, nil
}

func (t *Target) keep(o WriteOptions) error {
	if o.Keep == nil || !t.exists || t.st.kind() != KindFile {
		return nil
	}
	f, err := t.name.openIn(t.dir, os.O_RDONLY)
	if err != nil {
		return t.name.failure(err)
	}
	defer f.Close()
	return o.keep(f)
}

// Replace writes a temporary file beside the old one and renames it over:
// there is no exchange, so CAS is false.
func (t *Target) Replace(content io.Reader, o WriteOptions) (Written, error) {
	if err := t.CanReplace(); err != nil {
		return Written{}, err
	}
	tmp := tempName()
	err := t.fill(tmp, content)
	if err == nil {
		err = t.keep(o)
	}
	if err == nil {
		err = t.ready()
	}
	if err == nil {
		err = t.held(func() error { return t.dir.Rename(tmp, t.base) })
	}
	if err != nil {
		_ = t.dir.Remove(tmp)
		return Written{}, t.name.failure(err)
	}
	return t.settled()
}

// fill makes a new file with this content, read back; on an error it is gone.
func (t *Target) fill(base string, content io.Reader) error {
	f, err := t.dir.OpenFile(base, os.O_CREATE|os.O_EXCL|os.O_RDWR, 0o600)
	if err != nil {
		return err
	}
	if _, err = io.CopyBuffer(&readBack{f: f, name: t.name}, onlyReader{content}, make([]byte, 32<<10)); err == nil {
		err = f.Sync()
	}
	err = errors.Join(err, f.Close())
	if err != nil {
		_ = t.dir.Remove(base)
	}
	return err
}

type onlyReader struct{ io.Reader }

// readBack writes a part and reads it back before it takes the next.
type readBack struct {
	f    *os.File
	name Name
	at   int64
}

func (w *readBack) Write(p []byte) (int, error) {
	n, err := w.f.Write(p)
	if err != nil {
		return n, err
	}
	back := make([]byte, len(p))
	if _, err := w.f.ReadAt(back, w.at); err != nil || !bytes.Equal(back, p) {
		return 0, w.name.fault(fault.IOFailed, "what is on the disk differs from what was written", err)
	}
	w.at += int64(n)
	return n, nil
}

func (t *Target) held(rename func() error) error {
	for try := 1; ; try++ {
		err := rename()
		busy := errors.Is(err, windows.ERROR_SHARING_VIOLATION) || errors.Is(err, windows.ERROR_ACCESS_DENIED)
		if !busy || try == heldTries {
			if busy {
				err = windows.ERROR_SHARING_VIOLATION
			}
			return err
		}
		time.Sleep(heldPause)
	}
}

// Create makes a new regular file; it shows under its name while it is filled.
func (t *Target) Create(content io.Reader, _ fs.FileMode) (Written, error) {
	if err := t.CanCreate(); err != nil {
		return Written{}, err
	}
	err := t.fill(t.base, content)
	if errors.Is(err, fs.ErrExist) {
		return Written{}, t.name.stale(ruleThere)
	}
	if err != nil {
		return Written{}, t.name.failure(err)
	}
	w, err := t.settled()
	w.CAS, w.Warnings = true, nil
	return w, err
}

// Append adds to the end of an existing regular file that has one name.
func (t *Target) Append(content []byte, o WriteOptions) (Written, error) {
	if err := t.CanAppend(); err != nil {
		return Written{}, err
	}
	if err := t.keep(o); err != nil {
		return Written{}, err
	}
	f, err := t.name.openIn(t.dir, os.O_RDWR|os.O_APPEND)
	if err != nil {
		return Written{}, t.name.failure(err)
	}
	defer f.Close()
	if _, err = f.fd.Write(content); err == nil {
		err = f.fd.Sync()
	}
	back := make([]byte, len(content))
	if _, readErr := f.fd.ReadAt(back, t.st.size); err != nil || readErr != nil && len(content) > 0 || !bytes.Equal(back, content) {
		return Written{}, t.name.halfway(errors.Join(err, readErr), "appending failed")
	}
	w, err := t.settled()
	w.Warnings = nil
	return w, err
}

// Mkdir makes the directory.
func (t *Target) Mkdir(fs.FileMode) error {
	if err := t.CanMkdir(); err != nil {
		return err
	}
	if err := t.dir.Mkdir(t.base, 0o700); err != nil {
		return t.name.failure(err)
	}
	_, err := t.settled()
	return err
}
