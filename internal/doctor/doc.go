// SPDX-License-Identifier: Apache-2.0

// Package doctor looks at what makes postern work on one machine, check by
// check, and at the deployment checklist of docs/deploy.md.
//
// # Guarantees
//
// Nothing is repaired, written to the state directory or removed. A check that
// takes too long is given up and says so. A program that a client's file names
// is started only if it is this one, or one of the same name that nobody but
// this user and root can change; it gets a state directory of its own for that
// moment, and is ended afterwards. The same holds for git.
//
// # Not guaranteed
//
// That a machine without a finding is safe: each check says what it looked at,
// and what can't be checked from here is said to be so.
package doctor
