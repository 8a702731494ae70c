// SPDX-License-Identifier: Apache-2.0

package enforce

import (
	"context"
	"os"
	"path/filepath"
	"testing"

	"github.com/postern-gate/postern/core/fault"
	"github.com/postern-gate/postern/core/pathguard"
	"github.com/postern-gate/postern/internal/testenv"
)

// permitted makes a tree for the user nobody: "open" and all in it is nobody's
// own, in "closed" nobody may add and remove nothing, "sticky" is for everybody,
// but what others have there is theirs.
func permitted(t *testing.T) *world {
	t.Helper()
	w := newWorld(t, rules{}, map[string]string{
		"open/f": "F", "open/tree/in/f": "F", "open/tree/g": "G", "open/theirs/": "", "open/others/": "",
		"open/secret": "S", "open/withsecret/s": "S", "open/root.txt": "R", "open/owned": "O", "open/grouped": "G",
		"open/two": "2", "open/half/closed/f": "F", "closed/f": "F", "closed/d/": "", "closed/root.txt": "R", "sticky/theirs": "T", "sticky/mine": "M",
	})
	w.must(filepath.WalkDir(w.path("."), func(path string, _ os.DirEntry, err error) error {
		w.must(err)
		return os.Lchown(path, testenv.Nobody, testenv.Nobody)
	}))
	w.must(os.Link(w.path("open/two"), w.path("open/two2")))
	for _, name := range []string{"open/theirs", "open/secret", "open/withsecret/s", "open/root.txt", "open/half/closed", "closed", "closed/root.txt", "sticky", "sticky/theirs"} {
		w.must(os.Lchown(w.path(name), 0, 0))
	}
	w.must(os.Chown(w.path("open/owned"), 12345, testenv.Nobody))
	w.must(os.Chown(w.path("open/grouped"), testenv.Nobody, 12345))
	for name, mode := range map[string]os.FileMode{
		"open/owned": 0o666, "open/secret": 0o600, "open/withsecret/s": 0o600, "sticky": 0o777 | os.ModeSticky, "sticky/theirs": 0o666,
	} {
		w.must(os.Chmod(w.path(name), mode))
	}
	for up := filepath.Dir(w.dir); up != os.TempDir(); up = filepath.Dir(up) {
		w.must(os.Chmod(up, 0o777)) // the way, and where the locks are
	}
	other, err := os.MkdirTemp("/dev/shm", "postern-") //nolint:usetesting // another file system
	w.must(err)
	t.Cleanup(func() { _ = os.RemoveAll(other) })
	w.must(os.Chmod(other, 0o777))
	w.gate = w.open(rules{}, func(o *Options) { w.addRoot(o, other) })
	return w
}

// addRoot adds the root "other".
func (w *world) addRoot(o *Options, dir string) {
	w.t.Helper()
	var roots []*pathguard.Root
	for name, dir := range map[string]string{"project": w.dir, "other": dir} {
		r, err := pathguard.OpenRoot(dir, pathguard.Options{Name: name})
		w.must(err)
		w.t.Cleanup(func() { _ = r.Close() })
		roots = append(roots, r)
	}
	var err error
	o.Workspace, err = pathguard.NewWorkspace(roots...)
	w.must(err)
}

// attempt is one call, and what the system makes of it for the user nobody.
type attempt struct {
	do   func(g *Gate, call Call) (Outcome, error)
	want fault.Code
}

func attempts(ctx context.Context) map[string]attempt {
	p := func(name string) string { return "project://" + name }
	write := func(name string) func(*Gate, Call) (Outcome, error) {
		return func(g *Gate, c Call) (Outcome, error) { return g.Write(ctx, p(name), []byte("new"), c) }
	}
	edit := func(name string) func(*Gate, Call) (Outcome, error) {
		return func(g *Gate, c Call) (Outcome, error) {
			return g.Edit(ctx, p(name), func(b []byte) ([]byte, error) { return append(b, '!'), nil }, c)
		}
	}
	add := func(name string) func(*Gate, Call) (Outcome, error) {
		return func(g *Gate, c Call) (Outcome, error) { return g.Append(ctx, p(name), []byte("new"), c) }
	}
	mkdir := func(name string) func(*Gate, Call) (Outcome, error) {
		return func(g *Gate, c Call) (Outcome, error) { return g.MakeDir(ctx, p(name), c) }
	}
	move := func(from, to string) func(*Gate, Call) (Outcome, error) {
		return func(g *Gate, c Call) (Outcome, error) { return g.Move(ctx, p(from), to, c) }
	}
	duplicate := func(from, to string) func(*Gate, Call) (Outcome, error) {
		return func(g *Gate, c Call) (Outcome, error) { return g.Copy(ctx, p(from), to, c) }
	}
	remove := func(name string) func(*Gate, Call) (Outcome, error) {
		return func(g *Gate, c Call) (Outcome, error) { return g.Delete(ctx, p(name), true, c) }
	}
	return map[string]attempt{
		"write":                     {write("open/f"), fault.OK},
		"write, closed folder":      {write("closed/f"), fault.IOFailed},
		"write, not writable":       {write("open/root.txt"), fault.IOFailed},
		"write, another's":          {write("open/owned"), fault.IOFailed},
		"write, another group":      {write("open/grouped"), fault.IOFailed},
		"write, sticky":             {write("sticky/theirs"), fault.IOFailed},
		"write, sticky, own":        {write("sticky/mine"), fault.OK},
		"create":                    {write("open/n"), fault.OK},
		"create, closed folder":     {write("closed/n"), fault.IOFailed},
		"create, sticky":            {write("sticky/n"), fault.OK},
		"edit":                      {edit("open/f"), fault.OK},
		"edit, closed folder":       {edit("closed/f"), fault.IOFailed},
		"edit, another's":           {edit("open/owned"), fault.IOFailed},
		"append":                    {add("open/f"), fault.OK},
		"append, closed folder":     {add("closed/f"), fault.OK}, // in place
		"append, not writable":      {add("open/root.txt"), fault.IOFailed},
		"append, another's":         {add("open/owned"), fault.OK},
		"append, two names":         {add("open/two"), fault.PathDenied},
		"append, new, closed":       {add("closed/n"), fault.IOFailed},
		"mkdir":                     {mkdir("open/n/m"), fault.OK},
		"mkdir, closed folder":      {mkdir("closed/n/m"), fault.IOFailed},
		"move":                      {move("open/f", p("sticky/f")), fault.OK},
		"move from closed":          {move("closed/f", p("open/n")), fault.IOFailed},
		"move to closed":            {move("open/f", p("closed/n")), fault.IOFailed},
		"move, sticky":              {move("sticky/theirs", p("open/n")), fault.IOFailed},
		"move, another file system": {move("open/f", "other://f"), fault.IOFailed},
		"move dir":                  {move("open/tree", p("open/others/tree")), fault.OK},
		"move another's dir":        {move("open/theirs", p("open/others/n")), fault.IOFailed},
		"move another's dir here":   {move("open/theirs", p("open/n")), fault.OK},
		"copy":                      {duplicate("open/tree", p("sticky/tree")), fault.OK},
		"copy, another file system": {duplicate("open/f", "other://f"), fault.OK},
		"copy, unreadable":          {duplicate("open/secret", p("open/n")), fault.IOFailed},
		"copy dir, unreadable":      {duplicate("open/withsecret", p("open/n")), fault.IOFailed},
		"copy to closed":            {duplicate("open/f", p("closed/n")), fault.IOFailed},
		"copy dir to closed":        {duplicate("open/tree", p("closed/n")), fault.IOFailed},
		"delete":                    {remove("open/tree"), fault.OK},
		"delete, closed folder":     {remove("closed/f"), fault.IOFailed},
		"delete dir, closed":        {remove("closed/d"), fault.IOFailed},
		"delete dir, closed inside": {remove("open/half"), fault.IOFailed},
		"delete, sticky":            {remove("sticky/theirs"), fault.IOFailed},
	}
}

// TestDryRunPermissions: a dry run refuses what the system would refuse, in the
// words of the real run, and neither changes anything then.
func TestDryRunPermissions(t *testing.T) {
	if os.Getuid() != 0 {
		testenv.Missing(t, "needs root")
	}
	for name, a := range attempts(t.Context()) {
		t.Run(name, func(t *testing.T) {
			w := permitted(t)
			before := w.tree()
			run := func(call Call) (out Outcome, f *fault.Error) {
				testenv.AsNobody(t, func() {
					var err error
					out, err = a.do(w.gate, call)
					f = fault.As(err)
				})
				return out, f
			}
			_, dry := run(Call{Confirm: true, DryRun: true})
			w.unchanged(before)
			out, real := run(Call{Confirm: true})
			if codeOf(dry) != a.want || codeOf(real) != a.want {
				t.Fatalf("dry run %v, real run %v, want %v", dry, real, a.want)
			}
			if a.want == fault.OK {
				if !out.Changed {
					t.Error("nothing changed: the case proves nothing")
				}
				return
			}
			w.unchanged(before)
			if dry.Rule != real.Rule || dry.Resource != real.Resource {
				t.Errorf("dry run: %s %s\nreal run: %s %s", dry.Resource, dry.Rule, real.Resource, real.Rule)
			}
		})
	}
}

func codeOf(f *fault.Error) fault.Code {
	if f == nil {
		return fault.OK
	}
	return f.Code
}
