// SPDX-License-Identifier: Apache-2.0

// Package mcpserver is one small MCP server over mcpwire: a table of tools,
// resources with subscriptions, both eras of the protocol, cancelling, progress
// and the client's roots.
//
// A transport hands each frame to Server.Dispatch, which registers the request
// in its Session at once and returns the rest of the work. ServeStdio and HTTP are
// transports; the reverse channel uses the same three parts.
//
// The eras are told apart by request. One that carries the protocol version in
// its _meta is of the stateless era (2026-07-28); initialize opens a session of
// an older revision. Nothing is translated between them.
//
// # Guarantees
//
// Only protocol messages are written. Each id gets at most one answer, in the
// bytes in which it came; none after it was cancelled, and no progress after
// its answer. A malformed line fails alone. A panic in a tool becomes an
// internal.bug for its id. The number of calls in flight is bounded for the
// session and by kind of work for the server, so searches never keep small
// reads waiting. A place is held until the answer is sent, so the memory of what
// nobody reads is bounded too, and so is that of the frames in work. What a tool
// sends back is typed: text from outside only as untrusted.Wrapped.
//
// # Not guaranteed
//
// That a tool stops when its context ends: what it holds then is its own
// matter. Nothing that a client says of itself is used for a decision.
package mcpserver
