// SPDX-License-Identifier: Apache-2.0

package enforce

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/postern-gate/postern/internal/state/undo"
)

const (
	wasOld, wasNew, byPersonNow = "the old content", "the new one, which is longer", "what a person wrote"
	absentNow                   = ""
)

// remains are what a power cut may have left under the names of a change: at is
// its own, to that of a move.
type remains struct{ at, to, temp, image string }

// powerCut is one change and what a power cut may leave of it. What was not
// synced, which is the names and all lines but that which begins it, is there or
// not.
type powerCut struct {
	do     func(w *undoWorld) error
	before string // at the name
	after  string
	leaves []remains
}

func powerCuts(t *testing.T) map[string]powerCut {
	ctx := t.Context()
	return map[string]powerCut{
		"write": {func(w *undoWorld) error { _, err := w.gate.Write(ctx, "f", []byte(wasNew), Call{}); return err }, wasOld, wasNew, []remains{
			{at: wasOld},
			{at: wasOld, temp: wasNew},
			{at: wasNew, temp: wasOld},
			{at: wasNew, image: wasOld},
			{at: wasNew},
			{at: wasNew, temp: wasOld, image: wasOld},
			{at: wasOld, image: wasOld},
		}},
		"create": {func(w *undoWorld) error { _, err := w.gate.Write(ctx, "f", []byte(wasNew), Call{}); return err }, absentNow, wasNew, []remains{
			{}, {temp: wasNew}, {at: wasNew}, {at: wasNew, temp: wasNew},
		}},
		"delete": {func(w *undoWorld) error { _, err := w.gate.Delete(ctx, "f", false, Call{Confirm: true}); return err }, wasOld, absentNow, []remains{
			{at: wasOld}, {image: wasOld}, {}, {at: wasOld, image: wasOld},
		}},
		"move": {func(w *undoWorld) error { _, err := w.gate.Move(ctx, "f", "g", Call{Confirm: true}); return err }, wasOld, absentNow, []remains{
			{at: wasOld}, {to: wasOld}, {}, {at: wasOld, to: wasOld},
		}},
		"undo": {func(w *undoWorld) error {
			w.undone(UndoSelect{ID: w.write("f", wasNew)})
			return nil
		}, wasNew, wasOld, []remains{
			{at: wasNew, image: wasOld},
			{at: wasOld, image: wasNew},
			{at: wasOld},
			{at: wasNew},
			{at: wasNew, image: wasNew},
			{at: wasOld, image: wasOld},
		}},
	}
}

// TestUndoPowerCut: whatever of the journal's unsynced end, and of the names, a
// power cut took, the next start leaves what a person wrote, ends in the old or
// the new state and says which, or says that it can't be told; what was there
// before is never lost by it, and an undo brings it back or does nothing.
func TestUndoPowerCut(t *testing.T) {
	for name, cut := range powerCuts(t) {
		for i, left := range cut.leaves {
			for _, person := range []string{"nobody", "in place", "replaced"} {
				t.Run(fmt.Sprintf("%s/%d/%s", name, i, person), func(t *testing.T) {
					for at := 0; cut.once(t, left, person, at); at++ {
					}
				})
			}
		}
	}
}

// once cuts the journal at one place, and is false behind its end.
func (c *powerCut) once(t *testing.T, left remains, person string, at int) bool {
	spec := map[string]string{"note": byPersonNow, "f": wasOld}
	if c.before == absentNow {
		delete(spec, "f")
	}
	w := newUndoWorld(t, stateBeside(t), UndoOptions{}, spec)
	w.must(c.do(w))
	x, err := undo.Read(w.state.Path())
	w.must(err)
	last := x.Txns[len(x.Txns)-1]
	step := last.Steps[0]
	places := map[string]string{"at": w.path("f"), "to": w.path("g")}
	if step.Image != "" {
		places["image"] = filepath.Join(w.state.Path(), "undo/images", step.Image)
	}
	if step.Temp != "" {
		places["temp"] = w.path(step.Temp)
	}
	more := w.journalUntil(at, func() {
		w.lay(places, left)
		w.meddle(person)
	})
	if !more {
		return false
	}
	c.check(w, last.ID, places, left, person, at)
	return true
}

// journalUntil leaves of the journal what was synced, up to the line that begins
// the last change, and as many halves of lines behind it; a later process looks
// then. It is false for more than there are.
func (w *undoWorld) journalUntil(halves int, harm func()) bool {
	w.t.Helper()
	names, err := filepath.Glob(filepath.Join(w.state.Path(), "undo/*.jsonl"))
	w.must(err)
	text, err := os.ReadFile(names[0])
	w.must(err)
	lines := bytes.SplitAfter(bytes.TrimSuffix(text, []byte("\n")), []byte("\n"))
	synced := 1
	for i, l := range lines {
		if bytes.Contains(l, []byte(`"k":"begin"`)) {
			synced = i + 1
		}
	}
	if halves > 2*(len(lines)-synced) {
		return false
	}
	keep := append([]byte{}, bytes.Join(lines[:synced+halves/2], nil)...)
	if halves%2 == 1 {
		next := lines[synced+halves/2]
		keep = append(keep, next[:len(next)/2]...)
	}
	w.afterCrash(names[0], keep, harm)
	return true
}

// lay gives the files of a change those names alone that a power cut left them.
func (w *undoWorld) lay(places map[string]string, left remains) {
	w.t.Helper()
	stash := w.t.TempDir()
	for _, path := range places {
		content, err := os.ReadFile(path)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		w.must(err)
		w.must(os.Rename(path, filepath.Join(stash, string(content))))
	}
	for place, content := range map[string]string{"at": left.at, "to": left.to, "temp": left.temp, "image": left.image} {
		if content != absentNow {
			w.must(os.Link(filepath.Join(stash, content), places[place]))
		}
	}
	w.must(os.RemoveAll(stash))
}

// meddle is a person who writes before the next start.
func (w *undoWorld) meddle(how string) {
	switch how {
	case "in place":
		w.put("f", byPersonNow)
	case "replaced":
		w.put("t", byPersonNow)
		w.must(os.Rename(w.path("t"), w.path("f")))
	}
}

// content is what a name leads to, "" for nothing.
func (w *undoWorld) content(path string) string {
	w.t.Helper()
	b, err := os.ReadFile(path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		w.t.Fatal(err)
	}
	return string(b)
}

func (c *powerCut) check(w *undoWorld, id string, places map[string]string, left remains, person string, at int) {
	w.t.Helper()
	now := w.content(places["at"])
	state := "aborted"
	list, _, _, err := w.state.UndoList("", -1)
	w.must(err)
	for _, e := range list {
		if e.ID == id {
			state = e.State
		}
	}
	wrong := func(format string, args ...any) {
		w.t.Helper()
		w.t.Errorf("cut at %d, %s, now %q: %s", at, state, now, fmt.Sprintf(format, args...))
	}
	switch {
	case person != "nobody" && now != byPersonNow:
		wrong("what a person wrote is gone")
	case person == "nobody" && now != c.before && now != c.after:
		wrong("neither old nor new")
	case person == "nobody" && state == "aborted" && now != c.before, state == UndoReady && now != c.after:
		wrong("the journal says something else")
	}
	overwritten := person == "in place" && left.at == wasOld
	had := left.at == wasOld && person == "nobody" || left.to == wasOld || left.temp == wasOld || left.image == wasOld
	if had && !overwritten {
		found := false
		for _, path := range places {
			found = found || w.content(path) == wasOld
		}
		if !found {
			wrong("the old content is nowhere")
		}
	}
	p, err := w.state.PlanUndo(w.t.Context(), UndoSelect{ID: id}, Person{Decider: rules{}})
	w.must(err)
	_, err = w.state.Undo(w.t.Context(), p, Person{Decider: rules{}})
	w.must(err)
	want := now
	if state == UndoReady {
		want = c.before
	}
	if got := w.content(places["at"]); got != want || w.read("note") != byPersonNow {
		wrong("undone to %q, want %q", got, want)
	}
}
