// SPDX-License-Identifier: Apache-2.0

//go:build unix

package config_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/postern-gate/postern/core"
	"github.com/postern-gate/postern/core/fault"
	"github.com/postern-gate/postern/internal/config"
)

// TestLiveSameTime: a change of equal size in place, whose time was set back, is
// a change.
func TestLiveSameTime(t *testing.T) {
	p := newPlace(t)
	path := p.user("version: 1\nrules: { fs.write: allow }\n")
	c := &clock{now: time.Unix(1, 0)}
	live, err := config.OpenLive(p.opts, c.read, func(err error) { t.Error(err) })
	must(t, err)
	was, err := os.Stat(path)
	must(t, err)
	for now := was; config.ChangeTime(now).Equal(config.ChangeTime(was)); { // until the clock of the file system went on
		must(t, os.WriteFile(path, []byte("version: 1\nrules: { fs.write: deny  }\n"), 0o644))
		must(t, os.Chtimes(path, was.ModTime(), was.ModTime()))
		now, err = os.Stat(path)
		must(t, err)
		if now.Size() != was.Size() || !now.ModTime().Equal(was.ModTime()) || !os.SameFile(now, was) {
			t.Fatal("it differs in something else")
		}
	}
	c.pass(time.Second)
	if got := live.Evaluate(file(core.FSWrite, "x")).Decision; got != core.Deny {
		t.Errorf("%v", got)
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// accounts are those in which the group of a file has these members beside the
// user, or isn't listed for "-".
func (p *place) accounts(t *testing.T, path, members string) {
	t.Helper()
	info, err := os.Stat(path)
	must(t, err)
	p.opts.Accounts = t.TempDir()
	gid := strconv.FormatUint(uint64(info.Sys().(*syscall.Stat_t).Gid), 10)
	p.write(filepath.Join(p.opts.Accounts, "passwd"), fmt.Sprintf("me:x:%d:%s::/:\n", os.Geteuid(), gid))
	if members != "-" {
		p.write(filepath.Join(p.opts.Accounts, "group"), "me:x:"+gid+":"+members+"\n")
	}
}

// TestGroupOfFile: umask 002 makes files that a group can write, and a policy is
// read where the group is this user alone.
func TestGroupOfFile(t *testing.T) {
	for members, refused := range map[string]bool{"": false, "mate": true, "-": true} {
		p := newPlace(t)
		file := p.user("version: 1\n")
		must(t, os.Chmod(file, 0o664))
		p.accounts(t, file, members)
		if refused {
			p.refused(fault.ConfigInvalid, "others can write the file")
			continue
		}
		_, err := config.Load(p.opts)
		must(t, err)
	}
}

// TestGroupOfFolder: a policy that members of a group could replace is refused,
// and one where nobody can tell is told of; a group of this user alone is nobody.
func TestGroupOfFolder(t *testing.T) {
	for members, want := range map[string]string{"": "", "mate": "others can replace the file", "-": "who is in it can't be told"} {
		p := newPlace(t)
		folder := filepath.Dir(p.user("version: 1\n"))
		must(t, os.Chmod(folder, 0o775))
		p.accounts(t, folder, members)
		if members == "mate" {
			p.refused(fault.ConfigInvalid, want)
			continue
		}
		cfg, err := config.Load(p.opts)
		must(t, err)
		if want == "" && len(cfg.Warnings) > 0 || want != "" && !slices.ContainsFunc(cfg.Warnings, func(w string) bool { return strings.Contains(w, want) }) {
			t.Errorf("%q: %q", members, cfg.Warnings)
		}
	}
}

// TestOnLook: at each look, and before the decision that waits for it, it is told
// where policy files are looked for, there or not.
func TestOnLook(t *testing.T) {
	p := newPlace(t)
	user := filepath.Join(p.home, ".config/postern/policy.yaml")
	c := &clock{now: time.Unix(1, 0)}
	live, err := config.OpenLive(p.opts, c.read, func(error) {})
	must(t, err)
	var seen [][]string
	live.OnLook(func(files []string) { seen = append(seen, files) })
	live.Evaluate(file(core.FSRead, "x"))
	if len(seen) != 0 {
		t.Errorf("within a second: %q", seen)
	}
	for i, text := range []string{"version: 1\n", "nonsense", "version: 1\n"} {
		p.user(text)
		c.pass(time.Second)
		live.Evaluate(file(core.FSRead, "x"))
		if len(seen) != i+1 || !slices.Contains(seen[i], user) {
			t.Fatalf("%d: %q", i, seen)
		}
	}
	if last := seen[2]; !slices.Contains(last, filepath.Join(p.dir, ".postern/policy.yaml")) || !slices.Contains(last, p.opts.SystemFile) {
		t.Errorf("%q", last)
	}
}

// TestQuotedMergeName: a quoted << is a name like any other; plain it is refused
// (testdata/invalid/merge-key.yaml).
func TestQuotedMergeName(t *testing.T) {
	p := newPlace(t)
	p.user("version: 1\nrules: { fs.delete: { \"<<\": allow } }\n")
	cfg, err := config.Load(p.opts)
	must(t, err)
	for name, want := range map[string]core.Decision{"<<": core.Allow, "x": core.Ask} {
		if got := cfg.Policy.Evaluate(file(core.FSDelete, name)).Decision; got != want {
			t.Errorf("%s: %v, want %v", name, got, want)
		}
	}
}

// TestLinkToPolicy: a policy that is a link is as safe as each folder that holds a
// link or the file.
func TestLinkToPolicy(t *testing.T) {
	for _, between := range []string{"", "link/"} { // to the file itself, and through another link
		for mode, refused := range map[os.FileMode]bool{0o755: false, 0o777: true, 0o777 | os.ModeSticky: false} {
			p := newPlace(t)
			file := p.user("version: 1\n")
			shared := filepath.Join(t.TempDir(), "shared")
			must(t, os.MkdirAll(filepath.Join(shared, "link"), 0o755))
			mine := filepath.Join(t.TempDir(), "policy.yaml")
			must(t, os.Rename(file, mine))
			at := filepath.Join(shared, between, "policy.yaml")
			must(t, os.Symlink(mine, at))
			must(t, os.Symlink(at, file))
			must(t, os.Chmod(filepath.Dir(at), mode))
			if refused {
				p.refused(fault.ConfigInvalid, "anybody can replace the file: chmod o-w its folder")
				continue
			}
			_, err := config.Load(p.opts)
			must(t, err)
		}
	}
}
