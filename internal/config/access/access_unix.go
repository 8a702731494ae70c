// SPDX-License-Identifier: Apache-2.0

//go:build unix

package access

import (
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
)

// Folder tells who may put another file in the place of one in the folder at
// path. Its owner may, whatever its mode is; in a sticky one that is nobody but
// that owner and the file's, which is for the caller to ask about. Accounts is the
// folder of passwd and group, "" for System.
func Folder(path string, info fs.FileInfo, accounts string) Others {
	answer := Nobody
	if Stranger(info) != "" {
		answer = Members
	}
	if info.Mode()&fs.ModeSticky == 0 {
		answer = min(answer, File(path, info, accounts))
	}
	return answer
}

// unmapped is whom a user namespace shows for owners that it doesn't know, and nobody.
const unmapped = 65534

// Stranger says who owns it, "" for this user or root.
func Stranger(info fs.FileInfo) string {
	st, ok := info.Sys().(*syscall.Stat_t)
	switch {
	case !ok:
		return "who can't be told"
	case st.Uid == 0 || int(st.Uid) == os.Geteuid():
		return ""
	case st.Uid == unmapped:
		return "user 65534: nobody, or one whom this container doesn't know"
	}
	return "user " + strconv.FormatUint(uint64(st.Uid), 10)
}

// File tells who may write what is at path, links followed, which is info.
func File(path string, info fs.FileInfo, accounts string) Others {
	st, ok := info.Sys().(*syscall.Stat_t)
	switch perm := info.Mode().Perm(); {
	case !ok || perm&0o002 != 0:
		return Anybody
	case perm&0o020 == 0: // where there is an access list, this is its mask
		return Nobody
	}
	if accounts == "" {
		accounts = System
	}
	uid := strconv.Itoa(os.Geteuid())
	users, groups, listed, ok := named(path)
	switch {
	case !ok:
		return Unknown
	case !listed:
		groups = []uint32{st.Gid}
	}
	answer := Nobody
	for _, u := range users {
		if u != 0 && strconv.FormatUint(uint64(u), 10) != uid {
			answer = Members
		}
	}
	for _, g := range groups {
		if g == ownGroup {
			g = st.Gid
		}
		answer = min(answer, group(accounts, strconv.FormatUint(uint64(g), 10), uid))
	}
	return answer
}

// ownGroup stands for the group of the file in what named returns.
const ownGroup = ^uint32(0)

// group tells whether somebody else than the user and root is in the group.
func group(accounts, gid, uid string) Others {
	users, ok := lines(filepath.Join(accounts, "passwd"), 4)
	groups, ok2 := lines(filepath.Join(accounts, "group"), 4)
	if !ok || !ok2 {
		return Unknown
	}
	ours := []string{""} // the names of the user and of root; "" is a list without one
	listed := false      // one who isn't has an account elsewhere, as others may
	for _, u := range users {
		listed = listed || u[2] == uid
		if u[2] == uid || u[2] == "0" {
			ours = append(ours, u[0])
		} else if u[3] == gid {
			return Members
		}
	}
	answer := Unknown
	for _, g := range groups {
		if g[2] != gid {
			continue
		}
		if listed {
			answer = Nobody
		}
		if slices.ContainsFunc(strings.Split(g[3], ","), func(name string) bool { return !slices.Contains(ours, name) }) {
			return Members
		}
	}
	return answer
}

// lines are the entries of a file of accounts. One that takes entries from
// elsewhere, by a line with a sign, doesn't tell all of them.
func lines(path string, fields int) (all [][]string, ok bool) {
	const most = 4 << 20
	f, err := os.Open(path)
	if err != nil {
		return nil, false
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, most+1))
	if err != nil || len(text) > most {
		return nil, false
	}
	for line := range strings.Lines(string(text)) {
		line = strings.TrimRight(line, "\n")
		if strings.HasPrefix(line, "+") {
			return nil, false
		}
		if entry := strings.Split(line, ":"); len(entry) >= fields && !strings.HasPrefix(line, "#") {
			all = append(all, entry)
		}
	}
	return all, true
}
