// SPDX-License-Identifier: Apache-2.0

package fsserver

import (
	"errors"
	"io/fs"
	"regexp"
	"strconv"
	"strings"
	"sync"

	"github.com/postern-gate/postern/core/fault"
	"github.com/postern-gate/postern/core/textsafe"
	"github.com/postern-gate/postern/internal/fsserver/grep"
	"github.com/postern-gate/postern/internal/mcpwire"
)

// account counts what was not searched and why. The caller holds the walk's mu.
func (s *contents) account(j *job) {
	n := &s.walk.counts
	switch code := fault.CodeOf(j.err); {
	case j.err == nil:
	case code == fault.PolicyDenied:
		n.denied++
	case errors.Is(j.err, fs.ErrNotExist):
		n.raced = true
	default:
		n.unread++
	}
	if j.result.Binary {
		n.binary++
	}
	n.long += j.result.Long
	if j.linked && len(j.result.Lines) > 0 {
		n.linked++
	}
	if j.raced || j.options.After > 0 && s.walk.from.tag != j.tag {
		n.raced = true // its lines may be others now
	}
}

// add puts a file's lines into the answer, those before a match only with it.
// The caller holds the walk's mu.
func (s *contents) add(j *job) error {
	switch fault.CodeOf(j.err) {
	case fault.AuditUnwritable, fault.AuditBroken, fault.AuditTruncated:
		return j.err
	default:
	}
	if !s.addLines(j) {
		return nil
	}
	if j.result.More {
		s.walk.counts.paged = true
		return nil
	}
	s.walk.reached = position{path: j.path}
	return nil
}

// addLines is false where the answer has no room for all of them.
func (s *contents) addLines(j *job) bool {
	path := textsafe.Name(shown(j.name))
	place := placed(path)
	var lines, objects []byte
	last, match := int64(-1), int64(0)
	for _, l := range j.result.Lines {
		if s.near > 0 && l.Number != last+1 && len(s.lines)+len(lines) > 0 {
			lines = append(lines, "--\n"...)
		}
		last = l.Number
		lines = appendLine(lines, place, l)
		if s.bare {
			objects = appendHit(objects, path, l)
		}
		switch size := mcpwire.TextLen(lines) + len(objects); {
		case l.Match && !s.walk.fits(size):
			return false
		case l.Match:
			match = l.Number
			s.walk.reached = position{path: j.path, n: match, tag: j.tag}
		case match == 0 || l.Number > match+int64(s.near):
			continue
		default:
			s.walk.size += size
		}
		if l.Cut {
			s.walk.counts.cut++
		}
		s.lines, s.structured = append(s.lines, lines...), append(s.structured, objects...)
		lines, objects = lines[:0], objects[:0]
	}
	return true
}

// placelike is what a name holds, or ends in, that reads as the place of another
// line in it.
var placelike = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`:[0-9]+(:|$)|-[0-9]+- `) })

// placed is a drawn path before the number of a line: a JSON string literal where
// it could be taken for a shorter path and the rest for a number and text.
func placed(path string) string {
	if path[0] == '"' || !placelike().MatchString(path) {
		return path
	}
	return string(mcpwire.AppendString(nil, path))
}

// appendLine appends path:number: text for a match, with dashes for a line near
// one.
func appendLine(b []byte, path string, l grep.Line) []byte {
	mark := byte('-')
	if l.Match {
		mark = ':'
	}
	b = append(append(b, path...), mark)
	b = append(strconv.AppendInt(b, l.Number, 10), mark, ' ')
	return append(append(b, l.Text...), '\n')
}

func appendHit(b []byte, path string, l grep.Line) []byte {
	b = appendScrubbed(append(b, `{"path":`...), path)
	b = strconv.AppendInt(append(b, `,"line":`...), l.Number, 10)
	b = appendScrubbed(append(b, `,"text":`...), strings.ToValidUTF8(l.Text, "\uFFFD"))
	if !l.Match {
		b = append(b, `,"context":true`...)
	}
	return append(b, '}', ',')
}
