// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/postern-gate/postern/core/fault"
	"github.com/postern-gate/postern/internal/state"
	"github.com/postern-gate/postern/internal/state/audit"
	"github.com/postern-gate/postern/internal/state/audit/segment"
	"github.com/postern-gate/postern/internal/state/disk"
	"github.com/postern-gate/postern/internal/state/endpoint"
	"github.com/postern-gate/postern/internal/state/live"
)

const (
	// Below fewSpace little can be recorded any more, below lowSpace soon.
	fewSpace, lowSpace = 16 << 20, 256 << 20
	// sealDelay is how long a record of a process that lives may be unsigned:
	// it is a second, and a busy disk.
	sealDelay = 30 * time.Second
	// ahead is how far clocks may differ.
	ahead = 5 * time.Second
)

// made reports whether there is a state directory.
func (l *look) made() bool {
	_, err := os.Lstat(l.Policy.StateDir)
	return err == nil
}

func (l *look) notMade() []Result { return one(skip("%s is not made yet", l.Policy.StateDir)) }

// checkState: owner, mode, layout and file system of the state directory.
func checkState(_ context.Context, l *look) []Result {
	dir := l.Policy.StateDir
	if !l.made() {
		return l.notMade()
	}
	if err := state.Check(dir); err != nil {
		return one(failure(err))
	}
	if err := state.CheckVersion(dir); err != nil {
		if old, _ := os.ReadFile(filepath.Join(dir, "version")); strings.TrimSpace(string(old)) == "1" {
			return one(pass("%s has the layout of an earlier release; the next start brings it up to date", dir))
		}
		return one(failure(err))
	}
	kind, err := disk.Of(dir)
	switch {
	case err == nil && kind.Remote:
		return one(warn("set POSTERN_STATE to a folder of a local disk", "%s lies on %s: locks between processes are only as good as what is behind it", dir, kind.Name))
	case err == nil && kind.Name == "tmpfs":
		return one(warn("set POSTERN_STATE to a folder of a disk", "%s lies in memory: the log is gone after a restart", dir))
	case err == nil:
		return one(pass("%s, layout %s, yours alone, on %s", dir, state.Version, kind.Name))
	}
	return one(pass("%s, layout %s, yours alone", dir, state.Version))
}

func checkSpace(_ context.Context, l *look) []Result {
	if !l.made() {
		return l.notMade()
	}
	free, err := disk.Free(l.Policy.StateDir)
	const hint = "free space there, or set audit.keep in the policy"
	switch {
	case err != nil:
		return one(skip("free space: %v", err))
	case free < fewSpace:
		return one(fail(hint, "%d MiB are free for the log: without space every change is refused", free>>20))
	case free < lowSpace:
		return one(warn(hint, "%d MiB are free for the log", free>>20))
	}
	return one(pass("%d MiB are free for the log", free>>20))
}

// checkLog looks at the log as a start would.
func checkLog(_ context.Context, l *look) []Result {
	if !l.made() {
		return l.notMade()
	}
	if err := audit.Look(l.Policy.StateDir); err != nil {
		return one(fail("postern log verify", "%s: %s", fault.CodeOf(err), fault.As(err).Because()))
	}
	newest, _, err := l.newest()
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return one(skip("nothing is recorded yet"))
	case err != nil:
		return one(fail("look at who may read the state directory", "the log can't be read"))
	}
	return one(pass("%s goes on from what was signed", newest))
}

// newest is the segment that is written to.
func (l *look) newest() (path string, info fs.FileInfo, err error) {
	all, err := segment.List(filepath.Join(l.Policy.StateDir, "audit"))
	if err == nil && len(all) == 0 {
		err = fs.ErrNotExist
	}
	if err != nil {
		return "", nil, err
	}
	path = all[len(all)-1].Path
	info, err = os.Stat(path)
	return path, info, err
}

// checkSigned: a process that lives signs what it records within a second or
// so; records that stay unsigned say that it can't.
func checkSigned(ctx context.Context, l *look) []Result {
	_, segment, err := l.newest()
	signed, err2 := os.Stat(filepath.Join(l.Policy.StateDir, "checkpoint"))
	if err != nil || err2 != nil {
		return one(skip("nothing is signed yet"))
	}
	processes, err := live.Open(l.Policy.StateDir).List(ctx)
	if err != nil {
		return one(failure(err))
	}
	alive := 0
	for _, p := range processes {
		if p.Alive {
			alive++
		}
	}
	since := l.Now().Sub(signed.ModTime()).Round(time.Second)
	waiting := segment.ModTime().After(signed.ModTime().Add(ahead)) && l.Now().Sub(segment.ModTime()) > sealDelay
	switch {
	case alive > 0 && waiting:
		return one(warn("postern log verify", "%d processes live, and the newest records are not signed since %s", alive, since))
	case alive == 0:
		return one(pass("signed %s ago; no process lives", since))
	}
	return one(pass("signed %s ago; %d processes live", since, alive))
}

// checkClock: a record of the future means that a clock was, or is, wrong.
func checkClock(_ context.Context, l *look) []Result {
	path, info, err := l.newest()
	if err != nil {
		return one(skip("nothing is recorded yet"))
	}
	last, ok := lastTime(path, info.Size())
	if !ok {
		return one(skip("the newest record has no time"))
	}
	if early := last.Sub(l.Now()); early > ahead {
		return one(warn("set the clock; the log itself stays sound", "the newest record is %s in the future", early.Round(time.Second)))
	}
	return one(pass("the newest record is not in the future"))
}

// lastTime is the time of the last whole record of a segment.
func lastTime(path string, size int64) (at time.Time, ok bool) {
	f, err := os.Open(path)
	if err != nil {
		return at, false
	}
	defer f.Close()
	const tail = 64 << 10
	buf := make([]byte, min(size, tail))
	if _, err := f.ReadAt(buf, size-int64(len(buf))); err != nil && !errors.Is(err, io.EOF) {
		return at, false
	}
	for line := range bytes.Lines(buf) {
		var record struct {
			T time.Time `json:"t"`
		}
		if json.Unmarshal(line, &record) == nil && !record.T.IsZero() {
			at, ok = record.T, true
		}
	}
	return at, ok
}

func checkAnchor(_ context.Context, l *look) []Result {
	if _, _, err := l.newest(); err != nil {
		return one(skip("nothing is recorded yet"))
	}
	return []Result{{
		Status: Skipped, Text: "whether an anchor is kept elsewhere can't be seen from here; without one a program of yours can cut the log unseen",
		Hint: "postern log anchor, once a day, to where no program of this user can write",
	}}
}

func checkEndpoints(ctx context.Context, l *look) []Result {
	all := endpoint.Open(l.Policy.StateDir).List(ctx)
	if len(all) == 0 {
		return one(skip("nothing is served over HTTP"))
	}
	var found []Result
	for _, e := range all {
		info, err := os.Stat(e.File)
		folders := strings.Join(e.Folders, ", ")
		switch {
		case err == nil && posix && info.Mode().Perm()&0o077 != 0:
			found = append(found, fail("chmod 600 "+e.File, "others can read the token of %s", folders))
		case e.Exposed && e.Held:
			found = append(found, warn("end it, and serve without --accept expose", "other machines can reach %s at %s, and nothing is encrypted", folders, e.Address))
		case e.Held:
			found = append(found, pass("%s at %s, process %d", folders, e.Address, e.PID))
		default:
			found = append(found, pass("%s is not served now; its address and token are kept", folders))
		}
	}
	return found
}
