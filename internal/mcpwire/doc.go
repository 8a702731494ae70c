// SPDX-License-Identifier: Apache-2.0

// Package mcpwire is the strict and byte-faithful JSON-RPC layer under every
// MCP face of postern: framing by newline, a span scanner, a view of arguments
// in their own bytes, a digest of them, and an encoder for answers.
//
// Two parsers that read one message differently are a way around a policy:
// what was judged must be what is executed. So nothing here guesses. A frame is
// exactly one JSON object (RFC 8259) in valid UTF-8 without a byte order mark.
// Refused are duplicate keys in any object; keys that are equal under Unicode
// case folding in the envelope, in params, in its arguments and _meta, and in
// every Object that somebody reads by key; lone surrogates; batches; an id that
// is neither string nor number; nesting beyond MaxDepth. Keys are compared
// unescaped and found by exact match. Ids and numbers keep their own text.
//
// # Guarantees
//
// Parse accepts nothing that encoding/json refuses, and reads the same values.
// A frame that is refused names the id that an answer must carry, when there is
// exactly one. Cost is linear in the frame. A line beyond the cap costs no more
// memory than the cap, fails its own id and leaves the next line intact.
//
// # Not guaranteed
//
// Nothing about the meaning of a method or of its parameters.
package mcpwire
