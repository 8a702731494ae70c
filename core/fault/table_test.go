// SPDX-License-Identifier: Apache-2.0

package fault_test

import (
	"errors"
	"io/fs"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/postern-gate/postern/core/fault"
)

var (
	codeForm = regexp.MustCompile(`^[a-z_]+\.[a-z_]+$`)
	seedForm = regexp.MustCompile(`^[A-Z]+(_[A-Z]+)*$`)
)

// Codes that are no refusal and no failure have no name in the documents.
var notErrors = []fault.Code{fault.OK, fault.DryRunPreview}

func TestTableIsComplete(t *testing.T) {
	seen := map[string]fault.Code{}
	for _, c := range fault.Codes() {
		if other, ok := seen[c.String()]; ok {
			t.Errorf("%q is the string of codes %d and %d", c, other, c)
		}
		seen[c.String()] = c
		if c != fault.OK && !codeForm.MatchString(c.String()) {
			t.Errorf("code %d: %q is not area.what", c, c)
		}
		if isError := !slices.Contains(notErrors, c); isError != seedForm.MatchString(c.Seed()) {
			t.Errorf("%s: name in the documents %q", c, c.Seed())
		}
		e := &fault.Error{Code: c}
		for what, text := range map[string]string{"meaning": e.Error(), "next step": e.Next()} {
			if text == "" || text != strings.TrimRight(strings.TrimSpace(text), ".") || strings.ToLower(text[:1]) != text[:1] {
				t.Errorf("%s: the %s %q is not lower case without a full stop", c, what, text)
			}
		}
	}
	if len(seen) != len(fault.Codes()) || len(seen) < 37 {
		t.Errorf("%d codes", len(seen))
	}
	if got := fault.Code(255); got.String() != fault.Bug.String() || got.Exit() != fault.Bug.Exit() {
		t.Errorf("an unheard-of code is %s", got)
	}
}

// The strings are a promise to clients: one that is changed or removed breaks them.
func TestCodesArePinned(t *testing.T) {
	want := strings.Fields(`internal.bug ok path.escape path.symlink path.special path.mount path.denied
		path.missing policy.denied policy.ask grant.stale grant.expired grant.revoked grant.mismatch
		precondition.failed confirm.missing dry_run.preview lock.held lock.lost net.address net.redirect
		net.scheme net.metadata text.unsafe text.escaped screen.finding request.invalid method.unknown
		frame.invalid limit.exceeded config.invalid sandbox.unavailable audit.unwritable audit.broken
		audit.truncated io.failed call.cancelled`)
	got := map[string]bool{}
	for _, c := range fault.Codes() {
		got[c.String()] = true
	}
	for _, code := range want {
		if !got[code] {
			t.Errorf("%s is gone", code)
		}
	}
}

// The numbers of a row must agree with each other and with its kind.
func TestNumbersAgree(t *testing.T) {
	httpOf := map[int][]int{ // exit code → the statuses that say the same
		fault.ExitOK:          {200},
		fault.ExitFailed:      {400, 404, 412, 429, 500},
		fault.ExitUsage:       {400},
		fault.ExitDenied:      {401, 403, 422},
		fault.ExitAsk:         {403, 409},
		fault.ExitConfig:      {500},
		fault.ExitEnforcement: {501},
		fault.ExitLocked:      {423},
		fault.ExitAudit:       {503},
		fault.ExitInterrupted: {499},
	}
	sentinelOf := map[int]error{ // exit codes that mean one sentinel
		fault.ExitAsk: fault.ErrApprovalNeeded, fault.ExitConfig: fault.ErrConfig,
		fault.ExitEnforcement: errors.ErrUnsupported, fault.ExitLocked: fault.ErrLocked,
		fault.ExitAudit: fault.ErrAudit, fault.ExitUsage: fs.ErrInvalid,
	}
	for _, c := range fault.Codes() {
		if !slices.Contains(httpOf[c.Exit()], c.HTTP()) {
			t.Errorf("%s: exit %d and HTTP %d disagree", c, c.Exit(), c.HTTP())
		}
		if want := sentinelOf[c.Exit()]; want != nil && !errors.Is(&fault.Error{Code: c}, want) {
			t.Errorf("%s: exit %d without its sentinel %v", c, c.Exit(), want)
		}
		switch c.Kind() {
		case fault.KindDenial:
			if c.Exit() == fault.ExitOK || c.HTTP() < 400 {
				t.Errorf("%s: a denial that reads as success", c)
			}
		case fault.KindBug:
			if c.HTTP() != 500 || c != fault.Bug {
				t.Errorf("%s: a bug is a 500 and has one code", c)
			}
		case fault.KindFailure:
		}
		if c.RPC() > 0 || (c.RPC() != 0 && c.RPC() != -32100 && (c.RPC() < -32603 || c.RPC() > -32600)) {
			t.Errorf("%s: JSON-RPC number %d is fixed by no specification", c, c.RPC())
		}
		if strings.HasPrefix(c.String(), "path.") && c != fault.PathMissing && c.Seed() != "PATH_DENIED" {
			t.Errorf("%s: %s, a guard's refusal is PATH_DENIED", c, c.Seed())
		}
	}
}

func TestSentinels(t *testing.T) {
	tests := map[fault.Code]error{
		fault.PathEscape: fs.ErrPermission, fault.PolicyDenied: fs.ErrPermission, fault.PathMissing: fs.ErrNotExist,
		fault.PolicyAsk: fault.ErrApprovalNeeded, fault.PreconditionFailed: fault.ErrStale, fault.NetAddress: fault.ErrAddress,
		fault.LimitExceeded: fault.ErrLimit, fault.LockHeld: fault.ErrLocked, fault.AuditBroken: fault.ErrAudit,
	}
	for code, want := range tests {
		e := &fault.Error{Code: code}
		if !errors.Is(e, want) {
			t.Errorf("%s is not %v", code, want)
		}
		if errors.Is(e, errors.New("another")) || errors.Is(e, fs.ErrExist) {
			t.Errorf("%s is everything", code)
		}
	}
	if errors.Is(&fault.Error{Code: fault.IOFailed}, fs.ErrPermission) {
		t.Error("a code without a sentinel matches one")
	}
}
