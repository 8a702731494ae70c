// SPDX-License-Identifier: Apache-2.0

// Package advice says what would change a decision: the rule that decided and
// what to write in its place, or what a caller, a person or nobody can do about
// a code.
//
// # Guarantees
//
// What is proposed for a policy was tried: the amended policy is compiled and
// asked again, so the steps together lead to the decision that they promise or
// say that they don't, and the examples that would stop holding are named. Nothing is proposed that adds to what a project's own
// file allows, and nothing that lifts what guards postern itself. Every code
// has an advice.
//
// # Not guaranteed
//
// That the change is wise. The narrowest one is proposed where there is a
// choice: a rule of the agent's own that names the one file. Where no file names the root, that is
// the name in every folder that is served; each step says how far it reaches.
package advice
