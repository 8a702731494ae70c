// SPDX-License-Identifier: Apache-2.0

package grant

import (
	"context"
	"errors"
	"os"
	"slices"
)

// PolicyChanged is the reason in the record of what ended with the policy that it
// was asked or answered under.
const PolicyChanged = "the policy changed"

// Outdate ends every question and every yes whose binding is outdated, for good.
// One that it could not end is an error, and is ended by the next call.
func (s *Store) Outdate(ctx context.Context, outdated func(*Binding) bool) error {
	if asked, given := s.Any(outdated); !asked && !given {
		return nil
	}
	return s.change(ctx, func() error {
		var failed error
		for _, name := range s.names(pendingDir) {
			if q, err := s.question(name); err == nil && !s.ended(q.ID) && outdated(&q.For) {
				failed = errors.Join(failed, s.expire(name, q, PolicyChanged))
			}
		}
		for _, name := range s.names(grantsDir) {
			if g, err := s.answer(grantsDir, name); err == nil && g.Kind != No && outdated(&g.For) {
				failed = errors.Join(failed, s.lapse(g, PolicyChanged))
			}
		}
		return failed
	})
}

// Any reports whether there are questions that wait and yeses that are kept with
// such a binding. It makes nothing.
func (s *Store) Any(such func(*Binding) bool) (asked, given bool) {
	asked = slices.ContainsFunc(s.names(pendingDir), func(name string) bool {
		q, err := s.question(name)
		return err == nil && !s.ended(q.ID) && such(&q.For)
	})
	given = slices.ContainsFunc(s.answers(), func(g *Grant) bool { return g.Kind != No && such(&g.For) })
	return asked, given
}

// Within reports whether all folders of the call are among these, by their paths;
// a call without folders is that of who has none.
func (b *Binding) Within(folders []string) bool {
	for _, r := range b.Roots {
		if !slices.Contains(folders, r.Path) {
			return false
		}
	}
	return len(b.Roots) > 0 || len(folders) == 0
}

// ending is what is kept of a question that nobody answered, and of a yes that
// ended by itself.
type ending struct {
	Reason string `json:"reason"`
}

// Why returns the reason why the question with that id ended without an answer, or
// the yes to it by itself, "" where that isn't known.
func (s *Store) Why(id string) string {
	var e ending
	if !ValidID(id) || s.read(spentDir, id+asked, "ending", &e) != nil {
		return ""
	}
	return e.Reason
}

// keepWhy notes the reason. The question, or the yes to it, is over, noted or not.
func (s *Store) keepWhy(id, reason string) {
	name := id + asked
	if data, err := seal(s.key, "ending", name, ending{reason}); err == nil {
		_ = os.WriteFile(s.path(spentDir, name), data, 0o600)
	}
}
