// SPDX-License-Identifier: Apache-2.0

package fsserver

import (
	"context"
	"sync"

	"github.com/postern-gate/postern/core"
	"github.com/postern-gate/postern/enforce"
	"github.com/postern-gate/postern/internal/mcpserver"
)

// subscription is a watch that a client may call off while it begins.
type subscription struct {
	server  *server
	session *mcpserver.Session
	changed func(mcpserver.Change)

	mu    sync.Mutex
	watch *enforce.Watch
	over  bool
}

// watch tells of the changes to what a URI names.
func (s *server) watch(ctx context.Context, m *mcpserver.Call, uri string, changed func(mcpserver.Change)) (stop func(), refused mcpserver.Result) {
	sub := &subscription{server: s, session: m.Session, changed: changed}
	t := &tool{name: "resources/subscribe", params: []param{pathParam(core.FSWatch)}, run: func(ctx context.Context, c *call) (reply, error) {
		return reply{own: "watched"}, sub.begin(ctx, c)
	}}
	res := s.resource(ctx, t, m, uri)
	if res.IsError {
		sub.stop() // it may begin after its time
		return nil, res
	}
	return sub.stop, mcpserver.Result{}
}

func (u *subscription) begin(ctx context.Context, c *call) error {
	w, err := c.gate.Watch(ctx, c.args.path, u.tell)
	if err != nil {
		return err
	}
	if w.Polled() {
		c.o.Log.Info("the system does not tell of changes here: it is looked at once a second", "resource", w.Name().String())
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.watch = w; u.over {
		w.Close()
	}
	return nil
}

func (u *subscription) stop() {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.over = true
	if u.watch != nil {
		u.watch.Close()
	}
}

// tell passes an event on. What the client's roots, as it reported them last,
// leave out by now isn't told of any more.
func (u *subscription) tell(e enforce.WatchEvent) {
	u.mu.Lock()
	w, over := u.watch, u.over
	u.mu.Unlock()
	if over {
		return
	}
	change := mcpserver.WatchUpdated
	switch {
	case e.Kind == enforce.WatchOver, w != nil && u.leftOut(w):
		change = mcpserver.WatchOver
		u.stop()
	case e.Kind == enforce.WatchRescan:
		change = mcpserver.WatchMissed
	}
	u.changed(change)
}

func (u *subscription) leftOut(w *enforce.Watch) bool {
	roots, known := u.session.KnownRoots()
	if !known {
		return false
	}
	v := u.server.viewOf(roots)
	beneath, _ := v.holds(w.Name().Resource())
	return !v.all && !beneath
}
