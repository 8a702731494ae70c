// SPDX-License-Identifier: Apache-2.0

// Package export says in the words of others what a record tells: as an event
// of the Open Cybersecurity Schema Framework, and as a log record of
// OpenTelemetry with the names of its GenAI and MCP conventions. Both are pure
// mappings. The stored record is the evidence; what comes out here can't be
// verified.
//
// The mappings change with the schemas that they name, OCSFVersion and
// OTelVersion. Names that no schema has are under postern.* and unmapped.
package export

import (
	"strings"

	"github.com/postern-gate/postern/internal/state/audit/records"
)

// Origin is what a record does not tell and both schemas want.
type Origin struct {
	Host    string // the name of this machine, "" where it can't be told
	Version string // of postern
}

// The values of Record.Event that a mapping tells apart.
const (
	refusal        = "refusal"
	preview        = "preview"
	intent         = "intent"
	outcome        = "outcome"
	failure        = "failure"
	outcomeUnknown = "outcome_unknown"
)

// toolCall and logOp are values of Record.Op.
const (
	toolCall = "tool.call"
	logOp    = "log"
	allow    = "allow"
)

// broken reports whether the event tells that the log itself was damaged or
// could not be kept.
func broken(event string) bool {
	switch event {
	case "garbage", "segment_vanished", "segment_replaced", "segment_abandoned", "audit_full":
		return true
	default:
		return false
	}
}

// isFile reports whether the record is about a name in a file system.
func isFile(r *records.Record) bool { return strings.HasPrefix(r.Op, "fs.") }

// undecided reports whether the record is one that nobody decided about: of the
// log itself, or of what another program did.
func undecided(r *records.Record) bool { return r.Op == logOp || r.Source == "watcher" }

// aboutApproval reports whether the record is about a question to a person or
// its answer: nothing was done to the file that it names.
func aboutApproval(r *records.Record) bool {
	switch r.Event {
	case "asked", "approved", "denied", "withdrawn", "spent", "revoked", "expired", "paused", "resumed":
		return true
	default:
		return false
	}
}

// split takes root://name apart. A private name, which is a class and a hash,
// has no root.
func split(resource string) (root, name string) {
	if root, name, ok := strings.Cut(resource, "://"); ok {
		return root, name
	}
	return "", resource
}
