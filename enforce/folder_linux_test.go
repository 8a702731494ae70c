// SPDX-License-Identifier: Apache-2.0

package enforce

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/postern-gate/postern/core/fault"
	"github.com/postern-gate/postern/core/pathguard"
	"github.com/postern-gate/postern/internal/state/grant"
)

// bornAt is a directory as statx tells it.
func bornAt(t *testing.T, dir string) (id string, ino uint64, birth int64) {
	t.Helper()
	var x unix.Statx_t
	must(unix.Statx(unix.AT_FDCWD, dir, unix.AT_SYMLINK_NOFOLLOW, unix.STATX_INO|unix.STATX_BTIME, &x))
	id = fmt.Sprintf("%d:%d", unix.Mkdev(x.Dev_major, x.Dev_minor), x.Ino)
	if x.Mask&unix.STATX_BTIME != 0 {
		birth = x.Btime.Sec*int64(time.Second) + int64(x.Btime.Nsec)
		id += fmt.Sprintf(":%d", birth)
	}
	return id, x.Ino, birth
}

// remade removes an empty directory and makes another with its name, and with its
// inode where the file system gives it again.
func remade(t *testing.T, dir string) {
	t.Helper()
	_, ino, birth := bornAt(t, dir)
	for range 500 { // its clock has ticks
		must(os.Remove(dir), os.Mkdir(dir, 0o755))
		if _, i, b := bornAt(t, dir); i == ino && b != birth {
			return
		}
	}
}

// TestFolderBorn: which directory a folder is, and the one that a new name would
// lie in, is told with its time of birth.
func TestFolderBorn(t *testing.T) {
	d := newDesk(t, []string{"fs.create project://"}, map[string]string{"sub/": ""})
	top, _, _ := bornAt(t, d.dir)
	sub, _, _ := bornAt(t, d.path("sub"))
	for name, in := range map[string]string{"sub/new": sub, "x/y/z": top} {
		_, err := d.gate.MakeDir(t.Context(), name, Call{})
		q, err := d.person.Question(t.Context(), asked(t, err, fault.PolicyAsk))
		d.must(err)
		if got := q.For.Roots[0].ID; got != top {
			t.Errorf("%s, not %s", got, top)
		}
		if got := q.For.Objects[0].State; got != absent+" in "+in {
			t.Errorf("%s: %s, not in %s", name, got, in)
		}
	}
}

// TestYesNotForTheNext: a directory that was made in the place of one that is
// gone, and has its number, is another: no yes for that serves, and no question
// about it takes one.
func TestYesNotForTheNext(t *testing.T) {
	for _, k := range []grant.Kind{grant.Once, grant.Session, grant.Pattern, grant.Until, grant.Always} {
		d := newDesk(t, []string{"fs.create project://"}, nil)
		dir := filepath.Join(t.TempDir(), "p")
		d.must(os.Mkdir(dir, 0o755))
		makes := func(name string) error { // nothing holds the directory afterwards
			root, err := pathguard.OpenRoot(dir, pathguard.Options{Name: "project"})
			d.must(err)
			defer root.Close()
			ws, err := pathguard.NewWorkspace(root)
			d.must(err)
			_, err = d.call(func(o *Options) { o.Workspace = ws }).MakeDir(t.Context(), name, Call{})
			return err
		}
		waits := asked(t, makes("other/b"), fault.PolicyAsk)
		d.yes(asked(t, makes("a"), fault.PolicyAsk), grant.Answer{Kind: k, Pattern: "project://**", Life: time.Hour})
		remade(t, dir)
		if err := makes("a"); fault.CodeOf(err) != fault.PolicyAsk && fault.CodeOf(err) != fault.GrantStale {
			t.Errorf("%s: %v", k, err)
		}
		q, err := d.person.Question(t.Context(), waits)
		d.must(err)
		if got := d.state.Since(&q.For); len(got) != 1 || !strings.HasSuffix(got[0], "other/b") {
			t.Errorf("%s: %q", k, got)
		}
	}
}
