// SPDX-License-Identifier: Apache-2.0

package fsserver

import (
	"strconv"
	"strings"
	"time"
	"unicode/utf16"

	"github.com/postern-gate/postern/core/pathguard"
	"github.com/postern-gate/postern/core/textsafe"
	"github.com/postern-gate/postern/internal/mcpwire"
)

// What the reference server prints is what models have learnt to read, so the
// forms here are its forms to the byte; interop tests hold both against each
// other.

// label is the mark before an entry in a listing.
func label(k pathguard.Kind) string {
	switch k {
	case pathguard.KindDir:
		return "[DIR]"
	case pathguard.KindFile:
		return "[FILE]"
	default:
		return "[" + strings.ToUpper(k.String()) + "]"
	}
}

// treeType is the type of an entry in a tree.
func treeType(k pathguard.Kind) string {
	if k == pathguard.KindDir {
		return "directory"
	}
	return k.String()
}

// unreachable follows a name that no argument can spell.
const unreachable = " (unreachable: the name is not UTF-8)"

// shownName is an entry's name in a listing.
func shownName(e pathguard.Entry) string {
	if !e.Reachable {
		return textsafe.Name(e.Name) + unreachable
	}
	return textsafe.Name(e.Name)
}

var units = [...]string{"B", "KB", "MB", "GB", "TB"}

// formatSize prints bytes with two decimals of the largest unit that fits,
// halves rounded up as JavaScript's toFixed does.
func formatSize(n int64) string {
	if n <= 0 {
		return "0 B"
	}
	unit, size := 0, int64(1)
	for n/size >= 1024 && unit < len(units)-1 {
		unit, size = unit+1, size*1024
	}
	if unit == 0 {
		return strconv.FormatInt(n, 10) + " B"
	}
	whole, rest := n/size, n%size
	// rest is below 2^40, so this can't overflow.
	hundredths := (rest*200 + size) / (2 * size)
	if hundredths == 100 {
		whole, hundredths = whole+1, 0
	}
	b := append(strconv.AppendInt(nil, whole, 10), '.', byte('0'+hundredths/10), byte('0'+hundredths%10), ' ')
	return string(append(b, units[unit]...))
}

// pad adds blanks up to a width that counts UTF-16 units, as JavaScript's
// padEnd and padStart do.
func pad(s string, width int) string {
	n := len(s)
	for i := range len(s) {
		if s[i] >= 0x80 {
			n = len(utf16.Encode([]rune(s)))
			break
		}
	}
	return strings.Repeat(" ", max(0, width-n))
}

// jsTime prints a time as JavaScript's Date does. Its name of the zone in
// words is a long one of CLDR; ours is known for UTC only, others have their
// abbreviation there.
func jsTime(t time.Time) string {
	if t.IsZero() {
		return "unknown"
	}
	zone, offset := t.Zone()
	if offset == 0 && (zone == "UTC" || zone == "GMT") {
		zone = "Coordinated Universal Time"
	}
	return t.Format("Mon Jan 02 2006 15:04:05 GMT-0700") + " (" + zone + ")"
}

// jsonName appends a name as a JSON string that textsafe leaves as it is: what
// can't be drawn is escaped. A name that isn't UTF-8 has no JSON form, so its
// drawn form stands there as text.
func jsonName(b []byte, e pathguard.Entry) []byte {
	drawn := textsafe.Name(e.Name)
	if drawn != e.Name && e.Reachable {
		return append(b, drawn...) // a JSON string literal
	}
	return mcpwire.AppendString(b, drawn)
}
