// SPDX-License-Identifier: Apache-2.0

package advice

import "github.com/postern-gate/postern/core/fault"

// The kinds of a step: who does what.
const (
	InPolicy  = "policy"  // a person changes a policy file
	InProject = "project" // only a change of the project's own file helps
	InCall    = "call"    // the caller calls in another way
	InPerson  = "person"  // a person answers
	InServer  = "server"  // a person starts the server in another way
	InLog     = "log"     // a person repairs the log or the state directory
	InMachine = "machine" // a person repairs something else
	InNothing = "nothing" // nothing changes it
)

const (
	notHere   = "no door of this release gives this code"
	verifyLog = "postern log verify says what is wrong; keep a copy, then a person goes on with postern log anchor --renew"
)

// codes has what can be done about each code. What a policy decides about is
// InPolicy with no text: an Editor has the steps.
func codes() map[fault.Code]Step {
	say := func(kind, text string) Step { return Step{Kind: kind, Text: text} }
	return map[fault.Code]Step{
		fault.Bug: say(InNothing, "it is a fault in postern: report it with the id of the record"),
		fault.OK:  say(InNothing, "nothing was refused"),

		fault.PathEscape:  say(InNothing, "no policy changes it: the folder that it lies in would have to be served, as a root of your own policy or as postern serve DIR"),
		fault.PathSymlink: say(InCall, "use the name of the file that the link leads to, beneath a root"),
		fault.PathSpecial: say(InNothing, "only files and folders are opened, never a device, a pipe or a socket"),
		fault.PathMount:   say(InPolicy, "list the mount point under mounts of a root in your own policy"),
		fault.PathDenied:  say(InCall, "use a plain name beneath a root, as list_directory shows it"),
		fault.PathMissing: say(InCall, "use a name that is there: list the folder"),

		fault.PolicyDenied: say(InPolicy, ""),
		fault.PolicyAsk:    say(InPolicy, ""),

		fault.GrantStale:    say(InCall, "call again: what is there now is what is decided about"),
		fault.GrantExpired:  say(InCall, "call again: a person is asked anew"),
		fault.GrantRevoked:  say(InCall, "call again: a person is asked anew, unless the agent is paused (postern pending says so)"),
		fault.GrantMismatch: say(InCall, "call again: the policy in force then decides"),

		fault.PreconditionFailed: say(InCall, "look at what is there now and call for that: with its etag as ifMatch, a name that is free, or what the answer to the call named"),
		fault.ConfirmMissing:     say(InCall, "the agent calls again with confirm: true, which says that it means it; where the policy asks, a person is asked then"),
		fault.DryRunPreview:      say(InCall, "call without dry_run"),
		fault.LockHeld:           say(InCall, "call again when the other one has ended"),
		fault.LockLost:           say(InNothing, notHere),

		fault.NetAddress:  say(InNothing, notHere),
		fault.NetRedirect: say(InNothing, notHere),
		fault.NetScheme:   say(InNothing, notHere),
		fault.NetMetadata: say(InNothing, notHere),

		fault.TextUnsafe:    say(InCall, "send plain UTF-8 text, to a file that is text"),
		fault.TextEscaped:   say(InCall, "use edit_file around the place that has the escaped tag"),
		fault.ScreenFinding: say(InNothing, notHere),

		fault.HTTPHost:   say(InCall, "use the URL as postern up or postern serve --http prints it"),
		fault.HTTPOrigin: say(InNothing, "a web page is no client, whatever the policy"),
		fault.HTTPToken:  say(InCall, "send the token: postern serve --http names the file that has it, and postern up shows it on a terminal"),

		fault.RequestInvalid: say(InCall, "correct the arguments: the answer named the one that is wrong"),
		fault.MethodUnknown:  say(InCall, "ask for the list of tools: they have other names"),
		fault.FrameInvalid:   say(InCall, "send one well-formed JSON object a message"),
		fault.LimitExceeded:  say(InCall, "ask for a part of it"),

		fault.ConfigInvalid:      say(InMachine, "postern status says what is wrong with the policy; correct the file"),
		fault.SandboxUnavailable: say(InNothing, notHere),
		fault.AuditUnwritable:    say(InLog, "free space where the state directory is, or give this user the right to write there; then call again"),
		fault.AuditBroken:        say(InLog, verifyLog),
		fault.AuditTruncated:     say(InLog, verifyLog),
		fault.IOFailed:           say(InMachine, "correct what the operating system refused, mostly the rights of the file or folder, or call for what it is: a folder is listed, a file is read"),
		fault.Cancelled:          say(InCall, "call again, for less at once"),
	}
}

// For returns what can be done about a code, apart from what a policy says.
func For(c fault.Code) Step { return codes()[c] }
