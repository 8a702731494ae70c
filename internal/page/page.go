// SPDX-License-Identifier: Apache-2.0

// Package page is the local page on which a person answers what agents ask,
// and sees, revokes, pauses and undoes.
//
// # Guarantees
//
// Nothing is shown and nothing is done without a session, which only the
// one-time link gives. A request by GET changes nothing. What changes something
// carries a stamp that this page made for this session, this act, what it is
// about and what was shown of it, half a second ago at least. A yes is for
// exactly the card that was drawn. All that comes from elsewhere passes textsafe
// and html/template; no file is served, no markup of anybody else is drawn, and
// nothing is loaded from anywhere else. Secrets are in memory only.
//
// # Not guaranteed
//
// Anything against a program of the same user that can read the browser's
// profile or drive the browser; that who answers is the person.
package page

import (
	"context"
	"crypto/rand"
	"encoding/base32"
	"errors"
	"html/template"
	"net/http"
	"net/netip"
	"strings"
	"sync"
	"time"

	"github.com/postern-gate/postern/core/fault"
	"github.com/postern-gate/postern/enforce"
	"github.com/postern-gate/postern/internal/listen"
	"github.com/postern-gate/postern/internal/state/grant"
)

// maxBody bounds a form in bytes.
const maxBody = 16 << 10

// Approver is how the records name an answer that was given here.
const Approver = "page"

// Options are the parts of a page.
type Options struct {
	State *enforce.State
	// Grants are the questions and answers of the state, under the source that
	// records name.
	Grants *grant.Store
	// Log is the folder of the audit log.
	Log string
	// Person is who takes changes back. It is called for each undo, since the
	// policy may have changed.
	Person func() enforce.Person
	// Reach tells what is guarded now. It is called whenever it is shown.
	Reach func(context.Context) Reach
	// Explain is what postern explain tells of the call with that id.
	Explain func(ctx context.Context, id string) (string, error)
	// Problem, if set, says why an edited policy is not in force, nil where it is.
	Problem func() error
	// Refused, if set, is told of requests that were refused.
	Refused func(*fault.Error)
	// Now is for tests; nil is the system's clock.
	Now func() time.Time
}

// Page is the page of one listener. It is safe for concurrent use.
type Page struct {
	o         Options
	base      string // what every path begins with; nobody else's page knows it
	templates *template.Template
	ended     chan struct{}
	here      attendance
	looked    lookedAgain

	mu       sync.Mutex
	address  netip.AddrPort
	link     link
	sessions map[[32]byte]*session
}

// New returns a page. Close it before the state.
func New(o Options) (*Page, error) {
	if o.Now == nil {
		o.Now = time.Now
	}
	t, err := templates()
	if err != nil {
		return nil, &fault.Error{Code: fault.Bug, Op: "page", Rule: "its templates are not valid", Err: err}
	}
	return &Page{
		o: o, base: "/" + random(), templates: t, ended: make(chan struct{}), sessions: map[[32]byte]*session{},
		here: attendance{attend: func() (leaver, error) { return o.Grants.Attend(context.Background()) }, grace: grace},
	}, nil
}

// Serve serves the page until Close.
func (p *Page) Serve(l *listen.Server) error {
	return l.Serve(p.Handler(), p.Rules(l.Address()))
}

// Rules are those of its listener, whose address they fix.
func (p *Page) Rules(at netip.AddrPort) listen.Rules {
	p.mu.Lock()
	p.address = at
	p.mu.Unlock()
	return listen.Rules{Session: p.admits, MaxBody: maxBody, Refused: p.o.Refused}
}

// Close ends every session and what is open of it.
func (p *Page) Close() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	select {
	case <-p.ended:
		return nil
	default:
	}
	close(p.ended)
	clear(p.sessions)
	p.link = link{}
	return p.here.end()
}

// random is a secret of 160 bits, in letters and digits.
func random() string {
	var b [20]byte
	rand.Read(b[:]) // never fails: crypto/rand ends the program instead
	return strings.ToLower(base32.StdEncoding.EncodeToString(b[:]))
}

// policy lets the page load its own style and script and nothing else.
const policy = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; " +
	"form-action 'self'; frame-ancestors 'none'; base-uri 'none'"

// Handler is the page behind its guard.
func (p *Page) Handler() http.Handler {
	mux := http.NewServeMux()
	at := func(pattern string, h http.HandlerFunc) {
		method, path, _ := strings.Cut(pattern, " ")
		mux.HandleFunc(method+" "+p.base+path, h)
	}
	at("GET /page.css", file("files/page.css", "text/css; charset=utf-8"))
	at("GET /page.js", file("files/page.js", "text/javascript; charset=utf-8"))
	at("GET /login", p.showLogin)
	at("POST /login", p.takeLogin)
	at("GET /{$}", p.view(p.pending))
	at("GET /activity", p.view(p.activity))
	at("GET /why", p.view(p.why))
	at("GET /undo", p.view(p.undoList))
	at("GET /undo/plan", p.view(p.undoPlan))
	at("GET /grants", p.view(p.grants))
	at("GET /reach", p.view(p.reach))
	at("GET /events", p.events)
	at("POST /decide", p.act("decide", "/", p.decide))
	at("POST /answer", p.act("answer", "/", p.answer))
	at("POST /undo", p.act("undo", "/undo", p.undo))
	at("POST /undo/session", p.act("undo-session", "/undo", p.undoSession))
	at("POST /revoke", p.act("revoke", "/grants", p.revoke))
	at("POST /pause", p.act("pause", "/grants", p.pause))
	at("POST /resume", p.act("resume", "/grants", p.resume))
	at("POST /logout", p.act("logout", "/login", p.logout))
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		head := w.Header()
		head.Set("Content-Security-Policy", policy)
		head.Set("X-Content-Type-Options", "nosniff")
		head.Set("X-Frame-Options", "DENY")
		// With no-referrer a form would come with the origin null.
		head.Set("Referrer-Policy", "same-origin")
		head.Set("Cache-Control", "no-store")
		head.Set("Cross-Origin-Opener-Policy", "same-origin")
		head.Set("Cross-Origin-Resource-Policy", "same-origin")
		mux.ServeHTTP(w, r)
	})
}

// open are the paths that need no session.
func (p *Page) open(path string) bool {
	switch path {
	case "/favicon.ico", p.base + "/login", p.base + "/page.css", p.base + "/page.js":
		return true
	}
	return false
}

// admits is the guard's question.
func (p *Page) admits(r *http.Request) bool {
	return p.open(r.URL.Path) || p.sessionOf(r) != nil
}

// view serves something to look at.
func (p *Page) view(get func(*http.Request, *session) (*content, error)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		s := p.sessionOf(r)
		if s == nil { // it ended between the guard and here
			p.refuse(w, http.StatusUnauthorized, errNoSession())
			return
		}
		c, err := get(r, s)
		if err != nil {
			f := fault.As(err)
			p.refuse(w, max(f.Code.HTTP(), http.StatusBadRequest), f)
			return
		}
		p.draw(w, http.StatusOK, r, s, c)
	}
}

// act does something and leads to what it changed, with a notice there.
func (p *Page) act(name, to string, do func(context.Context, *session, form) (*notice, error)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		s := p.sessionOf(r)
		if s == nil {
			p.refuse(w, http.StatusUnauthorized, errNoSession())
			return
		}
		f, err := p.formOf(s, name, r)
		n := early()
		if err == nil && !f.early {
			// Whoever closes the tab does not keep a record from the disk.
			n, err = do(context.WithoutCancel(r.Context()), s, f)
		}
		if fault.CodeOf(err) == fault.HTTPOrigin { // the form, or a tick in it, is not of this page
			if p.o.Refused != nil {
				p.o.Refused(fault.As(err))
			}
			p.refuse(w, http.StatusForbidden, fault.As(err))
			return
		}
		if err != nil {
			n = failure(err)
		}
		http.Redirect(w, r, p.base+to+s.leave(n), http.StatusSeeOther)
	}
}

func errNoSession() *fault.Error {
	return &fault.Error{Code: fault.HTTPToken, Resource: "http session", Hint: "postern page prints a link"}
}

func failure(err error) *notice {
	var f *fault.Error
	if !errors.As(err, &f) {
		f = fault.As(err)
	}
	return &notice{Bad: true, Lines: strings.Split(f.Lines(), "\n")}
}
