// SPDX-License-Identifier: Apache-2.0

// Package access tells whether a folder can be written by somebody else than
// this user and root.
//
// Many systems give each user a group of their own and let it write what the
// user makes, so a folder that a group may write is nobody else's as long as
// nobody else is in that group. Who is in it is read from the files passwd and
// group alone. On Linux a POSIX access list is read: whom it lets write counts, not the
// mode's bits for the group, which are its mask.
//
// # Not guaranteed
//
// What access lists of other systems and of NFSv4 say, and who a directory service
// adds to a group of these files. Where they lack the user or the group, it can't be told.
package access
