// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
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
	"github.com/postern-gate/postern/internal/state/regular"
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

// earlier reports whether the state directory has the layout of an earlier
// release: its log is signed in another way, which the next start mends.
func (l *look) earlier() bool {
	version, _ := regular.Read(filepath.Join(l.Policy.StateDir, "version")) // what can't be read is another finding
	return strings.TrimSpace(string(version)) == "1"
}

func (l *look) notMade() []Result { return one(skip("%s is not made yet", l.Policy.StateDir)) }

// checkState: owner, mode, layout and file system of the state directory.
func checkState(_ context.Context, l *look) []Result {
	dir := l.Policy.StateDir
	if !l.made() {
		if above, err := makeable(dir); err != nil {
			return one(fail("give yourself the right to write there, or set POSTERN_STATE to a folder that you can write",
				"%s is not there and can't be made: %s: %v; no server starts without it", dir, above, err))
		}
		return l.notMade()
	}
	if err := state.Check(dir); err != nil {
		return one(failure(err))
	}
	if err := state.CheckVersion(dir); err != nil {
		if l.earlier() {
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

const verify = "postern log verify"

// checkLog compares the log with what was signed, as far as a start does.
func checkLog(ctx context.Context, l *look) []Result {
	if !l.made() {
		return l.notMade()
	}
	if l.earlier() {
		return one(skip("the log is that of an earlier release; it can be compared once the next start has brought it up to date"))
	}
	all, err := l.segments()
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return one(fail("look at who may read the state directory", "the log can't be read"))
	}
	ctx, stop := context.WithTimeout(ctx, l.CheckTime*4/5) // so that it is told how far it came
	defer stop()
	switch err := audit.Inspect(ctx, l.Policy.StateDir); {
	case fault.CodeOf(err) == fault.Cancelled:
		return one(warn(verify, "%s goes on from what was signed; there was no time to compare all of it", all[len(all)-1].Path))
	case err != nil:
		return one(fail(verify, "%s: %s", fault.CodeOf(err), fault.As(err).Because()))
	case len(all) == 0:
		return one(skip("nothing is recorded yet"))
	case l.forgotten():
		return one(warn(verify, "%s goes on from the checkpoints that it holds, but the file checkpoint, which remembers the last one, is gone: whether the end of the log is missing can't be told", all[len(all)-1].Path))
	}
	return one(pass("%s is as it was signed%s", all[len(all)-1].Path, older(len(all)-1)))
}

// forgotten reports whether a log is there and what was signed last isn't
// remembered. It is from the first record on.
func (l *look) forgotten() bool {
	last, err := audit.LastSigned(l.Policy.StateDir)
	return err == nil && last == nil
}

// older says what a look at the newest segment leaves out.
func older(n int) string {
	switch n {
	case 0:
		return ""
	case 1:
		return "; the older segment was not compared, as " + verify + " does"
	default:
		return fmt.Sprintf("; the %d older segments were not compared, as %s does", n, verify)
	}
}

func (l *look) segments() ([]segment.File, error) {
	return segment.List(filepath.Join(l.Policy.StateDir, "audit"))
}

// newest is the segment that is written to.
func (l *look) newest() (path string, info fs.FileInfo, err error) {
	all, err := l.segments()
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
	if l.earlier() {
		return one(skip("the log is that of an earlier release"))
	}
	_, segment, err := l.newest()
	signed, err2 := os.Stat(filepath.Join(l.Policy.StateDir, "checkpoint"))
	switch {
	case err != nil:
		return one(skip("nothing is signed yet"))
	case err2 != nil:
		return one(warn("start a server: it remembers what it signs next", "what was signed last is not remembered: the file checkpoint is gone"))
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
	f, err := regular.Open(path)
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
