// SPDX-License-Identifier: Apache-2.0

package fault

import (
	"errors"
	"io/fs"
)

// Sentinels for errors.Is where the standard library has none.
var (
	ErrApprovalNeeded = errors.New("approval needed")
	ErrStale          = errors.New("precondition failed")
	ErrLocked         = errors.New("locked by another")
	ErrAddress        = errors.New("address not allowed")
	ErrLimit          = errors.New("limit exceeded")
	ErrConfig         = errors.New("configuration invalid")
	ErrAudit          = errors.New("audit log unusable")
)

// Code is a stable error code: its string is a promise, never reused for
// something else. The zero value is the code of a bug.
type Code uint8

// The codes. See the table for what each means to each protocol.
const (
	Bug Code = iota
	OK
	PathEscape
	PathSymlink
	PathSpecial
	PathMount
	PathDenied
	PathMissing
	PolicyDenied
	PolicyAsk
	GrantStale
	GrantExpired
	GrantRevoked
	GrantMismatch
	PreconditionFailed
	ConfirmMissing
	DryRunPreview
	LockHeld
	LockLost
	NetAddress
	NetRedirect
	NetScheme
	NetMetadata
	TextUnsafe
	TextEscaped
	ScreenFinding
	HTTPHost
	HTTPOrigin
	HTTPToken
	RequestInvalid
	MethodUnknown
	FrameInvalid
	LimitExceeded
	ConfigInvalid
	SandboxUnavailable
	AuditUnwritable
	AuditBroken
	AuditTruncated
	IOFailed
	Cancelled
	codeCount
)

// Kind separates what the system refused from what it could not do and from
// what should not have happened.
type Kind uint8

// The kinds. The zero value is a bug.
const (
	KindBug Kind = iota
	KindDenial
	KindFailure
)

func (k Kind) word() string {
	switch k {
	case KindDenial:
		return "denied"
	case KindFailure:
		return "failed"
	default:
		return "bug"
	}
}

// Exit codes of every verb; an unknown code is a failure. `run` passes its
// child's code through and `hook` follows its host.
const (
	ExitOK          = 0
	ExitFailed      = 1
	ExitUsage       = 2
	ExitDenied      = 3
	ExitAsk         = 4
	ExitConfig      = 5
	ExitEnforcement = 6
	ExitLocked      = 7
	ExitAudit       = 8
	ExitInterrupted = 130
)

// JSON-RPC 2.0 numbers, section 5.1, and the lock number of SEP-1708. Our
// contract is the string code; a number only where a specification fixes it.
const (
	rpcInvalidRequest = -32600
	rpcNoMethod       = -32601
	rpcInvalidParams  = -32602
	rpcInternal       = -32603
	rpcLocked         = -32100
)

type row struct {
	code     string
	seed     string // the documents' own name for it, "" where they have none
	kind     Kind
	sentinel error
	exit     int
	http     int
	rpc      int // 0: a refused tool call, carried as a result with isError
	means    string
	hint     string
}

const nothing = "nothing; this cannot be approved"

var table = [codeCount]row{
	Bug: {
		"internal.bug", "INTERNAL_ERROR", KindBug, nil, ExitFailed, 500, rpcInternal,
		"a fault in postern itself, so nothing was done", "report it with the record's id",
	},
	OK: {"ok", "", KindFailure, nil, ExitOK, 200, 0, "done", "nothing"},

	PathEscape: {
		"path.escape", "PATH_DENIED", KindDenial, fs.ErrPermission, ExitDenied, 403, 0,
		"the name is not beneath any root", "use a name beneath a root that list_allowed_directories shows",
	},
	PathSymlink: {
		"path.symlink", "PATH_DENIED", KindDenial, fs.ErrPermission, ExitDenied, 403, 0,
		"a link on the way can't be followed", "use the name of the file itself",
	},
	PathSpecial: {
		"path.special", "PATH_DENIED", KindDenial, fs.ErrPermission, ExitDenied, 403, 0,
		"it is not a regular file or directory", nothing,
	},
	PathMount: {
		"path.mount", "PATH_DENIED", KindDenial, fs.ErrPermission, ExitDenied, 403, 0,
		"another file system is mounted there", "list the mount under the root's mounts in the policy",
	},
	PathDenied: {
		"path.denied", "PATH_DENIED", KindDenial, fs.ErrPermission, ExitDenied, 403, 0,
		"the name has a form that is refused before any lookup", "use a plain name beneath a root",
	},
	PathMissing: {
		"path.missing", "RESOURCE_NOT_FOUND", KindFailure, fs.ErrNotExist, ExitFailed, 404, 0,
		"there is no such file or directory", "list the folder for the names that exist",
	},

	PolicyDenied: {
		"policy.denied", "PERMISSION_DENIED", KindDenial, fs.ErrPermission, ExitDenied, 403, 0,
		"the policy denies it", nothing,
	},
	PolicyAsk: {
		"policy.ask", "PERMISSION_DENIED", KindDenial, ErrApprovalNeeded, ExitAsk, 403, 0,
		"the policy asks a person, and nobody has said yes", "a person approves it, or allows it in the policy file",
	},

	GrantStale: {
		"grant.stale", "PERMISSION_DENIED", KindDenial, ErrApprovalNeeded, ExitAsk, 409, 0,
		"what was approved has changed since", "ask again",
	},
	GrantExpired: {
		"grant.expired", "PERMISSION_DENIED", KindDenial, ErrApprovalNeeded, ExitAsk, 409, 0,
		"the approval's time is over", "ask again",
	},
	GrantRevoked: {
		"grant.revoked", "PERMISSION_DENIED", KindDenial, ErrApprovalNeeded, ExitAsk, 409, 0,
		"the approval was taken back", "ask again",
	},
	GrantMismatch: {
		"grant.mismatch", "PERMISSION_DENIED", KindDenial, ErrApprovalNeeded, ExitAsk, 409, 0,
		"the approval was for something else", "ask again",
	},

	PreconditionFailed: {
		"precondition.failed", "PRECONDITION_FAILED", KindFailure, ErrStale, ExitFailed, 412, 0,
		"it changed since it was read", "read it again and use the new etag",
	},
	ConfirmMissing: {
		"confirm.missing", "PRECONDITION_FAILED", KindDenial, ErrStale, ExitFailed, 412, 0,
		"the call needs confirm: true", "set confirm: true if this is meant",
	},
	DryRunPreview: {
		"dry_run.preview", "", KindFailure, nil, ExitOK, 200, 0,
		"a preview; nothing was changed", "call again without dry_run",
	},

	LockHeld: {
		"lock.held", "LOCKED", KindFailure, ErrLocked, ExitLocked, 423, rpcLocked,
		"another program holds it", "try again when it is free",
	},
	LockLost: {
		"lock.lost", "LOCKED", KindFailure, ErrLocked, ExitLocked, 423, rpcLocked,
		"the lock was lost", "read it again and take the lock anew",
	},

	NetAddress: {
		"net.address", "URL_DENIED", KindDenial, ErrAddress, ExitDenied, 403, 0,
		"the address is not a public one", "allow the host in the policy file",
	},
	NetRedirect: {
		"net.redirect", "URL_DENIED", KindDenial, ErrAddress, ExitDenied, 403, 0,
		"the redirect leads where the policy does not", "allow the host in the policy file",
	},
	NetScheme: {
		"net.scheme", "URL_DENIED", KindDenial, ErrAddress, ExitDenied, 403, 0,
		"only http and https are fetched", nothing,
	},
	NetMetadata: {
		"net.metadata", "URL_DENIED", KindDenial, ErrAddress, ExitDenied, 403, 0,
		"it is a cloud metadata address", nothing,
	},

	TextUnsafe: {
		"text.unsafe", "PRECONDITION_FAILED", KindDenial, nil, ExitDenied, 422, 0,
		"the text can't be shown or kept safely", "send plain UTF-8 text",
	},
	TextEscaped: {
		"text.escaped", "PRECONDITION_FAILED", KindDenial, nil, ExitDenied, 422, 0,
		"the content holds the escaped form of a tag that the file has unescaped",
		"use edit_file around that place",
	},
	ScreenFinding: {
		"screen.finding", "PERMISSION_DENIED", KindDenial, nil, ExitDenied, 422, 0,
		"the screen found instructions in it", "look at it and approve it",
	},

	HTTPHost: {
		"http.host", "PERMISSION_DENIED", KindDenial, nil, ExitDenied, 403, 0,
		"the Host is not one of this server", "use the URL that postern up or postern serve --http prints",
	},
	HTTPOrigin: {
		"http.origin", "PERMISSION_DENIED", KindDenial, nil, ExitDenied, 403, 0,
		"the Origin is not listed", "nothing; a web page is no client",
	},
	HTTPToken: {
		"http.token", "PERMISSION_DENIED", KindDenial, nil, ExitDenied, 401, 0,
		"the request is not authorized", "send the token that postern up or postern serve --http keeps",
	},
	RequestInvalid: {
		"request.invalid", "INVALID_PARAMS", KindFailure, fs.ErrInvalid, ExitUsage, 400, rpcInvalidParams,
		"the request is malformed", "correct the arguments",
	},
	MethodUnknown: {
		"method.unknown", "METHOD_NOT_FOUND", KindFailure, errors.ErrUnsupported, ExitFailed, 404, rpcNoMethod,
		"there is no such method", "ask for the list of methods or tools",
	},
	FrameInvalid: {
		"frame.invalid", "INVALID_REQUEST", KindFailure, fs.ErrInvalid, ExitFailed, 400, rpcInvalidRequest,
		"the message is not one well-formed JSON-RPC object", "send one JSON object a line",
	},
	LimitExceeded: {
		"limit.exceeded", "LIMIT_EXCEEDED", KindFailure, ErrLimit, ExitFailed, 429, 0,
		"it is larger than the limit", "ask for a part of it",
	},

	ConfigInvalid: {
		"config.invalid", "CONFIG_INVALID", KindFailure, ErrConfig, ExitConfig, 500, rpcInternal,
		"the policy is not valid", "correct the file; postern status reads it again",
	},
	SandboxUnavailable: {
		"sandbox.unavailable", "SANDBOX_UNAVAILABLE", KindFailure, errors.ErrUnsupported, ExitEnforcement, 501, 0,
		"the required enforcement is not available here", "postern status says what is enforced here",
	},
	AuditUnwritable: {
		"audit.unwritable", "AUDIT_UNWRITABLE", KindDenial, ErrAudit, ExitAudit, 503, rpcInternal,
		"the audit log can't be written, and nothing happens unrecorded", "free space or repair the state directory",
	},
	AuditBroken: {
		"audit.broken", "AUDIT_BROKEN", KindDenial, ErrAudit, ExitAudit, 503, rpcInternal,
		"the audit log was changed", "keep the log as it is and find out what changed it",
	},
	AuditTruncated: {
		"audit.truncated", "AUDIT_TRUNCATED", KindDenial, ErrAudit, ExitAudit, 503, rpcInternal,
		"the audit log is shorter than it was", "keep the log as it is and find out what changed it",
	},

	IOFailed: {
		"io.failed", "IO_FAILED", KindFailure, nil, ExitFailed, 500, 0,
		"the operating system reported an error", "correct the cause and try again",
	},
	Cancelled: {
		"call.cancelled", "CANCELLED", KindFailure, nil, ExitInterrupted, 499, 0,
		"the call was cancelled or ran out of time", "call again",
	},
}

func (c Code) row() row {
	if c >= codeCount {
		return table[Bug]
	}
	return table[c]
}

// String returns the stable code, as "path.escape".
func (c Code) String() string { return c.row().code }

// Seed returns the name that the source documents use, as "PATH_DENIED".
func (c Code) Seed() string { return c.row().seed }

// Kind says whether it is a denial, a failure or a bug.
func (c Code) Kind() Kind { return c.row().kind }

// Exit returns the exit code of a command that ends with it.
func (c Code) Exit() int { return c.row().exit }

// HTTP returns the status of an HTTP answer.
func (c Code) HTTP() int { return c.row().http }

// RPC returns the JSON-RPC error number, or 0 where a door answers with a
// tool result that has isError.
func (c Code) RPC() int { return c.row().rpc }

// Codes returns every code, in a fixed order.
func Codes() []Code {
	all := make([]Code, 0, codeCount)
	for c := Bug; c < codeCount; c++ {
		all = append(all, c)
	}
	return all
}
