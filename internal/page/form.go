// SPDX-License-Identifier: Apache-2.0

package page

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/postern-gate/postern/core/fault"
	"github.com/postern-gate/postern/internal/prompt"
)

// stamp is what a form carries: what it is about, what was shown of that, when,
// and the proof that this page drew it for this session. About is in base64:
// what others wrote must come back byte for byte. Drawn counts from the
// session's begin, in milliseconds: setting the clock makes nothing older.
type stamp struct {
	Act, About, Shown, Drawn, Proof string
}

// drawn is what a stamp says, once it is proved.
type drawn struct {
	about, shown string
	early        bool // it came back in the first half second
}

// form is one that was sent, its stamp proved.
type form struct {
	drawn

	values url.Values
}

func (s *session) stamp(act, about, shown string, now time.Time) stamp {
	t := stamp{Act: act, About: base64.RawURLEncoding.EncodeToString([]byte(about)), Shown: shown, Drawn: strconv.FormatInt(now.Sub(s.began).Milliseconds(), 10)}
	t.Proof = s.prove(t)
	return t
}

// prove is a MAC over the parts, each with its length.
func (s *session) prove(t stamp) string {
	h := hmac.New(sha256.New, s.key)
	for _, part := range []string{t.Act, t.About, t.Shown, t.Drawn} {
		_, _ = h.Write([]byte(strconv.Itoa(len(part)) + ":" + part))
	}
	return base64.RawURLEncoding.EncodeToString(h.Sum(nil))
}

// check proves a stamp.
func (s *session) check(t stamp, now time.Time) (drawn, error) {
	at, err := strconv.ParseInt(t.Drawn, 10, 64)
	if err != nil || !hmac.Equal([]byte(s.prove(t)), []byte(t.Proof)) {
		return drawn{}, errStamp()
	}
	about, err := base64.RawURLEncoding.DecodeString(t.About)
	if err != nil {
		return drawn{}, errStamp()
	}
	return drawn{string(about), t.Shown, now.Sub(s.began)-time.Duration(at)*time.Millisecond < prompt.Deaf}, nil
}

// Value is a stamp in one word, for a box to tick. None of its parts has a dot.
func (t stamp) Value() string {
	return strings.Join([]string{t.About, t.Shown, t.Drawn, t.Proof}, ".")
}

// ticked reads a box that was ticked, and proves its stamp.
func (s *session) ticked(act, value string, now time.Time) (drawn, error) {
	parts := strings.Split(value, ".")
	if len(parts) != 4 {
		return drawn{}, errStamp()
	}
	return s.check(stamp{act, parts[0], parts[1], parts[2], parts[3]}, now)
}

// formOf reads a form and proves its stamp.
func (p *Page) formOf(s *session, act string, r *http.Request) (form, error) {
	if err := r.ParseForm(); err != nil {
		return form{}, errStamp()
	}
	v := r.PostForm // never the query
	d, err := s.check(stamp{act, v.Get("about"), v.Get("shown"), v.Get("drawn"), v.Get("proof")}, p.o.Now())
	return form{d, v}, err
}

func errStamp() *fault.Error {
	return &fault.Error{Code: fault.HTTPOrigin, Resource: "http form", Rule: "this page did not draw the form for this session", Hint: "open the page again"}
}

const tooEarly = "that came in the first half second, before it can have been read"

// early is the answer to what came before anybody can have read it.
func early() *notice {
	return &notice{Bad: true, Lines: []string{"nothing was done: " + tooEarly}}
}
