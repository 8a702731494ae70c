// SPDX-License-Identifier: Apache-2.0

//go:build unix

package grant

import (
	"bytes"
	"errors"
	"os"
	"syscall"
	"testing"

	"github.com/postern-gate/postern/core/fault"
)

// given is a state directory with one yes for a session, and its file.
func given(t *testing.T) (w *world, id, path string) {
	w = newWorld(t)
	q := w.ask(write1())
	w.decide(q, Session)
	return w, q.ID, w.path("grants", q.ID)
}

// TestNoGrant: a file that postern didn't make whole, under its name, for
// nobody else to write, is no yes. Each was one before it was changed.
func TestNoGrant(t *testing.T) {
	edit := func(change func([]byte) []byte) func(*testing.T, *world, string) {
		return func(t *testing.T, w *world, path string) {
			b, err := os.ReadFile(path)
			w.must(err)
			changed := change(bytes.Clone(b))
			if bytes.Equal(b, changed) {
				t.Fatal("nothing was changed")
			}
			w.must(os.WriteFile(path, changed, 0o600))
		}
	}
	replace := func(old, now string) func([]byte) []byte {
		return func(b []byte) []byte { return bytes.Replace(b, []byte(old), []byte(now), 1) }
	}
	cases := map[string]func(t *testing.T, w *world, path string){
		"empty":         edit(func([]byte) []byte { return nil }),
		"half":          edit(func(b []byte) []byte { return b[:len(b)/2] }),
		"no end":        edit(func(b []byte) []byte { return b[:len(b)-1] }),
		"no mac":        edit(func(b []byte) []byte { return b[:bytes.LastIndexByte(b[:len(b)-1], '\n')+1] }),
		"more":          edit(func(b []byte) []byte { return append(b, '\n') }),
		"newer version": edit(replace("approvals 3", "approvals 4")),
		"edited kind":   edit(replace(`"session"`, `"pattern"`)),
		"edited agent":  edit(replace(`"agent":"a"`, `"agent":"b"`)),
		"edited life":   edit(replace(`"life":28800`, `"life":98800`)),
		"edited mac":    edit(func(b []byte) []byte { b[len(b)-2] ^= 1; return b }),
		"only a no":     func(_ *testing.T, w *world, path string) { w.must(os.Remove(path)) },
		"zeroes":        edit(func(b []byte) []byte { return make([]byte, len(b)) }),
		"too long":      edit(func(b []byte) []byte { return append(b, make([]byte, MaxRecord)...) }),
		"open to read":  func(_ *testing.T, w *world, path string) { w.must(os.Chmod(path, 0o640)) },
		"open to write": func(_ *testing.T, w *world, path string) { w.must(os.Chmod(path, 0o602)) },
		"a link": func(_ *testing.T, w *world, path string) {
			w.must(os.Rename(path, w.path("elsewhere")))
			w.must(os.Symlink(w.path("elsewhere"), path))
		},
		"a pipe": func(_ *testing.T, w *world, path string) {
			w.must(os.Remove(path))
			w.must(syscall.Mkfifo(path, 0o600))
		},
		"a folder": func(_ *testing.T, w *world, path string) {
			w.must(os.Remove(path))
			w.must(os.Mkdir(path, 0o700))
		},
		"another key": func(_ *testing.T, w *world, _ string) {
			w.must(os.WriteFile(w.path("keys", "grant"), make([]byte, 32), 0o600))
		},
		"no key":    func(_ *testing.T, w *world, _ string) { w.must(os.Remove(w.path("keys", "grant"))) },
		"short key": func(_ *testing.T, w *world, _ string) { w.must(os.Truncate(w.path("keys", "grant"), 0)) },
		"open key":  func(_ *testing.T, w *world, _ string) { w.must(os.Chmod(w.path("keys", "grant"), 0o644)) },
		"made with no key": func(_ *testing.T, w *world, path string) {
			var g Grant
			s := w.open(nil)
			err := s.read("grants", path[len(path)-8:], "answer", &g)
			w.must(err)
			data, err := seal(nil, "answer", g.ID, &g)
			w.must(err)
			w.must(os.WriteFile(path, data, 0o600))
		},
		"a question": func(_ *testing.T, w *world, path string) {
			var g Grant
			s := w.open(nil)
			err := s.read("grants", path[len(path)-8:], "answer", &g)
			w.must(err)
			data, err := seal(s.key, "question", g.ID, &g)
			w.must(err)
			w.must(os.WriteFile(path, data, 0o600))
		},
	}
	for name, change := range cases {
		t.Run(name, func(t *testing.T) {
			w, id, path := given(t)
			b := write1()
			w.must(w.spend(id, b)) // the control
			change(t, w, path)
			s := w.open(nil) // which knows nothing
			for _, store := range []*Store{s, w.store} {
				if _, err := store.Spend(t.Context(), id, &b, "c"); err == nil && (store == s || name != "another key" && name != "no key" && name != "short key" && name != "open key") {
					t.Error("it was spent")
				}
			}
			if f := s.Find(&b); f.Grant != nil {
				t.Errorf("found %+v", f.Grant)
			}
			if len(s.Grants()) != 0 {
				t.Error("it is shown as in force")
			}
		})
	}
}

// TestUnderAnotherName: a record of one question is none of another, and one of
// another state directory is none here.
func TestUnderAnotherName(t *testing.T) {
	w, id, path := given(t)
	b, err := os.ReadFile(path)
	w.must(err)
	const other = "00000000"
	w.must(os.WriteFile(w.path("grants", other), b, 0o600))
	wantCode(t, w.spend(other, write1()), fault.GrantMismatch)
	w.must(w.spend(id, write1()))
	elsewhere := newWorld(t)
	elsewhere.ask(write1())
	elsewhere.must(os.MkdirAll(elsewhere.path("grants"), 0o700))
	elsewhere.must(os.WriteFile(elsewhere.path("grants", id), b, 0o600))
	wantCode(t, elsewhere.spend(id, write1()), fault.GrantMismatch)
}

// TestReplayed: a copy of a spent yes that is put back is not spent again.
func TestReplayed(t *testing.T) {
	w := newWorld(t)
	q := w.ask(write1())
	w.decide(q, Once)
	b, err := os.ReadFile(w.path("grants", q.ID))
	w.must(err)
	w.must(w.spend(q.ID, write1()))
	w.must(os.WriteFile(w.path("grants", q.ID), b, 0o600))
	wantCode(t, w.spend(q.ID, write1()), fault.GrantRevoked)
	call := write1()
	if f := w.store.Find(&call); f != (Found{}) {
		t.Errorf("the call is not asked about: %+v", f)
	}
	w.must(w.store.Sweep(t.Context()))
	wantCode(t, w.spend(q.ID, write1()), fault.GrantRevoked)
}

// TestReplayedUnderLimit: who can write in the state directory and takes away what
// tells that a yes was spent spends it again until its own time, without the key,
// and one who takes away what tells of a pause ends that. It is stated, not
// prevented: no file tells that another was never there.
func TestReplayedUnderLimit(t *testing.T) {
	w := newWorld(t)
	q := w.ask(write1())
	w.decide(q, Once)
	b, err := os.ReadFile(w.path("grants", q.ID))
	w.must(err)
	w.must(w.spend(q.ID, write1()))
	w.must(os.RemoveAll(w.path("spent")))
	w.must(os.WriteFile(w.path("grants", q.ID), b, 0o600))
	w.must(w.spend(q.ID, write1()))
	w.must(w.store.Pause(t.Context(), "a", "x"))
	w.must(os.RemoveAll(w.path("agents")))
	if call := write1(); w.store.Find(&call).Paused {
		t.Error("the limit is gone: say so in THREATMODEL.md and docs/approvals.md")
	}
}

// TestForgedQuestion: a question that was edited can't be answered, and the
// call that asks again gets a new one.
func TestForgedQuestion(t *testing.T) {
	w := newWorld(t)
	q := w.ask(write1())
	path := w.path("pending", files(t, w.path("pending"))[0])
	b, err := os.ReadFile(path)
	w.must(err)
	w.must(os.WriteFile(path, bytes.Replace(b, []byte("a.go"), []byte("b.go"), 1), 0o600))
	if len(w.store.Pending()) != 0 {
		t.Error("it is shown")
	}
	_, err = w.store.Decide(t.Context(), q.ID, Answer{Kind: Once})
	wantCode(t, err, fault.RequestInvalid)
	next := w.ask(write1())
	w.decide(next, Once)
	w.must(w.spend(next.ID, write1()))
}

// TestForgedAgent: what is remembered of an agent pauses it when it can't be
// read.
func TestForgedAgent(t *testing.T) {
	w := newWorld(t)
	b := write1()
	w.must(w.store.Pause(t.Context(), "a", "x"))
	w.must(w.store.Resume(t.Context(), "a", "x"))
	if f := w.store.Find(&b); f.Paused {
		t.Fatal("paused") // the control
	}
	path := w.path("agents", files(t, w.path("agents"))[0])
	w.must(os.Truncate(path, 3))
	if f := w.store.Find(&b); !f.Paused {
		t.Error("not paused")
	}
	w.must(w.store.Resume(t.Context(), "a", "x"))
	if f := w.store.Find(&b); f.Paused {
		t.Error("paused after a resume")
	}
}

// TestFullFolder: where nothing can be written nothing is asked or approved,
// and what was there stays.
func TestFullFolder(t *testing.T) {
	w := newWorld(t)
	q := w.ask(write1())
	w.must(os.WriteFile(w.path("grants"), nil, 0o600)) // no folder can be made
	_, err := w.store.Decide(t.Context(), q.ID, Answer{Kind: Once})
	if err == nil || w.events(Approved) != 0 {
		t.Errorf("it was approved: %v", err)
	}
	w.must(os.Remove(w.path("grants")))
	w.decide(q, Once)
	w.must(os.Remove(w.path("spent", q.ID+asked)))
	w.must(os.Remove(w.path("spent")))
	w.must(os.WriteFile(w.path("spent"), nil, 0o600))
	if err := w.spend(q.ID, write1()); err == nil {
		t.Error("it was spent and could not be put away")
	}
	w.must(os.Remove(w.path("spent")))
	w.must(w.spend(q.ID, write1()))
}

// FuzzUnseal: no bytes but those that seal makes are a record.
func FuzzUnseal(f *testing.F) {
	key := bytes.Repeat([]byte{7}, 32)
	whole, err := seal(key, "answer", "0123abcd", &Grant{ID: "0123abcd", Kind: Once, For: write1()})
	if err != nil {
		f.Fatal(err)
	}
	f.Add(whole)
	f.Add(whole[:len(whole)-1])
	f.Add([]byte(head))
	f.Add([]byte(head + "{}\n"))
	f.Add([]byte(nil))
	f.Fuzz(func(t *testing.T, data []byte) {
		var g Grant
		err := unseal(key, "answer", "0123abcd", data, &g)
		if err == nil && !bytes.Equal(data, whole) {
			t.Errorf("%q is a record", data)
		}
		if err != nil && (!errors.Is(err, errRecord) || g.ID != "") {
			t.Errorf("%v, and %+v was read", err, g)
		}
		for _, other := range []func() error{
			func() error { return unseal(key, "question", "0123abcd", data, &g) },
			func() error { return unseal(key, "answer", "0123abce", data, &g) },
			func() error { return unseal(bytes.Repeat([]byte{8}, 32), "answer", "0123abcd", data, &g) },
			func() error { return unseal(nil, "answer", "0123abcd", data, &g) },
		} {
			if other() == nil {
				t.Errorf("%q is another record too", data)
			}
		}
	})
}
