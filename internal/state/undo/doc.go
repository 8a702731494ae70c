// SPDX-License-Identifier: Apache-2.0

// Package undo keeps what changes displace, and a journal of every change, so
// that each can be taken back. Journals, images and their bounds are shared by
// all processes of one state directory; docs/undo.md is the format.
//
// Guaranteed: what a change is about to do is in the journal, on disk, before
// it happens (Entry.Sync), and what it displaces is moved to the images in the
// same step in which it loses its name, or was copied and synced before. After
// a crash between any two steps Recover finds which of the two it was, or says
// that a person has to look; it never guesses. Images together hold at most
// Options.Total bytes and Options.MaxImages entries, whoever writes, but for
// those that are being made in the moment of a count.
//
// Not guaranteed: anything against a program of the same user, which can change
// journals and images. An image that was changed is noticed by its inode, times
// and size, and one that is gone is an error: neither ever removes a file.
package undo
