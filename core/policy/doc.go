// SPDX-License-Identifier: Apache-2.0

// Package policy decides. Compile turns what a person wrote into a Policy;
// Evaluate answers one request with a decision and the rule that made it;
// Explain lists every rule that matches. There is no I/O and no clock.
//
// The order is fixed:
//
//  1. containment: the resource is resolved, its root known, and not changed
//     where the root is for reading only
//  2. explicit deny, the built-in lists among them
//  3. the boundary: the name must match an allow
//  4. the rule for this agent
//  5. the general rule
//  6. the default
//
// Layers (system, user, project) walk steps 2 to 6 separately and the
// strictest decision wins; a layer that says nothing at a step has no opinion
// there. The fallback layer speaks only where no other one decides.
//
// Within a step the strictest match wins, and `else` speaks only when nothing
// matches. The order of rules never matters. Deny and ask compare folded
// (glob.Key) and cover what is beneath a folder; allow compares byte for byte
// and covers only what it names.
//
// # Guarantees
//
// A nil or zero Policy, an unknown action, an unresolved or malformed name,
// and a request that no rule decides are denied. A pattern that can't be
// compiled, or that names an unknown root, makes Compile fail as a whole: no
// deny rule is ever skipped. Adding a deny never turns a deny into anything
// else, removing an allow never allows more, and a tightening layer never
// loosens. Evaluate is safe for concurrent use and does not allocate for file
// names in ASCII.
//
// # Not guaranteed
//
// Resolved is taken from the caller: only a guard (pathguard, netguard, a
// pinned server) may set it. Names are judged, not files: a second hard link
// to a denied file has another name, which pathguard knows by device and
// inode. What is reached through a link is judged where it lies: so a link gets no
// name that a rule goes on from (Request.Link), and of links that are there already
// only those of Config.Links are known. A program rule compares the resolved program, not what it does.
package policy
