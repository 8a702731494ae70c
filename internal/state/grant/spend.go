// SPDX-License-Identifier: Apache-2.0

package grant

import (
	"context"
	"errors"
	"io/fs"
	"strings"

	"github.com/postern-gate/postern/core/fault"
)

// Token says that a yes was spent for one call. Only Spend makes one; its zero
// value stands for nothing.
type Token struct {
	id, corr string
	kind     Kind
}

// ID returns the id of the question that was answered with yes.
func (t Token) ID() string { return t.id }

// Corr returns what the records of the question have in common.
func (t Token) Corr() string { return t.corr }

// Kind returns that of the yes.
func (t Token) Kind() Kind { return t.kind }

// Spend uses the yes with that id for a call with this binding, or refuses. A
// yes for once is gone when it returns without an error, whatever becomes of
// the call; a refusal uses nothing up. corr is that of the call.
func (s *Store) Spend(ctx context.Context, id string, b *Binding, corr string) (Token, error) {
	if !ValidID(id) {
		return Token{}, mismatch("there is no such approval")
	}
	done, err := s.enter(ctx)
	if err != nil {
		return Token{}, err
	}
	defer done()
	g, err := s.spendable(id, b)
	if err != nil {
		return Token{}, err
	}
	s.step("checked")
	if g.Kind == Once {
		err := s.move(s.path(grantsDir, id), s.path(spentDir, id))
		if errors.Is(err, fs.ErrExist) {
			return Token{}, gone()
		}
		if err != nil {
			return Token{}, failed(err)
		}
		corr = g.Corr
	}
	n := g.note(Spent, "")
	n.Corr, n.For = corr, *b
	if err := s.note(n); err != nil {
		return Token{}, err
	}
	s.step("spent")
	return Token{id: id, corr: corr, kind: g.Kind}, nil
}

// spendable returns the answer if it is a yes that holds for the binding now.
// The caller holds the lock.
func (s *Store) spendable(id string, b *Binding) (*Grant, error) {
	g, err := s.answer(grantsDir, id)
	p := b.prints()
	switch {
	case s.exists(spentDir, id) || errors.Is(err, fs.ErrNotExist):
		return nil, gone()
	case err != nil:
		return nil, mismatch("the approval can't be read, so it is none")
	case s.paused(b.Agent):
		return nil, &fault.Error{Code: fault.GrantRevoked, Rule: "the agent was paused", Hint: ResumeHint(b.Agent)}
	case s.over(g, s.clock.now()):
		return nil, &fault.Error{Code: fault.GrantExpired}
	case g.covers(b, p):
		return g, nil
	case g.Kind == Once && g.prints().sameCall == p.sameCall:
		return nil, &fault.Error{Code: fault.GrantStale}
	}
	return nil, mismatch("")
}

// ResumeHint is the command with which a person resumes an agent.
func ResumeHint(agent string) string {
	return "a person resumes it: " + ResumeCommand(agent)
}

// ResumeCommand is the command line that resumes an agent.
func ResumeCommand(agent string) string {
	word := Word(agent)
	switch {
	case agent == "":
		word = "-"
	case strings.HasPrefix(agent, "-"):
		word = "-- " + word
	}
	return "postern resume " + word
}

// Word is s as one word of a command line, quoted for a shell of POSIX where it
// needs that. What nobody would see of it is left as it is: it is drawn with
// textsafe.
func Word(s string) string {
	plain := func(r rune) bool {
		return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("-_./:@", r)
	}
	if s == "" || strings.ContainsFunc(s, func(r rune) bool { return !plain(r) }) {
		return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
	}
	return s
}

func gone() error {
	return &fault.Error{Code: fault.GrantRevoked, Rule: "the approval was spent or taken back"}
}

func mismatch(rule string) error { return &fault.Error{Code: fault.GrantMismatch, Rule: rule} }
