// SPDX-License-Identifier: Apache-2.0

package mcpserver

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/postern-gate/postern/core/fault"
)

// TestHTTPTranscripts plays each testdata/http/*.txtar over real HTTP. A request
// is its method, its headers and its body, each a line that begins with >; POST
// has the usual media types unless it says others. Lines with < are the answer,
// those with ! what was recorded as refused. SESSION is the id that the server
// gave out last.
func TestHTTPTranscripts(t *testing.T) {
	files, err := filepath.Glob("testdata/http/*.txtar")
	if err != nil || len(files) < 3 {
		t.Fatal(files, err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txtar"), func(t *testing.T) {
			data, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			const mark = "-- transcript --\n"
			story, want, ok := strings.Cut(string(data), mark)
			if !ok {
				t.Fatal("no transcript")
			}
			got := playHTTP(t, want)
			if *update {
				if err := os.WriteFile(file, []byte(story+mark+got), 0o600); err != nil {
					t.Fatal(err)
				}
			} else if diff := cmp.Diff(want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

type refusals struct {
	mu  sync.Mutex
	all []string
}

func (r *refusals) note(_ *Session, f *fault.Error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.all = append(r.all, f.Code.String()+" "+f.Resource+": "+f.Rule)
}

func (r *refusals) take() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	all := r.all
	r.all = nil
	return all
}

var sessionID = regexp.MustCompile(`^[0-9a-f]{64}$`)

func playHTTP(t *testing.T, script string) string {
	t.Helper()
	var refused refusals
	s, err := New(Config{Tools: testTools(newGate()), Version: "1.2.3", Refused: refused.note})
	if err != nil {
		t.Fatal(err)
	}
	_, srv := httpServer(t, s)
	var log strings.Builder
	session := "none"
	for block := range strings.SplitSeq(script, "\n\n") {
		r := readRequest(t, srv.URL, block, session, &log)
		if r == nil {
			continue
		}
		answer, err := srv.Client().Do(r)
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(answer.Body)
		answer.Body.Close()
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(&log, "< %d", answer.StatusCode)
		for _, key := range []string{"Content-Type", "Allow", "Retry-After", "X-Accel-Buffering"} {
			if v := answer.Header.Get(key); v != "" {
				log.WriteString(" " + v)
			}
		}
		if id := answer.Header.Get(headerSession); id != "" {
			if !sessionID.MatchString(id) {
				t.Errorf("session %q", id)
			}
			session = id
			log.WriteString(" SESSION")
		}
		log.WriteString("\n")
		for line := range strings.Lines(string(body)) {
			log.WriteString("< " + strings.TrimSuffix(line, "\n") + "\n")
		}
		for _, f := range refused.take() {
			log.WriteString("! " + f + "\n")
		}
		log.WriteString("\n")
	}
	return log.String()
}

// readRequest reads one request of a script, and copies it to the log with what
// is said about it.
func readRequest(t *testing.T, url, block, session string, log *strings.Builder) *http.Request {
	t.Helper()
	var r *http.Request
	for line := range strings.SplitSeq(block, "\n") {
		if strings.HasPrefix(line, "#") {
			log.WriteString(line + "\n")
		}
		said, ok := strings.CutPrefix(line, "> ")
		if !ok {
			continue
		}
		log.WriteString(line + "\n")
		key, value, header := strings.Cut(said, ": ")
		switch {
		case r == nil:
			var err error
			if r, err = http.NewRequestWithContext(t.Context(), said, url, nil); err != nil {
				t.Fatal(err)
			}
			if said == http.MethodPost {
				r.Header["Accept"] = []string{"application/json, text/event-stream"}
				r.Header["Content-Type"] = []string{"application/json"}
			}
		case header && !strings.ContainsAny(key, `{["`):
			value = strings.ReplaceAll(value, "SESSION", session)
			key = http.CanonicalHeaderKey(key)
			if added, twice := strings.CutPrefix(value, "+ "); twice {
				r.Header[key] = append(r.Header[key], added)
			} else if r.Header[key] = []string{value}; value == "-" {
				delete(r.Header, key)
			}
		default:
			r.Body = io.NopCloser(bytes.NewReader([]byte(said)))
			r.ContentLength = int64(len(said))
		}
	}
	return r
}

// Every refusal of the refused transcript is recorded, and every answer there
// says that nothing was done.
func TestHTTPRefusalsAreRecorded(t *testing.T) {
	data, err := os.ReadFile("testdata/http/refused.txtar")
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for block := range strings.SplitSeq(string(data), "\n\n") {
		lines := strings.Split(block, "\n")
		if !slices.ContainsFunc(lines, func(l string) bool { return strings.HasPrefix(l, "< 4") }) {
			continue
		}
		n++
		if !slices.ContainsFunc(lines, func(l string) bool { return strings.HasPrefix(l, "! ") }) {
			t.Errorf("not recorded:\n%s", block)
		}
	}
	if n < 30 {
		t.Errorf("%d refusals", n)
	}
}
