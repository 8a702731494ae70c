// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/postern-gate/postern/core"
	"github.com/postern-gate/postern/core/fault"
	"github.com/postern-gate/postern/internal/config/advice"
	"github.com/postern-gate/postern/internal/state"
	"github.com/postern-gate/postern/internal/state/audit"
	"github.com/postern-gate/postern/internal/state/grant"
)

// loosest is all that a person's own policy can allow.
const loosest = "version: 1\nallow: [\"**\"]\nrules: { fs.read: allow, fs.list: allow, fs.write: allow, fs.create: allow, fs.rename: allow, fs.delete: allow }\n" +
	"allow_sensitive: [dotenv, keys, ssh, gnupg, cloud, logins, npmrc, browsers, git, shell, autostart, agents, editors]\nrequire: { confirm: [fs.delete] }\n"

// codeCase is a call that a code ends, and the one that the advice leads to.
type codeCase struct {
	tool       string
	args       map[string]any
	then       map[string]any // nil where nothing leads anywhere
	kind       string
	setup      func(*place)
	fromAnswer func(*session) // completes then
}

func codeCases() map[fault.Code]codeCase {
	chain := func(p *place) { // longer than may be followed
		for i := range 45 {
			to := "l" + strconv.Itoa(i+1)
			if i == 44 {
				to = "a.txt"
			}
			p.must(os.Symlink(to, filepath.Join(p.dir, "l"+strconv.Itoa(i))))
		}
	}
	stale := write("a.txt")
	stale["ifMatch"] = "old"
	fresh := write("a.txt")
	etag := regexp.MustCompile(`etag="([^"]+)"`)
	edit := func(to string) map[string]any {
		return map[string]any{"path": "a.txt", "edits": []map[string]string{{"oldText": "a", "newText": to}}}
	}
	return map[fault.Code]codeCase{
		fault.PathEscape:     {tool: "read_text_file", args: read("../x"), kind: advice.InNothing},
		fault.PathSymlink:    {tool: "read_text_file", args: read("l0"), then: read("a.txt"), kind: advice.InCall, setup: chain},
		fault.PathSpecial:    {tool: "read_text_file", args: read("fifo"), kind: advice.InNothing, setup: func(p *place) { p.must(syscall.Mkfifo(filepath.Join(p.dir, "fifo"), 0o600)) }},
		fault.PathDenied:     {tool: "read_text_file", args: read("a\x00"), then: read("a.txt"), kind: advice.InCall},
		fault.PathMissing:    {tool: "read_text_file", args: read("none"), then: read("a.txt"), kind: advice.InCall},
		fault.ConfirmMissing: {tool: "delete_file", args: read("a.txt"), then: map[string]any{"path": "a.txt", "confirm": true}, kind: advice.InCall},
		fault.PreconditionFailed: {tool: "write_file", args: stale, then: fresh, kind: advice.InCall, fromAnswer: func(s *session) {
			m := etag.FindStringSubmatch(s.ask("tools/call", map[string]any{"name": "read_text_file", "arguments": read("a.txt")}).Content[0].Text)
			fresh["ifMatch"] = m[1]
		}},
		fault.TextUnsafe:     {tool: "edit_file", args: edit("b\x00"), then: edit("b"), kind: advice.InCall},
		fault.RequestInvalid: {tool: "write_file", args: map[string]any{"path": "a.txt", "content": "x", "nothing": 1}, then: write("a.txt"), kind: advice.InCall},
	}
}

// TestExplainCodes: what the advice about a code says is done, and the call
// succeeds; where it says that nothing helps, the loosest policy doesn't.
func TestExplainCodes(t *testing.T) {
	for code, tt := range codeCases() {
		t.Run(code.String(), func(t *testing.T) {
			t.Parallel() // most of the time a record is waited for
			p := newPlace(t, map[string]string{"a.txt": "a"})
			p.put(p.user(), loosest)
			if tt.setup != nil {
				tt.setup(p)
			}
			s := p.serve(".")
			x := s.refused(code, tt.tool, tt.args)
			if x.Changes[0].Kind != tt.kind || x.Changes[0].Text != advice.For(code).Text {
				t.Errorf("%+v", x.Changes)
			}
			if tt.then == nil {
				if x.Enough {
					t.Error("nothing is said to be enough")
				}
				return
			}
			if tt.fromAnswer != nil {
				tt.fromAnswer(s)
			}
			if got := s.call(tt.tool, tt.then); got != fault.OK.String() {
				t.Errorf("afterwards: %s", got)
			}
		})
	}
}

// TestExplainGuards: no loosening is proposed for what no policy lifts.
func TestExplainGuards(t *testing.T) {
	p := newPlace(t, map[string]string{"a.txt": "a"})
	p.put(filepath.Join(p.dir, ".postern/policy.yaml"), "version: 1\n")
	p.put(p.user(), loosest)
	for tool, args := range map[string]map[string]any{
		"delete_file":    {"path": ".", "recursive": true, "confirm": true},
		"read_text_file": read(".postern/policy.yaml"),
	} {
		x := p.serve(".").refused(fault.PolicyDenied, tool, args)
		if len(x.Changes) != 1 || x.Changes[0].Kind != advice.InNothing || x.Enough {
			t.Errorf("%s: %+v", tool, x.Changes)
		}
	}
}

// TestExplainHardlinks: a root that refuses files with several names.
func TestExplainHardlinks(t *testing.T) {
	p := newPlace(t, map[string]string{"a.txt": "a"})
	p.must(os.Link(filepath.Join(p.dir, "a.txt"), filepath.Join(p.dir, "b.txt")))
	p.put(p.user(), "version: 1\nroots: { project: { path: ., hardlinks: deny } }\n")
	x := p.serve().refused(fault.PathDenied, "read_text_file", read("a.txt"))
	i := slices.IndexFunc(x.Changes, func(s advice.Step) bool { return s.Kind == advice.InPolicy })
	if i < 0 || !x.Enough {
		t.Fatalf("%+v", x.Changes)
	}
	p.follow(x.Changes[i : i+1])
	if got := p.serve().call("read_text_file", read("a.txt")); got != fault.OK.String() {
		t.Error(got)
	}
}

// TestExplainMount: another file system in the folder.
func TestExplainMount(t *testing.T) {
	p := newPlace(t, map[string]string{"a.txt": "a", "mnt/x": ""})
	small(t, filepath.Join(p.dir, "mnt"))
	p.put(filepath.Join(p.dir, "mnt/deep/b.txt"), "b")
	x := p.serve(".").refused(fault.PathMount, "read_text_file", read("mnt/deep/b.txt"))
	if len(x.Changes) != 1 || x.Changes[0].Kind != advice.InPolicy || !x.Enough {
		t.Fatalf("%+v", x.Changes)
	}
	p.follow(x.Changes)
	if got := p.serve().call("read_text_file", read("mnt/deep/b.txt")); got != fault.OK.String() {
		t.Error(got)
	}
}

// TestExplainServer: a server that is only for reading is what refuses, and not
// the policy.
func TestExplainServer(t *testing.T) {
	p := newPlace(t, map[string]string{"a.txt": "a"})
	p.record(t, fault.PolicyDenied, core.Reason{Step: core.StepContainment, Rule: readOnlyFlag, Why: "nothing is changed"})
	x := p.explain("c")
	if len(x.Changes) != 1 || x.Changes[0].Kind != advice.InServer || x.Now.Differs {
		t.Errorf("%+v %+v", x.Changes, x.Now)
	}
	if got := p.serve(".").call("write_file", write("a.txt")); got != fault.OK.String() {
		t.Error(got)
	}
}

// record writes a record of a call that ended with the code, perhaps in a folder.
func (p *place) record(t *testing.T, code fault.Code, why core.Reason, folder ...string) {
	t.Helper()
	dir, err := state.Open(filepath.Join(p.home, ".local/state/postern"))
	p.must(err)
	l, err := audit.Open(dir.Path(), audit.Options{})
	p.must(err)
	e := event("c", time.Now())
	e.Phase, e.Code, e.Folder = core.PhaseDecision, code.String(), strings.Join(folder, "")
	e.Verdict = core.Verdict{Decision: why.Decision, Reason: why}
	p.must(l.Record(e, true))
	p.must(l.Close())
}

// TestExplainEveryCode: each code can be explained, and what no door gives says
// so: nothing but the table of codes names it.
func TestExplainEveryCode(t *testing.T) {
	source := shippedSource(t)
	for _, code := range fault.Codes() {
		p := newPlace(t, map[string]string{"a.txt": "a"})
		decision := core.Deny
		if code.Kind() == fault.KindFailure {
			decision = core.Allow
		}
		p.record(t, code, core.Reason{Decision: decision, Why: "a reason"})
		x := p.explain("c")
		if len(x.Changes) == 0 || x.Changes[0].Text == "" || x.Changes[0].Kind == "" {
			t.Errorf("%v: %+v", code, x.Changes)
		}
		if base := advice.For(code); base.Text == "no door of this release gives this code" {
			if strings.Contains(source, "fault."+names()[code]+",") || strings.Contains(source, "fault."+names()[code]+"}") {
				t.Errorf("%v is given somewhere", code)
			}
		}
	}
}

func names() map[fault.Code]string {
	return map[fault.Code]string{
		fault.GrantExpired: "GrantExpired", fault.GrantRevoked: "GrantRevoked", fault.LockLost: "LockLost", fault.NetAddress: "NetAddress",
		fault.NetRedirect: "NetRedirect", fault.NetScheme: "NetScheme", fault.NetMetadata: "NetMetadata", fault.ScreenFinding: "ScreenFinding",
		fault.SandboxUnavailable: "SandboxUnavailable",
	}
}

// shippedSource is the code of all that decides and serves.
func shippedSource(t *testing.T) string {
	t.Helper()
	var b strings.Builder
	for _, top := range []string{"../../core", "../../enforce", "../../internal/fsserver", "../../internal/mcpserver", "../../internal/listen", "../../internal/state", "../../internal/safety"} {
		err := filepath.WalkDir(top, func(path string, d os.DirEntry, err error) error {
			if err != nil || d.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") || strings.HasSuffix(path, "fault/table.go") {
				return err
			}
			src, err := os.ReadFile(path)
			b.Write(src)
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	if !strings.Contains(b.String(), "fault.PolicyDenied,") {
		t.Fatal("the code was not found")
	}
	return b.String()
}

// TestExplainFailure: what no rule decided is explained without one: not as
// asked about now, and no change of a policy is proposed.
func TestExplainFailure(t *testing.T) {
	p := newPlace(t, map[string]string{"a.txt": "a", ".postern/policy.yaml": "version: 1\nrules: { fs.write: ask, fs.create: ask }\n"})
	x := p.serve(".").refused(fault.PathMissing, "write_file", write("no/x.txt"))
	if x.Recorded.Reason != "there is no such file or directory" || x.Now.Decision != "ask" {
		t.Errorf("%+v %+v", x.Recorded, x.Now)
	}
	if len(x.Changes) != 1 || x.Changes[0].Kind != advice.InCall || !x.Enough {
		t.Errorf("%+v", x.Changes)
	}
}

// TestExplainPausingNo: the no that paused the agent is not lost, and resuming
// is what helps.
func TestExplainPausingNo(t *testing.T) {
	p := newPlace(t, map[string]string{"a.txt": "a"})
	p.record(t, fault.PolicyAsk, core.Reason{Decision: core.Ask, Why: grant.NoPausedRule})
	p.must(grant.Open(filepath.Join(p.home, ".local/state/postern"), grant.Options{}).Pause(t.Context(), p.explain("c").Asked.Agent, "test"))
	x := p.explain("c")
	if x.Recorded.Reason != grant.NoPausedRule || len(x.Changes) != 1 || x.Changes[0].Kind != advice.InPerson {
		t.Errorf("%+v %+v", x.Recorded, x.Changes)
	}
}
