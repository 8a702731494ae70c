// SPDX-License-Identifier: Apache-2.0

//go:build unix

package config_test

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/postern-gate/postern/core/fault"
	"github.com/postern-gate/postern/internal/config"
)

// elsewhere moves the user's policy into a folder with the name and the mode beside
// the home, and leaves a link to what is returned.
func (p *place) elsewhere(folder string, mode os.FileMode) (at string) {
	p.t.Helper()
	file := p.user("version: 1\nrules: { fs.write: deny }\n")
	at = filepath.Join(p.work, folder, "policy.yaml")
	must(p.t, os.Mkdir(filepath.Dir(at), 0o755))
	must(p.t, os.Chmod(filepath.Dir(at), mode))
	must(p.t, errors.Join(os.Rename(file, at), os.Symlink(at, file)))
	return at
}

// toFolder makes the folder of the user's policy a link to one that is elsewhere.
func (p *place) toFolder() (link string) {
	p.t.Helper()
	link = filepath.Dir(p.user("version: 1\nrules: { fs.write: deny }\n"))
	to := filepath.Join(p.work, "dots")
	must(p.t, errors.Join(os.Rename(link, to), os.Symlink(to, link)))
	return link
}

// ownership are ways to reach a policy, each with what somebody else is then given,
// and what is said.
var ownership = map[string]struct {
	make func(*place) (theirs string)
	want string
}{
	"its folder":             {func(p *place) string { return filepath.Dir(p.user("version: 1\n")) }, "postern belongs to somebody else (user 65534: nobody"},
	"the folder led to":      {func(p *place) string { return filepath.Dir(p.elsewhere("alice", 0o755)) }, "alice belongs to somebody else (user 65534: nobody"},
	"that folder, sticky":    {func(p *place) string { return filepath.Dir(p.elsewhere("alice", 0o755|os.ModeSticky)) }, "alice belongs to somebody else"},
	"a link":                 {func(p *place) string { p.elsewhere("mine", 0o755); return config.UserFile(p.opts.Env) }, "policy.yaml belongs to somebody else"},
	"a link of a sticky one": {stickyLink, "policy.yaml belongs to somebody else"},
	"a link to its folder":   {(*place).toFolder, "the link"},
}

// stickyLink puts a second link into a folder like /tmp.
func stickyLink(p *place) string {
	file := p.elsewhere("tmp", 0o777|os.ModeSticky)
	real := filepath.Join(p.home, "real.yaml")
	must(p.t, errors.Join(os.Rename(file, real), os.Symlink(real, file)))
	return file
}

// TestOwnersOnTheWay: who owns a folder or a link on the way to a policy can put
// another one in its place, whatever the modes say.
func TestOwnersOnTheWay(t *testing.T) {
	for _, tc := range ownership {
		p := newPlace(t)
		theirs := tc.make(p)
		p.load() // all of it mine
		if os.Geteuid() != 0 {
			continue // root's own are fine, so another's can't be made here
		}
		must(t, os.Lchown(theirs, 65534, -1))
		p.refused(fault.ConfigInvalid, tc.want)
	}
}

// TestRootsAndOnesOwn: for an ordinary user root's links, folders and files are as
// good as the user's own, in any order.
func TestRootsAndOnesOwn(t *testing.T) {
	const user = 65533
	if base := os.Getenv("POSTERN_TEST_BASE"); base != "" {
		home := func(key string) string { return map[string]string{"HOME": filepath.Join(base, "home")}[key] }
		_, err := config.Load(config.Options{Dirs: []string{filepath.Join(base, "dir")}, WorkDir: base, SystemFile: "/nowhere/policy.yaml", Env: home})
		must(t, err)
		return
	}
	for what, tc := range ownership {
		for _, mine := range []bool{true, false} { // the one in question, and the file behind it the other way about
			p := newPlace(t)
			at := tc.make(p)
			p.load()
			if os.Geteuid() != 0 {
				continue
			}
			file, err := filepath.EvalSymlinks(config.UserFile(p.opts.Env))
			must(t, err)
			must(t, os.Lchown(map[bool]string{true: at, false: file}[mine], user, -1))
			must(t, errors.Join(os.Chmod(filepath.Dir(p.work), 0o755), os.Chmod(p.work, 0o755)))
			cmd := exec.CommandContext(t.Context(), "/proc/self/exe", "-test.run=^TestRootsAndOnesOwn$")
			cmd.Env, cmd.Dir = append(os.Environ(), "POSTERN_TEST_BASE="+p.work), "/"
			cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: user, Gid: user}}
			if out, err := cmd.CombinedOutput(); err != nil {
				t.Errorf("%s, mine: %v: %v\n%s", what, mine, err, out)
			}
		}
	}
}

// TestLinkToNothing: a policy behind a link that leads to nothing isn't an absent
// one. A server keeps the last good one until the link leads somewhere or is gone.
func TestLinkToNothing(t *testing.T) {
	for what, reach := range map[string]func(p *place) (link, to string){
		"to the file": func(p *place) (string, string) {
			to := p.elsewhere("dots", 0o755)
			return config.UserFile(p.opts.Env), to
		},
		"through a link": func(p *place) (string, string) {
			stickyLink(p)
			return config.UserFile(p.opts.Env), filepath.Join(p.home, "real.yaml")
		},
		"that another leads": func(p *place) (string, string) { at := stickyLink(p); return config.UserFile(p.opts.Env), at },
		"of its folder":      func(p *place) (string, string) { return p.toFolder(), filepath.Join(p.work, "dots") },
	} {
		p := newPlace(t)
		link, to := reach(p)
		p.load()
		c := &clock{now: time.Unix(1, 0)}
		var reports []fault.Code
		live, err := config.OpenLive(p.opts, c.read, func(err error) { reports = append(reports, fault.CodeOf(err)) })
		must(t, err)
		first := live.Version()
		take, give := func() error { return os.Rename(to, to+"-gone") }, func() error { return os.Rename(to+"-gone", to) }
		for i, step := range []struct {
			do   func() error
			bad  fault.Code
			same bool
		}{
			{take, fault.ConfigInvalid, true},
			{func() error { return nil }, fault.ConfigInvalid, true},
			{give, fault.OK, true},
			{take, fault.ConfigInvalid, true},
			{func() error { return os.Remove(link) }, fault.OK, false},
		} {
			must(t, step.do())
			c.pass(time.Second)
			if got := live.Version() == first; got != step.same || fault.CodeOf(live.Problem()) != step.bad {
				t.Errorf("%s, step %d: the same %v, want %v; %v", what, i, got, step.same, live.Problem())
			}
			if _, err := config.Load(p.opts); fault.CodeOf(err) != step.bad || err != nil && !strings.Contains(err.Error(), "leads to nothing") {
				t.Errorf("%s, step %d: at a start %v", what, i, err)
			}
		}
		if want := []fault.Code{fault.ConfigInvalid, fault.OK, fault.ConfigInvalid, fault.OK}; !slices.Equal(reports, want) {
			t.Errorf("%s: %v, want %v", what, reports, want)
		}
	}
}

// TestNoFileBehindALink: a link that leads somewhere, where no policy is, is none that
// leads to nothing.
func TestNoFileBehindALink(t *testing.T) {
	p := newPlace(t)
	must(t, os.Symlink(t.TempDir(), filepath.Join(p.home, ".config"))) // leads somewhere, where no policy is
	p.load()
	p.opts.PolicyFile = filepath.Join(p.home, "none.yaml")
	p.refused(fault.ConfigInvalid, "there is no such file")
	must(t, os.Symlink(strings.Repeat("no", 3), p.opts.PolicyFile))
	p.refused(fault.ConfigInvalid, "leads to nothing")
}
