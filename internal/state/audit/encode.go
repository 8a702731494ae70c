// SPDX-License-Identifier: Apache-2.0

package audit

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/postern-gate/postern/core"
)

// encoder writes events as JSON lines. The names and their order are a
// promise: t agent op decision reason source session corr policy level event
// in every record; resource code was found approval kind approver shown undoes
// folder n where there is something to say.
type encoder struct {
	key    []byte
	hashed bool // no name of a file is told, only its hash
}

func (e encoder) append(b []byte, ev core.Event) []byte {
	b = begin(b, ev.Time)
	b = field(b, "agent", ev.Subject.Agent)
	b = field(b, "op", ev.Action.String())
	b = field(b, "decision", decided(ev))
	b = field(b, "reason", ev.Verdict.Reason.String())
	b = field(b, "source", ev.Subject.Source)
	b = field(b, "session", ev.Subject.Session)
	b = field(b, "corr", ev.Corr)
	b = field(b, "policy", ev.Policy)
	b = field(b, "level", ev.Subject.Level.String())
	b = field(b, "event", string(eventOf(ev)))
	b = optional(b, "resource", e.resource(ev))
	b = optional(b, "code", ev.Code)
	b = optional(b, "was", ev.Was)
	b = optional(b, "found", ev.Found)
	b = optional(b, "approval", ev.Approval.ID)
	b = optional(b, "kind", ev.Approval.Kind)
	b = optional(b, "approver", ev.Approval.Approver)
	b = optional(b, "shown", ev.Approval.Shown)
	b = optional(b, "undoes", ev.Undoes)
	b = optional(b, "folder", e.folder(ev))
	b = number(b, ev.Outside.N)
	return append(b, "}\n"...)
}

// own is an event about the log itself. It has the fields of every record.
type own struct {
	event    Event
	reason   string
	resource string // a file of the log, or a line of one
	n        int64
}

func (e encoder) appendOwn(b []byte, at time.Time, o own) []byte {
	b = begin(b, at)
	for _, f := range [...][2]string{
		{"agent", ""},
		{"op", "log"},
		{"decision", "none"},
		{"reason", o.reason},
		{"source", "log"},
		{"session", ""},
		{"corr", ""},
		{"policy", ""},
		{"level", core.LevelNone.String()},
		{"event", string(o.event)},
	} {
		b = field(b, f[0], f[1])
	}
	b = optional(b, "resource", o.resource)
	b = number(b, o.n)
	return append(b, "}\n"...)
}

// decided is none where nobody decided anything.
func decided(ev core.Event) string {
	if ev.Phase == core.PhaseOutside {
		return "none"
	}
	return ev.Verdict.Decision.String()
}

// number is the field n, which is left out for nothing.
func number(b []byte, n int64) []byte {
	if n == 0 {
		return b
	}
	return strconv.AppendInt(append(b, `,"n":`...), n, 10)
}

// begin begins a record.
func begin(b []byte, at time.Time) []byte {
	b = append(b, recordStart...)
	b = at.UTC().AppendFormat(b, time.RFC3339Nano)
	return append(b, '"')
}

// recordStart is how every record begins.
const recordStart = `{"t":"`

// longName is the length in bytes beyond which a name is cut: an agent chooses
// names, and is not to fill the disk with them.
const longName = 512

// cut keeps the beginning of a long name and tells the rest as a hash.
func (e encoder) cut(name string) string {
	if len(name) <= longName {
		return name
	}
	return strings.ToValidUTF8(name[:longName-64], "") + "...#" + e.hash(name)
}

// resource names what the event is about. A name outside every root and one
// that belongs to a class of secrets is told as a class and a keyed hash:
// equal names can be matched, none can be read.
func (e encoder) resource(ev core.Event) string {
	name := ev.Resource.String()
	switch {
	case name == "" || ev.Phase == core.PhaseUnknown: // which repeats what its intent has
		return name
	case !ev.Resource.Resolved:
		return "outside:" + e.hash(name)
	case ev.Class != "":
		return ev.Class + ":" + e.hash(name)
	case e.hashed && (ev.File || ev.Action.IsFile()):
		return "path:" + e.hash(name)
	default:
		return e.cut(name)
	}
}

// folder is told as long as names are.
func (e encoder) folder(ev core.Event) string {
	if e.hashed {
		return ""
	}
	return e.cut(ev.Folder)
}

func (e encoder) hash(s string) string {
	mac := hmac.New(sha256.New, e.key)
	_, _ = mac.Write([]byte(s))
	return hex.EncodeToString(mac.Sum(nil)[:12])
}

// optional is a field that is left out when there is nothing to say.
func optional(b []byte, name, value string) []byte {
	if value == "" {
		return b
	}
	return field(b, name, value)
}

func field(b []byte, name, value string) []byte {
	b = append(b, ',', '"')
	b = append(b, name...)
	b = append(b, '"', ':', '"')
	b = appendString(b, value)
	return append(b, '"')
}

const hexDigits = "0123456789abcdef"

// appendString escapes everything but printable ASCII, so that a line can be
// shown as it is; invalid UTF-8 becomes U+FFFD.
func appendString(b []byte, s string) []byte {
	for i := 0; i < len(s); {
		c := s[i]
		switch {
		case c == '"' || c == '\\':
			b = append(b, '\\', c)
			i++
		case c >= 0x20 && c < 0x7f:
			b = append(b, c)
			i++
		default:
			r, n := utf8.DecodeRuneInString(s[i:])
			b = appendEscaped(b, r)
			i += n
		}
	}
	return b
}

func appendEscaped(b []byte, r rune) []byte {
	if r > 0xffff {
		r -= 0x10000
		b = appendUnit(b, 0xd800+uint16(r>>10))
		return appendUnit(b, 0xdc00+uint16(r&0x3ff))
	}
	return appendUnit(b, uint16(r))
}

func appendUnit(b []byte, u uint16) []byte {
	return append(b, '\\', 'u', hexDigits[u>>12], hexDigits[u>>8&15], hexDigits[u>>4&15], hexDigits[u&15])
}
