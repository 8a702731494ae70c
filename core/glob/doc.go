// SPDX-License-Identifier: Apache-2.0

// Package glob is the pattern language of the policy: which names a rule is
// about.
//
// A pattern is matched against a whole slash-separated name, from its start:
//
//	a        that byte; a backslash takes the next character literally
//	?        one character (one byte where the name is not valid UTF-8)
//	*        any run of characters within a segment, also none
//	[a-z]    one character of the class; [!a-z] or [^a-z] one that is not
//	**       as a whole segment: any number of segments, also none
//
// So `a/**` is a and everything below it, and `**/x` is x at any depth, the
// top included. The name "" is the root itself: `**` names it, `*` does not.
// A name may start with a slash (a program's path); then so must the pattern,
// or start with `**`.
//
// What could be meant in two ways does not compile: braces (write two
// entries), `**` inside a segment (write `**/*.js`), an empty segment or a
// trailing slash (write `a/**`), "." and "..", an unclosed or empty class, a
// descending range, a named class such as [[:alpha:]].
//
// # Guarantees
//
// Matching takes at most length of pattern times length of name steps and
// never allocates. A folded pattern matches every name that the same pattern
// matches byte for byte, and every name with an equal Key.
//
// # Not guaranteed
//
// Key does not know the 8.3 short names of Windows: they are another name of
// a file, not another spelling. A class in a folded pattern compares single
// characters by simple case folding; a member that folds to several
// characters is only met byte for byte.
package glob
