// SPDX-License-Identifier: Apache-2.0

package pathguard_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/postern-gate/postern/core/fault"
	"github.com/postern-gate/postern/core/pathguard"
)

// raceEnv says how long each attack runs; 2 s without it.
const raceEnv = "POSTERN_RACE"

func raceTime(t *testing.T) time.Duration {
	t.Helper()
	d := 2 * time.Second
	if s := os.Getenv(raceEnv); s != "" {
		var err error
		d, err = time.ParseDuration(s)
		must(t, err)
	}
	if testing.Short() {
		d = 200 * time.Millisecond
	}
	return d
}

// attackForever is the body of the attacker's process: it exchanges pairs of
// names without end and counts in a file, so that the count outlives its kill.
func attackForever(args []string) {
	count, err := os.OpenFile(args[0], os.O_CREATE|os.O_WRONLY, 0o644)
	if err != nil {
		os.Exit(98)
	}
	var done [16]byte
	for n := uint64(0); ; n++ {
		for i := 1; i+1 < len(args); i += 2 {
			if unix.Renameat2(unix.AT_FDCWD, args[i], unix.AT_FDCWD, args[i+1], unix.RENAME_EXCHANGE) == nil {
				n++
			}
		}
		if _, err := count.WriteAt(fmt.Appendf(done[:0], "%16d", n), 0); err != nil {
			os.Exit(99)
		}
	}
}

type attacker struct {
	stop  func()
	count func() int
}

// attack starts that process and counts its exchanges.
func attack(t *testing.T, pairs ...string) attacker {
	t.Helper()
	counter := filepath.Join(t.TempDir(), "count")
	cmd := exec.Command("/proc/self/exe", append([]string{counter}, pairs...)...)
	cmd.Env = append(os.Environ(), childEnv+"=attack")
	must(t, cmd.Start())
	var once sync.Once
	stop := func() {
		once.Do(func() {
			_ = cmd.Process.Kill() // it may have ended itself, which shows in the count
			_ = cmd.Wait()
		})
	}
	t.Cleanup(stop)
	return attacker{stop, func() int {
		b, _ := os.ReadFile(counter)
		n, _ := strconv.Atoi(strings.TrimSpace(string(b)))
		return n
	}}
}

// tally is what came of the calls under attack.
type tally struct{ good, refused atomic.Int64 }

func (c *tally) add(err error) {
	if err == nil {
		c.good.Add(1)
	} else {
		c.refused.Add(1)
	}
}

// storm calls op from two goroutines until the time is over and the run proves
// something; one that proves nothing in 20 s more fails.
func storm(t *testing.T, a attacker, op func(worker int) error) *tally {
	t.Helper()
	var c tally
	var wg sync.WaitGroup
	end := time.Now().Add(raceTime(t))
	for worker := range 2 {
		wg.Go(func() {
			for time.Now().Before(end) || time.Now().Before(end.Add(20*time.Second)) &&
				(c.good.Load() == 0 || c.refused.Load() == 0 || a.count() < 1000) {
				c.add(op(worker))
			}
		})
	}
	wg.Wait()
	a.stop()
	exchanges := a.count()
	t.Logf("%d done, %d refused, %d exchanges", c.good.Load(), c.refused.Load(), exchanges)
	if c.good.Load() == 0 || c.refused.Load() == 0 || exchanges < 1000 {
		t.Errorf("%d done, %d refused, %d exchanges: this run proves nothing", c.good.Load(), c.refused.Load(), exchanges)
	}
	return &c
}

// realPath is where an open file is now.
func realPath(fd int) string {
	p, _ := os.Readlink("/proc/self/fd/" + strconv.Itoa(fd))
	return p
}

// readChecked reads and checks the answer and where the handle really is.
func readChecked(t *testing.T, b *box, spelling, want string) error {
	return b.follow(spelling, func(n pathguard.Name) error {
		f, err := n.Open()
		if err != nil {
			return err
		}
		defer f.Close()
		if p := realPath(f.FD()); !strings.HasPrefix(p, b.R()+"/") {
			t.Errorf("a handle leads to %s", p)
		}
		buf := make([]byte, 64)
		k, err := f.Read(buf)
		if string(buf[:k]) != want {
			t.Errorf("read %q (%v), want %q", buf[:k], err, want)
		}
		return err
	})
}

// control reads by name beside the same attack until the secret shows.
func control(t *testing.T, path string, pairs ...string) {
	t.Helper()
	defer attack(t, pairs...).stop()
	deadline := time.Now().Add(30 * time.Second)
	for time.Now().Before(deadline) {
		if b, _ := os.ReadFile(path); string(b) == "SECRET" {
			return
		}
	}
	t.Error("the control without the guard never saw the secret: the attack proves nothing")
}

func TestRaceRead(t *testing.T) {
	for name, c := range map[string]struct{ setup, pairs []string }{
		"directory-with-link": {[]string{"d/", "d/s=INSIDE", "$O/s=SECRET", "d.alt -> $O"}, []string{"$R/d", "$R/d.alt"}},
		"file-with-link":      {[]string{"d/", "d/s=INSIDE", "$O/s=SECRET", "d/s.alt -> $O/s"}, []string{"$R/d/s", "$R/d/s.alt"}},
		"grandparent":         {[]string{"g/d/", "$O/d/", "g/d/s=INSIDE", "$O/d/s=SECRET", "g.alt -> $O"}, []string{"$R/g", "$R/g.alt"}},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBox(t, c.setup)
			pathguard.Unsynced(b.root)
			path := "d/s"
			if name == "grandparent" {
				path = "g/d/s"
			}
			pairs := b.expandAll(c.pairs)
			storm(t, attack(t, pairs...), func(int) error { return readChecked(t, b, path, "INSIDE") })
			control(t, b.R()+"/"+path, pairs...)
		})
	}
}

func (b *box) expandAll(all []string) []string {
	var out []string
	for _, s := range all {
		out = append(out, b.expand(s))
	}
	return out
}

// TestRaceJudged: two names inside, one of them denied; what is read is always
// the judged one. os.Root alone fails this.
func TestRaceJudged(t *testing.T) {
	b := newBox(t, []string{"d/", "d/s=OPEN", "secret/", "secret/s=DENIED", "d.alt -> secret"})
	pathguard.Unsynced(b.root)
	b.deny = []string{"secret/s"}
	pairs := b.expandAll([]string{"$R/d", "$R/d.alt"})
	storm(t, attack(t, pairs...), func(int) error { return readChecked(t, b, "d/s", "OPEN") })

	root, err := os.OpenRoot(b.R())
	must(t, err)
	defer root.Close()
	defer attack(t, pairs...).stop()
	for end := time.Now().Add(30 * time.Second); time.Now().Before(end); {
		if got, _ := root.ReadFile("d/s"); string(got) == "DENIED" {
			return
		}
	}
	t.Error("the control never read the denied file")
}

// TestRaceMutate: whatever is changed while a directory and a link to outside
// change places, nothing outside is touched.
func TestRaceMutate(t *testing.T) {
	ops := map[string]func(b *box, worker int) error{
		"replace": func(b *box, w int) error { return b.write("d/f"+strconv.Itoa(w), "new") },
		"create-remove": func(b *box, w int) error {
			name := "d/n" + strconv.Itoa(w)
			return errors.Join(b.write(name, "x"), b.remove(name))
		},
		"append": func(b *box, w int) error {
			return b.follow("d/f"+strconv.Itoa(w), func(n pathguard.Name) error {
				t, err := n.Pin()
				if err != nil {
					return err
				}
				defer t.Close()
				_, err = t.Append([]byte("x"), pathguard.WriteOptions{})
				return err
			})
		},
		"rename": func(b *box, w int) error {
			from, to := "d/f"+strconv.Itoa(w), "d/g"+strconv.Itoa(w)
			return errors.Join(b.move(from, to), b.move(to, from))
		},
		"mkdir": func(b *box, w int) error {
			name := "d/m" + strconv.Itoa(w)
			err := b.follow(name, func(n pathguard.Name) error {
				t, err := n.Pin()
				if err != nil {
					return err
				}
				defer t.Close()
				return t.Mkdir(0o755)
			})
			return errors.Join(err, b.remove(name))
		},
		"removeall": func(b *box, w int) error {
			name := "d/t" + strconv.Itoa(w)
			_ = os.MkdirAll(b.R()+"/inside/t"+strconv.Itoa(w)+"/x", 0o755) // under attack too
			t, err := b.pinEntry(name)
			if err != nil {
				return err
			}
			defer t.Close()
			return t.RemoveAll(context.Background(), func(pathguard.Name) error { return nil }, pathguard.WriteOptions{})
		},
	}
	for name, op := range ops {
		t.Run(name, func(t *testing.T) {
			b := newBox(t, []string{"d/", "d/f0=A", "d/f1=A", "inside/", "$O/f0=KEEP", "$O/f1=KEEP", "$O/g0=KEEP", "$O/n0=KEEP", "$O/m0/", "$O/t0/x/", "alt -> $O"})
			pathguard.Unsynced(b.root)
			if name == "removeall" {
				// The victim is made where no exchange is.
				must(t, os.Remove(b.R()+"/inside"))
				must(t, os.Symlink("d", b.R()+"/inside"))
			}
			before := tree(t, b.O())
			storm(t, attack(t, b.expandAll([]string{"$R/d", "$R/alt"})...), func(w int) error { return op(b, w) })
			if after := tree(t, b.O()); stripMade(after, name) != before {
				t.Errorf("outside is now\n%s\nbefore\n%s", after, before)
			}
		})
	}
}

// stripMade drops what the test itself, unguarded, made outside.
func stripMade(tree, op string) string {
	if op != "removeall" {
		return tree
	}
	var kept []string
	for line := range strings.SplitSeq(tree, "\n") {
		if !strings.HasPrefix(line, "/t1") {
			kept = append(kept, line)
		}
	}
	return strings.Join(kept, "\n")
}

func (b *box) remove(spelling string) error {
	t, err := b.pinEntry(spelling)
	if err != nil {
		return err
	}
	defer t.Close()
	return t.Remove(pathguard.WriteOptions{})
}

// TestRaceDoubleMove: of two moves to one name exactly one is done, and no
// content is lost. 120 rounds.
func TestRaceDoubleMove(t *testing.T) {
	b := newBox(t, nil)
	pathguard.Unsynced(b.root)
	for round := range 120 {
		b.make("a=A", "b=B")
		var errs [2]error
		var wg sync.WaitGroup
		for i, from := range []string{"a", "b"} {
			wg.Go(func() { errs[i] = b.move(from, "to") })
		}
		wg.Wait()
		if (errs[0] == nil) == (errs[1] == nil) {
			t.Fatalf("round %d: %v, %v", round, errs[0], errs[1])
		}
		lost, kept := "a", "b"
		if errs[1] == nil {
			lost, kept = "b", "a"
		}
		got, err := os.ReadFile(b.R() + "/to")
		must(t, err)
		left, err := os.ReadFile(b.R() + "/" + kept)
		must(t, err)
		if string(got) != strings.ToUpper(lost) || string(left) != strings.ToUpper(kept) {
			t.Fatalf("round %d: to holds %q, %s holds %q", round, got, kept, left)
		}
		must(t, os.Remove(b.R()+"/to"))
		must(t, os.Remove(b.R()+"/"+kept))
	}
}

// TestRaceParallelReplace: writers that each add a line to what they judged,
// with nothing that serialises them: no line of a write that was called done
// is lost. With a lock around each, as the crossing has, none is refused.
func TestRaceParallelReplace(t *testing.T) {
	for name, locked := range map[string]bool{"free": false, "locked": true} {
		t.Run(name, func(t *testing.T) {
			b := newBox(t, []string{"f="})
			pathguard.Unsynced(b.root)
			var mu, lock sync.Mutex
			var done []string
			var stale, half int
			var wg sync.WaitGroup
			for w := range 4 {
				wg.Go(func() {
					for i := range 30 {
						if locked {
							lock.Lock()
						}
						line := fmt.Sprintf("<%d-%d>", w, i)
						err := b.follow("f", func(n pathguard.Name) error { return addLine(n, line) })
						if locked {
							lock.Unlock()
						}
						mu.Lock()
						switch {
						case err == nil:
							done = append(done, line)
						case isHalfway(err):
							half++
						case fault.CodeOf(err) == fault.PreconditionFailed:
							stale++
						default:
							t.Error(err)
						}
						mu.Unlock()
					}
				})
			}
			wg.Wait()
			t.Logf("%d done, %d stale, %d half", len(done), stale, half)
			if locked && len(done) != 120 || len(done) == 0 {
				t.Errorf("%d of 120 were done", len(done))
			}
			all := tree(t, b.R()) // a kept state counts: the caller was told its name
			for _, line := range done {
				if !strings.Contains(all, line) {
					t.Errorf("%s is lost", line)
				}
			}
		})
	}
}

// addLine replaces the file by what it holds and one line more.
func addLine(n pathguard.Name, line string) error {
	tg, err := n.Pin()
	if err != nil {
		return err
	}
	defer tg.Close()
	f, err := n.Open()
	if err != nil {
		return err
	}
	defer f.Close()
	if f.Fingerprint() != tg.Fingerprint() {
		return &fault.Error{Code: fault.PreconditionFailed}
	}
	old, err := io.ReadAll(f)
	if err != nil {
		return err
	}
	_, err = tg.Replace(strings.NewReader(string(old)+line), pathguard.WriteOptions{})
	return err
}

// TestRaceReader: a reader beside replaces sees the old or the new content
// whole.
func TestRaceReader(t *testing.T) {
	b := newBox(t, nil)
	pathguard.Unsynced(b.root)
	size := 1 << 20
	must(t, os.WriteFile(b.R()+"/f", []byte(strings.Repeat("a", size)), 0o644))
	end := time.Now().Add(raceTime(t))
	var wg sync.WaitGroup
	wg.Go(func() {
		for i := 0; time.Now().Before(end); i++ {
			if err := b.write("f", strings.Repeat(string(rune('a'+i%26)), size)); err != nil {
				t.Error(err)
			}
		}
	})
	reads := 0
	for time.Now().Before(end) {
		got, err := os.ReadFile(b.R() + "/f")
		must(t, err)
		if len(got) != size || strings.Trim(string(got), string(got[:1])) != "" {
			t.Fatalf("torn: %d bytes", len(got))
		}
		reads++
	}
	wg.Wait()
	if reads < 2 {
		t.Error("too few reads to prove anything")
	}
	beside(t, func(i int) { _ = os.WriteFile(b.R()+"/f", []byte(strings.Repeat(string(rune('a'+i%26)), size)), 0o644) }, func() bool {
		got, _ := os.ReadFile(b.R() + "/f")
		return len(got) != size || strings.Trim(string(got), string(got[:1])) != ""
	})
}

// beside is a control: act without the guard until seen, which must happen.
func beside(t *testing.T, act func(i int), seen func() bool) {
	t.Helper()
	stop := make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() {
		for i := 0; ; i++ {
			select {
			case <-stop:
				return
			default:
				act(i)
			}
		}
	})
	defer wg.Wait()
	defer close(stop)
	for end := time.Now().Add(30 * time.Second); time.Now().Before(end); {
		if seen() {
			return
		}
	}
	t.Error("the control never showed the fault: this run proves nothing")
}

// TestRaceSecretMode: no file of the directory ever has content under a wider
// mode than the 0600 of the secret that is replaced.
func TestRaceSecretMode(t *testing.T) {
	b := newBox(t, []string{"s=SECRET", "s@0600"})
	pathguard.Unsynced(b.root)
	end := time.Now().Add(raceTime(t))
	var wg sync.WaitGroup
	var writes atomic.Int64
	wg.Go(func() {
		for time.Now().Before(end) {
			if err := b.write("s", "SECRET"); err != nil {
				t.Error(err)
			}
			writes.Add(1)
		}
	})
	for time.Now().Before(end) {
		all, err := os.ReadDir(b.R())
		must(t, err)
		for _, e := range all {
			if i, err := os.Lstat(b.R() + "/" + e.Name()); err == nil && i.Mode().Perm()&0o077 != 0 {
				t.Fatalf("%s has mode %v", e.Name(), i.Mode())
			}
		}
	}
	wg.Wait()
	if writes.Load() == 0 {
		t.Error("nothing was written")
	}
	// The control sets the mode last, as is often done.
	beside(t, func(int) {
		tmp := b.R() + "/tmp"
		_ = os.WriteFile(tmp, []byte("SECRET"), 0o644)
		_ = os.Chmod(tmp, 0o600)
		_ = os.Rename(tmp, b.R()+"/s")
	}, func() bool {
		i, err := os.Lstat(b.R() + "/tmp")
		return err == nil && i.Size() > 0 && i.Mode().Perm()&0o077 != 0
	})
}

// TestRaceList: a listing is that of the judged directory or refused.
func TestRaceList(t *testing.T) {
	b := newBox(t, []string{"d/", "d/inside=I", "$O/secret=S", "alt -> $O"})
	pathguard.Unsynced(b.root)
	pairs := b.expandAll([]string{"$R/d", "$R/alt"})
	storm(t, attack(t, pairs...), func(int) error {
		return b.follow("d", func(n pathguard.Name) error {
			got, err := listName(n)
			if err == nil && got != "file:inside" {
				t.Errorf("listed %s", got)
			}
			return err
		})
	})
	defer attack(t, pairs...).stop()
	for end := time.Now().Add(30 * time.Second); time.Now().Before(end); {
		if all, _ := os.ReadDir(b.R() + "/d"); len(all) == 1 && all[0].Name() == "secret" {
			return
		}
	}
	t.Error("the control never listed what is outside")
}
