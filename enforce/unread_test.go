// SPDX-License-Identifier: Apache-2.0

package enforce

import (
	"fmt"
	"strings"
	"testing"

	"github.com/postern-gate/postern/core"
	"github.com/postern-gate/postern/core/fault"
	"github.com/postern-gate/postern/internal/state/grant"
)

// edits is an edit_file where reading asks, and what the caller's function has seen.
func (d *desk) edits(digest, name string, seen *[]string) error {
	_, err := d.call(says(func(a *Asking) {
		if a.Tool = "edit_file"; digest != "" {
			a.Digest = func() string { return digest }
		}
	})).Edit(d.t.Context(), name, func(b []byte) ([]byte, error) {
		*seen = append(*seen, string(b))
		return append(b, '!'), nil
	}, Call{})
	return err
}

// TestUnreadEdit: where reading asks, for a name or for a link that leads to it,
// nothing of the content reaches the caller's function but for the card of a new
// question; a yes is for the edit that asked, and where nothing says which that
// is nobody is asked.
func TestUnreadEdit(t *testing.T) {
	for _, tc := range []struct{ asks, name string }{{"f", "f"}, {"ln", "ln"}, {"", "ln"}} {
		d := newDesk(t, []string{"fs.read project://" + tc.asks}, map[string]string{"f": "secret", "ln": "-> f"})
		var seen []string
		if err := d.edits("", tc.name, &seen); fault.CodeOf(err) != fault.PolicyAsk || len(seen) > 0 || len(d.person.Pending()) > 0 {
			t.Errorf("%+v without a digest: %v, seen %q", tc, err, seen)
		}
		id := asked(t, d.edits("one", tc.name, &seen), fault.PolicyAsk)
		for range 3 {
			if again := asked(t, d.edits("one", tc.name, &seen), fault.PolicyAsk); again != id {
				t.Errorf("asked anew: %s, %s", id, again)
			}
		}
		if q := d.person.Pending(); len(seen) != 1 || len(q) != 1 || !strings.Contains(q[0].Card.Change, "+secret!") {
			t.Errorf("%+v: seen %d times, %d questions", tc, len(seen), len(q))
		}
		d.yes(id, grant.Answer{})
		asked(t, d.edits("two", tc.name, &seen), fault.PolicyAsk)
		d.must(d.edits("one", tc.name, &seen))
		if d.read("f") != "secret!" {
			t.Errorf("it holds %q", d.read("f"))
		}
	}
}

// TestUnreadEditsAreFew: of edits that nobody answers not one more than there may
// be questions is tried on the content.
func TestUnreadEditsAreFew(t *testing.T) {
	d := newDesk(t, []string{"fs.read project://"}, map[string]string{"f": "secret"})
	var seen []string
	for i := range 2 * grant.MaxPending {
		if err := d.edits(fmt.Sprint(i), "f", &seen); fault.CodeOf(err) != fault.PolicyAsk {
			t.Fatal(err)
		}
	}
	if len(seen) != grant.MaxPending {
		t.Errorf("the content was seen %d times", len(seen))
	}
}

// TestStricterBesideAnEdit: a yes to the write is none to the read that a new
// policy asks about while the call waits.
func TestStricterBesideAnEdit(t *testing.T) {
	r := rules{deny: map[string]core.Decision{"fs.write project://f": core.Ask}}
	a := &approver{during: func() { r.deny["fs.read project://f"] = core.Ask }}
	w := newWorld(t, r, map[string]string{"f": "secret"}, func(o *Options) { o.Approver = a })
	seen := 0
	_, err := w.gate.Edit(t.Context(), "f", func(b []byte) ([]byte, error) {
		seen++
		return append(b, '!'), nil
	}, Call{})
	if fault.CodeOf(err) != fault.GrantMismatch || seen != 1 || w.read("f") != "secret" {
		t.Errorf("%v, seen %d times", err, seen)
	}
}

// TestUnreadNpmrc: moving a .npmrc asks where reading it does, and what it holds is
// looked at after the yes.
func TestUnreadNpmrc(t *testing.T) {
	for content, want := range map[string]fault.Code{"_auth=1": fault.PolicyDenied, "_aath=1": fault.OK} {
		a := &approver{answer: &fault.Error{Code: fault.PolicyAsk}}
		w := newWorld(t, rules{deny: map[string]core.Decision{"fs.read project://": core.Ask}}, map[string]string{".npmrc": content}, func(o *Options) { o.Approver = a })
		for name, do := range map[string]func() error{
			"read": func() error { _, err := w.gate.Open(t.Context(), ".npmrc"); return err },
			"copy": func() error { _, err := w.gate.Copy(t.Context(), ".npmrc", "copy", Call{}); return err },
			"move": func() error { _, err := w.gate.Move(t.Context(), ".npmrc", "moved", Call{}); return err },
		} {
			a.answer = &fault.Error{Code: fault.PolicyAsk}
			if err := do(); fault.CodeOf(err) != fault.PolicyAsk {
				t.Errorf("%s of %q without a yes: %v", name, content, err)
			}
			if a.answer = nil; name == "move" {
				continue // it would be gone for the others
			}
			if err := do(); fault.CodeOf(err) != want {
				t.Errorf("%s of %q after the yes: %v", name, content, err)
			}
		}
		if _, err := w.gate.Move(t.Context(), ".npmrc", "moved", Call{}); fault.CodeOf(err) != want {
			t.Errorf("move of %q after the yes: %v", content, err)
		}
	}
}
