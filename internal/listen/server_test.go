// SPDX-License-Identifier: Apache-2.0

package listen

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/postern-gate/postern/core/fault"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestCheck(t *testing.T) {
	for address, want := range map[string][2]bool{ // without and with expose
		"127.0.0.1:1":          {true, true},
		"127.9.9.9:1":          {true, true},
		"[::1]:1":              {true, true},
		"10.0.0.1:1":           {false, true},
		"192.0.2.1:1":          {false, true},
		"[2001:db8::1]:1":      {false, true},
		"0.0.0.0:1":            {false, false},
		"[::]:1":               {false, false},
		"[::ffff:127.0.0.1]:1": {false, false},
		"[fe80::1%eth0]:1":     {false, false},
	} {
		for i, expose := range []bool{false, true} {
			err := Check(netip.MustParseAddrPort(address), expose)
			if (err == nil) != want[i] || err != nil && fault.CodeOf(err) != fault.RequestInvalid {
				t.Errorf("%s %t: %v", address, expose, err)
			}
		}
	}
	if Check(netip.AddrPort{}, true) == nil {
		t.Error("the zero address")
	}
	if _, err := Open(t.Context(), netip.MustParseAddrPort("0.0.0.0:0"), true, nil); err == nil {
		t.Error("it listens everywhere")
	}
}

func TestHostsOf(t *testing.T) {
	for address, want := range map[string]string{
		"127.0.0.1:4000":     "127.0.0.1:4000 localhost:4000",
		"[::1]:4000":         "[::1]:4000 localhost:4000",
		"127.0.0.5:4000":     "127.0.0.5:4000",
		"127.0.0.1:80":       "127.0.0.1 127.0.0.1:80 localhost localhost:80",
		"192.0.2.1:4000":     "192.0.2.1:4000",
		"[2001:db8::1]:4000": "[2001:db8::1]:4000",
	} {
		if got := HostsOf(netip.MustParseAddrPort(address)); strings.Join(got, " ") != want {
			t.Errorf("%s: %q", address, got)
		}
	}
}

// serve runs a server with the guard until the test ends.
func serve(t *testing.T) *Server {
	t.Helper()
	s, err := Open(t.Context(), netip.MustParseAddrPort("127.0.0.1:0"), false, nil)
	if err != nil {
		t.Fatal(err)
	}
	served := make(chan error, 1)
	go func() { served <- s.Serve(seen, Rules{Token: token, MaxBody: 1000}) }()
	t.Cleanup(func() {
		ctx, stop := context.WithTimeout(context.WithoutCancel(t.Context()), 200*time.Millisecond)
		defer stop()
		if err := errors.Join(s.Close(ctx), <-served); err != nil {
			t.Error(err)
		}
	})
	return s
}

// talk sends text over a connection of its own and returns all that comes back
// until the server closes, or until the answers that it should give.
func talk(t *testing.T, s *Server, text string) string {
	t.Helper()
	c, err := net.Dial("tcp", s.Address().String())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if _, err := io.WriteString(c, text); err != nil {
		t.Fatal(err)
	}
	_ = c.(*net.TCPConn).CloseWrite() // the server may have closed already
	_ = c.SetReadDeadline(time.Now().Add(10 * time.Second))
	got, err := io.ReadAll(c)
	if err != nil && !errors.Is(err, net.ErrClosed) && !strings.Contains(err.Error(), "reset") {
		t.Fatal(err)
	}
	return string(got)
}

// What stands on the wire: no shape of a request reaches the handler but a plain
// one, and none carries a second request past the guard.
func TestOnTheWire(t *testing.T) {
	s := serve(t)
	port := strconv.Itoa(int(s.Address().Port()))
	const (
		first = "POST /mcp HTTP/1.1\r\n"
		auth  = "Authorization: Bearer " + token + "\r\n"
		body  = "Content-Length: 2\r\n\r\nhi"
	)
	host := "Host: 127.0.0.1:" + port + "\r\n"
	evil := "GET /mcp HTTP/1.1\r\nHost: evil.example\r\n" + auth + "\r\n"
	tests := map[string]struct {
		text string
		want []int
	}{
		"plain":                        {first + host + auth + body, []int{200}},
		"two, one after the other":     {first + host + auth + body + first + host + auth + body, []int{200, 200}},
		"a second one with a bad host": {first + host + auth + body + evil, []int{200, 403}},
		"what follows a refusal":       {evil + first + host + auth + body, []int{403}},
		"two hosts":                    {first + host + host + auth + body, []int{400}},
		"two hosts, the other first":   {first + "Host: evil.example\r\n" + host + auth + body, []int{400}},
		"no host":                      {first + auth + body, []int{400}},
		"HTTP/1.0 without a host":      {"POST /mcp HTTP/1.0\r\n" + auth + body, []int{403}},
		"an absolute target":           {"POST http://127.0.0.1:" + port + "/mcp HTTP/1.1\r\n" + host + auth + body, []int{400}},
		"an absolute target, another":  {"POST http://evil.example/mcp HTTP/1.1\r\n" + host + auth + body, []int{400}},
		"our target, another host":     {"POST http://127.0.0.1:" + port + "/mcp HTTP/1.1\r\nHost: evil.example\r\n" + auth + body, []int{400}},
		"CONNECT":                      {"CONNECT 127.0.0.1:" + port + " HTTP/1.1\r\n" + host + auth + "\r\n", []int{400}},
		"a star":                       {"OPTIONS * HTTP/1.1\r\n" + host + auth + "\r\n", []int{400}},
		"origin null":                  {first + host + auth + "Origin: null\r\n" + body, []int{403}},
		"two origins":                  {first + host + auth + "Origin: http://a\r\nOrigin: http://b\r\n" + body, []int{403}},
		"two lengths":                  {first + host + auth + "Content-Length: 2\r\nContent-Length: 3\r\n\r\nhi!", []int{400}},
		"a signed length":              {first + host + auth + "Content-Length: +2\r\n\r\nhi", []int{400}},
		"a length in hex":              {first + host + auth + "Content-Length: 0x2\r\n\r\nhi", []int{400}},
		"an unknown encoding":          {first + host + auth + "Transfer-Encoding: xchunked\r\n\r\n0\r\n\r\n", []int{501}},
		"two encodings":                {first + host + auth + "Transfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n\r\n0\r\n\r\n", []int{501}},
		"a chunk without a length":     {first + host + auth + "Transfer-Encoding: chunked\r\n\r\nzz\r\n\r\n" + evil, []int{418}},
		"a space before the colon":     {first + host + auth + "Content-Length : 2\r\n\r\nhi", []int{400}},
		"a folded header":              {first + host + auth + "X: a\r\n b\r\n" + body, []int{200}},
		"a folded host":                {first + "Host: 127.0.0.1:" + port + "\r\n x\r\n" + auth + body, []int{400}},
		"a name with a line feed":      {first + host + auth + "X\nY: a\r\n" + body, []int{400}},
		"a null byte":                  {first + host + auth + "X: a\x00b\r\n" + body, []int{400}},
		"HTTP/2 without being asked":   {"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", []int{400}},
		"no HTTP":                      {"{\"jsonrpc\":\"2.0\"}\r\n\r\n", []int{400}},
		"long headers":                 {first + host + auth + "X: " + strings.Repeat("x", 2*MaxHeader) + "\r\n" + body, []int{431}},
		"expecting":                    {first + host + auth + "Expect: something\r\n" + body, []int{417}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			got := talk(t, s, tt.text)
			if codes := statusesOf(t, got); !slices.Equal(codes, tt.want) {
				t.Errorf("%v: %q", codes, got)
			}
		})
	}
}

// A length beside chunks: the chunks count, as RFC 9112 has it, and the length
// is not a way to hide a second request.
func TestLengthBesideChunks(t *testing.T) {
	s := serve(t)
	port := strconv.Itoa(int(s.Address().Port()))
	got := talk(t, s, "POST /mcp HTTP/1.1\r\nHost: 127.0.0.1:"+port+"\r\nAuthorization: Bearer "+token+
		"\r\nContent-Length: 50\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nhi\r\n0\r\n\r\nGET /mcp HTTP/1.1\r\nHost: evil.example\r\n\r\n")
	if codes := statusesOf(t, got); len(codes) == 0 || codes[0] == 200 && !strings.Contains(got, "seen hi") || slices.Contains(codes[1:], 200) {
		t.Errorf("%q", got)
	}
}

func statusesOf(t *testing.T, text string) (codes []int) {
	t.Helper()
	for r := bufio.NewReader(strings.NewReader(text)); ; {
		a, err := http.ReadResponse(r, nil)
		if err != nil {
			return codes
		}
		if _, err := io.Copy(io.Discard, a.Body); err != nil {
			t.Fatal(err)
		}
		a.Body.Close()
		codes = append(codes, a.StatusCode)
	}
}

// One connection too many is answered and closed; a place is free again when a
// connection is.
func TestConnectionsAreLimited(t *testing.T) {
	s := serve(t)
	l, ok := s.listener.(*limited)
	if !ok {
		t.Fatal("no limit")
	}
	for range MaxConns {
		l.places <- struct{}{}
	}
	host := "127.0.0.1:" + strconv.Itoa(int(s.Address().Port()))
	text := strings.Replace(good, "127.0.0.1:4000", host, 1)
	if codes := statusesOf(t, talk(t, s, text)); !slices.Equal(codes, []int{503}) {
		t.Errorf("%v", codes)
	}
	<-l.places
	for range 3 {
		if codes := statusesOf(t, talk(t, s, text)); !slices.Equal(codes, []int{200}) {
			t.Fatalf("%v", codes)
		}
		for len(l.places) == MaxConns { // until the server has seen the end
			time.Sleep(time.Millisecond)
		}
	}
}

func TestPortInUse(t *testing.T) {
	s := serve(t)
	if _, err := Open(t.Context(), s.Address(), false, nil); !errors.Is(err, ErrInUse) {
		t.Errorf("%v", err)
	}
}

// Close lets an answer be written, and then ends what is open.
func TestClose(t *testing.T) {
	s, err := Open(t.Context(), netip.MustParseAddrPort("127.0.0.1:0"), false, nil)
	if err != nil {
		t.Fatal(err)
	}
	started, let := make(chan bool), make(chan bool)
	served := make(chan error, 1)
	go func() {
		served <- s.Serve(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			close(started)
			<-let
			_, _ = w.Write([]byte("late"))
		}), Rules{Token: token, MaxBody: 1000})
	}()
	got := make(chan string)
	go func() {
		got <- talk(t, s, strings.Replace(good, "127.0.0.1:4000", s.Address().String(), 1))
	}()
	<-started
	closed := make(chan error)
	go func() { closed <- s.Close(t.Context()) }()
	if err := <-served; err != nil {
		t.Error(err)
	}
	close(let)
	if text := <-got; !strings.Contains(text, "late") {
		t.Errorf("%q", text)
	}
	if err := <-closed; err != nil {
		t.Error(err)
	}
}

// The pace of refusals that are told of.
func TestPacer(t *testing.T) {
	now := time.Unix(1000, 0)
	p := newPacer()
	p.now = func() time.Time { return now }
	count := func() (n int) {
		for range 100 {
			if p.next() {
				n++
			}
		}
		return n
	}
	if n := count(); n != toldAtOnce {
		t.Errorf("at once %d", n)
	}
	now = now.Add(3 * toldEvery)
	if n := count(); n != 3 {
		t.Errorf("after three %d", n)
	}
	now = now.Add(time.Hour)
	if n := count(); n != toldAtOnce {
		t.Errorf("after an hour %d", n)
	}
}
