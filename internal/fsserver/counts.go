// SPDX-License-Identifier: Apache-2.0

package fsserver

import "strconv"

// counts are what an answer leaves out, and why.
type counts struct {
	hidden, unreadable int  // names; directories
	full               bool // the answer is at its limit
	over               bool // the walk is at its limit of entries
	paged              bool // the page is full
	raced              bool

	// Of a search in contents:
	denied, unread, binary, long, cut, linked, ignored, unheeded int
}

// more reports that an answer ended before the end.
func (n counts) more() bool { return n.full || n.over || n.paged }

// note says what the policy hides, what could not be read and what is missing.
func (n counts) note(r *reply) {
	for _, line := range []struct {
		n                int
		one, many, after string
	}{
		{n.hidden, "name is", "names are", " hidden by policy"},
		{n.unreadable, "directory", "directories", " could not be read"},
		{n.denied, "file is", "files are", " not read by policy"},
		{n.unread, "file", "files", " could not be read"},
		{n.binary, "binary file is", "binary files are", " not searched"},
		{n.long, "line is", "lines are", " searched in the first 262144 bytes alone"},
		{n.cut, "line is", "lines are", " shortened, marked …"},
		{n.linked, "of these files has", "of these files have", " other names (hard_links)"},
		{n.ignored, "name is", "names are", " left out by .gitignore; includeIgnored: true searches there too"},
		{n.unheeded, ".gitignore file is", ".gitignore files are", " not heeded, being too much or too slow; what they name is searched"},
	} {
		if line.n > 0 {
			r.notes = append(r.notes, quantity(line.n, line.one, line.many)+line.after)
		}
	}
	if n.full || n.over {
		r.notes = append(r.notes, "there is more than the limit of one answer")
	} else if n.paged {
		r.notes = append(r.notes, "there is more")
	}
	r.outcome.Partial = r.outcome.Partial || n.unreadable > 0 || n.unread > 0 || n.long > 0 || n.full || n.over
	r.outcome.RescanPending = r.outcome.RescanPending || n.raced
}

func quantity(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return strconv.Itoa(n) + " " + many
}
