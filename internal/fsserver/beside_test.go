// SPDX-License-Identifier: Apache-2.0

//go:build linux

package fsserver

import (
	"sync"
	"testing"
	"time"

	"github.com/postern-gate/postern/core"
	"github.com/postern-gate/postern/enforce"
)

// meeting is a policy that decides about either of two names only when it is
// asked about the other at the same time.
type meeting struct {
	enforce.Decider
	action  core.Action
	both    *sync.WaitGroup
	arrived map[string]*sync.Once
}

func (m meeting) Evaluate(r core.Request) core.Verdict {
	if once := m.arrived[r.Resource.Name]; once != nil && r.Action == m.action {
		once.Do(m.both.Done)
		m.both.Wait()
	}
	return m.Decider.Evaluate(r)
}

// TestSearchesInParallel: two files are read at once, and two directories: a
// search that did one after the other would never end.
func TestSearchesInParallel(t *testing.T) {
	w := newWorld(t, map[string]string{"d/1": "needle", "e/2": "needle"}, later)
	for tool, tt := range map[string]struct {
		action core.Action
		a      args
	}{
		"search_content": {core.FSRead, args{"query": "needle"}},
		"search_files":   {core.FSList, args{"pattern": "**/[12]"}},
		"directory_tree": {core.FSList, args{}},
	} {
		var both sync.WaitGroup
		both.Add(2)
		c := w.serveWith(func(o *Options) {
			o.CallTime = patience
			o.Gate.Decider = meeting{o.Gate.Decider, tt.action, &both, map[string]*sync.Once{"d/1": {}, "e/2": {}}}
		})
		tt.a["path"] = w.root
		_, ch := c.startCall(tool, tt.a)
		select {
		case line := <-ch:
			ch <- line
			c.result(c.await(ch)).ok().has("1", "2")
		case <-time.After(patience):
			t.Fatalf("%s does one after the other", tool)
		}
		w.setup.State += "+"
	}
}
