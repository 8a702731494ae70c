// SPDX-License-Identifier: Apache-2.0

package fsserver

import (
	"github.com/postern-gate/postern/internal/fsserver/edit"
	"github.com/postern-gate/postern/internal/mcpwire"
)

// schema is the input schema of a tool: no other member, no title, nothing
// that a model does not need.
func (t *tool) schema() []byte {
	b := []byte(`{"type":"object","properties":{`)
	var a arguments
	var needed []string
	for i, p := range t.params {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(mcpwire.AppendString(b, p.name), ':')
		b = p.schema(b, p.bind(&a))
		if p.required {
			needed = append(needed, p.name)
		}
	}
	b = append(b, '}')
	if needed != nil {
		b = appendStrings(append(b, `,"required":`...), needed)
	}
	return append(b, `,"additionalProperties":false}`...)
}

// schema appends the schema of one parameter, whose value goes to target.
func (p *param) schema(b []byte, target any) []byte {
	switch target.(type) {
	case *string:
		b = append(b, `{"type":"string"`...)
	case *[]string:
		b = append(b, `{"type":"array","items":{"type":"string"}`...)
		if p.required {
			b = append(b, `,"minItems":1`...)
		}
	case *count:
		least := byte('0')
		if p.positive {
			least = '1'
		}
		b = append(append(b, `{"type":"integer","minimum":`...), least)
	case *bool:
		b = append(b, `{"type":"boolean"`...)
	case *[]edit.Edit:
		b = append(b, `{"type":"array","items":{"type":"object","properties":{"oldText":{"type":"string"},`+
			`"newText":{"type":"string"},"replaceAll":{"type":"boolean"}},"required":["oldText","newText"],"additionalProperties":false}`...)
	}
	if p.choices != nil {
		b = appendStrings(append(b, `,"enum":`...), p.choices)
	}
	if p.about != "" {
		b = mcpwire.AppendString(append(b, `,"description":`...), p.about)
	}
	return append(b, '}')
}

func appendStrings(b []byte, list []string) []byte {
	for i, s := range list {
		b = mcpwire.AppendString(append(b, "[,"[min(i, 1)]), s)
	}
	return append(b, ']')
}
