// SPDX-License-Identifier: Apache-2.0

package page

import (
	"bytes"
	"errors"
	"html"
	"strings"
	"testing"

	"github.com/postern-gate/postern/core"
	"github.com/postern-gate/postern/core/fault"
	"github.com/postern-gate/postern/enforce"
	"github.com/postern-gate/postern/internal/prompt"
)

// TestPolicyProblem: while an edited policy is not in force every view says so,
// drawn so that nothing of it acts; tabs hear of it, and of its end.
func TestPolicyProblem(t *testing.T) {
	d := newDesk(t)
	var problem error
	d.page.o.Problem = func() error { return problem }
	d.login()
	const banner = "the edited policy is not in force"
	views := []string{"/", "/activity", "/undo", "/grants", "/reach"}
	before := d.page.print()
	for _, v := range views {
		if got := d.get(v); strings.Contains(got, banner) || strings.Contains(got, "the edited file") {
			t.Errorf("%s says it without a problem: %s", v, got)
		}
	}
	problem = &fault.Error{Code: fault.ConfigInvalid, Resource: "policy.yaml", Rule: "line 2: <b>rulez</b>\u202e", Hint: "postern check", Err: errors.New("policy.yaml:2: <b>\nrulez")}
	if d.page.print() == before {
		t.Error("no tab hears of it")
	}
	for _, v := range views {
		got := d.get(v)
		for _, want := range []string{banner, "policy.yaml", "because: line 2: &lt;b&gt;rulez&lt;/b&gt;", "next: postern check", "policy.yaml:2: &lt;b&gt;", ">rulez<"} {
			if !strings.Contains(got, want) {
				t.Errorf("%s: no %q in %s", v, want, got)
			}
		}
		if strings.Contains(got, "\u202e") || strings.Contains(got, "<b>") {
			t.Errorf("%s: it acts: %s", v, got)
		}
	}
	if got := d.get("/reach"); !strings.Contains(got, "policy: the edited file is not in force") {
		t.Error(got)
	}
	problem = errors.New("another kind")
	if got := d.get("/"); !strings.Contains(got, banner) {
		t.Error(got)
	}
	problem = nil
	if d.page.print() != before || strings.Contains(d.get("/"), banner) {
		t.Error("it is still told")
	}
}

// TestWrongCode: it is told as no answer, and not as a denial or as something
// that undo can't do.
func TestWrongCode(t *testing.T) {
	d := newDesk(t)
	d.login()
	id := d.ask("project://x", "destructive")
	v := d.form("/", "/decide", id)
	v.Set("answer", "once")
	v.Set("code", "zzzz")
	d.pass(prompt.Deaf)
	text := d.post("/decide", v)
	if !strings.Contains(text, `">not answered: the code is wrong</p><p data-text="notice-1">because: a yes to this wants its code</p>`) {
		t.Error(text)
	}
	for _, bad := range []string{"denied", "taken back"} {
		if strings.Contains(text, bad) {
			t.Errorf("%q in %s", bad, text)
		}
	}
}

// TestPlanShows: a plan has what each step changes in a file, as text whatever it
// holds, and is another one where only that is another.
func TestPlanShows(t *testing.T) {
	d := newDesk(t)
	d.login()
	g := d.guarded(core.Allow, 0)
	g.put("a", "old\n"+hostile+"\nsame\n")
	g.put("bin", "x\x00y")
	for name, content := range map[string]string{"a": "new\nsame\n", "bin": "z", "made": hostile} {
		if err := g.write(name, content); err != nil {
			t.Fatal(err)
		}
	}
	plan := d.get("/undo/plan?session=s")
	d.inert(plan)
	plan = html.UnescapeString(plan)
	spelled := strings.NewReplacer("\u202e", `\u{202e}`, "\u200b", `\u{200b}`, "\x1b", `\u{1b}`).Replace(hostile)
	for _, want := range []string{
		`<summary>change: 2 added, 1 removed<span class="hear">, to restore project://a in ` + g.dir, `<span class="removed">-new`, `<span class="added">+old`,
		`<span class="added">+` + spelled, `<span class="removed">-` + spelled, `<span class="same"> same`, "3 invisible characters, spelled as",
		"3 bytes, sha256 ", "it is no text, so only sizes and digests are shown",
	} {
		if !strings.Contains(plan, want) {
			t.Errorf("no %q in %s", want, plan)
		}
	}
	digest := func(change, unshown string) string {
		_, sum := stepsOf(&enforce.UndoPlan{Steps: []enforce.UndoStep{{Verb: "restore", Name: "project://a", Change: change, Unshown: unshown}}})
		return sum
	}
	if digest("+a\n", "") == digest("+b\n", "") || digest("+a\n", "") == digest("+a\n", "the rest") {
		t.Error("a plan is known without what it changes")
	}
	var b bytes.Buffer
	if err := d.page.templates.ExecuteTemplate(&b, "plan.html", shown{Data: planned(&enforce.UndoPlan{Unshown: 3, Steps: []enforce.UndoStep{{Verb: "restore"}}})}); err != nil || !strings.Contains(b.String(), "what 3 more of these steps change is not shown here") {
		t.Error(err, b.String())
	}
}

// TestPlan: a plan of which every step is left out can't be sent off; one of
// which a step remains can.
func TestPlan(t *testing.T) {
	d := newDesk(t)
	conflict := enforce.UndoStep{Verb: "restore", Name: "project://a", Problem: "conflict", Why: "it changed since"}
	whole := enforce.UndoStep{Verb: "restore", Name: "project://b"}
	for _, c := range []struct {
		steps  []enforce.UndoStep
		offers bool
	}{{[]enforce.UndoStep{conflict}, false}, {[]enforce.UndoStep{conflict, whole}, true}, {[]enforce.UndoStep{whole}, true}, {nil, false}} {
		u := &enforce.UndoPlan{Steps: c.steps}
		var b bytes.Buffer
		if err := d.page.templates.ExecuteTemplate(&b, "plan.html", shown{Data: planned(u)}); err != nil {
			t.Fatal(err)
		}
		for _, text := range []string{"undo it</button>", "this would be done", "can be undone"} {
			if strings.Contains(b.String(), text) != c.offers {
				t.Errorf("%d steps, %q: %s", len(c.steps), text, b.String())
			}
		}
	}
}
