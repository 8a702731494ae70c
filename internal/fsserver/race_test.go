// SPDX-License-Identifier: Apache-2.0

//go:build linux

package fsserver

import (
	"context"
	"os"
	"os/exec"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

const swapEnv = "POSTERN_TEST_SWAP"

// swapForever exchanges two names until it is killed, and counts on stdout.
func swapForever(pair string) error {
	a, b, _ := strings.Cut(pair, "\n")
	for n := 0; ; n++ {
		if err := unix.Renameat2(unix.AT_FDCWD, a, unix.AT_FDCWD, b, unix.RENAME_EXCHANGE); err != nil {
			return err
		}
		if n == 1000 {
			if _, err := os.Stdout.WriteString("1000\n"); err != nil {
				return err
			}
		}
	}
}

// raceTime is how long an attack runs; POSTERN_RACE sets it.
func raceTime(t *testing.T) time.Duration {
	t.Helper()
	if s := os.Getenv("POSTERN_RACE"); s != "" {
		d, err := time.ParseDuration(s)
		if err != nil {
			t.Fatal(err)
		}
		return d
	}
	return 2 * time.Second
}

// attack starts another process that exchanges two names; done reports whether
// it has exchanged them a thousand times.
func (w *world) attack(a, b string) (done func() bool) {
	w.Helper()
	ctx, stop := context.WithCancel(context.Background())
	cmd := exec.CommandContext(ctx, os.Args[0])
	cmd.Env = append(os.Environ(), swapEnv+"="+a+"\n"+b)
	out, err := cmd.StdoutPipe()
	w.must(err)
	w.must(cmd.Start())
	var thousand atomic.Bool
	go func() {
		buf := make([]byte, 8)
		if n, _ := out.Read(buf); n > 0 {
			thousand.Store(true)
		}
	}()
	w.Cleanup(func() {
		stop()
		_ = cmd.Wait()
	})
	return thousand.Load
}

func raceDirSwapRead(t *testing.T) {
	w := newWorld(t, map[string]string{"d/secret.txt": "INSIDE"})
	w.put(w.outside+"/secret.txt", secret)
	w.link(w.outside, "d.alt")
	thousand := w.attack(w.at("d"), w.at("d.alt"))
	var inside, refused, byName atomic.Int64
	end := time.Now().Add(raceTime(t))
	more := func() bool {
		return !t.Failed() && (time.Now().Before(end) || time.Now().Before(end.Add(patience)) &&
			(inside.Load() == 0 || refused.Load() == 0 || byName.Load() == 0 || !thousand()))
	}
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for more() {
				r := w.call("read_text_file", args{"path": w.at("d/secret.txt")}).lacks(secret, w.outside)
				if r.IsError {
					refused.Add(1)
				} else if r.body() == "INSIDE" {
					inside.Add(1)
				} else {
					t.Errorf("neither: %s", r.raw)
				}
				// control: a reader by name does see it
				if b, err := os.ReadFile(w.at("d/secret.txt")); err == nil && string(b) == secret {
					byName.Add(1)
				}
			}
		})
	}
	wg.Wait()
	t.Logf("%d inside, %d refused, %d outside by name", inside.Load(), refused.Load(), byName.Load())
	if inside.Load() == 0 || refused.Load() == 0 || byName.Load() == 0 || !thousand() {
		t.Error("the run proves nothing")
	}
}

// TestRaceMutations: while a directory and a link to outside change places,
// nothing is written, made, moved or removed outside.
func TestRaceMutations(t *testing.T) {
	w := newWorld(t, map[string]string{"d/f": "old", "d/keep": "K"}, func(w *world) { w.setup.Rules = map[string]string{"fs.delete": "allow"} })
	w.put(w.outside+"/f", secret)
	w.put(w.outside+"/keep", secret)
	w.link(w.outside, "d.alt")
	thousand := w.attack(w.at("d"), w.at("d.alt"))
	var done atomic.Int64
	end := time.Now().Add(raceTime(t))
	var wg sync.WaitGroup
	for tool, a := range map[string]args{
		"write_file":       {"path": w.at("d/f"), "content": "new"},
		"append_file":      {"path": w.at("d/g"), "content": "g"},
		"edit_file":        {"path": w.at("d/f"), "edits": []args{{"oldText": "new", "newText": "newer"}}},
		"create_directory": {"path": w.at("d/x/y")},
		"copy_file":        {"source": w.at("d/keep"), "destination": w.at("d/copy")},
		"move_file":        {"source": w.at("d/copy"), "destination": w.at("d/moved")},
		"delete_file":      {"path": w.at("d/moved"), "confirm": true},
		"search_files":     {"path": w.root, "pattern": "**"},
		"directory_tree":   {"path": w.root},
	} {
		wg.Go(func() {
			for time.Now().Before(end) || !thousand() && time.Now().Before(end.Add(patience)) {
				if r := w.call(tool, a).lacks(secret, w.outside); !r.IsError {
					done.Add(1)
				}
			}
		})
	}
	wg.Wait()
	w.unchanged(w.outside, "f", "keep")
	w.is(w.outside+"/f", secret)
	w.is(w.outside+"/keep", secret)
	if done.Load() == 0 || !thousand() {
		t.Error("the run proves nothing")
	}
}
