// SPDX-License-Identifier: Apache-2.0

package page

import (
	"net/http"

	"github.com/postern-gate/postern/core/fault"
	"github.com/postern-gate/postern/core/textsafe"
)

// maxID bounds the id of a call in bytes.
const maxID = 200

type whyText struct {
	ID, Text string
	Undo     bool
}

// why is what postern explain tells of a call.
func (p *Page) why(r *http.Request, _ *session) (*content, error) {
	id := r.URL.Query().Get("id")
	if id == "" || len(id) > maxID {
		return nil, &fault.Error{Code: fault.RequestInvalid, Op: "explain", Rule: "it names no call", Hint: "choose one of the activity"}
	}
	text, err := p.o.Explain(r.Context(), id)
	if err != nil {
		return nil, err
	}
	kept, err := p.o.State.Undoable([]string{id})
	return &content{Name: "why", Title: "why " + textsafe.Name(id), Data: whyText{id, textsafe.Block(text).String(), err == nil && kept[id]}}, nil
}
