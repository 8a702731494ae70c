// SPDX-License-Identifier: Apache-2.0

// Package edit replaces exact pieces of a text file and shows the change as a
// diff. It works on bytes in memory and touches no file.
//
// # Guarantees
//
//   - Bytes outside the matched pieces come out as they went in, whatever the
//     encoding, line endings or byte order mark.
//   - An edit is made at exactly one place, or at every place when it says so;
//     everything else is a Refusal, and then none of the edits is made.
//   - A line feed in what is sought also matches CR LF, and what is put there
//     takes the line endings of the lines it replaces.
//   - Time is linear in the text for each edit; the text, what becomes of it
//     and the work of one call are limited.
//   - A diff that is shown applies with patch or git apply and gives the same
//     bytes.
//
// # Not guaranteed
//
// Encodings other than UTF-8 are left alone, not understood: in such a file
// only ASCII can be put in. UTF-16 and files with NUL bytes are refused.
package edit
