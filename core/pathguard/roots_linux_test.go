// SPDX-License-Identifier: Apache-2.0

package pathguard_test

import (
	"errors"
	"os"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/postern-gate/postern/core/fault"
	"github.com/postern-gate/postern/core/pathguard"
)

func (b *box) wantBody(spelling, want string) {
	b.t.Helper()
	if got, err := b.read(spelling); got != want || err != nil {
		b.t.Errorf("%s: %q, %v; want %q", spelling, got, err, want)
	}
}

func (b *box) wantRefused(spelling string, want fault.Code) {
	b.t.Helper()
	if _, err := b.read(spelling); fault.CodeOf(err) != want {
		b.t.Errorf("%s: %v, want %v", spelling, err, want)
	}
}

func TestRootsSymlink(t *testing.T) {
	b := emptyBox(t)
	b.make("a=A", "$BOX/link -> $R")
	b.root = b.openRoot("project", b.dir+"/link")
	ws, err := pathguard.NewWorkspace(b.root)
	must(t, err)
	b.ws = ws
	b.wantBody("$BOX/link/a", "A")
	b.wantBody("$R/a", "A")
	b.wantBody("a", "A")
	if b.root.Given() != b.dir+"/link" || b.root.Resolved() != b.R() || b.root.Alias() != "" {
		t.Errorf("given %s, resolved %s", b.root.Given(), b.root.Resolved())
	}
	b.make("l -> $BOX/link/a")
	b.wantBody("l", "A")
}

func TestRootsMissing(t *testing.T) {
	b := emptyBox(t)
	first := b.openRoot("first", b.R())
	b.make("a=A")
	second := b.openRoot("second", b.dir+"/later")
	ws, err := pathguard.NewWorkspace(first, second)
	must(t, err)
	b.ws = ws
	if !second.Missing() || first.Missing() {
		t.Error("which root is missing is told wrong")
	}
	b.wantBody("first://a", "A")
	b.wantRefused("second://b", fault.PathMissing)
	b.wantRefused("$BOX/later/b", fault.PathMissing)
	wantCode(t, b.write("second://b", "B"), fault.PathMissing)
	// Who can make the folder can also make a link of it: that is not it.
	b.make("$O/b=SECRET", "$BOX/later -> $O")
	b.wantRefused("second://b", fault.PathEscape)
	if got, _ := os.ReadFile(b.dir + "/later/b"); string(got) != "SECRET" {
		t.Errorf("the control read %q", got)
	}
	must(t, os.Remove(b.dir+"/later"))
	b.make("$BOX/later/", "$BOX/later/b=B")
	b.wantBody("second://b", "B")
	b.wantBody("$BOX/later/b", "B")
	if second.Missing() {
		t.Error("still missing")
	}
}

// TestRootsMissingDeep: an absent root whose parents are given by a link and
// absent too.
func TestRootsMissingDeep(t *testing.T) {
	b := emptyBox(t)
	b.make("$BOX/link -> $R")
	b.root = b.openRoot("project", b.dir+"/link/x/y")
	ws, err := pathguard.NewWorkspace(b.root)
	must(t, err)
	b.ws = ws
	if got := b.root.Resolved(); got != b.R()+"/x/y" {
		t.Errorf("expected at %s", got)
	}
	b.wantRefused("f", fault.PathMissing)
	b.make("x/y/", "x/y/f=F")
	b.wantBody("f", "F")
	b.wantBody("$BOX/link/x/y/f", "F")
	b.wantBody("$R/x/y/f", "F")
}

func TestRootsRemovedAndBack(t *testing.T) {
	b := newBox(t, []string{"a=A"})
	b.wantBody("a", "A")
	must(t, os.RemoveAll(b.R()))
	b.wantRefused("a", fault.PathMissing)
	wantCode(t, b.write("a", "x"), fault.PathMissing)
	if !b.root.Missing() {
		t.Error("not missing")
	}
	// Back under the same path it is found again; as a link to elsewhere not.
	b.make("$R/", "a=B")
	b.wantBody("a", "B")
	must(t, os.RemoveAll(b.R()))
	b.make("$O/a=SECRET", "$R -> $O")
	b.wantRefused("a", fault.PathMissing) // the handle's directory is gone
	b.wantRefused("a", fault.PathEscape)
	if got, err := os.ReadFile(b.R() + "/a"); string(got) != "SECRET" {
		t.Errorf("the control read %q, %v", got, err)
	}
}

// TestRootsMoved: a root is a directory, not a path.
func TestRootsMoved(t *testing.T) {
	b := newBox(t, []string{"a=A", "$O/a=SECRET"})
	must(t, os.Rename(b.R(), b.dir+"/moved"))
	b.make("$R -> $O")
	b.wantBody("a", "A")
	must(t, b.write("a", "B"))
	if got, _ := os.ReadFile(b.dir + "/moved/a"); string(got) != "B" {
		t.Errorf("moved root: %q", got)
	}
	if got, _ := os.ReadFile(b.R() + "/a"); string(got) != "SECRET" {
		t.Errorf("the control read %q", got)
	}
}

func TestRootsClose(t *testing.T) {
	b := newBox(t, []string{"a=A"})
	must(t, b.root.Close())
	must(t, b.root.Close())
	b.wantRefused("a", fault.PathMissing)
	wantCode(t, b.write("a", "B"), fault.PathMissing)
}

func TestRootsSlash(t *testing.T) {
	b := emptyBox(t)
	b.make("a=A", "l -> $R/a")
	b.root = b.openRoot("all", "/")
	ws, err := pathguard.NewWorkspace(b.root)
	must(t, err)
	b.ws = ws
	b.wantBody("$R/a", "A")
	b.wantBody("$R/l", "A")
	must(t, b.write("$R/n", "N"))
	b.wantRefused("/proc/self/environ", fault.PathMount)
	if got, err := b.read("/../" + b.R() + "/a"); got != "A" || err != nil {
		t.Errorf("above /: %q, %v", got, err)
	}
	if _, err := os.ReadFile("/proc/self/environ"); err != nil {
		t.Errorf("the control: %v", err)
	}
	d, err := b.name("/").OpenDir()
	must(t, err)
	defer d.Close()
	if _, err := d.Lstat("proc"); fault.CodeOf(err) != fault.PathMount {
		t.Errorf("a mount point as an entry: %v", err)
	}
}

func TestRootsOptions(t *testing.T) {
	b := emptyBox(t)
	b.make("f=A", "state/keys/", "$BOX/link -> $R/state/keys")
	for name, c := range map[string]struct {
		dir  string
		o    pathguard.Options
		want fault.Code
	}{
		"no name":       {b.R(), pathguard.Options{}, fault.ConfigInvalid},
		"bad name":      {b.R(), pathguard.Options{Name: "Pro ject"}, fault.ConfigInvalid},
		"bad alias":     {b.R(), pathguard.Options{Name: "a", Alias: "res:"}, fault.ConfigInvalid},
		"alias is name": {b.R(), pathguard.Options{Name: "a", Alias: "a"}, fault.ConfigInvalid},
		"empty":         {"", pathguard.Options{Name: "a"}, fault.ConfigInvalid},
		"NUL":           {"a\x00", pathguard.Options{Name: "a"}, fault.ConfigInvalid},
		"file":          {b.R() + "/f", pathguard.Options{Name: "a"}, fault.ConfigInvalid},
		"kernel":        {"/proc/self", pathguard.Options{Name: "a"}, fault.PathMount},
		"mount up":      {b.R(), pathguard.Options{Name: "a", Mounts: []string{"../x"}}, fault.ConfigInvalid},
		"mount abs":     {b.R(), pathguard.Options{Name: "a", Mounts: []string{"/x"}}, fault.ConfigInvalid},
		"state":         {b.R() + "/state", pathguard.Options{Name: "a", Forbidden: []string{b.R() + "/state"}}, fault.PolicyDenied},
		"beneath state": {b.R() + "/state/keys", pathguard.Options{Name: "a", Forbidden: []string{b.R() + "/state"}}, fault.PolicyDenied},
		"state by link": {b.dir + "/link", pathguard.Options{Name: "a", Forbidden: []string{b.R() + "/state"}}, fault.PolicyDenied},
		"link to state": {b.R() + "/state/keys", pathguard.Options{Name: "a", Forbidden: []string{b.dir + "/link"}}, fault.PolicyDenied},
		"above state":   {b.R(), pathguard.Options{Name: "a", Forbidden: []string{b.R() + "/state"}}, fault.OK},
		"beside state":  {b.O(), pathguard.Options{Name: "a", Forbidden: []string{b.R() + "/state"}}, fault.OK},
	} {
		t.Run(name, func(t *testing.T) {
			r, err := pathguard.OpenRoot(c.dir, c.o)
			wantCode(t, err, c.want)
			if err == nil {
				r.Close()
			}
		})
	}
	// A root that appears later is checked then.
	r := b.openRoot("late", b.R()+"/state/late", func(o *pathguard.Options) { o.Forbidden = []string{b.R() + "/state"} })
	ws, err := pathguard.NewWorkspace(r)
	must(t, err)
	b.ws = ws
	b.wantRefused("late://a", fault.PathMissing)
	b.make("state/late/", "state/late/a=A")
	b.wantRefused("late://a", fault.PolicyDenied)
}

func TestRootsNamesUnique(t *testing.T) {
	b := emptyBox(t)
	one, two := b.openRoot("a", b.R()), b.openRoot("b", b.O(), func(o *pathguard.Options) { o.Alias = "a" })
	_, err := pathguard.NewWorkspace(one, two)
	wantCode(t, err, fault.ConfigInvalid)
	w, err := pathguard.NewWorkspace(one)
	must(t, err)
	if len(w.Roots()) != 1 || w.Roots()[0] != one {
		t.Error("roots")
	}
	_, err = pathguard.NewWorkspace(one)
	wantCode(t, err, fault.ConfigInvalid)
}

// TestOverlap: a file beneath several roots is named by the innermost, however
// it is spelled and whatever link leads to it.
func TestOverlap(t *testing.T) {
	b := emptyBox(t)
	b.make("sub/", "sub/f=F", "f=O", "l -> sub/f", "sub/up -> ../f", "lsub -> sub")
	outer, inner := b.openRoot("outer", b.R()), b.openRoot("inner", b.R()+"/sub")
	ws, err := pathguard.NewWorkspace(outer, inner)
	must(t, err)
	b.ws = ws
	for spelling, want := range map[string]string{
		"$R/sub/f": "inner://f", "outer://sub/f": "inner://f", "inner://f": "inner://f",
		"$R/l": "inner://f", "inner://up": "outer://f", "outer://lsub/f": "inner://f",
		"outer://sub/../f": "outer://f",
	} {
		var at pathguard.Name
		err := b.follow(spelling, func(n pathguard.Name) error {
			f, err := n.Open()
			if err == nil {
				at = f.Name()
				f.Close()
			}
			return err
		})
		if err != nil || at.String() != want {
			t.Errorf("%s is %v (%v), want %s", spelling, at, err, want)
		}
	}
	// The inner root, and what is above it, is never moved or removed.
	for _, op := range []error{b.move("$R/sub", "$R/x"), b.removeAll("outer://sub"), b.removeAll("inner://")} {
		wantCode(t, op, fault.PolicyDenied)
	}
	// Listing shows it, and Join names it by its own root.
	d, err := b.name("outer://").OpenDir()
	must(t, err)
	defer d.Close()
	if i, err := d.Lstat("sub"); err != nil || i.Kind != pathguard.KindDir {
		t.Errorf("%v, %v", i, err)
	}
}

// TestRootsAbove: a directory that holds another root is not moved either.
func TestRootsAbove(t *testing.T) {
	b := emptyBox(t)
	b.make("a/b/", "a/b/f=F")
	outer, inner := b.openRoot("outer", b.R()), b.openRoot("inner", b.R()+"/a/b")
	ws, err := pathguard.NewWorkspace(outer, inner)
	must(t, err)
	b.ws = ws
	wantCode(t, b.move("$R/a", "$R/x"), fault.PolicyDenied)
	wantCode(t, b.removeAll("$R/a"), fault.PolicyDenied)
	tg, err := b.pinEntry("$R/a")
	must(t, err)
	defer tg.Close()
	wantCode(t, tg.Remove(pathguard.WriteOptions{}), fault.PolicyDenied)
	b.wantBody("inner://f", "F")
	must(t, os.Rename(b.R()+"/a", b.R()+"/x")) // the control
}

// TestRootsAlias: links, unlike spellings, lead into a strict root.
func TestRootsAlias(t *testing.T) {
	b := emptyBox(t)
	b.make("sub/")
	r := b.openRoot("game", b.R(), func(o *pathguard.Options) { o.Alias = "res" })
	ws, err := pathguard.NewWorkspace(r)
	must(t, err)
	b.ws = ws
	b.make("sub/t2=x", "l -> $R/sub/t2")
	b.wantBody("res://sub/t2", "x")
	b.wantBody("res://l", "x")
	b.wantRefused("res://sub/../sub/t2", fault.PathDenied)
	b.wantRefused("$R/sub/t2", fault.PathDenied)
}

func (b *box) removeAll(spelling string) error {
	t, err := b.pinEntry(spelling)
	if err != nil {
		return err
	}
	defer t.Close()
	return t.RemoveAll(b.t.(*testing.T).Context(), func(pathguard.Name) error { return nil }, pathguard.WriteOptions{})
}

// TestProtect: protected paths are refused by name, under any other name, and
// nothing above them is moved or removed.
func TestProtect(t *testing.T) {
	b := newBox(t, []string{"state/keys/", "state/keys/log=KEY", "state/x=X", "l -> state/keys/log", "ldir -> state", "policy=P", "stateful=OK", "up/d/", "up/d/file=F"})
	must(t, unix.Link(b.R()+"/state/keys/log", b.R()+"/hard"))
	b.make("by-link=L", "$BOX/plink -> $R/by-link")
	must(t, b.ws.Protect(b.dir+"/plink", b.dir+"/nowhere/at/all"))
	b.wantRefused("by-link", fault.PolicyDenied)
	must(t, b.ws.Protect(b.R()+"/state", b.R()+"/state/keys/log", b.R()+"/policy", b.R()+"/up/d/file", b.R()+"/absent"))
	for _, spelling := range []string{"state/keys/log", "state/x", "l", "ldir/x", "hard", "policy", "absent", "state/nothing"} {
		b.wantRefused(spelling, fault.PolicyDenied)
	}
	_, err := b.read("policy")
	if f := fault.As(err); f.Rule != "it belongs to postern itself (built-in: postern)" {
		t.Errorf("rule %q", f.Rule)
	}
	b.wantBody("stateful", "OK")
	for name, err := range map[string]error{
		"write":        b.write("policy", "x"),
		"write hard":   b.write("hard", "x"),
		"create":       b.write("absent", "x"),
		"create below": b.write("state/new", "x"),
		"remove":       b.removeAll("policy"),
		"remove dir":   b.removeAll("state"),
		"remove hard":  b.removeAll("hard"),
		"move":         b.move("policy", "p"),
		"move above":   b.move("up", "down"),
		"move above 2": b.move("up/d", "down"),
		"remove above": b.removeAll("up"),
		"move into":    b.move("stateful", "state/s"),
	} {
		if fault.CodeOf(err) != fault.PolicyDenied {
			t.Errorf("%s: %v", name, err)
		}
	}
	for _, spelling := range []string{"state", "state/keys", "ldir"} {
		if err := b.follow(spelling, func(n pathguard.Name) error { _, err := listName(n); return err }); fault.CodeOf(err) != fault.PolicyDenied {
			t.Errorf("list %s: %v", spelling, err)
		}
	}
	if _, err := b.name("hard").Lstat(); fault.CodeOf(err) != fault.PolicyDenied {
		t.Errorf("lstat: %v", err)
	}
	d, err := b.name(".").OpenDir()
	must(t, err)
	defer d.Close()
	for _, e := range []string{"state", "hard"} {
		if _, err := d.Lstat(e); fault.CodeOf(err) != fault.PolicyDenied {
			t.Errorf("entry %s: %v", e, err)
		}
	}
	if i, err := d.Lstat("stateful"); err != nil || i.Size != 2 {
		t.Errorf("%+v, %v", i, err)
	}
	// Another program moves the directory: its identity stays protected.
	must(t, os.Rename(b.R()+"/state", b.R()+"/elsewhere"))
	wantCode(t, b.write("elsewhere/new", "x"), fault.PolicyDenied)
	wantCode(t, b.removeAll("elsewhere"), fault.PolicyDenied)
	must(t, os.Rename(b.R()+"/elsewhere", b.R()+"/state"))
	// A link is removed although it leads there.
	must(t, b.removeAll("l"))
	if got, err := os.ReadFile(b.R() + "/hard"); string(got) != "KEY" || err != nil {
		t.Errorf("the control: %q, %v", got, err)
	}
}

// TestProtectReplaced: what took the name of a protected file or directory is the
// protected one after another look, and what was there before is so no more; a
// file that got the number of one that is gone isn't even before that.
func TestProtectReplaced(t *testing.T) {
	b := newBox(t, []string{"$O/policy=P", "$O/new=N", "$O/state/", "$O/state/k=K", "$O/later/", "$O/later/k=L"})
	must(t, b.ws.Protect(b.O()+"/policy", b.O()+"/state"))
	must(t, unix.Link(b.O()+"/policy", b.R()+"/old"))
	must(t, unix.Link(b.O()+"/new", b.R()+"/next"))
	b.wantRefused("old", fault.PolicyDenied) // the controls
	b.wantBody("next", "N")
	must(t, os.Rename(b.O()+"/new", b.O()+"/policy"))
	b.wantBody("old", "P") // at once: it is nobody's but the project's
	b.wantRefused("next", fault.PolicyDenied)

	must(t, os.Rename(b.O()+"/state", b.R()+"/was"))
	must(t, os.Rename(b.O()+"/later", b.O()+"/state"))
	wantCode(t, b.write("was/n", "x"), fault.PolicyDenied)
	must(t, b.ws.Protect())
	must(t, b.write("was/n", "x"))
	must(t, os.Rename(b.O()+"/state", b.R()+"/is"))
	wantCode(t, b.write("is/n", "x"), fault.PolicyDenied)
	must(t, b.removeAll("was"))
}

// TestProtectRenewed: a replaced file is known by another look alone, without a
// hit on the old one.
func TestProtectRenewed(t *testing.T) {
	b := newBox(t, []string{"$O/policy=P", "$O/new=N"})
	must(t, b.ws.Protect(b.O()+"/policy", b.O()+"/made"))
	must(t, os.Rename(b.O()+"/new", b.O()+"/policy"))
	must(t, os.WriteFile(b.O()+"/made", []byte("M"), 0o600))
	must(t, unix.Link(b.O()+"/policy", b.R()+"/next"))
	must(t, unix.Link(b.O()+"/made", b.R()+"/made"))
	b.wantBody("next", "N") // the control: nobody has looked
	must(t, b.ws.Protect())
	b.wantRefused("next", fault.PolicyDenied)
	b.wantRefused("made", fault.PolicyDenied)
	must(t, os.Remove(b.O()+"/made"))
	b.wantBody("made", "M")
}

// TestProtectRootBeneath: everything in a root that lies beneath a protected
// path is refused.
func TestProtectRootBeneath(t *testing.T) {
	b := newBox(t, []string{"f=F"})
	must(t, b.ws.Protect(b.R()))
	b.wantRefused("f", fault.PolicyDenied)
	wantCode(t, b.write("n", "x"), fault.PolicyDenied)
}

func TestHardlinks(t *testing.T) {
	b := newBox(t, []string{"$O/s=OUT"})
	must(t, unix.Link(b.O()+"/s", b.R()+"/h"))
	b.wantBody("h", "OUT")
	if i, err := b.name("h").Stat(); err != nil || i.Nlink != 2 {
		t.Errorf("%+v, %v", i, err)
	}
	// Replacing gives the name a file of its own; appending is refused.
	err := b.follow("h", func(n pathguard.Name) error {
		tg, err := n.Pin()
		must(t, err)
		defer tg.Close()
		_, err = tg.Append([]byte("x"), pathguard.WriteOptions{})
		return err
	})
	wantCode(t, err, fault.PathDenied)
	must(t, b.write("h", "IN"))
	if got, _ := os.ReadFile(b.O() + "/s"); string(got) != "OUT" {
		t.Errorf("outside is %q", got)
	}

	b = newBox(t, []string{"$O/s=OUT", "one=1"}, func(o *pathguard.Options) { o.DenyHardlinks = true })
	must(t, unix.Link(b.O()+"/s", b.R()+"/h"))
	b.wantRefused("h", fault.PathDenied)
	b.wantBody("one", "1")
	if got, err := os.ReadFile(b.R() + "/h"); string(got) != "OUT" {
		t.Errorf("the control: %q, %v", got, err)
	}
}

// TestLeak: what exists outside and what doesn't can't be told apart, and no
// error names anything outside.
func TestLeak(t *testing.T) {
	b := newBox(t, []string{"$O/secret=SECRET", "$O/dir/", "d -> $O", "f -> $O/secret", "n -> $O/absent", "e -> $O/dir"})
	ops := map[string]func(string) error{
		"read": func(s string) error { _, err := b.read(s); return err },
		"stat": func(s string) error {
			return b.follow(s, func(n pathguard.Name) error { _, err := n.Stat(); return err })
		},
		"list": func(s string) error {
			return b.follow(s, func(n pathguard.Name) error { _, err := listName(n); return err })
		},
		"write": func(s string) error { return b.write(s, "x") },
		"lstat": func(s string) error {
			return b.follow(s, func(n pathguard.Name) error { _, err := n.Lstat(); return err })
		},
		"remove": func(s string) error { return b.removeAll(s) },
	}
	for name, op := range ops {
		t.Run(name, func(t *testing.T) {
			there, absent := op("d/secret"), op("d/absent")
			if name != "lstat" && name != "remove" {
				for _, more := range []string{"f", "n", "e"} {
					if !sameRefusal(op(more), there) {
						t.Errorf("%s: %v, and %v", more, op(more), there)
					}
				}
			}
			if !sameRefusal(there, absent) || fault.CodeOf(there) != fault.PathEscape {
				t.Errorf("%v, and %v", there, absent)
			}
			for _, s := range []string{there.Error(), deepText(there)} {
				if strings.Contains(s, "outside") {
					t.Errorf("it names what is outside: %s", s)
				}
			}
		})
	}
}

func sameRefusal(a, b error) bool {
	x, y := *fault.As(a), *fault.As(b)
	x.Resource, y.Resource = "", ""
	return x.Code == y.Code && x.Rule == y.Rule && x.Hint == y.Hint && x.Retry == y.Retry && errors.Is(x.Err, y.Err)
}

// deepText is the text of all causes.
func deepText(err error) string {
	var s string
	for ; err != nil; err = errors.Unwrap(err) {
		s += err.Error() + "\n"
	}
	return s
}

// TestLaundering: what is denied does not get a name that is allowed by moving
// or removing what is above it, if each descendant is judged.
func TestLaundering(t *testing.T) {
	b := newBox(t, []string{"a/b/", "a/b/.env=SECRET", "a/x=X", "a/l -> $O"})
	tg, err := b.pinEntry("a")
	must(t, err)
	defer tg.Close()
	var seen []string
	denied := errors.New("denied")
	judge := func(n pathguard.Name) error {
		seen = append(seen, n.Rel())
		if strings.HasSuffix(n.Rel(), ".env") {
			return denied
		}
		return nil
	}
	err = tg.Descendants(t.Context(), 10, func(n pathguard.Name, i pathguard.Info) error {
		if n.Base() == "l" && i.Kind != pathguard.KindLink {
			t.Error("a link was followed")
		}
		return judge(n)
	})
	if !errors.Is(err, denied) {
		t.Errorf("Descendants: %v of %v", err, seen)
	}
	before := tree(t, b.R())
	if err := tg.RemoveAll(t.Context(), judge, pathguard.WriteOptions{}); !errors.Is(err, denied) {
		t.Errorf("RemoveAll: %v", err)
	}
	if tree(t, b.R()) != before {
		t.Error("something was removed")
	}
	wantCode(t, tg.Descendants(t.Context(), 3, func(pathguard.Name, pathguard.Info) error { return nil }), fault.LimitExceeded)
}
