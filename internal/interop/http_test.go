// SPDX-License-Identifier: Apache-2.0

package interop

import (
	"context"
	"encoding/json"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"strings"
	"testing"
)

// serveHTTP starts postern serve --http and returns where it is and its token.
// It has to end well when it is interrupted.
func serveHTTP(t *testing.T, bin, root string, env []string) (address, token string) {
	t.Helper()
	cmd := exec.CommandContext(context.WithoutCancel(t.Context()), bin, "serve", "--http", "auto", "--json", root)
	cmd.Env = env
	var stderr strings.Builder
	cmd.Stderr = &stderr
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := cmd.Process.Signal(os.Interrupt); err != nil {
			t.Error(err)
		}
		_ = cmd.Wait()
		if code := cmd.ProcessState.ExitCode(); code != 0 {
			t.Errorf("ended with %d\n%s", code, stderr.String())
		}
	})
	var e struct {
		URL       string
		TokenFile string `json:"token_file"`
	}
	if err := json.NewDecoder(out).Decode(&e); err != nil {
		t.Fatalf("%v\n%s", err, stderr.String())
	}
	data, err := os.ReadFile(e.TokenFile)
	if err != nil {
		t.Fatal(err)
	}
	var kept struct{ Token string }
	if err := json.Unmarshal(data, &kept); err != nil || kept.Token == "" {
		t.Fatal("no token", err)
	}
	return e.URL, kept.Token
}

// TestPagesAgainstServe: postern serve --http, its real token in the hands of
// pages: one of another origin, and one whose name leads to this machine. Nothing
// is read, and the log has the refusals.
func TestPagesAgainstServe(t *testing.T) {
	bin := build(t)
	root, env := folder(t)
	at, token := serveHTTP(t, bin, root, env)
	victim, err := url.Parse(at)
	if err != nil {
		t.Fatal(err)
	}
	p := newPage()
	p.token, p.tool = token, "list_allowed_directories"
	elsewhere := httptest.NewServer(p)
	defer elsewhere.Close()
	unread(t, p.visit(t, elsewhere.URL, at))
	rebound := "http://evil.test:" + victim.Port() + victim.Path
	unread(t, p.visit(t, strings.Replace(elsewhere.URL, "127.0.0.1", "evil.test", 1), rebound))

	cmd := exec.CommandContext(t.Context(), bin, "log", "--json")
	cmd.Env = env
	log, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	refused := 0
	for line := range strings.Lines(string(log)) {
		switch {
		case strings.Contains(line, `"decision":"allow"`):
			t.Errorf("allowed: %s", line)
		case strings.Contains(line, `"source":"serve-http"`) && strings.Contains(line, `"event":"refusal"`):
			refused++
		}
	}
	if refused < 10 {
		t.Errorf("%d refusals in the log:\n%.2000s", refused, log)
	}
}
