// SPDX-License-Identifier: Apache-2.0

package enforce

import (
	"crypto/rand"
	"encoding/hex"
	"errors"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/postern-gate/postern/core"
	"github.com/postern-gate/postern/core/fault"
	"github.com/postern-gate/postern/core/pathguard"
)

// absent is the Was of an intent where nothing is there.
const absent = "absent"

// record writes one event an operand, and one for a tool, before the effect:
// the intent of a mutation, or the decision about anything else. What would
// change something is on disk when it returns, refused or not; so is a read
// where reads are denied without a record, and otherwise one that can't be
// recorded goes on.
func (c *crossing) record(f *fault.Error) error {
	phase := core.PhaseDecision
	if f == nil && c.mutates() {
		phase = core.PhaseIntent
		if err := c.announce(); err != nil {
			return err
		}
	}
	err := c.write(phase, f, (c.mutates() || c.gate.o.ReadsNeedAudit) && !c.call.DryRun)
	if err == nil || c.mutates() || c.gate.o.ReadsNeedAudit {
		return err
	}
	return nil
}

// recordOutcome tells how the effect ended.
func (c *crossing) recordOutcome(f *fault.Error) error {
	return c.write(core.PhaseOutcome, f, false)
}

func (c *crossing) write(phase core.Phase, f *fault.Error, sync bool) error {
	e := core.Event{
		Time: c.gate.o.Clock.Now(), Phase: phase, Subject: c.gate.o.Subject, Action: c.action,
		Verdict: c.verdict, Corr: c.corr, Policy: c.gate.o.Decider.Version(),
		Undoes: c.takesBack, Folder: c.gate.folder,
	}
	e.Verdict.Class = "" // which is that of one name
	if f != nil {
		e.Code = f.Code.String()
		e.Verdict = recorded(e.Verdict, f)
		var by *answered
		if errors.As(f.Err, &by) {
			e.Approval.ID = by.id
			if by.why != "" {
				e.Verdict.Reason = core.Reason{Decision: e.Verdict.Decision, Why: by.why}
			}
		}
	}
	if c.tool != nil {
		e.Resource = c.tool.resource()
		if err := c.gate.o.Recorder.Record(e, sync && len(c.operands) == 0); err != nil {
			return err
		}
	}
	for i := range c.operands {
		o := &c.operands[i]
		e.Resource = o.recorded()
		e.Folder = c.gate.folder
		if r := o.name.Root(); r != nil {
			e.Folder = r.Resolved()
		}
		e.Class, e.File = c.classes[e.Resource], true
		if phase == core.PhaseIntent {
			if e.Was = o.etag(); e.Was == "" {
				e.Was = absent
			}
		}
		last := i == len(c.operands)-1
		if err := c.gate.o.Recorder.Record(e, sync && last); err != nil {
			return err
		}
	}
	return nil
}

// recorded is the verdict that a record shows: a guard's denial and a missing
// confirm are denials like the policy's own, and a failure, which no rule
// decided, has no rule for its reason. The reason is not the fault's, which may
// hold what the caller wrote.
func recorded(v core.Verdict, f *fault.Error) core.Verdict {
	switch {
	case v.Decision == core.Deny, f.Code == fault.PolicyAsk, f.Code == fault.DryRunPreview:
		return v
	case f.Code.Kind() == fault.KindFailure:
		v.Reason = core.Reason{Decision: v.Decision, Why: meaning(f)}
		return v
	}
	return core.Verdict{Decision: core.Deny, Reason: core.Reason{Decision: core.Deny, Step: core.StepContainment, Why: meaning(f)}}
}

// Refuse records a refusal of a call that ended before any crossing, as one
// with an argument that nobody knows, and gives it an id. A change is on disk
// when it returns. The resource of a name that nothing vouches for is not
// resolved: it is recorded as a hash.
func (g *Gate) Refuse(a core.Action, r core.Resource, f *fault.Error) error {
	f.ID = newID()
	return g.o.Recorder.Record(core.Event{
		Time: g.o.Clock.Now(), Phase: core.PhaseDecision, Subject: g.o.Subject, Action: a, Resource: r,
		Folder: g.folder, Corr: f.ID, Policy: g.o.Decider.Version(), Code: f.Code.String(),
		Verdict: core.Verdict{Reason: core.Reason{Step: core.StepContainment, Why: meaning(f)}},
	}, a.IsFile() && a.Mutates())
}

// meaning is what the cause says that the log may tell, else the code's own text.
func meaning(f *fault.Error) string {
	var own interface{ Recorded() string }
	if errors.As(f.Err, &own) && own.Recorded() != "" {
		return own.Recorded()
	}
	return (&fault.Error{Code: f.Code}).Because()
}

// recorded is the operand's canonical name, or the caller's spelling as an
// unresolved resource.
func (o *operand) recorded() core.Resource {
	if o.name == (pathguard.Name{}) {
		return core.Resource{Name: o.spelling}
	}
	return o.name.Resource()
}

// Ids are this process's random prefix and a count: unique without asking the
// kernel for randomness on every read.
var (
	idPrefix = sync.OnceValue(newPrefix) // a verb that records nothing asks for none
	idCount  atomic.Uint64
)

func newPrefix() string {
	var b [6]byte
	_, _ = rand.Read(b[:]) // never fails: crypto/rand ends the program instead
	return hex.EncodeToString(b[:]) + "-"
}

// prefixOf is the process that an id comes from.
func prefixOf(id string) string {
	prefix, _, _ := strings.Cut(id, "-")
	return prefix
}

func newID() string {
	return idPrefix() + strconv.FormatUint(idCount.Add(1), 36)
}
