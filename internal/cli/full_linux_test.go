// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/postern-gate/postern/core/fault"
	"github.com/postern-gate/postern/internal/testenv"
)

// small mounts a file system of 1 MiB.
func small(t *testing.T, dir string) {
	t.Helper()
	if os.Geteuid() != 0 {
		testenv.Missing(t, "root, to mount a file system")
	}
	if out, err := exec.CommandContext(t.Context(), "mount", "-t", "tmpfs", "-o", "size=1m,mode=700", "none", dir).CombinedOutput(); err != nil {
		testenv.Missing(t, "mount: "+string(out))
	}
	t.Cleanup(func() { _ = unix.Unmount(dir, unix.MNT_DETACH) })
}

// unspaced is nil if the change was refused for want of space: by the log, or by
// undo, whose images lie on the same disk and which may be what needs it first.
func (s *session) unspaced(write map[string]any) error {
	s.Helper()
	r := s.ask("tools/call", map[string]any{"name": "write_file", "arguments": write})
	text := ""
	for _, c := range r.Content {
		text += c.Text
	}
	switch r.Meta.Error.Code {
	case fault.AuditUnwritable.String():
		return nil
	case fault.IOFailed.String():
		if strings.Contains(text, "failed: undo") && strings.Contains(text, "free space") {
			return nil
		}
	}
	return fmt.Errorf("%q: %s", r.Meta.Error.Code, text)
}

// fill takes what is free, and returns what gives it back.
func (p *place) fill(dir string) (release func()) {
	p.Helper()
	var st unix.Statfs_t
	p.must(unix.Statfs(dir, &st))
	path := filepath.Join(dir, "filler")
	f, err := os.Create(path)
	p.must(err)
	p.must(unix.Fallocate(int(f.Fd()), 0, 0, int64(st.Bfree)*st.Bsize))
	p.must(f.Close())
	return func() { p.must(os.Remove(path)) }
}

// logged is every record of the log that has the event.
func (p *place) logged(event string) (found []map[string]any) {
	p.Helper()
	data, err := os.ReadFile(filepath.Join(p.home, ".local/state/postern/audit/000001.jsonl"))
	p.must(err)
	for line := range strings.Lines(string(data)) {
		var r map[string]any
		p.must(json.Unmarshal([]byte(line), &r))
		if r["event"] == event {
			found = append(found, r)
		}
	}
	return found
}

// TestLogDiskFull: on a full disk a change is refused at once and changes
// nothing, a read follows audit.reads, the log says that the disk was full,
// and with space everything goes on in the same process.
func TestLogDiskFull(t *testing.T) {
	const name = "f.txt"
	for _, reads := range []string{"allow", "deny"} {
		t.Run("reads "+reads, func(t *testing.T) {
			p := newPlace(t, map[string]string{name: "old"})
			small(t, p.home)
			p.put(filepath.Join(p.home, ".config/postern/policy.yaml"), "version: 1\naudit: { reads: "+reads+" }\n")
			s := p.serve(".")
			read := map[string]any{"path": name}
			write := map[string]any{"path": name, "content": "new"}
			if code := s.call("read_text_file", read); code != fault.OK.String() {
				t.Fatalf("before: %s", code)
			}
			release := p.fill(p.home)
			want := map[string]string{"allow": fault.OK.String(), "deny": fault.AuditUnwritable.String()}[reads]
			// What is left of a page takes a few more records.
			for range 20 {
				if s.call("write_file", write) == fault.AuditUnwritable.String() {
					break
				}
			}
			p.put(filepath.Join(p.dir, name), "old")
			for range 3 {
				if err := s.unspaced(write); err != nil {
					t.Errorf("write: %v", err)
				}
				if code := s.call("read_text_file", read); code != want {
					t.Errorf("read: %s", code)
				}
			}
			if got, _ := os.ReadFile(filepath.Join(p.dir, name)); string(got) != "old" {
				t.Errorf("the file is %q", got)
			}
			release()
			for tool, args := range map[string]map[string]any{"write_file": write, "read_text_file": read} {
				if code := s.call(tool, args); code != fault.OK.String() {
					t.Errorf("%s with space: %s", tool, code)
				}
			}
			if len(p.logged("audit_full")) == 0 {
				t.Error("nothing says that the disk was full")
			}
			// What is left of a page may take a short record, so they can be told in
			// parts; the one before may have been in the buffer still.
			unrecorded := 0.0
			for _, r := range p.logged("reads_unrecorded") {
				unrecorded += r["n"].(float64)
			}
			if reads == "allow" && (unrecorded < 1 || unrecorded > 4) {
				t.Errorf("%v unrecorded reads", unrecorded)
			}
		})
	}
}
