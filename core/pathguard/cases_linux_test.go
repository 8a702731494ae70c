// SPDX-License-Identifier: Apache-2.0

package pathguard_test

import (
	"context"
	"os"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/postern-gate/postern/core/pathguard"
)

// testCase is one operation. want is "ok", "body:…" or a code. Of a refused
// case control is what the same request means to a program without the guard;
// it must succeed, so that the guard and nothing else refused. A case with a
// "-" as control has none, with the reason in why.
type testCase struct {
	setup   []string
	op      string // read list stat lstat write append create mkdir remove removeall move
	path    string
	to      string // of move
	want    string
	control string // path for the unguarded operation, "" is path
	why     string
}

var testCases = map[string]testCase{
	// Plain.
	"read":             {setup: []string{"a/", "a/f=A"}, op: "read", path: "a/f", want: "body:A"},
	"read-absolute":    {setup: []string{"f=A"}, op: "read", path: "$R/f", want: "body:A"},
	"read-scheme":      {setup: []string{"f=A"}, op: "read", path: "project://f", want: "body:A"},
	"read-dotdot":      {setup: []string{"sub/", "sub/t=ok"}, op: "read", path: "$R/sub/../sub/t", want: "body:ok"},
	"read-dots-inside": {setup: []string{"a/", "f=A"}, op: "read", path: "./a/.././f", want: "body:A"},
	"read-backslash":   {setup: []string{`a\b=A`}, op: "read", path: `a\b`, want: "body:A"},
	"read-drive":       {setup: []string{"C:/", "C:/f=A"}, op: "read", path: "C:/f", want: "body:A"},
	"read-quoted":      {setup: []string{`"f"=A`}, op: "read", path: `"f"`, want: "body:A"},
	"read-blank":       {setup: []string{" f =A"}, op: "read", path: " f ", want: "body:A"},
	"read-tilde":       {setup: []string{"~/", "~/f=A"}, op: "read", path: "~/f", want: "body:A"},
	"read-dotted":      {setup: []string{"..f=A"}, op: "read", path: "..f", want: "body:A"},
	"read-triple-dot":  {setup: []string{".../", ".../f=A"}, op: "read", path: ".../f", want: "body:A"},
	"read-empty":       {setup: []string{"f="}, op: "read", path: "f", want: "body:"},
	"list":             {setup: []string{"d/", "f=A", "p|", "l -> f"}, op: "list", path: ".", want: "body:dir:d fifo:p file:f link:l"},
	"list-root-scheme": {setup: []string{"f=A"}, op: "list", path: "project://", want: "body:file:f"},

	// Links that stay beneath work at every depth.
	"link-file":          {setup: []string{"t=T", "l -> t"}, op: "read", path: "l", want: "body:T"},
	"link-dir-deep":      {setup: []string{"real/src/", "real/src/x=X", "ln -> real"}, op: "read", path: "ln/src/x", want: "body:X"},
	"link-list":          {setup: []string{"real/src/", "real/src/x=X", "ln -> real"}, op: "list", path: "ln/src", want: "body:file:x"},
	"link-absolute":      {setup: []string{"t=T", "l -> $R/t"}, op: "read", path: "l", want: "body:T"},
	"link-chain":         {setup: []string{"t=T", "c -> t", "b -> c", "a -> b"}, op: "read", path: "a", want: "body:T"},
	"link-up":            {setup: []string{"a/b/", "t=T", "a/b/l -> ../../t"}, op: "read", path: "a/b/l", want: "body:T"},
	"link-dotdot-true":   {setup: []string{"d/e/", "d/t=D", "t=T", "x -> d/e", "l -> x/../t"}, op: "read", path: "l", want: "body:D"},
	"link-out-and-in":    {setup: []string{"t=T", "l -> ../allowed/t"}, op: "read", path: "l", want: "body:T"},
	"link-out-dots-in":   {setup: []string{"t=T", "l -> $O/../allowed/t"}, op: "read", path: "l", want: "body:T"},
	"link-self-dots":     {setup: []string{"t=T", "d/", "l -> $R/d/../t"}, op: "read", path: "l", want: "body:T"},
	"link-stat":          {setup: []string{"t=TTT", "l -> t"}, op: "stat", path: "l", want: "body:file 3"},
	"link-lstat":         {setup: []string{"t=TTT", "l -> t"}, op: "lstat", path: "l", want: "body:link 1"},
	"link-lstat-parent":  {setup: []string{"d/", "d/t=TTT", "l -> d"}, op: "lstat", path: "l/t", want: "body:file 3"},
	"link-lstat-last":    {setup: []string{"d/", "d/k -> x", "l -> d"}, op: "lstat", path: "l/k", want: "body:link 1"},
	"link-write":         {setup: []string{"t=T", "l -> t"}, op: "write", path: "l", want: "ok"},
	"link-parent-new":    {setup: []string{"d/", "l -> d"}, op: "write", path: "l/new", want: "ok"},
	"link-dangling-in":   {setup: []string{"l -> new"}, op: "write", path: "l", want: "ok"},
	"link-move-itself":   {setup: []string{"t=T", "l -> t"}, op: "move", path: "l", to: "m", want: "ok"},
	"link-remove-itself": {setup: []string{"t=T", "l -> t"}, op: "remove", path: "l", want: "ok"},

	// Containment.
	"prefix-sibling":   {setup: []string{"$BOX/allowed-evil/", "$BOX/allowed-evil/s=SECRET"}, op: "read", path: "$R-evil/s", want: "path.escape"},
	"case-sibling":     {setup: []string{"$BOX/ALLOWED/", "$BOX/ALLOWED/s=SECRET"}, op: "read", path: "$BOX/ALLOWED/s", want: "path.escape"},
	"quote-sibling":    {setup: []string{`$BOX/allowed"=SECRET`}, op: "read", path: `$R"`, want: "path.escape"},
	"apostrophe":       {setup: []string{`$BOX/allowed'=SECRET`}, op: "read", path: `$R'`, want: "path.escape"},
	"blank-sibling":    {setup: []string{`$BOX/allowed =SECRET`}, op: "read", path: `$R `, want: "path.escape"},
	"quote-list":       {setup: []string{`$BOX/allowed''/`}, op: "list", path: `$R''`, want: "path.escape"},
	"dotdot":           {setup: []string{"$O/s=SECRET"}, op: "read", path: "../outside/s", want: "path.escape", control: "$R/../outside/s"},
	"dotdot-absolute":  {setup: []string{"$O/s=SECRET"}, op: "read", path: "$R/../outside/s", want: "path.escape"},
	"dotdot-scheme":    {setup: []string{"$O/s=SECRET"}, op: "read", path: "project://../outside/s", want: "path.escape", control: "$O/s"},
	"dotdot-write":     {op: "write", path: "$R/../outside/pwned", want: "path.escape"},
	"dotdot-mkdir":     {op: "mkdir", path: "$R/../outside/d", want: "path.escape"},
	"dotdot-move":      {setup: []string{"a=A"}, op: "move", path: "a", to: "$R/../outside/a", want: "path.escape"},
	"absolute-outside": {setup: []string{"$O/s=SECRET"}, op: "read", path: "$O/s", want: "path.escape"},
	"link-outside":     {setup: []string{"$O/s=SECRET", "l -> $O/s"}, op: "read", path: "l", want: "path.escape"},
	"link-outside-rel": {setup: []string{"$O/s=SECRET", "l -> ../outside/s"}, op: "read", path: "l", want: "path.escape"},
	"link-to-root-of":  {setup: []string{"l -> /"}, op: "list", path: "l", want: "path.escape"},
	"link-parent":      {setup: []string{"$O/s=SECRET", "d -> $O"}, op: "read", path: "d/s", want: "path.escape"},
	"link-parent-new-": {setup: []string{"d -> $O"}, op: "write", path: "d/new", want: "path.escape"},
	"link-parent-dir":  {setup: []string{"d -> $O"}, op: "mkdir", path: "d/new", want: "path.escape"},
	"link-parent-rm":   {setup: []string{"$O/s=SECRET", "d -> $O"}, op: "remove", path: "d/s", want: "path.escape"},
	"link-parent-mv":   {setup: []string{"a=A", "d -> $O"}, op: "move", path: "a", to: "d/a", want: "path.escape"},
	"link-out-write":   {setup: []string{"$O/v=KEEP", "l -> $O/v"}, op: "write", path: "l", want: "path.escape"},
	"link-out-append":  {setup: []string{"$O/v=KEEP", "l -> $O/v"}, op: "append", path: "l", want: "path.escape"},
	"link-out-stat":    {setup: []string{"$O/v=KEEP", "l -> $O/v"}, op: "stat", path: "l", want: "path.escape"},
	"link-dangling":    {setup: []string{"l -> $O/new"}, op: "write", path: "l", want: "path.escape"},
	"link-chain-out":   {setup: []string{"$O/s=SECRET", "b -> $O", "a -> b/s"}, op: "read", path: "a", want: "path.escape"},
	"link-prefix-evil": {setup: []string{"$BOX/allowed-evil/", "$BOX/allowed-evil/s=S", "l -> $R-evil/s"}, op: "read", path: "l", want: "path.escape"},
	"link-loop": {
		setup: []string{"a -> b", "b -> a"}, op: "read", path: "a", want: "path.symlink",
		control: "-", why: "a loop opens nowhere",
	},

	// Special files, at once.
	"fifo-read":   {setup: []string{"p|"}, op: "read", path: "p", want: "path.special", control: "-", why: "would wait for ever"},
	"fifo-write":  {setup: []string{"p|"}, op: "write", path: "p", want: "path.special", control: "-", why: "would wait for ever"},
	"fifo-append": {setup: []string{"p|"}, op: "append", path: "p", want: "path.special", control: "-", why: "would wait for ever"},
	"fifo-list":   {setup: []string{"p|"}, op: "list", path: "p", want: "path.special", control: "-", why: "is no directory"},
	"fifo-stat":   {setup: []string{"p|"}, op: "stat", path: "p", want: "body:fifo 0"},
	"fifo-move":   {setup: []string{"p|"}, op: "move", path: "p", to: "q", want: "ok"},
	"fifo-remove": {setup: []string{"p|"}, op: "remove", path: "p", want: "ok"},

	// Failures that are no refusals.
	"missing":         {op: "read", path: "absent", want: "path.missing", control: "-", why: "is missing for everybody"},
	"missing-parent":  {op: "write", path: "no/new", want: "path.missing", control: "-", why: "is missing for everybody"},
	"beneath-file":    {setup: []string{"f=A"}, op: "read", path: "f/x", want: "path.missing", control: "-", why: "is missing for everybody"},
	"read-dir":        {setup: []string{"d/"}, op: "read", path: "d", want: "io.failed", control: "-", why: "is a directory for everybody"},
	"list-file":       {setup: []string{"f=A"}, op: "list", path: "f", want: "io.failed", control: "-", why: "is a file for everybody"},
	"write-dir":       {setup: []string{"d/"}, op: "write", path: "d", want: "io.failed", control: "-", why: "is a directory for everybody"},
	"create-existing": {setup: []string{"f=A"}, op: "create", path: "f", want: "precondition.failed", control: "-", why: "exclusive"},
	"mkdir-existing":  {setup: []string{"d/"}, op: "mkdir", path: "d", want: "precondition.failed", control: "-", why: "exclusive"},
	"append-missing":  {op: "append", path: "f", want: "path.missing", control: "-", why: "append makes nothing"},
	"remove-missing":  {op: "remove", path: "f", want: "path.missing", control: "-", why: "is missing for everybody"},
	"remove-full":     {setup: []string{"d/", "d/f=A"}, op: "remove", path: "d", want: "io.failed", control: "-", why: "is not empty for everybody"},
	"move-missing":    {op: "move", path: "a", to: "b", want: "path.missing", control: "-", why: "is missing for everybody"},
	"move-into-self":  {setup: []string{"d/"}, op: "move", path: "d", to: "d/e", want: "request.invalid", control: "-", why: "no system does it"},

	// Moves and deletes.
	"move":            {setup: []string{"a=A", "d/"}, op: "move", path: "a", to: "d/b", want: "ok"},
	"move-dir":        {setup: []string{"a/", "a/f=A"}, op: "move", path: "a", to: "b", want: "ok"},
	"move-clobber":    {setup: []string{"a=A", "b=KEEP"}, op: "move", path: "a", to: "b", want: "precondition.failed"},
	"move-onto-dir":   {setup: []string{"a/", "b/"}, op: "move", path: "a", to: "b", want: "precondition.failed"},
	"move-root":       {op: "move", path: "$R", to: "x", want: "policy.denied", control: "-", why: "into itself"},
	"remove-root":     {op: "remove", path: "$R", want: "policy.denied"},
	"removeall-root":  {setup: []string{"f=A"}, op: "removeall", path: "project://", want: "policy.denied", control: "$R"},
	"removeall":       {setup: []string{"d/e/f/", "d/a=A", "d/e/b=B", "d/p|", "$O/s=SECRET", "d/l -> $O"}, op: "removeall", path: "d", want: "ok"},
	"removeall-file":  {setup: []string{"f=A"}, op: "removeall", path: "f", want: "ok"},
	"removeall-link":  {setup: []string{"d/", "d/f=A", "l -> d"}, op: "removeall", path: "l", want: "ok"},
	"append":          {setup: []string{"f=A"}, op: "append", path: "f", want: "ok"},
	"create":          {op: "create", path: "f", want: "ok"},
	"mkdir":           {op: "mkdir", path: "d", want: "ok"},
	"write-replace":   {setup: []string{"f=A"}, op: "write", path: "f", want: "ok"},
	"forms-empty":     {op: "read", path: "", want: "path.denied", control: "-", why: "no name"},
	"forms-nul":       {op: "read", path: "f\x00", want: "path.denied", control: "-", why: "no name"},
	"forms-not-utf8":  {setup: []string{"bad\xff=A"}, op: "read", path: "bad\xff", want: "path.denied", control: "$R/bad\xff"},
	"forms-long":      {op: "read", path: strings.Repeat("x", 256), want: "path.denied", control: "-", why: "no name"},
	"forms-very-long": {op: "read", path: strings.Repeat("x/", 2048), want: "path.denied", control: "-", why: "no name"},
	"forms-scheme":    {op: "read", path: "other://f", want: "path.escape", control: "-", why: "no file"},
	"forms-slashes":   {op: "read", path: "project:///f", want: "path.denied", control: "-", why: "no file"},
}

// run performs the guarded operation and says what came of it.
func (c *testCase) run(b *box) string {
	var body string
	var err error
	switch c.op {
	case "read":
		body, err = b.read(c.path)
	case "move":
		err = b.move(c.path, c.to)
	case "write":
		err = b.write(c.path, "new")
	case "remove", "removeall":
		var t *pathguard.Target
		if t, err = b.pinEntry(c.path); err == nil {
			defer t.Close()
			if err = t.Remove(pathguard.WriteOptions{}); c.op == "removeall" && err != nil {
				err = t.RemoveAll(context.Background(), func(pathguard.Name) error { return nil }, pathguard.WriteOptions{})
			}
		}
	default:
		err = b.follow(c.path, func(n pathguard.Name) (err error) {
			body, err = c.byName(n)
			return err
		})
	}
	switch {
	case err != nil:
		return codeOf(err)
	case strings.HasPrefix(c.want, "body:"):
		return "body:" + body
	}
	return "ok"
}

func (c *testCase) byName(n pathguard.Name) (string, error) {
	switch c.op {
	case "list":
		return listName(n)
	case "stat", "lstat":
		look := n.Stat
		if c.op == "lstat" {
			look = n.Lstat
		}
		i, err := look()
		return i.Kind.String() + " " + decimal(i.Size), err
	}
	t, err := n.Pin()
	if err != nil {
		return "", err
	}
	defer t.Close()
	switch c.op {
	case "append":
		_, err = t.Append([]byte("new"), pathguard.WriteOptions{})
	case "create":
		_, err = t.Create(strings.NewReader("new"), 0o644)
	case "mkdir":
		err = t.Mkdir(0o755)
	}
	return "", err
}

// unguarded is the same request without the guard.
func (c *testCase) unguarded(b *box) error {
	path := b.place(c.path)
	if strings.Contains(b.expand(c.path), "/..") {
		path = b.expand(c.path)
	}
	if c.control != "" {
		path = b.expand(c.control)
	}
	var err error
	switch c.op {
	case "read":
		_, err = os.ReadFile(path)
	case "list":
		_, err = os.ReadDir(path)
	case "stat":
		_, err = os.Stat(path)
	case "write", "append":
		err = os.WriteFile(path, []byte("new"), 0o644)
	case "mkdir":
		err = os.Mkdir(path, 0o755)
	case "remove":
		err = os.Remove(path)
	case "removeall":
		err = os.RemoveAll(path)
	case "move":
		to := b.place(c.to)
		if strings.Contains(b.expand(c.to), "/..") {
			to = b.expand(c.to)
		}
		err = unix.Rename(path, to)
	}
	return err
}

// effects are the cases that change something: what the tree is afterwards.
var effects = map[string]string{
	"link-write":         "/l L--------- t|/t ---------- new",
	"link-parent-new":    "/d d---------|/d/new ---------- new|/l L--------- d",
	"link-dangling-in":   "/l L--------- new|/new ---------- new",
	"link-move-itself":   "/m L--------- t|/t ---------- T",
	"link-remove-itself": "/t ---------- T",
	"fifo-move":          "/q p---------",
	"fifo-remove":        "",
	"move":               "/d d---------|/d/b ---------- A",
	"move-dir":           "/b d---------|/b/f ---------- A",
	"removeall":          "",
	"removeall-file":     "",
	"removeall-link":     "/d d---------|/d/f ---------- A",
	"append":             "/f ---------- Anew",
	"create":             "/f ---------- new",
	"mkdir":              "/d d---------",
	"write-replace":      "/f ---------- new",
}

func TestCases(t *testing.T) {
	for name, c := range testCases {
		t.Run(name, func(t *testing.T) { runCase(t, name, &c, nil) })
	}
}

// runCase checks the answer, the effect, that a refusal changed nothing
// anywhere, and the control.
func runCase(t *testing.T, name string, c *testCase, prepare func(*pathguard.Root)) {
	b := newBox(t, c.setup)
	if prepare != nil {
		prepare(b.root)
	}
	before := tree(t, b.dir)
	if got := c.run(b); got != c.want {
		t.Fatalf("got %q, want %q", got, c.want)
	}
	if c.want == "ok" {
		want := " d---------"
		if e := effects[name]; e != "" {
			want += "|" + e
		}
		if got := tree(t, b.R()); got != strings.ReplaceAll(want, "|", "\n") {
			t.Errorf("the root is now\n%s\nwant\n%s", got, want)
		}
		if _, ok := effects[name]; !ok {
			t.Error("a case with an effect says which")
		}
		return
	}
	if after := tree(t, b.dir); after != before {
		t.Errorf("something changed:\n%s\nbefore:\n%s", after, before)
	}
	if strings.HasPrefix(c.want, "body:") {
		return
	}
	if c.control == "-" {
		if c.why == "" {
			t.Error("a case without a control says why")
		}
		return
	}
	if err := c.unguarded(b); err != nil {
		t.Errorf("the control failed, so the refusal proves nothing: %v", err)
	}
}
