// SPDX-License-Identifier: Apache-2.0

package pathguard_test

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/postern-gate/postern/core/pathguard"
)

// hook calls f before the nth of the system calls that a root's seam sees.
func hook(r *pathguard.Root, n int, f func()) (calls *int) {
	calls = new(int)
	tick := func() {
		if *calls++; *calls == n {
			f()
		}
	}
	pathguard.SetSeam(r, func(s *pathguard.Seam) {
		real := *s
		s.FailOpen(func(dir int, rel string, flags int, mode uint32) (int, error) {
			tick()
			return real.Open(dir, rel, flags, mode)
		})
		s.FailWrite(func(fd int, p []byte) (int, error) { tick(); return unix.Write(fd, p) })
		s.FailExchange(func(dir int, a, b string) error { tick(); return pathguard.RenameExchange(dir, a, b) })
		s.FailRename(func(od int, o string, nd int, n string) error {
			tick()
			return unix.Renameat2(od, o, nd, n, unix.RENAME_NOREPLACE)
		})
	})
	return calls
}

// TestInterleave lets another program make one change before each single
// system call of each operation. Whatever the moment: nothing of that program
// is lost, nothing outside changes, nothing of ours is left, a refusal means
// that nothing happened, and a success that it did.
func TestInterleave(t *testing.T) {
	ops := map[string]func(b *box) error{
		"replace": func(b *box) error { return b.write("d/f", "NEW") },
		"create":  func(b *box) error { return b.write("d/n", "NEW") },
		"append":  func(b *box) error { return b.append("d/f", "NEW") },
		"remove":  func(b *box) error { return b.removeAll("d/f") },
		"move":    func(b *box) error { return b.move("d/f", "e/g") },
		"mkdir": func(b *box) error {
			return b.follow("d/n", func(n pathguard.Name) error {
				tg, err := n.Pin()
				if err != nil {
					return err
				}
				defer tg.Close()
				return tg.Mkdir(0o755)
			})
		},
		"removeall": func(b *box) error { return b.removeAll("d") },
	}
	changes := map[string]func(b *box){
		"write":   func(b *box) { _ = os.WriteFile(b.R()+"/d/f", []byte("PERSON"), 0o644) },
		"replace": func(b *box) { b.make("p=PERSON"); _ = os.Rename(b.R()+"/p", b.R()+"/d/f") },
		"add":     func(b *box) { _ = os.WriteFile(b.R()+"/d/n", []byte("PERSON"), 0o644) },
		"target":  func(b *box) { _ = os.WriteFile(b.R()+"/e/g", []byte("PERSON"), 0o644) },
		"remove":  func(b *box) { _ = os.Remove(b.R() + "/d/f") },
		"link":    func(b *box) { _ = os.Remove(b.R() + "/d/f"); _ = os.Symlink(b.O()+"/f", b.R()+"/d/f") },
		"fifo":    func(b *box) { _ = os.Remove(b.R() + "/d/f"); _ = unix.Mkfifo(b.R()+"/d/f", 0o644) },
		"swap": func(b *box) {
			_ = unix.Renameat2(unix.AT_FDCWD, b.R()+"/d", unix.AT_FDCWD, b.R()+"/alt", unix.RENAME_EXCHANGE)
		},
		"away": func(b *box) { _ = os.Rename(b.R()+"/d", b.R()+"/away"); _ = os.Mkdir(b.R()+"/d", 0o755) },
		"gone": func(b *box) { _ = os.RemoveAll(b.R() + "/d") },
		"mode": func(b *box) { _ = os.Chmod(b.R()+"/d/f", 0o444) },
	}
	ran := 0
	for opName, op := range ops {
		for changeName, change := range changes {
			for n := 1; ; n++ {
				b := newBox(t, []string{"d/", "d/f=OLD", "e/", "$O/f=KEEP", "$O/n0=KEEP", "alt -> $O"})
				outside, person := tree(t, b.O()), false
				calls := hook(b.root, n, func() {
					change(b)
					person = strings.Contains(tree(t, b.R()), "PERSON")
				})
				err := op(b)
				if *calls < n {
					break
				}
				ran++
				checkInterleaved(t, b, fmt.Sprintf("%s, %s before call %d", opName, changeName, n), n, err, outside, person)
			}
		}
	}
	if ran < 300 {
		t.Errorf("only %d moments", ran)
	}
}

func checkInterleaved(t *testing.T, b *box, when string, n int, err error, outside string, person bool) {
	t.Helper()
	after := tree(t, b.R())
	bad := func(what string) { t.Errorf("%s: %s; %v\n%s", when, what, err, after) }
	if tree(t, b.O()) != outside {
		bad("outside changed: " + tree(t, b.O()))
	}
	if strings.Contains(after, pathguard.TempPrefix) && !isHalfway(err) {
		bad("something of ours is left")
	}
	// What was there when the target was pinned may be replaced or removed as
	// asked; what came after that stays.
	if person && n > 1 && !strings.Contains(after, "PERSON") && !isHalfway(err) && !strings.HasPrefix(when, "removeall") {
		bad("a person's content is lost")
	}
	if err != nil && !isHalfway(err) && strings.Contains(after, "NEW") {
		bad("refused, and done all the same")
	}
	if err == nil && (strings.HasPrefix(when, "replace") || strings.HasPrefix(when, "create")) && !strings.Contains(after, "NEW") && !person && !strings.Contains(when, "gone") {
		bad("a success without an effect")
	}
}
