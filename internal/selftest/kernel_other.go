// SPDX-License-Identifier: Apache-2.0

//go:build !linux

package selftest

import "runtime"

// What these tell is decided by the system here: there is no faster and no
// slower way, and nothing to attack.
const elsewhere = "on " + runtime.GOOS + " each component is opened by itself; docs of core/pathguard name what that lacks"

func kernelOpen(_ *lab, t *trial) {
	t.tried, t.about = 1, elsewhere
	t.weaker = append(t.weaker, "there is no call that opens beneath a folder in one step")
}

func kernelExchange(_ *lab, t *trial) {
	t.tried, t.about = 1, "files change names by a rename"
	if runtime.GOOS != "darwin" {
		t.weaker = append(t.weaker, "a change by another program in the moment before a replacement is lost; such results say cas: false")
	}
}

func fileSystem(_ *lab, t *trial) {
	t.tried, t.about = 1, "names are taken to fold, and compared with the folder's entries"
	t.weaker = append(t.weaker, "two writes of one length within a clock tick may have one etag")
}
