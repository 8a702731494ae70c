// SPDX-License-Identifier: Apache-2.0

package page

import (
	"net/http"
	"slices"
	"strconv"

	"github.com/postern-gate/postern/core"
	"github.com/postern-gate/postern/core/fault"
	"github.com/postern-gate/postern/core/textsafe"
	"github.com/postern-gate/postern/enforce"
	"github.com/postern-gate/postern/internal/state/audit"
	"github.com/postern-gate/postern/internal/state/audit/records"
)

const (
	// perPage records are shown at once, of maxPages at most: postern log shows
	// the rest.
	perPage  = 50
	maxPages = 40
	// maxQuery bounds what is looked for, in bytes.
	maxQuery = 200
)

// row is a record on the page. Its texts have passed textsafe.
type row struct {
	Key, Time, Agent, Event, Op, Resource, Folder, Decision, Why, Code, ID string

	Undo bool // what it tells of can be taken back, as far as the journals know
}

type activity struct {
	Query        string
	Rows         []row
	Page         int
	Newer, Older int // the page, 0 for none
}

func (p *Page) activity(r *http.Request, _ *session) (*content, error) {
	a := activity{Query: textsafe.Clean(r.URL.Query().Get("q")).String(), Page: 1}
	if len(a.Query) > maxQuery {
		return nil, &fault.Error{Code: fault.RequestInvalid, Op: "search", Rule: "it is too long", Hint: "look for less"}
	}
	if text := r.URL.Query().Get("page"); text != "" {
		n, err := strconv.Atoi(text)
		if err != nil || n < 1 || n > maxPages {
			return nil, &fault.Error{Code: fault.RequestInvalid, Op: "search", Rule: "there is no such page", Hint: "postern log shows older records"}
		}
		a.Page = n
	}
	filter := records.Filter{Text: a.Query}
	from, more, err := records.Newest(r.Context(), p.o.Log, &filter, a.Page*perPage)
	if err == nil {
		a.Rows, err = p.rows(r, from, &filter, a.Page)
	}
	if err != nil {
		return nil, &fault.Error{Code: fault.IOFailed, Op: "log", Rule: "the log can't be read", Hint: "look at who may read the state directory", Err: err}
	}
	if a.Newer = a.Page - 1; more && a.Page < maxPages {
		a.Older = a.Page + 1
	}
	return &content{Name: "activity", Title: "activity", Data: a}, nil
}

// rows are those of a page, the newest first. An intent is told by its outcome,
// unless something is looked for.
func (p *Page) rows(r *http.Request, from records.Cursor, filter *records.Filter, page int) ([]row, error) {
	reader := records.NewReader(p.o.Log, from)
	defer reader.Close()
	var all []row
	err := reader.Each(r.Context(), func(e records.Entry) error {
		if filter.Match(&e) {
			all = append(all, rowOf(&e))
		}
		return nil
	})
	end := max(0, len(all)-(page-1)*perPage)
	all = all[max(0, end-perPage):end]
	slices.Reverse(all)
	all = slices.DeleteFunc(all, func(w row) bool {
		return w.Event == "" || filter.Zero() && w.Event == string(audit.Intent) // no record is postern log verify's
	})
	p.undoable(all)
	return all, err
}

// undoable notes which of the rows tell of a change that is kept. Journals that
// can't be read are told by the view that is about them.
func (p *Page) undoable(all []row) {
	var ids []string
	for _, w := range all {
		if w.changes() {
			ids = append(ids, w.ID)
		}
	}
	if len(ids) == 0 {
		return
	}
	kept, err := p.o.State.Undoable(ids)
	if err != nil {
		return
	}
	for i := range all {
		all[i].Undo = all[i].changes() && kept[all[i].ID]
	}
}

// changes reports whether the row tells that something was changed.
func (w *row) changes() bool {
	a, known := core.ParseAction(w.Op)
	return known && a.Mutates() && w.Event == string(audit.Outcome)
}

// who is the agent of a record, or what of postern's own it is of.
func who(r *records.Record) string {
	switch own := r.Source == "page" || r.Source == "undo" || r.Source == "log" || r.Source == enforce.WatcherSource; {
	case r.Agent != "" || !own:
		return agentName(r.Agent)
	case r.Undoes != "":
		return "undo"
	}
	return textsafe.Name(r.Source)
}

func rowOf(e *records.Entry) row {
	clean := func(s string) string { return textsafe.Clean(s).String() }
	r := &e.Record
	if e.Err != nil {
		return row{}
	}
	w := row{
		Key: e.Place(), Time: r.Time.Local().Format("2006-01-02 15:04:05"), Agent: who(r), Event: clean(r.Event),
		Op: clean(r.Op), Decision: clean(r.Decision), Why: clean(r.Reason), Code: clean(r.Code), ID: clean(r.Corr),
	}
	if r.Resource != "" {
		w.Resource = textsafe.Name(r.Resource)
	}
	if r.Folder != "" {
		w.Folder = textsafe.Name(r.Folder)
	}
	if r.Approver != "" {
		w.Why += ", by " + clean(r.Approver)
	}
	return w
}
