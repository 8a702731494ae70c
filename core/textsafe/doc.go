// SPDX-License-Identifier: Apache-2.0

// Package textsafe turns untrusted text into text that can be drawn: on a
// terminal, in a log, on the approval page, in a result that a model reads.
//
// It replaces or removes single code points and never parses an escape
// sequence: terminals disagree on where a sequence ends, and a filter that
// strips whole sequences can rebuild one from its halves. What is left of a
// sequence ("[31m") stays visible as evidence.
//
// Two contracts. A Line has no line break: every control character, U+2028
// and U+2029 becomes one space. A Text is the same with tab and newline kept.
// In both, after that:
//
//   - invisible format characters, direction controls, tag characters and the
//     default-ignorable rest of their plane are removed, and so is a run of
//     three or more variation selectors;
//   - blank letters (Hangul fillers) become one space;
//   - each byte that isn't UTF-8 and each noncharacter becomes U+FFFD.
//
// Kept are all scripts, combining marks, ZWJ and ZWNJ, up to two variation
// selectors in a row, no-break and wide spaces. Nothing is normalised and
// look-alike letters stay as they are. Known loss: the flags of England,
// Scotland and Wales fall back to the black flag.
//
// # Guarantees
//
// A Line and a Text can only be made here. Both are valid UTF-8, hold no C0
// or C1 control but tab and newline in a Text, no direction control
// (CVE-2021-42574), no tag character. Making them is idempotent and linear in
// time and memory; a text that needs no change is returned without a copy. A
// Writer gives the bytes that one call over the joined parts would give.
//
// # Not guaranteed
//
// That two different texts look different, that a text reads in one
// direction, or that its width is bounded. Removing hides evidence: Hidden
// counts what went, so that it can be shown.
package textsafe
