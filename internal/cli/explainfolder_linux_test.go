// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/postern-gate/postern/core"
	"github.com/postern-gate/postern/core/fault"
)

// TestExplainWithoutFolder: a record of an earlier version doesn't say in which
// folder the call was, so nothing is said of a policy that changed.
func TestExplainWithoutFolder(t *testing.T) {
	p := newPlace(t, map[string]string{"a.txt": "a"})
	p.record(t, fault.PolicyDenied, core.Reason{Decision: core.Deny, Rule: "fs.write: deny"})
	if x := p.explain("c"); x.Now.Changed || !x.Now.Unsure || x.Asked.Folder != "" {
		t.Errorf("%+v %+v", x.Now, x.Asked)
	}
	var out bytes.Buffer
	run(t.Context(), []string{"explain", "c"}, p.env(strings.NewReader(""), &out))
	if text := out.String(); !strings.Contains(text, "the record doesn't say in which folder") || strings.Contains(text, "is in force") {
		t.Error(text)
	}
}

// TestExplainElsewhere: the page is about every folder of its user, and judges a
// call by that of the call, whatever it was started for. A root that is another
// folder by now is said to be.
func TestExplainElsewhere(t *testing.T) {
	strict := "version: 1\nrules: { fs.write: deny }\n"
	p := newPlace(t, map[string]string{"a.txt": "a", ".postern/policy.yaml": strict})
	id := p.serve(".").refused(fault.PolicyDenied, "write_file", write("a.txt")).ID
	served := map[string]bool{} // by the server, which may hold its root
	before, err := filepath.Glob("/proc/self/fd/*")
	p.must(err)
	for _, fd := range before {
		to, err := os.Readlink(fd)
		served[fd] = err == nil && to == p.dir
	}
	other := t.TempDir()
	o := &options{}
	elsewhere := p.env(strings.NewReader(""), &bytes.Buffer{})
	elsewhere.Getwd = func() (string, error) { return other, nil }
	w, err := o.loadHere(&elsewhere)
	p.must(err)
	p.must(w.open(&elsewhere))
	explained := func() string {
		text, err := o.explainedText(t.Context(), &elsewhere, w, id)
		p.must(err)
		return text
	}
	file := filepath.Join(p.dir, ".postern/policy.yaml")
	if text := explained(); !strings.Contains(text, "\nrule: fs.write: deny ("+file) || strings.Contains(text, "policy:") {
		t.Error(text)
	}
	open, err := filepath.Glob("/proc/self/fd/*")
	p.must(err)
	for _, fd := range open { // what is opened for an answer is let go
		if to, err := os.Readlink(fd); err == nil && to == p.dir && !served[fd] {
			t.Error(fd + " is still open")
		}
	}
	p.must(os.Remove(file))
	if text := explained(); !strings.HasPrefix(text, "now it would be allowed: ") || !strings.Contains(text, "\npolicy: another one than then is in force\n") {
		t.Error(text)
	}
	p.put(p.user(), "version: 1\nroots: { project: { path: "+other+" } }\n")
	if text := explained(); !strings.Contains(text, "now: it can't be judged again: the root project was "+p.dir+" then, and is "+other+" now\n") {
		t.Error(text)
	}
}

// TestExplainLongFolder: of a folder whose path the log cuts it can't be told whether
// it is there; one that is told whole and is gone is said to be.
func TestExplainLongFolder(t *testing.T) {
	for folder, want := range map[string]string{
		"/none" + strings.Repeat("/long", 200): ": the log has only a part of that folder's path, so whether it is there can't be told\n",
		"/none":                                "now: it can't be judged again: it was in /none: that folder is not there any more\n",
	} {
		p := newPlace(t, map[string]string{"a.txt": "a"})
		p.record(t, fault.PolicyDenied, core.Reason{Decision: core.Deny, Rule: "fs.write: deny"}, folder)
		var out bytes.Buffer
		run(t.Context(), []string{"explain", "c"}, p.env(strings.NewReader(""), &out))
		if text := out.String(); !strings.Contains(text, "now: it can't be judged again: it was in /none") || !strings.Contains(text, want) {
			t.Error(text)
		}
	}
}
