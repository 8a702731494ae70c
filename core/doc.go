// SPDX-License-Identifier: Apache-2.0

// Package core holds the vocabulary of a decision: who asks (Subject), for
// what (Action) on which thing (Resource), and what the answer is (Decision)
// with its Reason.
//
// # Guarantees
//
// The zero value of every type here is the refusing one: no action, an
// unresolved resource, an unknown class, Deny. Everything that can say yes
// lives in the packages below this folder:
//
//   - glob: the pattern language, linear time
//   - policy: the six steps of a decision, no I/O and no clock
//   - pathguard: names beneath a root, opened by handle
//   - textsafe: untrusted text to drawable text
//   - untrusted: the envelope around bytes from outside
//   - fault: stable error codes and what they mean to each protocol
//
// # Not guaranteed
//
// Nothing here performs or records an operation. Package enforce walks the
// whole crossing; code that skips it is not guarded by these types.
package core
