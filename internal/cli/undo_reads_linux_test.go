// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/postern-gate/postern/core/fault"
)

// TestUndoReadsRemoveNothing: to list what can be undone, to look at a plan, and to
// undo removes nothing of what is kept, however old it is; a start of serve does.
func TestUndoReadsRemoveNothing(t *testing.T) {
	p := newPlace(t, map[string]string{"f": "old"})
	s := p.serve(".")
	if code := s.call("write_file", map[string]any{"path": "f", "content": "new"}); code != fault.OK.String() {
		t.Fatal(code)
	}
	kept := filepath.Join(p.home, ".local/state/postern/undo/images")
	old := filepath.Join(kept, fmt.Sprintf("%016x-a-1.0.x.x", time.Now().AddDate(0, -1, 0).UnixNano()))
	p.put(old, "the only copy")
	there := func() bool {
		_, err := os.Lstat(old)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			t.Error(err)
		}
		return err == nil
	}
	for _, args := range []string{"undo list", "undo --last --dry-run", "undo --last --yes"} {
		var out bytes.Buffer
		if code := run(t.Context(), strings.Fields(args), p.env(strings.NewReader(""), &out)); code != fault.ExitOK || !there() {
			t.Errorf("%s: exit %d, there %t: %s", args, code, there(), out.String())
		}
	}
	p.serve(".")
	p.await("a start removes it", func() bool { return !there() })
}
