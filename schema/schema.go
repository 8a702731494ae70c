// SPDX-License-Identifier: Apache-2.0

// Package schema holds the JSON Schemas that come with postern: of a policy, of
// what a tool's result says beside its content, and of a record of the audit
// log.
package schema

import (
	_ "embed"
	"slices"
)

var (
	//go:embed policy.schema.json
	policy []byte
	//go:embed result.json
	result []byte
	//go:embed event.schema.json
	event []byte
)

// Names lists what Named knows, the schema of a policy first.
func Names() []string { return []string{"policy", "result", "event"} }

// Named returns a schema, as it is stored, or false.
func Named(name string) ([]byte, bool) {
	switch name {
	case "policy":
		return slices.Clone(policy), true
	case "result":
		return slices.Clone(result), true
	case "event":
		return slices.Clone(event), true
	}
	return nil, false
}
