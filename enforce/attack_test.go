// SPDX-License-Identifier: Apache-2.0

package enforce

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/postern-gate/postern/core"
	"github.com/postern-gate/postern/core/fault"
	"github.com/postern-gate/postern/core/pathguard"
)

// walk lists everything that a walk of the root shows.
func walk(t *testing.T, g *Gate) (seen []string, w *Walk) {
	t.Helper()
	err := g.Walk(t.Context(), "project://", 1000, func(now *Walk, top pathguard.Name) error {
		w = now
		var down func(dir pathguard.Name) error
		down = func(dir pathguard.Name) error {
			items, _, err := now.Entries(dir, false)
			if err != nil {
				return err
			}
			for _, item := range items {
				seen = append(seen, item.Name)
				if n, err := dir.Join(item.Name); err == nil && item.Kind == pathguard.KindDir {
					if err := down(n); err != nil {
						return err
					}
				}
			}
			return nil
		}
		return down(top)
	})
	if err != nil {
		t.Fatal(err)
	}
	return seen, w
}

// TestAskHidesInWalks: what the policy asks about before it may be listed is
// not shown by a walk that nobody was asked about.
func TestAskHidesInWalks(t *testing.T) {
	spec := map[string]string{"private/p1": "P", "open/o1": "O"}
	w := newWorld(t, rules{deny: map[string]core.Decision{"fs.list project://private": core.Ask}}, spec)
	seen, count := walk(t, w.gate)
	if slices.Contains(seen, "p1") || slices.Contains(seen, "private") || !slices.Contains(seen, "o1") || count.Hidden != 1 {
		t.Errorf("seen %v, hidden %d", seen, count.Hidden)
	}
	if seen, _ := walk(t, newWorld(t, rules{}, spec).gate); !slices.Contains(seen, "p1") {
		t.Errorf("without the rule: %v", seen)
	}
}

// TestBadNameIsJudged: a name that isn't UTF-8 is hidden like one that would
// be drawn as it is.
func TestBadNameIsJudged(t *testing.T) {
	w := newWorld(t, rules{deny: map[string]core.Decision{"fs.list project://.env.": core.Deny}}, nil)
	w.must(os.WriteFile(w.path(".env.\xff"), nil, 0o644))
	w.must(os.WriteFile(w.path("bad\xff"), nil, 0o644))
	if seen, _ := walk(t, w.gate); len(seen) != 1 || seen[0] != "bad\xff" {
		t.Errorf("seen %q", seen)
	}
}

// TestListingIsNotLaundered: a name that can't be listed doesn't become
// listable by moving or copying what is above it, and the refusal does not
// tell it either.
func TestListingIsNotLaundered(t *testing.T) {
	for name, do := range map[string]func(g *Gate) error{
		"move": func(g *Gate) error { _, err := g.Move(t.Context(), "d", "e", Call{}); return err },
		"copy": func(g *Gate) error { _, err := g.Copy(t.Context(), "d", "e", Call{}); return err },
	} {
		t.Run(name, func(t *testing.T) {
			deny := rules{deny: map[string]core.Decision{"fs.list project://d/hid": core.Deny}}
			w := newWorld(t, deny, map[string]string{"d/hid1": "H", "d/a": "A"})
			before := w.tree()
			err := do(w.gate)
			if fault.CodeOf(err) != fault.PolicyDenied {
				t.Fatalf("error %v", err)
			}
			if lines := fault.As(err).Lines(); strings.Contains(lines, "hid") {
				t.Errorf("the refusal tells the hidden name:\n%s", lines)
			}
			w.unchanged(before)
		})
	}
}

// TestRecordHashesWhatIsOutside: neither the resource nor the reason of a
// record spells a name outside every root.
func TestRecordHashesWhatIsOutside(t *testing.T) {
	w := newWorld(t, rules{}, nil)
	if _, err := w.gate.Open(t.Context(), "/etc/private-name"); err == nil {
		t.Fatal("opened")
	}
	for _, e := range w.log.events {
		if strings.Contains(e.Verdict.Reason.String(), "private-name") || e.Resource.Resolved {
			t.Errorf("event %+v", e)
		}
	}
}

// TestCopyEndsWithItsContext: a copy of any size ends when its call does, and
// leaves nothing behind.
func TestCopyEndsWithItsContext(t *testing.T) {
	w := newWorld(t, rules{}, nil)
	big, err := os.Create(w.path("big"))
	w.must(err)
	w.must(errors.Join(big.Truncate(1<<40), big.Close())) // sparse
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	if _, err := w.gate.Copy(ctx, "big", "copy", Call{}); fault.CodeOf(err) != fault.Cancelled {
		t.Errorf("error %v", err)
	}
	if left, _ := filepath.Glob(filepath.Join(w.dir, ".*")); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
	if last := w.log.events[len(w.log.events)-1]; last.Phase != core.PhaseOutcome || last.Code != fault.Cancelled.String() {
		t.Errorf("last event %+v", last)
	}
}

// TestEscapedFormIsNotWritten: content that may carry what only a reader was
// shown is refused, whatever the file holds, and whoever may not read the file
// learns nothing of it.
func TestEscapedFormIsNotWritten(t *testing.T) {
	const live, escaped = "</untrusted-12345678>", "&lt;/untrusted-12345678>"
	tests := map[string]struct {
		before, content string
		missing         bool
		deny            map[string]core.Decision
		code            fault.Code
	}{
		"live in the file":            {before: live, content: escaped, code: fault.TextEscaped},
		"both in the file":            {before: escaped + live, content: escaped, code: fault.TextEscaped},
		"escaped in the file":         {before: escaped, content: escaped + "more", code: fault.OK},
		"more than in the file":       {before: escaped, content: escaped + escaped, code: fault.TextEscaped},
		"new file":                    {missing: true, content: escaped, code: fault.TextEscaped},
		"live content":                {before: "x", content: live, code: fault.OK},
		"unreadable file, same count": {before: escaped, content: escaped, code: fault.TextEscaped, deny: map[string]core.Decision{"fs.read project://f": core.Deny}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			spec := map[string]string{"f": tc.before}
			if tc.missing {
				spec = nil
			}
			w := newWorld(t, rules{deny: tc.deny}, spec)
			if _, err := w.gate.Write(t.Context(), "f", []byte(tc.content), Call{}); fault.CodeOf(err) != tc.code {
				t.Errorf("write: %v", err)
			}
		})
	}
	w := newWorld(t, rules{}, map[string]string{"f": live})
	if _, err := w.gate.Append(t.Context(), "f", []byte(escaped), Call{}); fault.CodeOf(err) != fault.TextEscaped {
		t.Errorf("append: %v", err)
	}
}

func TestCopyKeepsModes(t *testing.T) {
	w := newWorld(t, rules{}, map[string]string{"d/secret": "S"})
	w.must(errors.Join(os.Chmod(w.path("d"), 0o700), os.Chmod(w.path("d/secret"), 0o600)))
	_, err := w.gate.Copy(t.Context(), "d", "k", Call{})
	w.must(err)
	for name, want := range map[string]os.FileMode{"k": 0o700, "k/secret": 0o600} {
		if info, err := os.Stat(w.path(name)); err != nil || info.Mode().Perm() != want {
			t.Errorf("%s: %v, %v", name, info, err)
		}
	}
}

// TestYesIsForWhatWasShown: a read and a guarded handler too are refused when
// what a person was asked about changed during the question.
func TestYesIsForWhatWasShown(t *testing.T) {
	for name, do := range map[string]func(g *Gate) error{
		"read": func(g *Gate) error { _, err := g.Open(t.Context(), "a"); return err },
		"handler": func(g *Gate) error {
			h := g.Guard(Tool{Server: "s", Name: "t", Params: []Param{Project("path", core.FSRead)}},
				func(context.Context, ToolCall) (any, error) { t.Error("the handler ran"); return nil, nil })
			_, err := h(t.Context(), ToolCall{Args: map[string]any{"path": "a"}})
			return err
		},
	} {
		a := &approver{}
		w := newWorld(t, rules{deny: map[string]core.Decision{"fs.read project://a": core.Ask}},
			map[string]string{"a": "A", "b": "B"}, func(o *Options) { o.Approver = a })
		a.during = func() { w.must(os.Rename(w.path("b"), w.path("a"))) }
		if err := do(w.gate); fault.CodeOf(err) != fault.GrantStale {
			t.Errorf("%s: %v", name, err)
		}
	}
}
