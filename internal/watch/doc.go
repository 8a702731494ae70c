// SPDX-License-Identifier: Apache-2.0

// Package watch tells when the entries of a directory change, of one that is
// open already: no name is followed to watch it.
//
// On Linux it is the kernel that tells (inotify). On other systems, and where
// /proc isn't there to lead from the handle to the directory, the entries are
// looked at once a second; Watch.Polled says which of both it is.
//
// # Guarantees
//
// What is reported lies in the directory that was handed in, while its name
// still leads there. Where something may have been missed, as when the kernel's
// queue ran over, a Rescan says so. A directory that is gone, or has another
// name now, ends its watch with Gone. The number of watches is bounded, and so
// is what is held of each.
//
// # Not guaranteed
//
// What is beneath the entries isn't watched. A network file system doesn't tell
// of changes made on another machine, and polling doesn't see one that leaves
// size and times as they were. A directory above that is moved away is noticed
// with the next change.
package watch
