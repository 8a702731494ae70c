// SPDX-License-Identifier: Apache-2.0

package page

import (
	"crypto/sha256"
	"fmt"
	"net/http"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/postern-gate/postern/internal/state/audit/segment"
)

const (
	// lookEvery is how often it is looked whether there is something new while a
	// tab is open, stillEvery how often a tab hears that it is still connected.
	lookEvery  = 250 * time.Millisecond
	stillEvery = 10 * time.Second
	// grace is how long a tab may be between two views.
	grace = 3 * time.Second
	// maxTabs are listening at once.
	maxTabs = 16
)

// events tells a tab when there is something new to see: not what. While one
// listens somebody is there to answer.
func (p *Page) events(w http.ResponseWriter, r *http.Request) {
	s := p.sessionOf(r)
	if s == nil || !p.here.come() {
		p.refuse(w, http.StatusServiceUnavailable, errNoSession())
		return
	}
	defer p.here.out()
	w.Header().Set("Content-Type", "text/event-stream")
	out := http.NewResponseController(w)
	send := func(text string) bool {
		_ = out.SetWriteDeadline(time.Now().Add(stillEvery))
		_, err := w.Write([]byte(text))
		return err == nil && out.Flush() == nil
	}
	if !send("retry: 1000\n\n") {
		return
	}
	tick := time.NewTicker(lookEvery)
	defer tick.Stop()
	last, still := p.print(), time.Now()
	for {
		select {
		case <-r.Context().Done():
			return
		case <-p.ended:
			return
		case <-tick.C:
		}
		if p.over(s) {
			return
		}
		if now := p.print(); now != last {
			last, still = now, time.Now()
			if !send("data: new\n\n") {
				return
			}
		} else if time.Since(still) > stillEvery {
			still = time.Now()
			if !send(": still\n\n") {
				return
			}
		}
	}
}

// print is something else when a view would show something else.
func (p *Page) print() [32]byte {
	var b strings.Builder
	for _, q := range p.o.Grants.Pending() {
		b.WriteString(q.ID + " ")
	}
	fmt.Fprintf(&b, "%q", p.changedNow())
	for _, id := range p.o.Grants.InForce() {
		b.WriteString(id + ".")
	}
	fmt.Fprintf(&b, "%q%q", p.o.Grants.PausedAgents(), p.problem())
	segments, _ := segment.List(p.o.Log) // none is a print too
	if n := len(segments); n > 0 {
		if info, err := os.Stat(segments[n-1].Path); err == nil {
			fmt.Fprintf(&b, "%d %d", n, info.Size())
		}
	}
	return sha256.Sum256([]byte(b.String()))
}

// lookedAgain is when it was last looked whether what is asked about is still
// there, and what was found.
type lookedAgain struct {
	mu      sync.Mutex
	at      time.Time
	changed []string // ids of questions
}

// againEvery bounds how often that is looked at, for all tabs together.
const againEvery = time.Second

// changedNow are the questions that are about something else by now.
func (p *Page) changedNow() []string {
	p.looked.mu.Lock()
	defer p.looked.mu.Unlock()
	if time.Since(p.looked.at) < againEvery {
		return p.looked.changed
	}
	p.looked.at, p.looked.changed = time.Now(), nil
	for _, q := range p.o.Grants.Pending() {
		if len(p.o.State.Since(&q.For)) > 0 {
			p.looked.changed = append(p.looked.changed, q.ID)
		}
	}
	return p.looked.changed
}

type leaver interface{ Leave() error }

// attendance says that somebody is there while a tab is.
type attendance struct {
	attend func() (leaver, error)
	grace  time.Duration

	mu    sync.Mutex
	tabs  int
	here  leaver
	later *time.Timer
	over  bool
}

// come counts a tab. It is false where there are too many.
func (a *attendance) come() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.tabs >= maxTabs || a.over {
		return false
	}
	if a.later != nil {
		a.later.Stop()
		a.later = nil
	}
	a.tabs++
	if a.here == nil {
		// Without it calls don't wait, and can be answered all the same.
		if here, err := a.attend(); err == nil {
			a.here = here
		}
	}
	return true
}

// out counts a tab out; the last one is waited for a moment, since the next
// view may be another one.
func (a *attendance) out() {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.tabs--; a.tabs > 0 || a.over {
		return
	}
	a.later = time.AfterFunc(a.grace, func() {
		a.mu.Lock()
		defer a.mu.Unlock()
		if a.tabs == 0 {
			_ = a.leave()
		}
	})
}

func (a *attendance) leave() error {
	if a.here == nil {
		return nil
	}
	err := a.here.Leave()
	a.here = nil
	return err
}

func (a *attendance) end() error {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.over = true
	if a.later != nil {
		a.later.Stop()
	}
	return a.leave()
}
