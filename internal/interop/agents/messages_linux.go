// SPDX-License-Identifier: Apache-2.0

package agents

import (
	"encoding/json"
	"net/http"
)

// qualified is the name under which Claude Code offers a tool.
func (c Call) qualified() string {
	if c.Server == "" {
		return c.Tool
	}
	return "mcp__" + c.Server + "__" + c.Tool
}

// messages answers a request of Anthropic's Messages API.
func (m *model) messages(w http.ResponseWriter, body []byte) {
	var request struct {
		Model    string
		Stream   bool
		Tools    []json.RawMessage
		Messages []struct{ Content json.RawMessage }
	}
	if err := json.Unmarshal(body, &request); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	for _, message := range request.Messages {
		var content []struct {
			Type      string
			ToolUseID string `json:"tool_use_id"`
			Content   json.RawMessage
			IsError   bool `json:"is_error"`
		}
		if json.Unmarshal(message.Content, &content) != nil {
			continue // a string: no result in it
		}
		for _, block := range content {
			if block.Type == "tool_result" {
				m.keep(block.ToolUseID, Result{blocks(block.Content), block.IsError})
			}
		}
	}
	block, stop := object{"type": "text", "text": "done"}, "end_turn"
	// What comes without tools is beside the conversation, as a title for it.
	if len(request.Tools) > 0 {
		if c, id, left := m.next(body); left {
			block, stop = object{"type": "tool_use", "id": id, "name": c.qualified(), "input": c.Input}, "tool_use"
		}
	}
	message := object{
		"id": "msg_scripted", "type": "message", "role": "assistant", "model": request.Model, "content": []any{block},
		"stop_reason": stop, "stop_sequence": nil, "usage": object{"input_tokens": 1, "output_tokens": 1},
	}
	if !request.Stream {
		answer(w, message)
		return
	}
	streamMessage(w, message, block, stop)
}

// streamMessage sends a message of one block as events.
func streamMessage(w http.ResponseWriter, message, block object, stop string) {
	message["content"], message["stop_reason"] = []any{}, nil
	first, delta := object{"type": "text", "text": ""}, object{"type": "text_delta", "text": block["text"]}
	if block["type"] == "tool_use" {
		input, err := json.Marshal(block["input"])
		if err != nil {
			panic(err)
		}
		first = object{"type": "tool_use", "id": block["id"], "name": block["name"], "input": object{}}
		delta = object{"type": "input_json_delta", "partial_json": string(input)}
	}
	stream(w,
		object{"type": "message_start", "message": message},
		object{"type": "content_block_start", "index": 0, "content_block": first},
		object{"type": "content_block_delta", "index": 0, "delta": delta},
		object{"type": "content_block_stop", "index": 0},
		object{"type": "message_delta", "delta": object{"stop_reason": stop, "stop_sequence": nil}, "usage": object{"output_tokens": 1}},
		object{"type": "message_stop"})
}
