// SPDX-License-Identifier: Apache-2.0

package config

import "strings"

// farthest is how many edits a slip of the pen has.
const farthest = 2

// orKnown is the word that is meant by text, where one alone is nearest and near,
// else all of them.
func orKnown(text string, words []string) string {
	best, found := farthest+1, ""
	for _, w := range words {
		switch d := distance(strings.ToLower(text), strings.ToLower(w)); {
		case d < best:
			best, found = d, w
		case d == best:
			found = ""
		}
	}
	if found == "" || best >= len(text) {
		return "known: " + strings.Join(words, ", ")
	}
	return "did you mean " + found + "?"
}

// distance is that of Levenshtein. Words that are too far apart to matter are
// not measured, since text may be as long as a file.
func distance(a, b string) int {
	if d := len(a) - len(b); d > farthest || d < -farthest {
		return farthest + 1
	}
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			changed := diagonal
			if a[i] != b[j] {
				changed++
			}
			diagonal = row[j+1]
			row[j+1] = min(changed, diagonal+1, row[j]+1)
		}
	}
	return row[len(b)]
}
