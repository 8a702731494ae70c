// SPDX-License-Identifier: Apache-2.0

package attach

import (
	"os"
	"strings"
	"testing"
)

// TestDocs: docs/clients.md has a section for every client with exactly what is
// pasted there, and where.
func TestDocs(t *testing.T) {
	text, err := os.ReadFile("../../docs/clients.md")
	if err != nil {
		t.Fatal(err)
	}
	w := World{Home: "/home/you", Project: "/home/you/app", GOOS: "linux", Getenv: func(string) string { return "" }}
	for _, c := range Clients() {
		_, section, ok := strings.Cut(string(text), "\n## "+c.Name+"\n")
		section, _, _ = strings.Cut(section, "\n## ")
		p := c.Paste(w, Server{Command: "/usr/local/bin/postern"})
		if !ok {
			t.Errorf("there is no section %s", c.Name)
			continue
		}
		where := strings.TrimPrefix(strings.Replace(p.Where, "/home/you/", "~/", 1), "~/app/")
		for _, want := range []string{"`" + where + "`", "\n```\n" + p.Text + "```\n", p.Shell, c.ID} {
			if !strings.Contains(section, want) {
				t.Errorf("%s: it does not say\n%s", c.Name, want)
			}
		}
	}
}
