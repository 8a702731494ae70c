// SPDX-License-Identifier: Apache-2.0

// Package grep finds the lines of a file that an expression matches.
//
// # Guarantees
//
// Lines are searched one by one: no match reaches over a line feed, ^ and $ are
// the ends of a line, and a carriage return before its end is not part of it
// for $ (TestQuery). A query is RE2 (regexp/syntax), so the time is linear in
// the file for each step of the query, of which there are few.
//
// A Scanner holds at most [MaxLine] bytes of a file and [MaxText] of what it
// found, whatever the file's size (TestBounds). What it returns is cut between
// characters.
//
// # Limits
//
// A file that holds a NUL byte is binary; it is searched up to the block in
// which the byte is found. Of a longer line than MaxLine the rest isn't
// searched. Bytes that are not UTF-8 match as U+FFFD does.
package grep
