// SPDX-License-Identifier: Apache-2.0

package records

import (
	"fmt"
	"path/filepath"

	"github.com/postern-gate/postern/internal/state/audit/segment"
)

// Cursor is a place between two lines of a log: Line lines, which end at
// Offset, are before it in the segment. The zero value is the beginning of the
// log.
type Cursor struct {
	Segment int
	Line    int
	Offset  int64
}

// Entry is a line of the log that is a record, or should be.
type Entry struct {
	Segment int
	Line    int    // its number, from 1
	Text    []byte // its bytes; they are valid until the next entry is read
	Record  Record
	Err     error // ErrNotRecord, else nil
}

// Place names the line, as "000001.jsonl:17".
func (e Entry) Place() string {
	return fmt.Sprintf("%s:%d", filepath.Base(segment.Path("", e.Segment, segment.Lines)), e.Line)
}
