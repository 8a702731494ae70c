// SPDX-License-Identifier: Apache-2.0

package listen

import (
	"crypto/sha256"
	"crypto/subtle"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/postern-gate/postern/core/fault"
)

// Rules are what a request must meet. The zero value lets none through.
type Rules struct {
	// Hosts are the values of Host that are answered, as HostsOf makes them.
	Hosts []string
	// Origins are the origins of web pages that may send requests, usually none.
	Origins []string
	// Token is what Authorization: Bearer must hold; an empty one fits nothing.
	Token string
	// Session, if set, takes the place of Token, for a page that a person visits:
	// it says whether a request may be seen without one. Then Authorization is
	// refused, whatever it holds; a request by GET or HEAD may name the
	// listener's own origin, and any other must.
	Session func(*http.Request) bool
	// MaxBody is the longest body in bytes; 0 admits none.
	MaxBody int64
	// Refused, if set, is told of requests that were refused, of a flood only
	// of some.
	Refused func(*fault.Error)
}

// verdict is a status, the part of the request that it is about and the rule
// that this breaks; 0 lets it through.
type verdict struct {
	status     int
	part, rule string
	code       fault.Code // of the record
}

var passed = verdict{}

// Guard returns the handler that lets next see only what the rules allow. A
// handler that reads a body for longer than BodyTimeout sets a read deadline of
// its own. One that answers without reading the whole body ends the connection.
func Guard(next http.Handler, rules Rules) http.Handler {
	told := newPacer()
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		head := w.Header()
		head.Set("Cache-Control", "no-store")
		head.Set("X-Content-Type-Options", "nosniff")
		body := announced(w, r)
		if v := rules.judge(r); v != passed {
			if rules.Refused != nil && told.next() {
				rules.Refused(v.fault())
			}
			refuse(w, v)
			if v.status == http.StatusRequestEntityTooLarge { // the token fits
				body.discard(2 * rules.MaxBody)
			} else {
				body.discard(discarded)
			}
			return
		}
		r.Body = http.MaxBytesReader(w, body, rules.MaxBody)
		next.ServeHTTP(&writer{ResponseWriter: w, body: body}, r)
		body.discard(2 * rules.MaxBody)
	})
}

func (v verdict) fault() *fault.Error {
	f := &fault.Error{Code: v.code, Resource: "http " + v.part, Rule: v.rule}
	if v.part == "session" {
		f.Hint = "postern page prints a link"
	}
	return f
}

// refuse answers without a word of what was right, and ends the connection: what
// follows on it is not looked at.
func refuse(w http.ResponseWriter, v verdict) {
	head := w.Header()
	head.Set("Connection", "close")
	head.Set("Content-Type", "text/plain; charset=utf-8")
	if v.status == http.StatusUnauthorized && v.part == "token" {
		head.Set("WWW-Authenticate", "Bearer")
	}
	text := v.fault().Lines() + "\n"
	head.Set("Content-Length", strconv.Itoa(len(text)))
	w.WriteHeader(v.status)
	_, _ = w.Write([]byte(text)) // a client that has gone is none of our business
}

func (rules *Rules) judge(r *http.Request) verdict {
	switch {
	case !strings.HasPrefix(r.RequestURI, "/"):
		return verdict{http.StatusBadRequest, "target", "the target of the request is not a path", fault.RequestInvalid}
	case !rules.hostFits(r.Host):
		return verdict{http.StatusForbidden, "host", "the Host is not one of this server", fault.HTTPHost}
	case !rules.originFits(r):
		return verdict{http.StatusForbidden, "origin", "the Origin is not listed", fault.HTTPOrigin}
	case len(r.Header.Values("Upgrade")) > 0:
		return verdict{http.StatusBadRequest, "upgrade", "there is nothing to upgrade to", fault.RequestInvalid}
	case !rules.senderFits(r):
		return verdict{http.StatusUnauthorized, rules.proof(), "the request is not authorized", fault.HTTPToken}
	case r.ContentLength > rules.MaxBody:
		return verdict{http.StatusRequestEntityTooLarge, "body", "the body is longer than the limit", fault.LimitExceeded}
	}
	return passed
}

func (rules *Rules) hostFits(host string) bool {
	return host != "" && slices.Contains(rules.Hosts, host)
}

// originFits: a browser names the origin of the page that sends, "null" where it
// hides it. No browser leaves it out of a request that reaches another origin
// with a method or a header that is needed here.
func (rules *Rules) originFits(r *http.Request) bool {
	origins := r.Header.Values("Origin")
	if rules.Session != nil {
		reads := r.Method == http.MethodGet || r.Method == http.MethodHead
		return len(origins) == 0 && reads || len(origins) == 1 && origins[0] == "http://"+r.Host // which fits
	}
	switch len(origins) {
	case 0:
		return true
	case 1:
		return origins[0] != "null" && origins[0] != "" && slices.Contains(rules.Origins, origins[0])
	}
	return false
}

// senderFits: what opens a page opens nothing else, and the other way round.
func (rules *Rules) senderFits(r *http.Request) bool {
	authorization := r.Header.Values("Authorization")
	if rules.Session != nil {
		return len(authorization) == 0 && rules.Session(r)
	}
	return rules.tokenFits(authorization)
}

func (rules *Rules) proof() string {
	if rules.Session != nil {
		return "session"
	}
	return "token"
}

func (rules *Rules) tokenFits(authorization []string) bool {
	if len(authorization) != 1 || rules.Token == "" {
		return false
	}
	scheme, token, _ := strings.Cut(authorization[0], " ")
	if !strings.EqualFold(scheme, "bearer") {
		return false
	}
	// Of equal length whatever was sent, so that the time says nothing.
	got, want := sha256.Sum256([]byte(token)), sha256.Sum256([]byte(rules.Token))
	return subtle.ConstantTimeCompare(got[:], want[:]) == 1
}
