// SPDX-License-Identifier: Apache-2.0

package export

import (
	"strconv"
	"strings"

	"github.com/postern-gate/postern/internal/state/audit/records"
)

// OTelVersion is the release of the conventions that OTel maps to. They are in
// development: names may change with each release.
const OTelVersion = "semantic-conventions-genai v0.1.0"

// OTelLogs is one log record as a message LogsData of OTLP in its JSON
// encoding, as a file exporter writes it a line.
//
// Sources: https://opentelemetry.io/docs/specs/otel/protocol/file-exporter/,
// https://opentelemetry.io/docs/specs/otel/logs/data-model/, and of
// https://github.com/open-telemetry/semantic-conventions-genai the pages
// docs/gen-ai/mcp.md (mcp.method.name, mcp.session.id, gen_ai.tool.name) and
// docs/gen-ai/execute-tool.md (gen_ai.operation.name); error.type, file.path,
// host.name and service.* are of the general conventions.
type OTelLogs struct {
	ResourceLogs []OTelResourceLogs `json:"resourceLogs"`
}

// OTelResourceLogs are the logs of one machine.
type OTelResourceLogs struct {
	Resource  OTelAttributes  `json:"resource"`
	ScopeLogs []OTelScopeLogs `json:"scopeLogs"`
}

// OTelAttributes is a message that holds attributes.
type OTelAttributes struct {
	Attributes []OTelAttribute `json:"attributes"`
}

// OTelScopeLogs are the logs of one source.
type OTelScopeLogs struct {
	Scope      OTelScope    `json:"scope"`
	LogRecords []OTelRecord `json:"logRecords"`
}

// OTelScope names the mapping.
type OTelScope struct {
	Name       string          `json:"name"`
	Attributes []OTelAttribute `json:"attributes"`
}

// OTelRecord is a log record. OTLP writes 64-bit numbers as text.
type OTelRecord struct {
	TimeUnixNano         string          `json:"timeUnixNano"`
	ObservedTimeUnixNano string          `json:"observedTimeUnixNano"`
	SeverityNumber       int             `json:"severityNumber"`
	SeverityText         string          `json:"severityText"`
	EventName            string          `json:"eventName"`
	Body                 OTelValue       `json:"body"`
	Attributes           []OTelAttribute `json:"attributes"`
}

// OTelAttribute is a name with its value.
type OTelAttribute struct {
	Key   string    `json:"key"`
	Value OTelValue `json:"value"`
}

// OTelValue is a text, or a number where IntValue is set.
type OTelValue struct {
	StringValue *string `json:"stringValue,omitempty"`
	IntValue    string  `json:"intValue,omitempty"`
}

// serve is the Record.Source of a call that came over MCP, or how it begins.
const serve = "serve"

// OTel maps a record.
func OTel(r *records.Record, o Origin) OTelLogs {
	severity, text := otelSeverity(r)
	at := strconv.FormatInt(r.Time.UnixNano(), 10)
	record := OTelRecord{
		TimeUnixNano: at, ObservedTimeUnixNano: at, SeverityNumber: severity, SeverityText: text,
		EventName: "postern." + r.Event, Body: textValue(r.Reason), Attributes: otelAttributes(r),
	}
	var machine attributes
	machine.text("service.name", "postern")
	machine.text("service.version", o.Version)
	machine.text("host.name", o.Host)
	return OTelLogs{[]OTelResourceLogs{{
		Resource: OTelAttributes{machine},
		ScopeLogs: []OTelScopeLogs{{
			Scope:      OTelScope{"postern.audit", []OTelAttribute{{"postern.conventions", textValue(OTelVersion)}}},
			LogRecords: []OTelRecord{record},
		}},
	}}}
}

func otelAttributes(r *records.Record) []OTelAttribute {
	var a attributes
	if r.Op != logOp {
		a.text("gen_ai.agent.name", r.Agent)
	}
	if r.Source == serve || strings.HasPrefix(r.Source, serve+"-") {
		a.text("mcp.method.name", "tools/call")
		a.text("mcp.session.id", r.Session)
	} else {
		a.text("postern.session", r.Session)
	}
	server, name := split(r.Resource)
	if r.Op == toolCall && !aboutApproval(r) && server != "" {
		a.text("gen_ai.operation.name", "execute_tool")
		a.text("gen_ai.tool.name", name)
		a.text("postern.server", server)
	}
	if isFile(r) && !aboutApproval(r) && server != "" {
		a.text("file.path", r.Resource)
	}
	if r.Event == refusal || r.Event == failure {
		a.text("error.type", r.Code)
	}
	a.text("postern.op", r.Op)
	a.text("postern.decision", r.Decision)
	a.text("postern.source", r.Source)
	a.text("postern.level", r.Level)
	a.text("postern.corr", r.Corr)
	a.text("postern.policy", r.Policy)
	a.text("postern.resource", r.Resource)
	a.text("postern.code", r.Code)
	a.text("postern.was", r.Was)
	a.text("postern.found", r.Found)
	a.text("postern.approval", r.Approval)
	a.text("postern.kind", r.Kind)
	a.text("postern.approver", r.Approver)
	a.text("postern.shown", r.Shown)
	a.text("postern.folder", r.Folder)
	if r.N != 0 {
		a = append(a, OTelAttribute{"postern.n", OTelValue{IntValue: strconv.FormatInt(r.N, 10)}})
	}
	return a
}

// otelSeverity is a SeverityNumber of the data model and its short name.
func otelSeverity(r *records.Record) (number int, text string) {
	switch {
	case broken(r.Event), r.Event == outcomeUnknown:
		return 17, "ERROR"
	case r.Event == refusal, r.Event == failure, r.Event == "reads_unrecorded", r.Event == "torn_tail", r.Event == "clock_back":
		return 13, "WARN"
	default:
		return 9, "INFO"
	}
}

type attributes []OTelAttribute

// text adds an attribute. One without a value is left out, as the conventions
// ask.
func (a *attributes) text(key, value string) {
	if value != "" {
		*a = append(*a, OTelAttribute{key, textValue(value)})
	}
}

func textValue(s string) OTelValue { return OTelValue{StringValue: &s} }
