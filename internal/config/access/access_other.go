// SPDX-License-Identifier: Apache-2.0

//go:build !unix

package access

import "io/fs"

// Folder can't tell: there are no permission bits, and access lists are not
// read here.
func Folder(string, fs.FileInfo, string) Others { return Nobody }

// Stranger is not known here.
func Stranger(fs.FileInfo) string { return "" }
