// SPDX-License-Identifier: Apache-2.0

package enforce

import (
	"crypto/rand"
	"encoding/hex"
	"strconv"
	"sync/atomic"

	"github.com/postern-gate/postern/core"
	"github.com/postern-gate/postern/core/fault"
	"github.com/postern-gate/postern/core/pathguard"
)

// record writes one event an operand, and one for a tool, before the effect: the intent of a
// mutation, on disk when it returns, or the decision about anything else. A
// read follows the rule for reads when the log fails.
func (c *crossing) record(f *fault.Error) error {
	phase, sync := core.PhaseDecision, false
	if f == nil && c.mutates() {
		phase, sync = core.PhaseIntent, true
	}
	err := c.write(phase, f, sync)
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
	}
	if f != nil {
		e.Code = f.Code.String()
		e.Verdict = recorded(c.verdict, f)
	}
	if c.tool != nil {
		e.Resource = c.tool.resource()
		if err := c.gate.o.Recorder.Record(e, sync && len(c.operands) == 0); err != nil {
			return err
		}
	}
	for i := range c.operands {
		e.Resource = c.operands[i].recorded()
		last := i == len(c.operands)-1
		if err := c.gate.o.Recorder.Record(e, sync && last); err != nil {
			return err
		}
	}
	return nil
}

// recorded is the verdict that a record shows: a guard's denial and a missing
// confirm are denials like the policy's own.
func recorded(v core.Verdict, f *fault.Error) core.Verdict {
	if f.Code.Kind() == fault.KindFailure || v.Decision == core.Deny {
		return v
	}
	if f.Code == fault.PolicyAsk {
		return v
	}
	return core.Verdict{Decision: core.Deny, Reason: core.Reason{Decision: core.Deny, Step: core.StepContainment, Why: f.Because()}}
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
	idPrefix = newPrefix()
	idCount  atomic.Uint64
)

func newPrefix() string {
	var b [6]byte
	_, _ = rand.Read(b[:]) // never fails: crypto/rand ends the program instead
	return hex.EncodeToString(b[:]) + "-"
}

func newID() string {
	return idPrefix + strconv.FormatUint(idCount.Add(1), 36)
}
