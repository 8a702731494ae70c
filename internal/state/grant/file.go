// SPDX-License-Identifier: Apache-2.0

package grant

import (
	"bytes"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/postern-gate/postern/internal/state/regular"
)

// A record is three lines: what it is, one JSON object, and a MAC over the
// kind, the name of the file, and that object.
const (
	head = "postern approvals 3\n"
	// agentHead begins what is remembered of an agent, which didn't change: a
	// pause outlives the version.
	agentHead = "postern approvals 1\n"
	// MaxRecord bounds a record in bytes. One that is longer is none.
	MaxRecord = 1 << 20
)

// errRecord is why a file is no record. It tells nothing of the content.
var errRecord = errors.New("it is not a record that postern made")

func headOf(kind string) string {
	if kind == "agent" {
		return agentHead
	}
	return head
}

func mac(key []byte, kind, name string, body []byte) []byte {
	h := hmac.New(sha256.New, key)
	if headOf(kind) != agentHead { // another version is another kind
		kind = headOf(kind) + kind
	}
	for _, part := range [][]byte{[]byte(kind), {0}, []byte(name), {0}, body} {
		_, _ = h.Write(part)
	}
	return hex.AppendEncode(nil, h.Sum(nil))
}

// seal returns the record of v under that name.
func seal(key []byte, kind, name string, v any) ([]byte, error) {
	body, err := json.Marshal(v)
	if err != nil {
		return nil, err
	}
	b := append([]byte(headOf(kind)), body...)
	b = append(append(b, '\n'), mac(key, kind, name, body)...)
	if b = append(b, '\n'); len(b) > MaxRecord {
		return nil, errors.New("the record is too large")
	}
	return b, nil
}

// unseal reads a record into v. Nothing of it is parsed before its MAC is
// right.
func unseal(key []byte, kind, name string, data []byte, v any) error {
	rest, ok := bytes.CutPrefix(data, []byte(headOf(kind)))
	if !ok || len(data) > MaxRecord || len(key) == 0 {
		return errRecord
	}
	body, rest, ok := bytes.Cut(rest, []byte("\n"))
	if !ok || len(rest) != 2*sha256.Size+1 || rest[len(rest)-1] != '\n' || !hmac.Equal(rest[:len(rest)-1], mac(key, kind, name, body)) {
		return errRecord
	}
	d := json.NewDecoder(bytes.NewReader(body))
	d.DisallowUnknownFields()
	if err := d.Decode(v); err != nil {
		return errRecord
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return errRecord
	}
	return nil
}

// readPrivate reads a regular file that is this user's own and closed to
// others. What stands under the name is not followed and not waited for.
func readPrivate(path string) ([]byte, fs.FileInfo, error) {
	f, err := regular.OpenFile(path, os.O_RDONLY|noFollow, 0)
	if errors.Is(err, regular.Err) {
		return nil, nil, errRecord
	}
	if err != nil {
		return nil, nil, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, nil, err
	}
	if info.Size() > MaxRecord || !private(info) {
		return nil, nil, errRecord
	}
	data, err := io.ReadAll(io.LimitReader(f, MaxRecord+1))
	return data, info, err
}

// tempPrefix begins the name of a file that doesn't have its own yet.
const tempPrefix = ".tmp-"

// write makes a complete file beneath dir that has no name of its own yet.
func write(dir string, data []byte) (string, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return "", err
	}
	f, err := os.CreateTemp(dir, tempPrefix+"*")
	if err != nil {
		return "", err
	}
	_, err = f.Write(data)
	if err = errors.Join(err, f.Sync(), f.Close()); err != nil {
		_ = os.Remove(f.Name())
		return "", err
	}
	return f.Name(), nil
}

// draft makes a record that has no name yet. What can't be written fails here,
// before anything is told of it.
func (s *Store) draft(dir string, data []byte) (string, error) {
	tmp, err := write(s.path(dir), data)
	if err == nil {
		s.step("written")
	}
	return tmp, err
}

// place gives a draft its name. The error is fs.ErrExist where another has it.
func (s *Store) place(tmp, dir, name string) error {
	if err := s.move(tmp, s.path(dir, name)); err != nil {
		_ = os.Remove(tmp)
		return err
	}
	return s.settle(dir)
}

// put gives a draft its name, whoever has it.
func (s *Store) put(tmp, dir, name string) error {
	if err := os.Rename(tmp, s.path(dir, name)); err != nil {
		_ = os.Remove(tmp)
		return err
	}
	return s.settle(dir)
}

// move renames, never over anything.
func (s *Store) move(from, to string) error {
	s.step("before the move")
	if err := os.MkdirAll(filepath.Dir(to), 0o700); err != nil {
		return err
	}
	err := renameNew(from, to)
	s.step("moved")
	return err
}

// linkNew is renameNew where the system has no such rename: the second name is
// taken by one process only, and a crash before the first one is gone leaves
// both, of which the second counts.
func linkNew(from, to string) error {
	if err := os.Link(from, to); err != nil {
		return err
	}
	return os.Remove(from)
}

// settle puts the names of a folder on disk. A once-grant has no need of it:
// it ends with the boot. What takes something back has.
func (s *Store) settle(dir string) error {
	d, err := regular.OpenDir(s.path(dir))
	if err != nil {
		return err
	}
	defer d.Close()
	return syncDir(d)
}

func (s *Store) path(name ...string) string {
	return filepath.Join(append([]string{s.dir}, name...)...)
}
