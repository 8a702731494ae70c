// SPDX-License-Identifier: Apache-2.0

package page

import (
	"strings"
	"testing"
)

// TestHeading: a card begins with what is done to what, and ends with it.
func TestHeading(t *testing.T) {
	d := newDesk(t)
	d.login()
	id := d.ask("project://x", "mutating")
	text := d.get("/")
	if !strings.Contains(text, `<h2 id="q-`+id+`"><span class="what">fs.write <bdi class="raw">project://x</bdi></span> <small>question `+id+`</small></h2>`) {
		t.Error(text)
	}
	if strings.Count(text, ">project://x</bdi>") != 2 {
		t.Error("the card doesn't end with it:", text)
	}
}
