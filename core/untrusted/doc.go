// SPDX-License-Identifier: Apache-2.0

// Package untrusted marks text from outside, so that a model can tell data
// from instructions:
//
//	<untrusted-1a2b3c4d kind="file" source="project://a.txt" etag="…" hidden="2">
//	the bytes
//	</untrusted-1a2b3c4d>
//
// Text is wrapped once, where it enters, and the type Wrapped says that it is
// done: what only looks wrapped is scrubbed and wrapped like anything else.
// Wrap, Bare and BareAll may be called only by the packages in which outside
// bytes enter (enforce and the doors); internal/archtest holds the list. A
// text with any outside byte in it is wrapped whole; one made of our own words
// and the caller's own path isn't, nor is binary.
//
// A look-alike is whatever reads as the start of such a tag: an opening angle
// bracket, blanks and slashes, the word "untrusted". It is judged on a folded
// view: what textsafe.Hidden counts, format characters and combining marks are
// left out, compatibility forms, case and confusable letters, slashes, angle
// brackets and blanks are mapped. Its bracket becomes "&lt;", whatever nonce
// follows it.
//
// # Guarantees
//
// The body of a Wrapped holds no look-alike, so neither the closing tag nor
// another opening one; several texts of one BareAll hold none even when a
// client joins them with nothing or with a newline between (each travels as
// valid UTF-8, so half a code point at an end stays half). Of a body of kind
// file nothing changes but the brackets of look-alikes; any other body is a
// textsafe.Text first. Cost is linear, and the output is built once.
//
// # Not guaranteed
//
// An envelope tells a model where data is; it doesn't make the model heed it.
// What is enforced is the policy on the calls that follow. Fold and map are a
// table of known look-alikes, not a proof that no glyph resembles a bracket.
// Two texts of different Bare calls may form a tag when somebody joins them.
package untrusted
