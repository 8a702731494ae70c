// SPDX-License-Identifier: Apache-2.0

package listen

import (
	"bufio"
	"io"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"github.com/postern-gate/postern/core/fault"
)

const token = "s3cret-token"

var testRules = Rules{Hosts: HostsOf(netip.MustParseAddrPort("127.0.0.1:4000")), Token: token, MaxBody: 100}

// seen is a handler that says what it saw.
var seen = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		http.Error(w, err.Error(), http.StatusTeapot)
		return
	}
	_, _ = w.Write([]byte("seen " + string(body)))
})

// raw parses a request as it stands on the wire and has it judged.
func raw(t *testing.T, rules Rules, text string) *httptest.ResponseRecorder {
	t.Helper()
	r, err := http.ReadRequest(bufio.NewReader(strings.NewReader(text)))
	if err != nil {
		t.Fatal(err)
	}
	w := httptest.NewRecorder()
	Guard(seen, rules).ServeHTTP(w, r)
	return w
}

const good = "POST /mcp HTTP/1.1\r\nHost: 127.0.0.1:4000\r\nAuthorization: Bearer " + token + "\r\nContent-Length: 2\r\n\r\nhi"

// Each case changes one thing of a request that passes.
func TestGuard(t *testing.T) {
	const auth = "Authorization: Bearer " + token
	host := func(h string) [2]string { return [2]string{"Host: 127.0.0.1:4000", "Host: " + h} }
	header := func(h string) [2]string { return [2]string{"\r\nContent-Length", "\r\n" + h + "\r\nContent-Length"} }
	tests := map[string]struct {
		change [2]string
		want   int
	}{
		"as it is":                    {[2]string{}, 200},
		"localhost":                   {host("localhost:4000"), 200},
		"IPv6":                        {host("[::1]:4000"), 403},
		"another path":                {[2]string{"/mcp", "/"}, 200},
		"scheme in upper case":        {[2]string{"Bearer", "BEARER"}, 200},
		"a rebound name":              {host("evil.example:4000"), 403},
		"a name below localhost":      {host("a.localhost:4000"), 403},
		"another port":                {host("127.0.0.1:4001"), 403},
		"no port":                     {host("127.0.0.1"), 403},
		"an empty port":               {host("127.0.0.1:"), 403},
		"upper case":                  {host("LOCALHOST:4000"), 403},
		"a trailing dot":              {host("localhost.:4000"), 403},
		"another loopback address":    {host("127.0.0.2:4000"), 403},
		"a short form":                {host("127.1:4000"), 403},
		"a number":                    {host("2130706433:4000"), 403},
		"all addresses":               {host("0.0.0.0:4000"), 403},
		"IPv6 without brackets":       {host("::1:4000"), 403},
		"IPv6 in another form":        {host("[0:0:0:0:0:0:0:1]:4000"), 403},
		"IPv4 in IPv6":                {host("[::ffff:127.0.0.1]:4000"), 403},
		"a user":                      {host("a@127.0.0.1:4000"), 403},
		"a port with a zero":          {host("127.0.0.1:04000"), 403},
		"two names":                   {host("127.0.0.1:4000, evil.example"), 403},
		"an empty host":               {host(""), 403},
		"HTTP/1.0 without a host":     {[2]string{"HTTP/1.1\r\nHost: 127.0.0.1:4000", "HTTP/1.0"}, 403},
		"HTTP/1.0":                    {[2]string{"HTTP/1.1", "HTTP/1.0"}, 200},
		"an absolute target":          {[2]string{"/mcp", "http://127.0.0.1:4000/mcp"}, 400},
		"an absolute target, another": {[2]string{"/mcp", "http://evil.example/mcp"}, 400},
		"CONNECT":                     {[2]string{"POST /mcp", "CONNECT 127.0.0.1:4000"}, 400},
		"a star":                      {[2]string{"POST /mcp", "OPTIONS *"}, 400},
		"an origin":                   {header("Origin: http://evil.example"), 403},
		"our own origin":              {header("Origin: http://127.0.0.1:4000"), 403},
		"the origin null":             {header("Origin: null"), 403},
		"an empty origin":             {header("Origin: "), 403},
		"a preflight":                 {[2]string{"POST /mcp HTTP/1.1", "OPTIONS /mcp HTTP/1.1\r\nOrigin: http://evil.example\r\nAccess-Control-Request-Method: POST"}, 403},
		"a web socket":                {header("Connection: Upgrade\r\nUpgrade: websocket"), 400},
		"HTTP/2":                      {header("Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABk"), 400},
		"no token":                    {[2]string{auth + "\r\n", ""}, 401},
		"an empty token":              {[2]string{"Bearer " + token, "Bearer "}, 401},
		"another token":               {[2]string{token, "s3cret-tokem"}, 401},
		"a part of the token":         {[2]string{token, token[:5]}, 401},
		"more than the token":         {[2]string{token, token + "x"}, 401},
		"the token in upper case":     {[2]string{token, strings.ToUpper(token)}, 401},
		"two spaces":                  {[2]string{"Bearer ", "Bearer  "}, 401},
		"another scheme":              {[2]string{"Bearer", "Basic"}, 401},
		"no scheme":                   {[2]string{"Bearer ", ""}, 401},
		"the token twice":             {header(auth), 401},
		"two tokens in one":           {[2]string{"Bearer " + token, "Bearer " + token + ", Bearer x"}, 401},
		"the token in the query":      {[2]string{"/mcp HTTP/1.1\r\nHost: 127.0.0.1:4000\r\n" + auth, "/mcp?access_token=" + token + " HTTP/1.1\r\nHost: 127.0.0.1:4000"}, 401},
		"a cookie":                    {[2]string{auth, "Cookie: token=" + token}, 401},
		"a long body":                 {[2]string{"Content-Length: 2\r\n\r\nhi", "Content-Length: 101\r\n\r\n" + strings.Repeat("x", 101)}, 413},
		"a long body in chunks":       {[2]string{"Content-Length: 2\r\n\r\nhi", "Transfer-Encoding: chunked\r\n\r\n65\r\n" + strings.Repeat("x", 101) + "\r\n0\r\n\r\n"}, http.StatusTeapot},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			text := good
			if tt.change[0] != "" {
				text = strings.Replace(good, tt.change[0], tt.change[1], 1)
				if text == good {
					t.Fatal("nothing is changed")
				}
			}
			rules := testRules
			var refused []string
			rules.Refused = func(f *fault.Error) { refused = append(refused, f.Resource+": "+f.Rule) }
			w := raw(t, rules, text)
			if w.Code != tt.want {
				t.Fatalf("%d %s", w.Code, w.Body)
			}
			if passes := tt.want == 200 || tt.want == http.StatusTeapot; passes != (len(refused) == 0) {
				t.Errorf("refused: %q", refused)
			}
			checkHeaders(t, w)
		})
	}
}

// checkHeaders: no answer may be kept or read by another origin, and a refusal
// says nothing of what was right.
func checkHeaders(t *testing.T, w *httptest.ResponseRecorder) {
	t.Helper()
	head := w.Result().Header
	if head.Get("Cache-Control") != "no-store" || head.Get("X-Content-Type-Options") != "nosniff" {
		t.Errorf("%v", head)
	}
	for key := range head {
		if strings.HasPrefix(key, "Access-Control-") || key == "Set-Cookie" || key == "Location" {
			t.Errorf("%s: %v", key, head[key])
		}
	}
	if got := head.Get("Www-Authenticate"); (w.Code == 401) != (got == "Bearer") {
		t.Errorf("WWW-Authenticate %q", got)
	}
	if text := w.Body.String(); strings.Contains(text, token) || strings.Contains(text, "4000") {
		t.Errorf("it says too much: %s", text)
	}
}

// An origin that is listed passes, alone.
func TestListedOrigin(t *testing.T) {
	rules := testRules
	rules.Origins = []string{"http://page.example", "null", ""}
	for origin, want := range map[string]int{
		"http://page.example": 200, "http://page.example:80": 403, "https://page.example": 403, "HTTP://page.example": 403,
		"null": 403, "": 403, "http://page.example http://page.example": 403,
		"http://page.example\r\nOrigin: http://page.example": 403,
	} {
		text := strings.Replace(good, "\r\nContent", "\r\nOrigin: "+origin+"\r\nContent", 1)
		if w := raw(t, rules, text); w.Code != want {
			t.Errorf("%q: %d", origin, w.Code)
		}
	}
}

// The zero value lets nothing through, and no rule alone does.
func TestZeroRules(t *testing.T) {
	for name, rules := range map[string]Rules{
		"zero":     {},
		"no hosts": {Token: token, MaxBody: 100},
		"no token": {Hosts: testRules.Hosts, MaxBody: 100},
		"no body":  {Hosts: testRules.Hosts, Token: token},
	} {
		if w := raw(t, rules, good); w.Code == 200 {
			t.Errorf("%s: passed", name)
		}
	}
	if w := raw(t, Rules{Hosts: testRules.Hosts, MaxBody: 100}, strings.Replace(good, "Bearer "+token, "Bearer ", 1)); w.Code != 401 {
		t.Errorf("an empty token fits an empty one: %d", w.Code)
	}
}

// Negative control: each request that TestGuard refuses would reach the handler
// without the guard.
func TestWithoutGuard(t *testing.T) {
	r, err := http.ReadRequest(bufio.NewReader(strings.NewReader(strings.Replace(good, "127.0.0.1:4000", "evil.example", 1))))
	if err != nil {
		t.Fatal(err)
	}
	w := httptest.NewRecorder()
	seen.ServeHTTP(w, r)
	if w.Body.String() != "seen hi" {
		t.Error(w.Body)
	}
}

// A flood of refusals is told of in part.
func TestFlood(t *testing.T) {
	rules := testRules
	told := 0
	rules.Refused = func(*fault.Error) { told++ }
	guard := Guard(seen, rules)
	for range 1000 {
		guard.ServeHTTP(httptest.NewRecorder(), httptest.NewRequestWithContext(t.Context(), "GET", "/", nil))
	}
	if told < toldAtOnce || told > 2*toldAtOnce {
		t.Errorf("told %d times", told)
	}
}

// FuzzGuard: whatever Host, Origin and Authorization hold, a request passes only
// if they are byte for byte what the rules say.
func FuzzGuard(f *testing.F) {
	f.Add("127.0.0.1:4000", "", "Bearer "+token, "/mcp", false)
	f.Add("localhost:4000", "null", "bearer "+token, "/", true)
	f.Add("LOCALHOST:4000", "http://127.0.0.1:4000", "Bearer  "+token, "*", true)
	f.Add("[::1]:4000", "", "", "http://127.0.0.1:4000/", false)
	f.Fuzz(func(t *testing.T, host, origin, authorization, target string, hasOrigin bool) {
		r := httptest.NewRequestWithContext(t.Context(), "POST", "/", nil)
		r.Host, r.RequestURI = host, target
		r.Header["Authorization"] = []string{authorization}
		if hasOrigin {
			r.Header["Origin"] = []string{origin}
		}
		w := httptest.NewRecorder()
		Guard(seen, testRules).ServeHTTP(w, r)
		hosts := []string{"127.0.0.1:4000", "localhost:4000"}
		right := slices.Contains(hosts, host) && !hasOrigin && len(target) > 0 && target[0] == '/' &&
			len(authorization) == len("Bearer "+token) && strings.EqualFold(authorization[:6], "bearer") && authorization[6:] == " "+token
		if (w.Code == 200) != right {
			t.Errorf("%d for host %q, origin %t %q, authorization %q, target %q", w.Code, host, hasOrigin, origin, authorization, target)
		}
	})
}

// A page's listener: its session, and nothing that opens another door. Each case
// changes one thing of a request that passes.
func TestGuardOfPage(t *testing.T) {
	rules := testRules
	rules.Token = "" // which fits nothing
	rules.Session = func(r *http.Request) bool { return r.Header.Get("Cookie") == "in=1" }
	const get = "GET / HTTP/1.1\r\nHost: 127.0.0.1:4000\r\nCookie: in=1\r\n\r\n"
	const post = "POST / HTTP/1.1\r\nHost: 127.0.0.1:4000\r\nCookie: in=1\r\nOrigin: http://127.0.0.1:4000\r\nContent-Length: 2\r\n\r\nhi"
	tests := map[string]struct {
		text, old, new string
		want           int
	}{
		"a look":                    {get, "", "", 200},
		"a look, our own origin":    {get, "\r\n\r\n", "\r\nOrigin: http://127.0.0.1:4000\r\n\r\n", 200},
		"a look from elsewhere":     {get, "\r\n\r\n", "\r\nOrigin: http://evil.example\r\n\r\n", 403},
		"a look by HEAD":            {get, "GET", "HEAD", 200},
		"no session":                {get, "in=1", "in=0", 401},
		"a token too":               {get, "\r\n\r\n", "\r\nAuthorization: Bearer " + token + "\r\n\r\n", 401},
		"an empty token too":        {get, "\r\n\r\n", "\r\nAuthorization: \r\n\r\n", 401},
		"a rebound name":            {get, "127.0.0.1:4000", "evil.example:4000", 403},
		"an act":                    {post, "", "", 200},
		"an act, no session":        {post, "in=1", "in=0", 401},
		"an act, no origin":         {post, "Origin: http://127.0.0.1:4000\r\n", "", 403},
		"an act, a foreign origin":  {post, "Origin: http://127.0.0.1:4000", "Origin: http://evil.example", 403},
		"an act, another port":      {post, "Origin: http://127.0.0.1:4000", "Origin: http://127.0.0.1:4001", 403},
		"an act, https":             {post, "Origin: http:", "Origin: https:", 403},
		"an act, the origin null":   {post, "Origin: http://127.0.0.1:4000", "Origin: null", 403},
		"an act, localhost's":       {post, "Origin: http://127.0.0.1:4000", "Origin: http://localhost:4000", 403},
		"an act, two origins":       {post, "Origin: http://127.0.0.1:4000", "Origin: http://127.0.0.1:4000\r\nOrigin: http://127.0.0.1:4000", 403},
		"an act, rebound with both": {post, "127.0.0.1:4000", "evil.example:4000", 403},
		"another method, no origin": {get, "GET", "OPTIONS", 403},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			w := raw(t, rules, strings.ReplaceAll(tt.text, orNothing(tt.old), tt.new))
			if w.Code != tt.want || w.Header().Get("WWW-Authenticate") != "" {
				t.Errorf("%d %q", w.Code, w.Body)
			}
		})
	}
}

// orNothing is what a text without a change has nowhere.
func orNothing(s string) string {
	if s == "" {
		return "\x00"
	}
	return s
}
