// SPDX-License-Identifier: Apache-2.0

package audit

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/postern-gate/postern/core/fault"
	"github.com/postern-gate/postern/internal/state/audit/segment"
)

func damaged(number int) error {
	return broken(fault.AuditBroken, fmt.Sprintf("%s was changed before its end", segment.Name(number)))
}

// lastLineEnd returns the place after the last line end before end.
func lastLineEnd(f *os.File, end int64) (int64, error) {
	size := int64(1) // nearly always the file ends with one
	for at := end; at > 0; size = 64 << 10 {
		n := min(size, at)
		buf := make([]byte, n)
		if _, err := f.ReadAt(buf, at-n); err != nil {
			return 0, err
		}
		if i := bytes.LastIndexByte(buf, '\n'); i >= 0 {
			return at - n + int64(i) + 1, nil
		}
		at -= n
	}
	return 0, nil
}

// moveAside copies what follows start into a new file of that name, or one
// like it where the name is taken, then cuts it off.
func moveAside(f *os.File, start int64, dir, name string) (string, error) {
	info, err := f.Stat()
	if err != nil {
		return "", err
	}
	taken := name
	to, err := createNew(filepath.Join(dir, name))
	for n := 2; errors.Is(err, fs.ErrExist); n++ {
		name = fmt.Sprintf("%s-%d", taken, n)
		to, err = createNew(filepath.Join(dir, name))
	}
	if err != nil {
		return "", err
	}
	_, err = io.Copy(to, io.NewSectionReader(f, start, info.Size()-start))
	if err := errors.Join(err, to.Sync(), to.Close()); err != nil {
		return "", err
	}
	return name, f.Truncate(start)
}

func createNew(path string) (*os.File, error) {
	return os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
}

// drift notices a clock that goes back: by comparing it with one that can't,
// and at first with the time of the newest record.
type drift struct {
	begun bool
	start time.Time
	ahead time.Duration // how far the clock ran ahead of the other one
}

// clockSlack is what two clocks may differ by without a word.
const clockSlack = 2 * time.Second

// step returns by how much the clock has gone back since the last call, 0 for
// not at all. Elapsed is by the monotonic clock.
func (d *drift) step(now time.Time, elapsed time.Duration, newest time.Time) time.Duration {
	var back time.Duration
	if d.begun {
		ahead := now.Round(0).Sub(d.start.Round(0)) - elapsed
		back, d.ahead = d.ahead-ahead, ahead
	} else {
		d.begun, d.start, d.ahead = true, now, -elapsed
		back = newest.Sub(now)
	}
	if back > clockSlack {
		return back
	}
	return 0
}
