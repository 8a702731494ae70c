// SPDX-License-Identifier: Apache-2.0

package agents

import (
	"encoding/json"
	"net/http"
	"strings"
)

// item is the call as OpenAI's Responses API has it.
func (c Call) item(id string) object {
	if c.Text != "" {
		return object{"type": "custom_tool_call", "id": "ctc_" + id, "call_id": id, "name": c.Tool, "input": c.Text, "status": "completed"}
	}
	input, err := json.Marshal(c.Input)
	if err != nil {
		panic(err)
	}
	item := object{"type": "function_call", "id": "fc_" + id, "call_id": id, "name": c.Tool, "arguments": string(input), "status": "completed"}
	if c.Server != "" {
		item["namespace"] = "mcp__" + strings.ReplaceAll(c.Server, "-", "_") // as Codex offers it
	}
	return item
}

// responses answers a request of OpenAI's Responses API, which Codex only
// sends streamed.
func (m *model) responses(w http.ResponseWriter, body []byte) {
	var request struct {
		Model string
		Input []struct {
			Type   string
			CallID string `json:"call_id"`
			Output json.RawMessage
		}
	}
	if err := json.Unmarshal(body, &request); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	for _, item := range request.Input {
		if strings.HasSuffix(item.Type, "_call_output") {
			m.keep(item.CallID, Result{Text: blocks(item.Output)})
		}
	}
	item := object{
		"type": "message", "id": "msg_scripted", "role": "assistant", "status": "completed",
		"content": []any{object{"type": "output_text", "text": "done", "annotations": []any{}}},
	}
	if c, id, left := m.next(body); left {
		item = c.item(id)
	}
	response := func(status string, output ...any) object {
		return object{
			"id": "resp_scripted", "object": "response", "created_at": 0, "status": status, "model": request.Model, "output": output,
			"usage": object{"input_tokens": 1, "output_tokens": 1, "total_tokens": 2},
		}
	}
	stream(w,
		object{"type": "response.created", "response": response("in_progress")},
		object{"type": "response.output_item.added", "output_index": 0, "item": item},
		object{"type": "response.output_item.done", "output_index": 0, "item": item},
		object{"type": "response.completed", "response": response("completed", item)})
}
