// SPDX-License-Identifier: Apache-2.0

package grant

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/postern-gate/postern/core/fault"
)

// TestOtherFolder: no kind of yes is for a name of the same spelling in another
// folder, and each is for the one that it was given for.
func TestOtherFolder(t *testing.T) {
	for _, kind := range []Kind{Once, Session, Pattern, Until, Always} {
		b := write1()
		b.Roots = []Root{{"project", "/a/p", "1:2"}}
		w := newWorld(t)
		q := w.ask(b)
		w.decide(q, kind)
		for name, roots := range map[string][]Root{
			"path": {{"project", "/b/p", "1:2"}}, "directory": {{"project", "/a/p", "1:3"}},
			"one more": {{"project", "/a/p", "1:2"}, {"user", "/u", "1:9"}}, "none": nil,
		} {
			c := b
			c.Roots = roots
			if f := w.store.Find(&c); f.Grant != nil {
				t.Errorf("%s serves with another %s", kind, name)
			}
			wantCode(t, w.spend(q.ID, c), fault.GrantMismatch)
		}
		w.must(w.spend(q.ID, b))
	}
}

// TestPatternMounts: a pattern is for no mount point that may be entered since.
func TestPatternMounts(t *testing.T) {
	for _, kind := range []Kind{Pattern, Always} {
		b := write1()
		b.Roots, b.Mounts = []Root{{"project", "/a/p", "1:2"}}, map[string][]string{"project": {"src/usb"}}
		w := newWorld(t)
		q := w.ask(b)
		w.decide(q, kind)
		for name, mounts := range map[string]map[string][]string{"none": nil, "one more": {"project": {"src/nfs", "src/usb"}}} {
			c := b
			c.Mounts = mounts
			if f := w.store.Find(&c); f.Grant != nil {
				t.Errorf("%s serves with other mounts: %s", kind, name)
			}
			wantCode(t, w.spend(q.ID, c), fault.GrantMismatch)
		}
		w.must(w.spend(q.ID, b))
	}
}

// TestFolderAsksAnew: the same call in another folder is another question.
func TestFolderAsksAnew(t *testing.T) {
	w := newWorld(t)
	b, c := write1(), write1()
	b.Roots, c.Roots = []Root{{"project", "/a/p", "1:2"}}, []Root{{"project", "/b/p", "1:3"}}
	first := w.ask(b).ID
	if first == w.ask(c).ID {
		t.Error("one question for two folders")
	}
	if again := w.ask(b).ID; again != first {
		t.Error("two questions for one folder")
	}
}

// TestRoomOfAFolder: the questions of one folder leave those of the same agent in
// another their room; those of a call about both folders take of each.
func TestRoomOfAFolder(t *testing.T) {
	w := newWorld(t)
	one, two := Root{"project", "/a/p", "1:2"}, Root{"project", "/b/p", "1:3"}
	b := write1()
	b.Roots = []Root{one}
	for i := range MaxPending {
		b.Arguments = fmt.Sprint(i)
		w.ask(b)
	}
	b.Arguments = "one more"
	for _, roots := range [][]Root{{one}, {two, one}, {{"again", "/a/p", "1:4"}}} {
		b.Roots = roots
		_, err := w.store.Ask(t.Context(), b, Card{}, "c", testLife)
		wantCode(t, err, fault.PolicyAsk)
	}
	for i := range MaxPending {
		b.Roots, b.Arguments = []Root{two}, fmt.Sprint(i)
		w.ask(b)
	}
	b.Arguments = "one more"
	_, err := w.store.Ask(t.Context(), b, Card{}, "c", testLife)
	wantCode(t, err, fault.PolicyAsk)
}

// TestOlderVersion: what an older version sealed, which knew no folder, or not when
// it was made, is no yes, whatever its first line is made to say; a pause stays one.
func TestOlderVersion(t *testing.T) {
	const old = "postern approvals 1\n"
	w := newWorld(t)
	b := write1()
	q := w.ask(b)
	g := w.decide(q, Session)
	body, err := json.Marshal(g)
	w.must(err)
	sealed := func(kind string) string {
		h := hmac.New(sha256.New, w.store.key)
		h.Write([]byte(kind + "\x00" + g.ID + "\x00" + string(body)))
		return string(body) + "\n" + hex.EncodeToString(h.Sum(nil)) + "\n"
	}
	const second = "postern approvals 2\n"
	rest, rest2 := sealed("answer"), sealed(second+"answer")
	now, err := os.ReadFile(w.path(grantsDir, g.ID))
	w.must(err)
	if w.store.Find(&b).Grant == nil {
		t.Error("the yes of this version is none")
	}
	for _, data := range []string{old + rest, head + rest, second + rest2, head + rest2, strings.Replace(string(now), head, old, 1)} {
		w.must(os.WriteFile(w.path(grantsDir, g.ID), []byte(data), 0o600))
		if w.open(nil).Find(&b).Grant != nil {
			t.Errorf("it is a yes: %.40q", data)
		}
	}
	w.must(w.store.Pause(t.Context(), "a", "test"))
	data, err := os.ReadFile(w.path(agentsDir, agentFile("a")))
	w.must(err)
	if !strings.HasPrefix(string(data), old) || !w.open(nil).Find(&b).Paused {
		t.Error("a pause has another form than before")
	}
}

// TestPauseEmptiesTheDesk: what a paused agent asked is over, and a yes that is
// given all the same is refused; another agent's questions stay.
func TestPauseEmptiesTheDesk(t *testing.T) {
	w := newWorld(t)
	q := w.ask(write1())
	b := write1()
	b.Agent = "other"
	other := w.ask(b)
	waited := make(chan *Grant)
	go func() { waited <- w.open(nil).Wait(t.Context(), q, nil) }()
	w.must(w.store.Pause(t.Context(), "a", "test"))
	if g := <-waited; g != nil {
		t.Errorf("the call got %+v", g)
	}
	if all := w.store.Pending(); len(all) != 1 || all[0].ID != other.ID {
		t.Errorf("on the desk: %+v", all)
	}
	_, err := w.store.Decide(t.Context(), q.ID, Answer{Kind: Once, Approver: "test"})
	wantCode(t, err, fault.GrantExpired)
	if w.events(Expired) != 1 {
		t.Error("it is not recorded")
	}
	_, err = w.store.Ask(t.Context(), write1(), Card{}, "c", testLife)
	wantCode(t, err, fault.PolicyAsk)
	w.decide(other, Once)
	w.must(w.store.Resume(t.Context(), "a", "test"))
	w.decide(w.ask(write1()), Once)
}

// TestPausedUnreadable: where the record of an agent can't be read it is paused,
// its questions aren't shown, and a yes to one is refused.
func TestPausedUnreadable(t *testing.T) {
	w := newWorld(t)
	q := w.ask(write1())
	w.must(os.MkdirAll(w.path(agentsDir), 0o700))
	w.must(os.WriteFile(w.path(agentsDir, agentFile("a")), []byte("x"), 0o600))
	if all := w.store.Pending(); len(all) != 0 {
		t.Errorf("on the desk: %+v", all)
	}
	_, err := w.store.Decide(t.Context(), q.ID, Answer{Kind: Once, Approver: "test"})
	wantCode(t, err, fault.PreconditionFailed)
	w.must(os.Remove(w.path(agentsDir, agentFile("a"))))
	w.decide(q, Once)
}

// TestTooMuchToRead: a question that nobody would read is refused.
func TestTooMuchToRead(t *testing.T) {
	w := newWorld(t)
	ask := func(n int) error {
		card := Card{Details: []Field{{"arguments", strings.Repeat("\"", n)}}}
		_, err := w.store.Ask(t.Context(), write1(), card, "c", time.Minute)
		return err
	}
	wantCode(t, ask(MaxQuestion), fault.LimitExceeded)
	w.must(ask(MaxQuestion - 1000))
	for name, ok := range map[string]bool{"x": true, "\u200d": false} { // as it is drawn
		b := write1()
		b.Objects = []Object{{Name: "project://" + strings.Repeat(name, MaxQuestion/4), State: "e"}}
		if _, err := w.store.Ask(t.Context(), b, Card{}, "c", time.Minute); (err == nil) != ok {
			t.Errorf("%q: %v", name, err)
		}
	}
}
