// SPDX-License-Identifier: Apache-2.0

// Package attach knows the MCP clients of one machine: where each keeps its
// servers, in which format, and how an entry for postern gets in there and out
// again.
//
// # Guarantees
//
//   - A file is edited by inserting our entry's own bytes. Every other byte stays:
//     comments, order, indentation, trailing commas, a byte order mark, line ends.
//   - A plan is computed and checked whole before anything is written. What can't
//     be edited without a guess is refused with its place, and then nothing is.
//   - An entry of our name that isn't ours is neither overwritten nor trusted.
//   - In a project, which may be somebody else's, no link is followed and nothing
//     but a regular file is opened, whosever file it is. Elsewhere a link is
//     followed and its target replaced, so that it stays a link.
//   - A file is compared with what was planned right before it is replaced.
//   - What was added is remembered, so that exactly this can be taken out again,
//     also when the rest of the file has changed meanwhile. An entry that others
//     have changed since stays, and one that ours took the place of comes back.
//     In a file of the user
//     an entry for another folder is never touched, whatever is remembered.
//
// # Not guaranteed
//
// That nothing is left of a process that was killed, on systems other than
// Linux: the next init there has no proof that such a file is in nobody's hands.
// That a client reads the file: some ask first, some read it when they start.
// Extended attributes and access lists of a replaced file are not kept, its mode
// and owner are. A client that writes its file in the moment between comparing and
// replacing loses that write.
package attach
