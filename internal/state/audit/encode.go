// SPDX-License-Identifier: Apache-2.0

package audit

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"time"
	"unicode/utf8"

	"github.com/postern-gate/postern/core"
)

// encoder writes events as JSON lines. The names and their order are a
// promise: t agent op decision reason source session corr policy level, then
// phase, resource and code.
type encoder struct{ key []byte }

func (e encoder) append(b []byte, ev core.Event) []byte {
	b = append(b, `{"t":"`...)
	b = ev.Time.UTC().AppendFormat(b, time.RFC3339Nano)
	b = append(b, '"')
	b = field(b, "agent", ev.Subject.Agent)
	b = field(b, "op", ev.Action.String())
	b = field(b, "decision", ev.Verdict.Decision.String())
	b = field(b, "reason", ev.Verdict.Reason.String())
	b = field(b, "source", ev.Subject.Source)
	b = field(b, "session", ev.Subject.Session)
	b = field(b, "corr", ev.Corr)
	b = field(b, "policy", ev.Policy)
	b = field(b, "level", ev.Subject.Level.String())
	b = field(b, "phase", ev.Phase.String())
	b = field(b, "resource", e.resource(ev))
	if ev.Code != "" {
		b = field(b, "code", ev.Code)
	}
	return append(b, "}\n"...)
}

// resource names what the event is about. A name outside every root and one
// that the built-in list of secrets covers is told as a class and a keyed
// hash: equal names can be matched, none can be read.
func (e encoder) resource(ev core.Event) string {
	switch {
	case !ev.Resource.Resolved:
		return "outside:" + e.hash(ev.Resource.String())
	case ev.Verdict.Reason.Builtin != "":
		return ev.Verdict.Reason.Builtin + ":" + e.hash(ev.Resource.String())
	default:
		return ev.Resource.String()
	}
}

func (e encoder) hash(s string) string {
	mac := hmac.New(sha256.New, e.key)
	_, _ = mac.Write([]byte(s))
	return hex.EncodeToString(mac.Sum(nil)[:12])
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
