// SPDX-License-Identifier: Apache-2.0

// Package enforce walks the crossing: every operation of every door goes
// through one function, from a caller's spelling to a recorded outcome.
//
//	resolve ► decide ► approve ► hold ► re-check ► keep ► spend+intent ► perform ► outcome ► mark
//
// # Use
//
// A Gate offers the guarded file operations (Read, List, Walk, Write, Edit,
// Append, MakeDir, Move, Copy, Delete, Watch). Gate.FS is the same boundary as an
// io/fs file system with mutations, for Go programs. Gate.Guard wraps a tool
// author's handler, whose declared path parameters are then judged before the
// handler runs.
//
// # Guarantees
//
// A file is judged by its canonical name, and exactly that name is opened with
// no link followed; a change in between makes the open fail. Nothing is
// touched before the policy allowed the name that is touched. "Ask" with
// nobody to ask is a refusal; a yes is for what was shown, is used up before
// the effect, and nobody waits for a person with locks held. A mutation that can't be recorded does not
// happen, and of one whose process was killed State.Recover says what became of
// it. A refused call leaves every file as it was.
//
// # Not guaranteed
//
// A handler behind Guard opens paths itself and by name: there a path is
// judged and then opened by somebody else. Code that does not use this package
// is not guarded by it.
package enforce
