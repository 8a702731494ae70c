// SPDX-License-Identifier: Apache-2.0

// Package grant keeps what people are asked and what they answer: questions in
// pending/, answers in grants/, and both in spent/ when they are over. A file
// is written whole under another name and then takes its own, which only the
// first one gets: that decides who answered, and it decides who spends.
//
// # Guarantees
//
//   - A once-grant is spent at most once, by the call whose every binding it
//     has, in this boot, before its deadline, while the agent isn't paused; and
//     no grant is after it was revoked. This holds between processes, and for
//     one that is killed at any step.
//   - A record that is empty, cut short, edited, another's, open to others, of
//     a name that isn't its own, or of a newer version is no grant.
//   - A copy of a spent grant that is put back is not spent again as long as
//     the spent one is kept, a day.
//   - Setting the clock back makes nothing valid for longer.
//   - Nothing is made or read before the policy asks for the first time.
//
// # Not guaranteed
//
// Anything against a program of the same user that doesn't go through
// postern: it can read the key and write what it likes. Against that the files
// show accidents, not forgery.
package grant
