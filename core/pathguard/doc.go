// SPDX-License-Identifier: Apache-2.0

// Package pathguard is the trust boundary for files: names beneath roots, each
// proven canonical by the access itself.
//
// A caller's spelling is parsed into a Name, which is only a proposal. The
// caller judges the Name and then accesses it; the access opens exactly that
// name from the root's handle with no link followed, so that what was judged
// is what is opened, whatever happens to the tree in between. A link on the
// way makes a new proposal (LinkError), which is judged in its turn.
//
// # Guarantees
//
//   - Nothing outside a root is opened, listed or changed, and nothing of it,
//     not even its existence, shows in an error.
//   - What is opened has, at that moment, exactly the judged name: byte for
//     byte, through no link, over no mount point that the root does not list.
//   - A link is followed one at a time: nothing beneath where it leads is looked
//     at before that name was proposed, so that a denied directory tells
//     nothing through a link either.
//   - Each change begins with its preview (CanReplace and the like), which has no
//     effect: what the preview refuses the change refuses, in the same words.
//   - Only regular files and directories are opened, and no open waits.
//   - A file that is replaced is whole, old or new, for every reader; its
//     content was read back first; mode, owner, user attributes and ACL are
//     kept or nothing is changed.
//   - What is replaced, moved or removed is what was judged, or it is put back
//     and the call is refused. A change that could not be proven afterwards is
//     never reported as success (ErrMayHaveApplied).
//
// # Not guaranteed
//
//   - A link whose own target has a ".." behind a name (x/../y) is walked up to
//     there, since x may be a link; whether that much of it is there shows.
//   - A file with several names is read, and marked by Info.Nlink; a name
//     outside the root may lead to the same file (Options.DenyHardlinks).
//   - A directory that another program moves out of the root during a change
//     takes the change with it; it is reported as half-failed.
//   - A program of the same user can change or replace a file at any time
//     after the access, and could without this package.
//   - Opening a FIFO or device for reading lets its other end see an open for
//     a moment.
//   - Content is on the disk before its file has the name. That a name was
//     given, moved or taken away is not synced: a power failure may bring the
//     former state back, whole.
//   - On kernels before 6.13, and on file systems without fine-grained times, a
//     change of equal size within one clock tick of the former (1 to 10 ms) may
//     keep the etag.
//   - On file systems without an exchange (Written.CAS is false), and on
//     systems other than Linux and macOS, a change by another program in the
//     moment before the rename is lost.
//   - An ext4 directory with the casefold attribute beneath a root without it
//     may open an entry under a spelling that differs in case.
//   - A killed process may leave a file named .postern-tmp-*, with the new or
//     the displaced content; the file itself is old or new, whole.
//   - Between an exchange and a swap back the refused content shows for a
//     moment. Whoever serialises writers (package enforce does) never sees it.
//   - What lies beneath a protected directory that another program has moved
//     is known only where it was marked itself.
//   - On Windows links are refused, not followed; a replaced file has the
//     access list of its folder, and a new one shows while it is written.
//   - On macOS extended attributes and ACLs are not kept,
//     which Written.Warnings says, and opening needs read permission on each
//     directory of the name.
//   - Where openat2 is unavailable on a kernel before 5.8, a bind mount of the
//     root's own device is not told from a directory.
package pathguard
