// SPDX-License-Identifier: Apache-2.0

//go:build unix

package access

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
)

// TestGroup: a group is nobody else's while it holds the user and root alone.
func TestGroup(t *testing.T) {
	const passwd = "root:x:0:0::/root:/bin/sh\nme:x:1000:1000::/home/me:/bin/sh\nmate:x:1001:1001::/home/mate:/bin/sh\n"
	for what, tc := range map[string]struct {
		passwd, group string
		want          Others
	}{
		"one's own":             {passwd, "me:x:1000:\n", Nobody},
		"one's own, listed":     {passwd, "me:x:1000:me,root\n", Nobody},
		"with a mate":           {passwd, "me:x:1000:mate\n", Members},
		"with a name":           {passwd, "me:x:1000:me,gone\n", Members},
		"listed twice":          {passwd, "me:x:1000:\nalso:x:1000:mate\n", Members},
		"somebody's first":      {passwd + "c:x:1002:1000::/:\n", "me:x:1000:\n", Members},
		"not listed":            {passwd, "other:x:5:\n", Unknown},
		"not listed, but first": {passwd + "c:x:1002:1000::/:\n", "other:x:5:\n", Members},
		"accounts elsewhere":    {"root:x:0:0::/root:/bin/sh\n", "me:x:1000:\n", Unknown},
		"users from elsewhere":  {passwd + "+::::::\n", "me:x:1000:\n", Unknown},
		"groups from elsewhere": {passwd, "me:x:1000:\n+:::\n", Unknown},
		"a comment":             {"# me\n" + passwd, "#me:x:1000:mate\nme:x:1000:\n", Nobody},
		"no files":              {"", "", Unknown},
	} {
		dir := t.TempDir()
		if tc.passwd != "" {
			put(t, filepath.Join(dir, "passwd"), tc.passwd)
			put(t, filepath.Join(dir, "group"), tc.group)
		}
		if got := group(dir, "1000", "1000"); got != tc.want {
			t.Errorf("%s: %v, want %v", what, got, tc.want)
		}
	}
}

// TestFolder: the mode says whether the group is asked about.
func TestFolder(t *testing.T) {
	dir, accounts := t.TempDir(), t.TempDir()
	info, err := os.Stat(dir)
	if err != nil {
		t.Fatal(err)
	}
	gid := strconv.FormatUint(uint64(info.Sys().(*syscall.Stat_t).Gid), 10)
	put(t, filepath.Join(accounts, "passwd"), "me:x:"+strconv.Itoa(os.Geteuid())+":"+gid+"::/:\n")
	for members, want := range map[string]map[os.FileMode]Others{
		"":     {0o755: Nobody, 0o775: Nobody, 0o757: Anybody, 0o777: Anybody, 0o777 | os.ModeSticky: Nobody},
		"mate": {0o755: Nobody, 0o775: Members, 0o777: Anybody, 0o775 | os.ModeSticky: Nobody, 0o775 | os.ModeSetgid: Members},
	} {
		put(t, filepath.Join(accounts, "group"), strings.Join([]string{"me", "x", gid, members}, ":")+"\n")
		for mode, answer := range want {
			if err := os.Chmod(dir, mode); err != nil {
				t.Fatal(err)
			}
			if info, err = os.Stat(dir); err != nil {
				t.Fatal(err)
			}
			if got := Folder(dir, info, accounts); got != answer {
				t.Errorf("%q, %v: %v, want %v", members, mode, got, answer)
			}
		}
	}
}

func put(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// TestStranger: whose folder it is may put anything into it, whatever its mode.
func TestStranger(t *testing.T) {
	for uid, want := range map[int]string{
		0: "", os.Geteuid(): "", 4711: "user 4711", 65534: "user 65534: nobody, or one whom this container doesn't know",
	} {
		dir := t.TempDir()
		if uid != os.Geteuid() && os.Geteuid() != 0 {
			continue // only root can give it away
		}
		if err := os.Chown(dir, uid, -1); err != nil {
			t.Fatal(err)
		}
		for _, mode := range []os.FileMode{0o755, 0o755 | os.ModeSticky, 0o777 | os.ModeSticky, 0o777} {
			if err := os.Chmod(dir, mode); err != nil {
				t.Fatal(err)
			}
			info, err := os.Stat(dir)
			if err != nil {
				t.Fatal(err)
			}
			others := Nobody
			if want != "" {
				others = Members
			}
			if mode == 0o777 {
				others = Anybody
			}
			if got, who := Folder(dir, info, ""), Stranger(info); got != others || who != want {
				t.Errorf("%d, %v: %v by %q, want %v by %q", uid, mode, got, who, others, want)
			}
		}
	}
}
