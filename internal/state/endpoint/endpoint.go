// SPDX-License-Identifier: Apache-2.0

// Package endpoint keeps where a server for a set of folders is reached, with
// its token, so that clients need to be told once. One process at a time serves
// a set of folders; it holds a kernel lock that is gone with it.
//
// The files are readable by this user alone. Who reads them can use the server:
// that is every program of this user which is not confined.
package endpoint

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/postern-gate/postern/core/fault"
	"github.com/postern-gate/postern/internal/state/lock"
	"github.com/postern-gate/postern/internal/state/regular"
)

// holdWait is how long a server waits for the end of the one before it.
const holdWait = time.Second

// tempPrefix begins the names of files that are not yet whole.
const tempPrefix = ".endpoint-"

// Endpoint is where a server is reached. PID means something only while the
// endpoint is held.
type Endpoint struct {
	Address string   `json:"address"`
	Token   string   `json:"token"`
	Folders []string `json:"folders"`
	PID     int      `json:"pid"`
	// Exposed says that other machines could reach it.
	Exposed bool `json:"exposed,omitempty"`
}

// Dir is the folder of the endpoints in a state directory.
type Dir struct {
	path string
	lock lock.File
}

// Open returns the folder beneath a state directory; it is made by Hold.
func Open(stateDir string) Dir {
	path := filepath.Join(stateDir, "endpoints")
	return Dir{path, lock.Open(filepath.Join(path, "lock"))}
}

// Held is the endpoint of a set of folders, while this process has it.
type Held struct {
	// Last is what was saved before; the zero value for folders that are new.
	Last    Endpoint
	dir     Dir
	file    string
	folders []string
	release func()
}

// Hold takes the endpoint of the folders, whose order means nothing. The error
// is lock.held with the process that has it, io.failed, or config.invalid for a
// file that isn't ours.
func (d Dir) Hold(ctx context.Context, folders []string) (*Held, error) {
	if err := os.Mkdir(d.path, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return nil, failed("the folder of the endpoints can't be made", err)
	}
	folders = slices.Compact(slices.Sorted(slices.Values(folders)))
	h := &Held{dir: d, file: d.file(folders), folders: folders}
	wait, stop := context.WithTimeout(ctx, holdWait)
	defer stop()
	var err error
	h.release, err = d.lock.Lock(wait, key(h.file))
	if fault.CodeOf(err) == fault.LockHeld && ctx.Err() == nil {
		holder, _ := read(h.file) // without it the refusal says less
		return nil, &fault.Error{Code: fault.LockHeld, Op: "serve", Resource: strings.Join(folders, ", "), Err: &InUse{holder}}
	}
	if err != nil {
		return nil, err
	}
	d.removeLeftovers()
	h.Last, err = read(h.file)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		h.release()
		return nil, &fault.Error{Code: fault.ConfigInvalid, Op: "serve", Resource: h.file, Rule: "the file of the endpoint can't be read", Hint: "remove it; clients then need the new token", Err: err}
	}
	return h, nil
}

// InUse says which process has an endpoint.
type InUse struct{ Endpoint }

// Error says little: a fault around it has the words.
func (*InUse) Error() string { return "the endpoint is in use" }

// File is where the endpoint is kept.
func (h *Held) File() string { return h.file }

// Token returns the token for an address: the one that it had, or a new one. A
// token is never sent to another address than the one that it was made for,
// where another program may listen by now; nor is one kept that went over a
// network, or would now.
func (h *Held) Token(address string, exposed bool) string {
	if h.Last.Address == address && h.Last.Exposed == exposed && h.Last.Token != "" {
		return h.Last.Token
	}
	var secret [32]byte
	_, _ = rand.Read(secret[:]) // never fails: crypto/rand ends the program instead
	return base64.RawURLEncoding.EncodeToString(secret[:])
}

// Save keeps the address and its token for this process, whole or not at all.
func (h *Held) Save(address, token string, exposed bool) error {
	return h.write(Endpoint{address, token, h.folders, os.Getpid(), exposed})
}

// Forget drops the token, which clients may have sent to another program; the
// address stays, and gets a new one.
func (h *Held) Forget() error {
	h.Last.Token = ""
	return h.write(h.Last)
}

func (h *Held) write(e Endpoint) error {
	data, err := json.Marshal(e)
	if err != nil {
		return failed("the endpoint can't be kept", err)
	}
	tmp, err := os.CreateTemp(filepath.Dir(h.file), tempPrefix+"*") // mode 0600
	if err != nil {
		return failed("the endpoint can't be kept", err)
	}
	defer os.Remove(tmp.Name())
	_, werr := tmp.Write(append(data, '\n'))
	if err := errors.Join(werr, tmp.Sync(), tmp.Close()); err != nil {
		return failed("the endpoint can't be kept", err)
	}
	if err := os.Rename(tmp.Name(), h.file); err != nil {
		return failed("the endpoint can't be kept", err)
	}
	return nil
}

// leftover is the age at which an unfinished file is one that a killed process
// left: a writer has it for milliseconds. One that slept for so long fails to
// rename it, and says so.
const leftover = time.Hour

// removeLeftovers removes unfinished files, which hold a token.
func (d Dir) removeLeftovers() {
	entries, _ := os.ReadDir(d.path) // what can't be read is left
	for _, e := range entries {
		info, err := e.Info()
		if err == nil && strings.HasPrefix(e.Name(), tempPrefix) && info.Mode().IsRegular() && time.Since(info.ModTime()) > leftover {
			_ = os.Remove(filepath.Join(d.path, e.Name()))
		}
	}
}

// Release lets the next server have it. The file stays.
func (h *Held) Release() { h.release() }

// Holder returns the endpoint of other folders with that port which a process
// holds now; ok is false where there is none.
func (h *Held) Holder(ctx context.Context, port string) (e Endpoint, ok bool) {
	files, _ := filepath.Glob(filepath.Join(h.dir.path, "*.json")) // the pattern is well-formed
	for _, file := range files {
		e, err := read(file)
		if err != nil || file == h.file || !strings.HasSuffix(e.Address, ":"+port) {
			continue
		}
		if h.dir.held(ctx, file) {
			return e, true
		}
	}
	return Endpoint{}, false
}

// Listed is an endpoint that is kept, with its file.
type Listed struct {
	Endpoint
	File string
	// Held says that a process serves it now.
	Held bool
}

// List returns the endpoints that are kept, and makes nothing. A file that
// can't be read is left out.
func (d Dir) List(ctx context.Context) (all []Listed) {
	files, _ := filepath.Glob(filepath.Join(d.path, "*.json")) // the pattern is well-formed
	for _, file := range files {
		if e, err := read(file); err == nil {
			all = append(all, Listed{e, file, d.held(ctx, file)})
		}
	}
	return all
}

func (d Dir) held(ctx context.Context, file string) bool {
	brief, stop := context.WithTimeout(ctx, time.Millisecond)
	defer stop()
	release, err := d.lock.Lock(brief, key(file))
	if err == nil {
		release()
	}
	return fault.CodeOf(err) == fault.LockHeld
}

func (d Dir) file(folders []string) string {
	sum := sha256.Sum256([]byte(strings.Join(folders, "\x00")))
	return filepath.Join(d.path, hex.EncodeToString(sum[:16])+".json")
}

// key is the range of an endpoint in the lock file.
func key(file string) int64 {
	sum := sha256.Sum256([]byte(filepath.Base(file)))
	return int64(binary.BigEndian.Uint64(sum[:8]) >> 2) //nolint:gosec // 62 bits fit
}

func read(file string) (Endpoint, error) {
	data, err := regular.Read(file)
	if err != nil {
		return Endpoint{}, err
	}
	var e Endpoint
	return e, json.Unmarshal(data, &e)
}

func failed(rule string, err error) error {
	return &fault.Error{Code: fault.IOFailed, Op: "serve", Rule: rule, Hint: "free space or repair the state directory", Err: err}
}
