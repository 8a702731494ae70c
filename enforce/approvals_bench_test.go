// SPDX-License-Identifier: Apache-2.0

package enforce

import (
	"testing"

	"github.com/postern-gate/postern/core/fault"
	"github.com/postern-gate/postern/internal/state/grant"
)

// BenchmarkApproved: an overwrite that nobody is asked about, beside one that
// finds a yes for its session, and one that the policy allows with an approver
// at hand.
func BenchmarkApproved(b *testing.B) {
	for _, name := range []string{"no approver", "allowed", "session"} {
		b.Run(name, func(b *testing.B) {
			var ask []string
			if name == "session" {
				ask = writes
			}
			d := newDesk(b, ask, map[string]string{"a": "A"})
			g := d.call(func(o *Options) {
				if name == "no approver" {
					o.Approver = nil
				}
			})
			write := func() error { _, err := g.Write(b.Context(), "a", []byte("A"), Call{}); return err }
			if name == "session" {
				d.yes(asked(b, write(), fault.PolicyAsk), grant.Answer{Kind: grant.Session})
			}
			for b.Loop() {
				if err := write(); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
