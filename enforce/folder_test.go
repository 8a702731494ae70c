// SPDX-License-Identifier: Apache-2.0

package enforce

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/postern-gate/postern/core"
	"github.com/postern-gate/postern/core/fault"
	"github.com/postern-gate/postern/core/pathguard"
	"github.com/postern-gate/postern/internal/state/grant"
)

// in is a gate of the same door in another folder.
func (d *desk) in(t *testing.T, dir string) *Gate {
	t.Helper()
	root, err := pathguard.OpenRoot(dir, pathguard.Options{Name: "project"})
	d.must(err)
	t.Cleanup(func() { _ = root.Close() })
	ws, err := pathguard.NewWorkspace(root)
	d.must(err)
	return d.call(func(o *Options) { o.Workspace = ws })
}

// TestYesIsForItsFolder: a yes of any kind serves in the folder in which it was
// asked, and in no other that goes by the same name: elsewhere, or put in its
// place.
func TestYesIsForItsFolder(t *testing.T) {
	for _, k := range []grant.Kind{grant.Once, grant.Session, grant.Pattern, grant.Until, grant.Always} {
		d := newDesk(t, []string{"fs.write project://"}, map[string]string{})
		above := t.TempDir()
		here, there := filepath.Join(above, "here", "p"), filepath.Join(above, "there", "p")
		for _, dir := range []string{here, there} {
			d.must(os.MkdirAll(dir, 0o755))
			d.must(os.WriteFile(filepath.Join(dir, "a"), []byte("A"), 0o644))
		}
		gate := d.in(t, here)
		write := func(g *Gate) error {
			_, err := g.Write(t.Context(), "a", []byte("new"), Call{})
			return err
		}
		if err := write(gate); fault.CodeOf(err) != fault.PolicyAsk {
			t.Fatal(err)
		}
		qs := d.person.Pending()
		if len(qs) != 1 || len(qs[0].For.Roots) != 1 || filepath.Base(filepath.Dir(qs[0].For.Roots[0].Path)) != "here" {
			t.Fatalf("%+v", qs)
		}
		_, err := d.person.Decide(t.Context(), qs[0].ID, grant.Answer{Kind: k, Approver: "terminal", Life: time.Hour, Pattern: "project://**"})
		d.must(err)
		if err := write(d.in(t, there)); fault.CodeOf(err) != fault.PolicyAsk {
			t.Errorf("%s, elsewhere: %v", k, err)
		}
		d.must(os.Rename(here, here+"-away"))
		d.must(os.Rename(there, here))
		if err := write(d.in(t, here)); fault.CodeOf(err) != fault.PolicyAsk {
			t.Errorf("%s, in its place: %v", k, err)
		}
		if b, _ := os.ReadFile(filepath.Join(here, "a")); string(b) != "A" {
			t.Errorf("%s: it was written", k)
		}
		d.must(os.Rename(here, there))
		d.must(os.Rename(here+"-away", here))
		if err := write(d.in(t, here)); err != nil {
			t.Errorf("%s, where it was asked: %v", k, err)
		}
	}
}

// TestToolIsForItsFolder: so is a yes for a tool that names no path.
func TestToolIsForItsFolder(t *testing.T) {
	d := newDesk(t, []string{"tool.call srv://run"}, nil)
	tool := Tool{Server: "srv", Name: "run", Class: core.Mutating}
	run := func(g *Gate) error {
		_, err := g.Guard(tool, func(context.Context, ToolCall) (any, error) { return "", nil })(t.Context(), ToolCall{Args: map[string]any{"x": "1"}})
		return err
	}
	if err := run(d.call()); fault.CodeOf(err) != fault.PolicyAsk {
		t.Fatal(err)
	}
	d.answerAll(t, grant.Until)
	if err := run(d.in(t, t.TempDir())); fault.CodeOf(err) != fault.PolicyAsk {
		t.Error(err)
	}
	d.must(run(d.call()))
}

func (d *desk) answerAll(t *testing.T, k grant.Kind) {
	t.Helper()
	for _, q := range d.person.Pending() {
		_, err := d.person.Decide(t.Context(), q.ID, grant.Answer{Kind: k, Approver: "terminal", Life: time.Hour})
		d.must(err)
	}
}

// TestArgumentsAreText: arguments that no text can spell are refused where a
// person would be asked; what differs in them would be one question.
func TestArgumentsAreText(t *testing.T) {
	d := newDesk(t, []string{"tool.call srv://run"}, nil)
	run := d.call().Guard(Tool{Server: "srv", Name: "run", Class: core.Mutating}, func(context.Context, ToolCall) (any, error) { return "", nil })
	for _, v := range []any{"\xff", []any{map[string]any{"k": "\xfe"}}, map[string]any{"\xfd": 1}, []string{"a\xc2"}, struct{ A *string }{new("\xff")}} {
		_, err := run(t.Context(), ToolCall{Args: map[string]any{"x": v}})
		if fault.CodeOf(err) != fault.RequestInvalid {
			t.Errorf("%q: %v", v, err)
		}
	}
	for _, v := range []any{"\ufffd", []any{map[string]any{"k": "é"}, nil, 1.5}, []byte{0xff}} {
		_, err := run(t.Context(), ToolCall{Args: map[string]any{"x": v}})
		if fault.CodeOf(err) != fault.PolicyAsk {
			t.Errorf("%q: %v", v, err)
		}
	}
}

// TestCardHidesNothing: what a reader wouldn't see of a change is kept spelled,
// also the bytes that no record could hold.
func TestCardHidesNothing(t *testing.T) {
	d := newDesk(t, []string{"fs.write project://"}, map[string]string{"a": "A"})
	d.asking.Diff = func(_ string, _, after []byte) (string, bool) { return "+" + string(after), true }
	for content, want := range map[string]grant.Card{
		"x\u200b\U000e0061\xff\n": {Change: "+x\\u{200b}\\u{e0061}\\xff\n", Hidden: 3}, "x\n": {Change: "+x\n"},
	} {
		_, err := d.call().Write(t.Context(), "a", []byte(content), Call{})
		qs := d.person.Pending()
		if len(qs) != 1 {
			t.Fatal(err, qs)
		}
		if got := qs[0].Card; !strings.HasSuffix(got.Change, want.Change) || got.Hidden != want.Hidden {
			t.Errorf("%q: %+v", content, got)
		}
		_, err = d.person.Decide(t.Context(), qs[0].ID, grant.Answer{Kind: grant.Once, Approver: "terminal"})
		d.must(err)
	}
}

// TestAnotherRootWithin: a folder that another root lies in is not moved or copied, and
// the refusal says so.
func TestAnotherRootWithin(t *testing.T) {
	w := newWorld(t, rules{}, map[string]string{"x/bb/f": "F", "x/g": "G"})
	outer, err := pathguard.OpenRoot(w.dir, pathguard.Options{Name: "project"})
	w.must(err)
	inner, err := pathguard.OpenRoot(w.path("x/bb"), pathguard.Options{Name: "inner"})
	w.must(err)
	ws, err := pathguard.NewWorkspace(outer, inner)
	w.must(err)
	t.Cleanup(func() { _, _ = outer.Close(), inner.Close() })
	g := w.open(rules{}, func(o *Options) { o.Workspace = ws })
	_, moved := g.Move(t.Context(), "project://x", "project://y", Call{Confirm: true})
	_, copied := g.Copy(t.Context(), "project://x", "project://y", Call{})
	for what, err := range map[string]error{"move": moved, "copy": copied} {
		if f := fault.As(err); err == nil || f.Code != fault.PolicyDenied || f.Because() != "another root lies in it, inner://" {
			t.Errorf("%s: %v", what, err)
		}
	}
}
