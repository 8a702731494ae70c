// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/postern-gate/postern/core/fault"
	"github.com/postern-gate/postern/internal/attach"
	"github.com/postern-gate/postern/internal/config"
)

// Status is how a check ended. The zero value is a failure.
type Status uint8

// The states. Skipped is a check that has nothing to look at here.
const (
	Fail Status = iota
	Warn
	Skipped
	Pass
)

// String is the word in a line and in JSON.
func (s Status) String() string {
	switch s {
	case Pass:
		return "pass"
	case Warn:
		return "warn"
	case Skipped:
		return "skipped"
	default:
		return "fail"
	}
}

// MarshalText is String.
func (s Status) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// Result is one finding. Text and Hint may hold names from elsewhere: draw
// them safely. Hint is one command or step, "" where nothing is to be done.
type Result struct {
	Name   string `json:"name"` // of the check, a stable word
	Status Status `json:"status"`
	Text   string `json:"text"`
	Hint   string `json:"hint,omitempty"`
}

// Options are the surroundings that are looked at.
type Options struct {
	Self    string // the absolute path of this program
	Version string
	World   attach.World
	Policy  config.Options // as serve would load it
	Now     func() time.Time
	// CheckTime bounds one check, 5 seconds by default.
	CheckTime time.Duration
	// Selftest attacks the guard, for the checklist.
	Selftest func(context.Context) error
}

const defaultCheckTime = 5 * time.Second

func (o *Options) defaults() {
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.CheckTime <= 0 {
		o.CheckTime = defaultCheckTime
	}
}

// look is one run: what checks share.
type look struct {
	Options
	cfg     *config.Config // nil for a policy that is not valid
	problem error
	entries []attach.Attachment
	unread  []error  // files of clients
	more    []Result // about entries that are left out
}

func newLook(o Options) *look {
	o.defaults()
	l := &look{Options: o}
	l.cfg, l.problem = config.Load(o.Policy)
	if l.problem != nil {
		l.cfg = nil
	}
	l.entries, l.unread = attach.Attached(o.World)
	l.entries, l.more = bounded(l.entries)
	return l
}

// folder is what was asked about and can't be served, "" where no folder is why there
// is no policy to look at.
func (l *look) folder() string {
	switch fault.CodeOf(l.problem) {
	case fault.PathMissing, fault.RequestInvalid:
		return fault.As(l.problem).Resource
	default:
		return ""
	}
}

// noPolicy is what is said where a policy is needed and there is none.
func (l *look) noPolicy() Result {
	if l.folder() != "" {
		return skip("the folder can't be served")
	}
	return skip("the policy is not valid")
}

// check looks at one thing and may find several.
type check struct {
	name string
	run  func(context.Context, *look) []Result
}

func checks() []check {
	return []check{
		{"program", checkProgram},
		{"policy", checkPolicy},
		{"project-policy", checkProjectPolicy},
		{"roots", checkRoots},
		{"kernel", checkKernel},
		{"state", checkState},
		{"space", checkSpace},
		{"log", checkLog},
		{"signed", checkSigned},
		{"clock", checkClock},
		{"anchor", checkAnchor},
		{"litter", checkLitter},
		{"endpoints", checkEndpoints},
		{"processes", checkProcesses},
		{"paused", checkPaused},
		{"clients", checkClients},
		{"client-line", checkClientLines},
		{"own-tools", checkOwnTools},
		{"agents", checkAgents},
		{"git", checkGit},
	}
}

// Run makes every check.
func Run(ctx context.Context, o Options) []Result {
	l := newLook(o)
	var all []Result
	for _, c := range checks() {
		all = append(all, l.timed(ctx, c)...)
	}
	return all
}

// lastWords is how long a check that was told to end is waited for: it may have
// something to take away.
const lastWords = 2 * time.Second

// timed gives a check up when its time is over: a file system may hold it, and
// then it ends with this program.
func (l *look) timed(ctx context.Context, c check) []Result {
	ctx, stop := context.WithTimeout(ctx, l.CheckTime)
	defer stop()
	done := make(chan []Result, 1)
	go func() { done <- c.run(ctx, l) }()
	var found []Result
	select {
	case found = <-done:
	case <-ctx.Done():
		waited := false
		select {
		case found = <-done:
			waited = true
		case <-time.After(lastWords):
		}
		if waited && !errors.Is(ctx.Err(), context.Canceled) {
			break
		}
		found = []Result{{Status: Fail, Text: "it took longer than " + l.CheckTime.String(), Hint: "look whether a file system or a program hangs"}}
		if errors.Is(ctx.Err(), context.Canceled) {
			found[0] = Result{Status: Skipped, Text: "interrupted"}
		}
	}
	for i := range found {
		found[i].Name = c.name
	}
	return found
}

// Err is io.failed with the names of the checks that failed, nil where none did.
func Err(all []Result) error {
	var failed []string
	times, total := map[string]int{}, 0
	for _, r := range all {
		if r.Status != Fail {
			continue
		}
		if times[r.Name]++; times[r.Name] == 1 {
			failed = append(failed, r.Name)
		}
		total++
	}
	if total == 0 {
		return nil
	}
	for i, name := range failed {
		if times[name] > 1 {
			failed[i] = fmt.Sprintf("%s (%d)", name, times[name])
		}
	}
	return &fault.Error{
		Code: fault.IOFailed, Op: "doctor", Rule: fmt.Sprintf("%d of %d findings are failures: %s", total, len(all), strings.Join(failed, ", ")),
		Hint: "do what stands below each, then run it again",
	}
}

func pass(format string, a ...any) Result {
	return Result{Status: Pass, Text: fmt.Sprintf(format, a...)}
}

func skip(format string, a ...any) Result {
	return Result{Status: Skipped, Text: fmt.Sprintf(format, a...)}
}

func warn(hint, format string, a ...any) Result {
	return Result{Status: Warn, Text: fmt.Sprintf(format, a...), Hint: hint}
}

func fail(hint, format string, a ...any) Result {
	return Result{Status: Fail, Text: fmt.Sprintf(format, a...), Hint: hint}
}

func one(r Result) []Result { return []Result{r} }

// failure is an error of this project as a finding.
func failure(err error) Result {
	f := fault.As(err)
	return Result{Status: Fail, Text: f.Because(), Hint: f.Next()}
}
