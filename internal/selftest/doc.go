// SPDX-License-Identifier: Apache-2.0

// Package selftest attacks the guard on the machine where it is to stand, in a
// folder of its own that is removed afterwards. What is attacked is what
// `postern serve` is made of: the same configuration, gate, tools, log and
// listener, in this process.
//
// # Guarantees
//
// An attack counts only if the same operation succeeds without the guard, a
// moment before and on the same files: one whose control fails is untested,
// which is as bad as missing. Nothing outside the folder is written, no file of
// the caller is read, and neither HOME nor the environment has an influence.
//
// # Not guaranteed
//
// Attacks that are not listed. Races are tried a bounded number of times: one
// that is not lost in them may still be lost another day. The tests of the
// packages try longer.
package selftest
