// SPDX-License-Identifier: Apache-2.0

package selftest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/postern-gate/postern/enforce"
)

const (
	// A race is tried at least so often, and longer as long as there is time.
	readTries, writeTries = 300, 25
	raceTime              = 200 * time.Millisecond
	// controlTime bounds how long the control of a race may take to be lost.
	controlTime = 2 * time.Second
)

// swap is a name beneath the root that an attacker exchanges, all the time,
// between what may be read and a link to what may not.
type swap struct {
	what   string
	name   string // what is read or written
	moving string // the entry that is exchanged
	link   string // what the link leads to
	folder bool
}

func (l *lab) swaps(dir string) []swap {
	return []swap{
		{"a folder for a link to outside", dir + "/folder/secret", dir + "/folder", l.outside, true},
		{"a file for a link to outside", dir + "/file", dir + "/file", filepath.Join(l.outside, "secret"), false},
		{"a file for a link to a denied one", dir + "/inner", dir + "/inner", ".env", false},
	}
}

// prepare makes both things that are exchanged.
func (l *lab) prepare(s swap, content string) error {
	real := l.at(s.moving)
	if s.folder {
		real = filepath.Join(real, filepath.Base(s.name))
	}
	if err := l.put(real, content); err != nil {
		return err
	}
	return os.Symlink(s.link, l.at(s.moving)+".link")
}

// attacker exchanges until it is stopped, and leaves the plain thing in place.
func (l *lab) attacker(s swap) (stop func()) {
	at, real, link := l.at(s.moving), l.at(s.moving)+".real", l.at(s.moving)+".link"
	ctx, cancel := context.WithCancel(l.ctx)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for ctx.Err() == nil {
			_ = os.Rename(at, real)
			_ = os.Rename(link, at)
			_ = os.Rename(at, link)
			_ = os.Rename(real, at)
		}
	}()
	return func() {
		cancel()
		<-ended
	}
}

// raced tries until the least number of tries and the time are both over.
func (l *lab) raced(least int, try func() error) (n int, err error) {
	for start := time.Now(); err == nil && l.ctx.Err() == nil && (n < least || time.Since(start) < raceTime); n++ {
		err = try()
	}
	return n, err
}

// lost is the control of a race: without the guard it is lost soon.
func (l *lab) lost(try func() bool) error {
	for start := time.Now(); l.ctx.Err() == nil && time.Since(start) < controlTime; {
		if try() {
			return nil
		}
	}
	return errors.New("the race was not lost without the guard either")
}

func swappedRead(l *lab, t *trial) {
	const inside = "may be read"
	if !t.needs("a denied file", l.put(l.at("swapread/.env"), l.marker)) {
		return
	}
	total := 0
	for _, s := range l.swaps("swapread") {
		if !t.needs(s.what, l.prepare(s, inside)) {
			return
		}
		stop := l.attacker(s)
		t.against(s.what, func() error {
			return l.lost(func() bool {
				got, err := os.ReadFile(l.at(s.name))
				return err == nil && string(got) == l.marker
			})
		}, func() error {
			n, err := l.raced(readTries, func() error { return l.readsOnly(s.name, inside) })
			total += n
			return err
		})
		stop()
	}
	t.about = fmt.Sprintf("%d reads while folders and files are exchanged for links", total)
}

// readsOnly reads through the gate: refused, or what may be read.
func (l *lab) readsOnly(name, want string) error {
	f, err := l.main.gate.Open(l.ctx, name)
	if err != nil {
		return nil // a refusal is one of the two right answers
	}
	defer f.Close()
	got, err := io.ReadAll(f)
	if err == nil && string(got) != want {
		err = errors.New("something else came out than was judged")
	}
	return err
}

func swappedWrite(l *lab, t *trial) {
	const before = "untouched"
	if !t.needs("a denied file", l.put(l.at("swapwrite/.env"), before)) {
		return
	}
	victims := []string{filepath.Join(l.outside, "secret"), l.at("swapwrite/.env")}
	defer func() { _ = os.WriteFile(victims[0], []byte(l.marker), 0o600) }()
	total := 0
	for _, s := range l.swaps("swapwrite") {
		if !t.needs(s.what, l.prepare(s, "may be written")) {
			return
		}
		restore := func() error {
			return errors.Join(os.WriteFile(victims[0], []byte(before), 0o600), os.WriteFile(victims[1], []byte(before), 0o600))
		}
		stop := l.attacker(s)
		t.against(s.what, func() error {
			err := errors.Join(restore(), l.lost(func() bool {
				_ = os.WriteFile(l.at(s.name), []byte("control"), 0o600)
				return holds(victims[0], before) != nil || holds(victims[1], before) != nil
			}))
			return errors.Join(err, restore())
		}, func() error {
			n, err := l.raced(writeTries, func() error {
				_, _ = l.main.gate.Write(l.ctx, s.name, []byte(strings.Repeat("x", 64)), enforce.Call{}) // refused or not
				return errors.Join(holds(victims[0], before), holds(victims[1], before))
			})
			total += n
			return err
		})
		stop()
	}
	t.about = fmt.Sprintf("%d writes while folders and files are exchanged for links", total)
}
