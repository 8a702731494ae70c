// SPDX-License-Identifier: Apache-2.0

package page

import (
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/postern-gate/postern/core/fault"
	"github.com/postern-gate/postern/internal/state/grant"
)

const (
	// LinkLife is how long a link can be used, once.
	LinkLife = time.Minute
	// sessionLife is how long a session lasts at most.
	sessionLife = 12 * time.Hour
	// maxSessions are open at once; the oldest ends for one more.
	maxSessions = 8
	// maxNotices are kept of a session.
	maxNotices = 20
)

// link is what a person opens the page with.
type link struct {
	code  string // "" once it is used
	until time.Time
}

// session is a browser that somebody opened the link in.
type session struct {
	key   []byte // of its stamps
	began time.Time
	until time.Time

	mu      sync.Mutex
	last    int
	notices map[int]*notice
}

// Link returns a new link, which takes the place of the last one. It is for the
// terminal of a person and for nothing that is kept.
func (p *Page) Link() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.link = link{random(), p.o.Now().Add(LinkLife)}
	return "http://" + p.address.String() + p.base + "/login?code=" + p.link.code
}

// cookie is the name of the session's. Cookies know no ports: another page of
// this machine has one of its own. It is sent to paths beneath base only, which
// no server on another port can know.
func (p *Page) cookie() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return "postern-" + strconv.Itoa(int(p.address.Port()))
}

// sessionOf is the session that a request belongs to, nil for none. A cookie of
// the same name that somebody else set is passed over.
func (p *Page) sessionOf(r *http.Request) *session {
	for _, c := range r.CookiesNamed(p.cookie()) {
		id := sha256.Sum256([]byte(c.Value)) // so that finding it tells nothing of it
		p.mu.Lock()
		s := p.sessions[id]
		if s != nil && !p.o.Now().Before(s.until) {
			delete(p.sessions, id)
			s = nil
		}
		p.mu.Unlock()
		if s != nil {
			return s
		}
	}
	return nil
}

// showLogin asks to go on, since what a link leads to is fetched by more than
// browsers, and nothing is used up by looking.
func (p *Page) showLogin(w http.ResponseWriter, r *http.Request) {
	code := r.URL.Query().Get("code")
	if strings.Trim(code, "abcdefghijklmnopqrstuvwxyz234567") != "" {
		code = "" // none of ours
	}
	if code != "" && !p.leads(code) {
		p.refuse(w, http.StatusForbidden, errLink())
		return
	}
	p.draw(w, http.StatusOK, r, nil, &content{Name: "login", Title: "open", Data: code})
}

// leads reports whether the link with that code can still be used.
func (p *Page) leads(code string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.link.is(code) && p.o.Now().Before(p.link.until)
}

// is reports whether the link is not used and this is its code.
func (l *link) is(code string) bool {
	got, want := sha256.Sum256([]byte(code)), sha256.Sum256([]byte(l.code))
	return subtle.ConstantTimeCompare(got[:], want[:]) == 1 && l.code != ""
}

func errLink() *fault.Error {
	return &fault.Error{
		Code: fault.HTTPToken, Resource: "http session", Rule: "the link was used before, or is older than a minute",
		Hint: "enter, where postern page runs, prints another; else run postern page",
	}
}

func (p *Page) takeLogin(w http.ResponseWriter, r *http.Request) {
	if err := r.ParseForm(); err != nil || !p.used(r.PostForm.Get("code")) {
		p.refuse(w, http.StatusForbidden, errLink())
		return
	}
	value := random()
	p.begin(sha256.Sum256([]byte(value)))
	http.SetCookie(w, &http.Cookie{
		Name: p.cookie(), Value: value, Path: p.base, HttpOnly: true, SameSite: http.SameSiteStrictMode,
	})
	http.Redirect(w, r, p.base+"/", http.StatusSeeOther)
}

// used uses the link up, and reports whether this is its code.
func (p *Page) used(code string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.link.is(code) {
		return false
	}
	late := !p.o.Now().Before(p.link.until)
	p.link = link{}
	return !late
}

func (p *Page) begin(id [32]byte) {
	now := p.o.Now()
	s := &session{key: make([]byte, 32), began: now, until: now.Add(sessionLife), notices: map[int]*notice{}}
	rand.Read(s.key) // never fails: crypto/rand ends the program instead
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.sessions) >= maxSessions {
		var oldest [32]byte
		for id, other := range p.sessions {
			if first := p.sessions[oldest]; first == nil || other.until.Before(first.until) {
				oldest = id
			}
		}
		delete(p.sessions, oldest)
	}
	p.sessions[id] = s
}

// over reports whether a session ended.
func (p *Page) over(s *session) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, other := range p.sessions {
		if other == s {
			return !p.o.Now().Before(s.until)
		}
	}
	return true
}

func (p *Page) end(s *session) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for id, other := range p.sessions {
		if other == s {
			delete(p.sessions, id)
		}
	}
}

// notice tells what came of an act.
type notice struct {
	Bad   bool
	Lines []string
	once  map[string]*grant.Grant // the yeses for once that a line is about
}

// tell adds what was answered.
func (n *notice) tell(g *grant.Grant) {
	line := told(g)
	n.Lines = append(n.Lines, line)
	if g.Kind != grant.Once {
		return
	}
	if n.once == nil {
		n.once = map[string]*grant.Grant{}
	}
	n.once[line] = g
}

// sinceTold is a notice as it is true by now: a yes for once goes.
func (p *Page) sinceTold(n *notice) *notice {
	if n == nil || n.once == nil {
		return n
	}
	now, in := notice{Bad: n.Bad}, p.o.Grants.InForce()
	for _, line := range n.Lines {
		if g := n.once[line]; g != nil && !slices.Contains(in, g.ID) {
			line = "approved once, and the yes is used by now, or over: " + what(&g.For)
		}
		now.Lines = append(now.Lines, line)
	}
	return &now
}

// leave keeps a notice and returns the query that shows it.
func (s *session) leave(n *notice) string {
	if n == nil {
		return ""
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.last++
	s.notices[s.last] = n
	delete(s.notices, s.last-maxNotices)
	return "?notice=" + strconv.Itoa(s.last)
}

func (s *session) notice(r *http.Request) *notice {
	n, err := strconv.Atoi(r.URL.Query().Get("notice"))
	if err != nil {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.notices[n]
}
