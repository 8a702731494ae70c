// SPDX-License-Identifier: Apache-2.0

// Package fsserver is the filesystem door: eighteen MCP tools over package
// enforce, of which fourteen take the place of the reference filesystem server
// with its names, parameters and reply texts.
//
// One table says what each tool is: its parameters, which of them are paths
// and what they are used for. The schemas of tools/list, the reading of
// arguments and the syntactic pre-filter all come from it, and every call goes
// through one function.
//
// # Guarantees
//
// No tool reaches a file but through enforce.Gate. Arguments are read by exact
// keys; an unknown one, or one of another type, refuses the call. Text that
// holds any byte from outside leaves in one envelope, or scrubbed where the
// operator turned envelopes off; a refusal shows the caller's own spelling.
// The client's roots narrow what is open and never widen it. A call ends at its
// deadline, and with what a search has found by then; one that changes something
// is waited for two seconds longer, so that it undoes what is half done and says
// how it ended. An answer is bounded as it is sent, escapes and indents counted,
// and calls that hold more than a MiB are few at a time.
//
// Pages and ranges join to the whole (TestPages, TestSearchContentPages,
// TestRangesJoin). Nothing in a cursor is trusted (TestCursorsOfOthers). A search
// in contents opens only what may be read, and records each file of which it
// tells something (TestSearchContentPolicy, TestSearchContentRecords).
//
// # Not guaranteed
//
// A system call that a broken file system holds up can't be ended: it keeps
// its goroutine until the file system lets go. The number of those is bounded;
// beyond it calls are refused.
package fsserver
