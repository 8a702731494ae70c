// SPDX-License-Identifier: Apache-2.0

package selftest

import (
	"fmt"
	"strings"

	"github.com/postern-gate/postern/core/fault"
)

// Status is how a mechanism stood. The zero value is a missing one.
type Status uint8

// The states. Weaker is one that holds in another way than elsewhere and
// guarantees less; Untested is one of which nothing can be said.
const (
	Missing Status = iota
	Untested
	Weaker
	Held
)

// String is the word for a person: a missing mechanism can't be overlooked.
func (s Status) String() string {
	switch s {
	case Held:
		return "held"
	case Weaker:
		return "weaker"
	case Untested:
		return "untested"
	default:
		return "MISSING"
	}
}

// MarshalText is the word for a program.
func (s Status) MarshalText() ([]byte, error) { return []byte(strings.ToLower(s.String())), nil }

// Result is what became of one mechanism.
type Result struct {
	Name   string `json:"name"` // a stable word
	Status Status `json:"status"`
	Tried  int    `json:"tried"` // attacks whose control succeeded
	About  string `json:"about"` // what was tried, and what did not hold
}

// Report is every mechanism, in the order in which it was attacked.
type Report struct{ Results []Result }

// Count returns how many mechanisms stood so.
func (r Report) Count(s Status) (n int) {
	for _, one := range r.Results {
		if one.Status == s {
			n++
		}
	}
	return n
}

// Err is nil when every mechanism holds, weaker or not, and else
// sandbox.unavailable with the names of those that don't.
func (r Report) Err() error {
	var names []string
	for _, one := range r.Results {
		if one.Status == Missing || one.Status == Untested {
			names = append(names, one.Name)
		}
	}
	if len(names) == 0 && len(r.Results) > 0 {
		return nil
	}
	return &fault.Error{
		Code: fault.SandboxUnavailable, Op: "selftest",
		Rule: fmt.Sprintf("of %d mechanisms %d are not shown to hold here: %s", len(r.Results), len(names), strings.Join(names, ", ")),
		Hint: "don't rely on this postern here; postern doctor looks at the machine",
	}
}

// trial counts the attacks on one mechanism.
type trial struct {
	tried                     int
	about                     string // what was tried, in a person's words
	missing, untested, weaker []string
}

// against makes one attack. The control does the same without the guard and
// must succeed; the attack returns how it got through, nil if it did not.
func (t *trial) against(what string, control, attack func() error) {
	if err := control(); err != nil {
		t.untested = append(t.untested, what+": its control failed: "+err.Error())
		return
	}
	t.tried++
	if err := attack(); err != nil {
		t.missing = append(t.missing, what+": "+err.Error())
	}
}

// needs ends a mechanism that can't be attacked without this.
func (t *trial) needs(what string, err error) bool {
	if err != nil {
		t.untested = append(t.untested, what+": "+err.Error())
	}
	return err == nil
}

// mostTold bounds how many failures one line names.
const mostTold = 3

func (t *trial) result(name string) Result {
	r := Result{Name: name, Tried: t.tried, About: t.about, Status: Held}
	told := t.weaker
	switch {
	case len(t.missing) > 0:
		r.Status, told = Missing, t.missing
	case len(t.untested) > 0 || t.tried == 0:
		r.Status, told = Untested, t.untested
	case len(t.weaker) > 0:
		r.Status = Weaker
	}
	more := len(told) - mostTold
	if more > 0 {
		told = told[:mostTold]
	}
	if len(told) > 0 {
		r.About += ". " + strings.Join(told, "; ")
	}
	if more > 0 {
		r.About += fmt.Sprintf("; and %d more", more)
	}
	return r
}
