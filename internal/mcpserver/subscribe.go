// SPDX-License-Identifier: Apache-2.0

package mcpserver

import (
	"context"
	"strings"
	"sync"

	"github.com/postern-gate/postern/core/fault"
	"github.com/postern-gate/postern/internal/mcpwire"
)

const (
	// MaxWatches is how many resources one client watches at once.
	MaxWatches = 32
	// MaxListens is how many subscriptions/listen of one session are open; over
	// HTTP those of all clients of the stateless era together.
	MaxListens = 32
	// maxListen is the longest subscriptions/listen: it is held as long as it is
	// open.
	maxListen = 64 << 10
)

const metaSubscription = "io.modelcontextprotocol/subscriptionId"

// subscriptions are those of one session.
type subscriptions struct {
	mu      sync.Mutex
	watches int
	listens int
	feed    *feed // of resources/subscribe, nil before the first
	sends   bool  // somebody sends it
}

// takeWatches takes room for n more. A session whose requests are apart stands
// for many clients.
func (n *Session) takeWatches(count int) bool {
	most := MaxWatches
	if n.apart {
		most *= MaxListens
	}
	n.subs.mu.Lock()
	defer n.subs.mu.Unlock()
	if n.subs.watches+count > most {
		return false
	}
	n.subs.watches += count
	return true
}

func (n *Session) giveWatches(count int) {
	n.subs.mu.Lock()
	defer n.subs.mu.Unlock()
	n.subs.watches -= count
}

func (n *Session) takeListen() bool {
	n.subs.mu.Lock()
	defer n.subs.mu.Unlock()
	if n.subs.listens >= MaxListens {
		return false
	}
	n.subs.listens++
	return true
}

func (n *Session) giveListen() {
	n.subs.mu.Lock()
	defer n.subs.mu.Unlock()
	n.subs.listens--
}

func tooMany(what string) *fault.Error {
	return &fault.Error{Code: fault.LimitExceeded, Rule: "too many " + what, Hint: "end one first", Retry: true}
}

// watch begins to watch a resource for a feed; the result is nil unless it was
// refused.
func (s *Server) watch(ctx context.Context, c *Call, f *feed, uri string) (refused *Result) {
	if !c.Session.takeWatches(1) {
		r := Refusal(tooMany("resources are watched"), "")
		return &r
	}
	uri = strings.Clone(uri) // it outlives the frame
	t := f.add(uri)
	if t == nil { // it is watched already
		c.Session.giveWatches(1)
		return nil
	}
	watcher := *c.Tool
	var stop func()
	watcher.Call = func(ctx context.Context, c *Call) (r Result) {
		stop, r = s.resources.Watch(ctx, c, uri, func(change Change) { f.note(t, change) })
		return r
	}
	c.Tool = &watcher
	result, bug := s.invoke(ctx, c)
	if bug != nil {
		result = Refusal(bug, "")
	}
	if result.IsError {
		f.drop(c.Session, uri)
		return &result
	}
	f.begun(t, stop)
	select {
	case <-c.Session.over: // nobody else closes it any more
		f.drop(c.Session, uri)
	default:
	}
	return nil
}

// drop ends one watch of a session's feed.
func (f *feed) drop(n *Session, uri string) {
	if f.remove(uri) {
		n.giveWatches(1)
	}
}

// subscribe is resources/subscribe, of the eras with sessions.
func (s *Server) subscribe(ctx context.Context, r request) func() {
	f := r.session.feed()
	return s.onResource(ctx, r, &s.resources.subscribe, func(ctx context.Context, c *Call, uri string) []byte {
		if refused := s.watch(ctx, c, f, uri); refused != nil {
			return appendRefused(nil, c, uri, refused)
		}
		c.Session.feeding(f)
		return append(openResult(nil, c.id, c.modern), '}', '}')
	})
}

// feed is that of resources/subscribe. It sends while the session lasts.
func (n *Session) feed() *feed {
	n.subs.mu.Lock()
	defer n.subs.mu.Unlock()
	if n.subs.feed == nil {
		n.subs.feed = newFeed()
	}
	return n.subs.feed
}

// feeding starts what sends the feed, once. Only a call in flight may use it.
func (n *Session) feeding(f *feed) {
	n.subs.mu.Lock()
	defer n.subs.mu.Unlock()
	if n.subs.sends {
		return
	}
	n.subs.sends = true
	n.Go(func() {
		send := func(uri string, c Change) error { return n.ask(appendUpdated(nil, "", uri, c)) }
		f.run(n.over, send, func(uri string) bool {
			f.drop(n, uri)
			return false
		})
		n.giveWatches(f.close())
	})
}

func (s *Server) unsubscribe(r request) {
	uri, err := uriOf(r)
	if err != nil {
		s.invalid(r, fault.As(err).Rule)
		return
	}
	r.session.feed().drop(r.session, uri)
	s.reply(r, func(b []byte) []byte { return append(b, '}', '}') })
}

// appendUpdated appends the notification of a change. What it says beside the
// URI is ours; id is that of the subscription, "" for resources/subscribe.
func appendUpdated(b []byte, id mcpwire.ID, uri string, c Change) []byte {
	b = append(b, `{"jsonrpc":"2.0","method":"notifications/resources/updated","params":{`...)
	var meta []string
	if id != "" {
		meta = append(meta, subscriptionID(id))
	}
	switch c {
	case WatchMissed:
		meta = append(meta, `"dev.postern/watch":"there were more changes than could be told"`)
	case WatchOver:
		meta = append(meta, `"dev.postern/watch":"it was removed or moved, or may not be watched any more: the subscription has ended"`)
	case WatchUpdated:
	}
	if meta != nil {
		b = append(b, `"_meta":{`+strings.Join(meta, ",")+`},`...)
	}
	return append(mcpwire.AppendString(append(b, `"uri":`...), uri), '}', '}')
}

// subscriptionID is the entry of _meta that names a subscription: the id of the
// request that opened it, in its own bytes.
func subscriptionID(id mcpwire.ID) string { return `"` + metaSubscription + `":` + string(id) }

// listen is subscriptions/listen: a call that lasts until the client, the
// session or the last of its resources ends it.
func (s *Server) listen(ctx context.Context, r request) func() {
	uris, err := listenedTo(r)
	if err != nil {
		s.invalid(r, fault.As(err).Rule)
		return nil
	}
	if !r.session.takeListen() {
		what := "subscriptions are open"
		if r.session.apart {
			what += ", of all clients together"
		}
		s.refuse(r, tooMany(what), 0, "")
		return nil
	}
	ctx, c := s.enter(ctx, r, &s.resources.listen)
	if c == nil {
		r.session.giveListen()
		return nil
	}
	return func() {
		defer c.Session.finish(c)
		defer c.cancel()
		defer c.Session.giveListen()
		s.runListen(ctx, c, uris)
	}
}

// listenedTo are the resources of a subscriptions/listen. Lists never change
// here, so that nothing else can be subscribed to.
func listenedTo(r request) ([]string, error) {
	wrong := func(rule string) error { return &fault.Error{Code: fault.RequestInvalid, Rule: rule} }
	if len(r.params.Raw()) > maxListen {
		return nil, wrong("the subscription is too long")
	}
	v, _ := r.params.Get("notifications")
	filter, err := v.Object()
	if err != nil {
		return nil, err
	}
	named, present := filter.Get("resourceSubscriptions")
	if !present {
		return nil, nil
	}
	values, err := named.Array()
	if err != nil {
		return nil, err
	}
	if len(values) > MaxWatches {
		return nil, wrong("the subscription names too many resources")
	}
	uris := make([]string, len(values))
	for i, v := range values {
		if uris[i], err = v.String(); err != nil {
			return nil, err
		}
	}
	return uris, nil
}

func (s *Server) runListen(ctx context.Context, c *Call, uris []string) {
	f := newFeed()
	if _, err := c.take(ctx, Small, 1); err != nil {
		return
	}
	for _, uri := range uris {
		s.watch(ctx, c, f, uri) // what is refused is not acknowledged
	}
	c.leave(false)
	defer func() { c.Session.giveWatches(f.close()) }()
	if c.notify(appendAcknowledged(c.id, f.uris())) != nil {
		return
	}
	send := func(uri string, change Change) error { return c.notify(appendUpdated(nil, c.id, uri, change)) }
	f.run(ctx.Done(), send, func(uri string) bool {
		f.drop(c.Session, uri)
		return len(f.uris()) == 0
	})
	b := openResult(nil, c.id, true)
	b = append(b, `"_meta":{`+subscriptionID(c.id)+`,"io.modelcontextprotocol/serverInfo":`...)
	b = append(append(b, s.info...), '}', '}', '}')
	c.Session.release(c)
	c.answer(b)
}

// appendAcknowledged says what is subscribed to.
func appendAcknowledged(id mcpwire.ID, uris []string) []byte {
	b := []byte(`{"jsonrpc":"2.0","method":"notifications/subscriptions/acknowledged","params":{"_meta":{` +
		subscriptionID(id) + `},"notifications":{`)
	for i, uri := range uris {
		b = append(b, [2]string{`"resourceSubscriptions":[`, `,`}[min(i, 1)]...)
		b = mcpwire.AppendString(b, uri)
	}
	if len(uris) > 0 {
		b = append(b, ']')
	}
	return append(b, '}', '}', '}')
}

// notify sends a notification of the call, unless nothing may follow any more.
func (c *Call) notify(frame []byte) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.silent.Load() {
		return context.Canceled
	}
	return c.send(frame)
}
