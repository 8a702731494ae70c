// SPDX-License-Identifier: Apache-2.0

package access

// Others is who may write beside this user and root. The zero value is the worst.
type Others uint8

// The answers.
const (
	Anybody Others = iota
	Members        // of a group, who are not this user alone, who an access list names, or the owner
	Unknown        // a group, and who is in it can't be told
	Nobody
)

// System is the folder with the system's files passwd and group.
const System = "/etc"
