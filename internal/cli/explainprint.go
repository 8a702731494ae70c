// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/postern-gate/postern/core"
	"github.com/postern-gate/postern/core/fault"
	"github.com/postern-gate/postern/core/textsafe"
	"github.com/postern-gate/postern/internal/config/advice"
)

type askedJSON struct {
	Time      string   `json:"time"`
	Agent     string   `json:"agent"`
	Op        string   `json:"op"`
	Resources []string `json:"resources"`
	Folder    string   `json:"folder,omitempty"`
	Source    string   `json:"source"`
	Session   string   `json:"session"`
}

type recordedJSON struct {
	Event    string `json:"event"`
	Decision string `json:"decision"`
	Code     string `json:"code"`
	Reason   string `json:"reason"`
	Policy   string `json:"policy"`
}

// yesJSON is a person's answer that is for the call.
type yesJSON struct {
	ID       string `json:"id"`
	Kind     string `json:"kind"`
	Approver string `json:"approver"`
	Revoked  bool   `json:"revoked"` // a person took it back
	Used     bool   `json:"used"`    // by some call
}

// nowJSON is how the call would end now.
type nowJSON struct {
	Judged   bool       `json:"judged"`
	Why      string     `json:"not_judged,omitempty"`
	Differs  bool       `json:"differs"`
	Decision string     `json:"decision,omitempty"`
	Code     string     `json:"code,omitempty"`
	Because  *ruleJSON  `json:"because,omitempty"`
	About    string     `json:"about,omitempty"` // the action and name that decided, where they are others
	Rules    []ruleJSON `json:"rules"`
	Policy   string     `json:"policy,omitempty"`
	Changed  bool       `json:"policy_changed"`
	Unsure   bool       `json:"policy_unsure,omitempty"` // it is another one, perhaps only because the folder is
}

type explainJSON struct {
	document
	ID       string            `json:"id"`
	Asked    askedJSON         `json:"asked"`
	Recorded recordedJSON      `json:"recorded"`
	Approval *yesJSON          `json:"approval,omitempty"`
	Records  []json.RawMessage `json:"records"`
	Now      nowJSON           `json:"now"`
	Answer   string            `json:"answer,omitempty"` // how a person lets it through without them
	Changes  []advice.Step     `json:"changes"`          // all of them are needed
	Enough   bool              `json:"changes_suffice"`

	also []core.Reason
}

func (x *explanation) report(ctx context.Context) *explainJSON {
	r := x.told
	out := &explainJSON{
		document: newDocument("explain"), ID: x.id,
		Asked:    askedJSON{r.Time.UTC().Format(logTimeJSON), r.Agent, r.Op, append([]string{}, x.names()...), r.Folder, r.Source, r.Session},
		Recorded: recordedJSON{r.Event, r.Decision, r.Code, r.Reason, r.Policy},
		Now:      nowJSON{Judged: x.now != nil, Why: x.why, Differs: x.differs(), Rules: []ruleJSON{}},
	}
	if y := x.persons.yes; y != nil {
		out.Approval = &yesJSON{y.Approval, y.Kind, y.Approver, x.persons.taken, x.persons.used || x.persons.served}
	}
	for _, e := range x.entries {
		out.Records = append(out.Records, json.RawMessage(e.Text))
	}
	if x.w != nil {
		out.Now.Policy = x.w.live.Version()
		other := r.Policy != out.Now.Policy
		out.Now.Changed, out.Now.Unsure = other && r.Folder != "", other && r.Folder == ""
	}
	if j := x.now; j != nil {
		because := newRule(j.verdict.Reason)
		out.Now.Decision, out.Now.Because = j.verdict.Decision.String(), &because
		if j.code != fault.OK {
			out.Now.Code = j.code.String()
		}
		if j.decided.Action != j.request.Action || j.decided.Resource != j.request.Resource {
			out.Now.About = j.decided.Action.String() + " " + j.decided.Resource.String()
		}
		if !j.guard {
			out.also = x.w.live.Explain(j.decided)
		}
	}
	for _, reason := range out.also {
		out.Now.Rules = append(out.Now.Rules, newRule(reason))
	}
	out.Answer = x.answering()
	out.Changes, out.Enough = x.advise(ctx)
	return out
}

const logTimeJSON = "2006-01-02T15:04:05.999999999Z07:00"

func (x *explanation) print(w io.Writer, out *explainJSON) {
	r := x.told
	if out.Now.Differs {
		fmt.Fprintf(w, "now it would be %s: %s\n", wouldBe(x.now.verdict.Decision), textsafe.Clean(x.now.verdict.Reason.String()))
	}
	agent := "an agent without a name"
	if r.Agent != "" {
		agent = textsafe.Word(r.Agent)
	}
	fmt.Fprintf(w, "asked: %s%s\n", plain(r.Op), shown(out.Asked.Resources))
	if r.Folder != "" {
		fmt.Fprintf(w, "in: %s\n", textsafe.Name(r.Folder))
	}
	fmt.Fprintf(w, "by: %s, through %s, %s\n", agent, plain(r.Source), r.Time.Local().Format(logTime))
	fmt.Fprintf(w, "ended: %s\n", plain(strings.TrimSpace(r.Event+" "+r.Code)))
	fmt.Fprintf(w, "because: %s\n", plain(r.Reason))
	if y := out.Approval; y != nil {
		used := "used"
		if !y.Used {
			used = "not used"
		}
		if y.Revoked {
			used += ", then taken back"
		}
		fmt.Fprintf(w, "approved: %s, %s, by %s, %s\n", plain(y.ID), plain(y.Kind), plain(y.Approver), used)
	}
	lines := logPrinter{known: true, here: []string{r.Folder}}
	for i := range x.entries {
		fmt.Fprint(w, "record: ")
		_ = lines.text(w, &x.entries[i]) // an answer that can't be written has nobody to be told
	}
	x.printNow(w, out)
	if out.Answer != "" {
		fmt.Fprintf(w, "to let it through: %s\n", plain(out.Answer))
	}
	more := "and"
	if x.code() == fault.ConfirmMissing && x.now != nil && x.now.verdict.Decision == core.Ask {
		more = "to not be asked either" // the call alone leads to a person
	}
	printChanges(w, more, out.Changes, out.Enough)
}

// printNow tells every rule that matches now.
func (x *explanation) printNow(w io.Writer, out *explainJSON) {
	if !out.Now.Judged {
		fmt.Fprintf(w, "now: it can't be judged again: %s\n", plain(out.Now.Why))
		return
	}
	switch {
	case out.Now.Changed:
		fmt.Fprintln(w, "policy: another one than then is in force")
	case out.Now.Unsure:
		fmt.Fprintln(w, "policy: not that of then; the record doesn't say in which folder the call was, so it may be another folder's")
	}
	if out.Now.About != "" {
		fmt.Fprintf(w, "about: %s%s\n", plain(out.Now.About), x.whyOther())
	}
	if x.now.guard {
		fmt.Fprintf(w, "now: %s: %s\n", x.now.code, textsafe.Clean(x.now.verdict.Reason.String()))
	}
	for _, reason := range out.also {
		if reason.Step != core.StepDefault || reason == x.now.verdict.Reason {
			fmt.Fprintf(w, "rule: %s\n", textsafe.Clean(reason.String()))
		}
	}
}

// whyOther says why another action than the one that was asked for decided.
func (x *explanation) whyOther() string {
	if x.now.request.Action == core.FSWrite && x.now.decided.Action == core.FSCreate {
		if !slices.Contains(x.names(), x.now.decided.Resource.String()) {
			return ": this folder is not there, so writing the file is creating the folder first"
		}
		return ": the file is not there, so writing it is creating it"
	}
	return ""
}

func wouldBe(d core.Decision) string {
	switch d {
	case core.Allow:
		return "allowed"
	case core.Ask:
		return "asked about"
	default:
		return "denied"
	}
}

// printChanges shows what to do, with the lines of YAML to write. more is what stands
// before each but the first.
func printChanges(w io.Writer, more string, steps []advice.Step, enough bool) {
	if len(steps) == 1 && steps[0].Kind == advice.InNothing {
		fmt.Fprintf(w, "to change it: nothing; %s\n", plain(steps[0].Text))
		return
	}
	for i, s := range steps {
		label := "to change it"
		if i > 0 {
			label = more
		}
		if i > 0 && s.Kind == advice.InProject && s.Text == steps[i-1].Text {
			printEdit(w, s)
			continue
		}
		text := plain(s.Text)
		if s.Kind == advice.InNothing {
			text = "nothing; " + text
		}
		fmt.Fprintf(w, "%s: %s\n", label, text)
		printEdit(w, s)
	}
	if !enough && steps[len(steps)-1].Kind != advice.InNothing {
		fmt.Fprintln(w, "whether that is enough can't be told")
	}
}

func printEdit(w io.Writer, s advice.Step) {
	if s.File == "" {
		return
	}
	place := textsafe.Name(s.File)
	if s.Line > 0 {
		place = textsafe.Name(core.Position{File: s.File, Line: s.Line, Column: s.Column}.String())
	}
	if s.New {
		place = "new file " + place
	}
	if under := s.Under[:len(s.Under)-len(s.Make)]; len(under) > 0 {
		place += ", under " + plain(strings.Join(under, ": "))
	}
	fmt.Fprintf(w, "  %s\n", place)
	indent := "    "
	if s.New {
		fmt.Fprintf(w, "%sversion: 1\n", indent)
	}
	for _, key := range s.Make {
		fmt.Fprintf(w, "%s%s:\n", indent, plain(key))
		indent += "  "
	}
	for _, l := range append(s.Lines, s.Put) {
		if l != "" {
			fmt.Fprintf(w, "%s%s\n", indent, plain(l))
		}
	}
}
