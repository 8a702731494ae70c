// SPDX-License-Identifier: Apache-2.0

// Package ignore understands .gitignore files (gitignore(5)).
//
// # Guarantees
//
// A List says of a name what git says of it: the last pattern that names it
// decides, and a later ! takes it back (TestAgainstGit). Patterns are bytes, as
// git's are: ? is one byte and nothing is folded.
//
// The content of such a file comes from outside. Parse takes any bytes, as many
// and as many patterns as its Budget has; a pattern of more than [MaxPattern]
// bytes names nothing. No pattern makes matching slower than the product of the
// lengths of the pattern, the name and its depth, and Match ends when the steps
// that it may take are used up.
//
// # Limits
//
// It reads no file and knows no directory: the caller decides which lists hold
// where, and does not look beneath what is ignored, which no pattern can take
// back.
package ignore
