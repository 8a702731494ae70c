// SPDX-License-Identifier: Apache-2.0

package mcpserver

import (
	"bytes"
	"slices"
	"strconv"

	"github.com/postern-gate/postern/core/fault"
	"github.com/postern-gate/postern/core/textsafe"
	"github.com/postern-gate/postern/internal/mcpwire"
)

// Numbers of errors. The string code in data is the contract; a number of our
// own would lie in a range that others give out.
const (
	invalidParams      = -32602
	internalError      = -32603
	unsupportedVersion = -32022 // MCP 2026-07-28
)

// How our frames begin.
const (
	answerHead   = `{"jsonrpc":"2.0","id":`
	progressHead = `{"jsonrpc":"2.0","method":"notifications/progress",`
)

// isAnswer tells an answer from a notification: both are made here.
func isAnswer(frame []byte) bool { return bytes.HasPrefix(frame, []byte(answerHead)) }

// appendHead appends an answer up to its result or error.
func appendHead(b []byte, id mcpwire.ID) []byte {
	b = append(b, answerHead...)
	if id == "" {
		return append(b, `null,`...)
	}
	return append(append(b, id...), ',')
}

// appendError appends an error answer. The number is the fault's own, or else
// the internal one; extra are further members of data.
func appendError(b []byte, id mcpwire.ID, err *fault.Error, number int, extra string) []byte {
	if number == 0 {
		number = err.Code.RPC()
	}
	if number == 0 {
		number = internalError
	}
	b = append(appendHead(b, id), `"error":{"code":`...)
	b = strconv.AppendInt(b, int64(number), 10)
	b = mcpwire.AppendString(append(b, `,"message":`...), textsafe.Clean(err.Error()).String())
	b = mcpwire.AppendString(append(b, `,"data":{"code":`...), err.Code.String())
	return append(append(b, extra...), '}', '}', '}')
}

// openResult appends an answer up to the members of its result.
func openResult(b []byte, id mcpwire.ID, modern bool) []byte {
	b = append(appendHead(b, id), `"result":{`...)
	if modern {
		b = append(b, `"resultType":"complete",`...)
	}
	return b
}

// serverMeta is what each result of the stateless era carries in _meta.
func (s *Server) serverMeta(modern bool) []Meta {
	if !modern {
		return nil
	}
	return []Meta{{"io.modelcontextprotocol/serverInfo", s.info}}
}

func (s *Server) appendResult(b []byte, id mcpwire.ID, modern bool, r *Result) []byte {
	b = openResult(slices.Grow(b, r.size()), id, modern)
	return append(r.append(b, s.serverMeta(modern)), '}', '}')
}

// appendCached ends a result that clients of the stateless era may keep.
func (s *Server) appendCached(b []byte, modern bool) []byte {
	if modern {
		b = append(b, `,"ttlMs":`...)
		b = strconv.AppendInt(b, ListTTL.Milliseconds(), 10)
		b = append(b, `,"cacheScope":"private"`...)
	}
	return append(appendMeta(b, s.serverMeta(modern)), '}', '}')
}
