// SPDX-License-Identifier: Apache-2.0

//go:build linux

package fsserver

import (
	"encoding/base64"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/postern-gate/postern/internal/testenv"
)

// id is the record's id in a refusal.
func (r result) id() string {
	var e struct{ ID string }
	_ = json.Unmarshal(r.Meta["dev.postern/error"], &e)
	if e.ID == "" {
		r.t.Errorf("no id: %.300s", r.raw)
	}
	return e.ID
}

func edits(pairs ...string) []args {
	var list []args
	for i := 0; i < len(pairs); i += 2 {
		list = append(list, args{"oldText": pairs[i], "newText": pairs[i+1]})
	}
	return list
}

func editCRLF(t *testing.T) {
	w := newWorld(t, map[string]string{"e": "a\r\nb\r\nc\r\n"})
	w.call("edit_file", args{"path": w.at("e"), "edits": edits("b", "B")}).ok()
	w.is(w.at("e"), "a\r\nB\r\nc\r\n")
}

func editDollar(t *testing.T) {
	w := newWorld(t, map[string]string{"e": "price: X\n"})
	w.call("edit_file", args{"path": w.at("e"), "edits": edits("X", "$& $1 $$")}).ok()
	w.is(w.at("e"), "price: $& $1 $$\n")
}

func editAmbiguous(t *testing.T) {
	w := newWorld(t, map[string]string{"e": "dup\nmid\ndup\n"})
	w.call("edit_file", args{"path": w.at("e"), "edits": edits("dup", "new")}).refused("precondition.failed").has("2 matches", "lines 1 and 3")
	w.is(w.at("e"), "dup\nmid\ndup\n")
	w.call("edit_file", args{"path": w.at("e"), "edits": []args{{"oldText": "dup", "newText": "new", "replaceAll": true}}}).ok()
	w.is(w.at("e"), "new\nmid\nnew\n")
}

// state is what must not change when a call is refused.
func state(t *testing.T, path string) string {
	t.Helper()
	var st syscall.Stat_t
	if err := syscall.Stat(path, &st); err != nil {
		t.Fatal(err)
	}
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	b, err := json.Marshal([]any{st.Ino, st.Mtim, st.Mode, st.Uid, st.Gid, content})
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func editNotFound(t *testing.T) {
	w := newWorld(t, map[string]string{"e": "abc\n"})
	before := state(t, w.at("e"))
	w.call("edit_file", args{"path": w.at("e"), "edits": edits("zzz", "X")}).refused("precondition.failed")
	w.call("edit_file", args{"path": w.at("e"), "edits": edits("a", "b", "zzz", "X")}).refused()
	if state(t, w.at("e")) != before {
		t.Error("the file was touched")
	}
}

func editNearMiss(t *testing.T) {
	w := newWorld(t, map[string]string{"e": "\tif x:\n\t\ty()\n"})
	before := state(t, w.at("e"))
	for _, dry := range []bool{false, true} {
		r := w.call("edit_file", args{"path": w.at("e"), "dryRun": dry, "edits": edits("    if x:\n        y()", "\tif x:\n\t\tz()")}).
			refused("precondition.failed").has("1 to 2")
		if len(r.Content) != 2 {
			t.Fatalf("%d blocks", len(r.Content))
		}
		e, ok := open(r.Content[1].Text)
		if !ok || e.attribute("kind") != "tool_error" || e.attribute("source") != "project://e" || strings.Contains(r.text(), "\t") {
			t.Errorf("near miss %q", r.Content[1].Text)
		}
		for _, want := range []string{"→if·x:", "····if·x:", "→→y()"} {
			if !strings.Contains(e.body, want) {
				t.Errorf("%q is not in %q", want, e.body)
			}
		}
	}
	if state(t, w.at("e")) != before {
		t.Error("the file was touched")
	}
}

func editGrowth(t *testing.T) {
	line := strings.Repeat("x", 99) + "\n"
	half := strings.Repeat(line, 800)
	old := half + "short unique" + half
	old = old[:147308]
	w := newWorld(t, map[string]string{"e": old})
	w.call("edit_file", args{"path": w.at("e"), "edits": edits("short unique", "a much longer text than before")}).ok()
	w.is(w.at("e"), strings.Replace(old, "short unique", "a much longer text than before", 1))
	w.call("edit_file", args{"path": w.at("e"), "edits": edits("a much longer text than before", "x")}).ok()
	w.is(w.at("e"), strings.Replace(old, "short unique", "x", 1))
	if info, err := os.Stat(w.at("e")); err != nil || info.Size() != 147297 {
		t.Error(info.Size(), err)
	}
}

func writeStaleBase(t *testing.T) {
	w := newWorld(t, map[string]string{"f": "v1"})
	etag := w.call("read_text_file", args{"path": w.at("f")}).etag()
	if etag == "" {
		t.Fatal("no etag")
	}
	w.put(w.at("f"), "v2")
	for tool, a := range map[string]args{
		"write_file":  {"content": "v1 by agent"},
		"append_file": {"content": "more"},
		"edit_file":   {"edits": edits("v2", "v3")},
		"delete_file": {"confirm": true},
	} {
		a["path"], a["ifMatch"] = w.at("f"), etag
		w.call(tool, a).refused("precondition.failed")
		w.is(w.at("f"), "v2")
	}
	w.call("move_file", args{"source": w.at("f"), "destination": w.at("g"), "ifMatch": etag}).refused("precondition.failed")
	strict := w.setup
	strict.IfMatch = []string{"fs.write"}
	c := w.serve(strict, nil)
	c.call("write_file", args{"path": w.at("f"), "content": "v3"}).refused("precondition.failed")
	w.is(w.at("f"), "v2")
	fresh := w.call("read_text_file", args{"path": w.at("f")}).etag()
	c.call("write_file", args{"path": w.at("f"), "content": "v3", "ifMatch": fresh}).ok() // control
	w.call("write_file", args{"path": w.at("f"), "content": "v4"}).ok()
	w.is(w.at("f"), "v4")
}

func writeModeBits(t *testing.T) {
	w := newWorld(t, map[string]string{"run.sh": "a"})
	w.must(os.Chmod(w.at("run.sh"), 0o750))
	w.call("write_file", args{"path": w.at("run.sh"), "content": "b"}).ok()
	w.is(w.at("run.sh"), "b")
	w.call("edit_file", args{"path": w.at("run.sh"), "edits": edits("b", "c")}).ok()
	w.is(w.at("run.sh"), "c")
	if info, err := os.Stat(w.at("run.sh")); err != nil || info.Mode() != 0o750 {
		t.Error(info.Mode(), err)
	}
}

// posixACL is u::rw-, u:4711:r--, g::rw-, m::rw-, o::rw- as the kernel has it.
var posixACL = []byte("\x02\x00\x00\x00" +
	"\x01\x00\x06\x00\xff\xff\xff\xff" + "\x02\x00\x04\x00\x67\x12\x00\x00" + "\x04\x00\x06\x00\xff\xff\xff\xff" +
	"\x10\x00\x06\x00\xff\xff\xff\xff" + "\x20\x00\x06\x00\xff\xff\xff\xff")

const nobody = 65534

func writeOwnerXattr(t *testing.T) {
	w := newWorld(t, map[string]string{"o": "a"})
	if os.Getuid() != 0 {
		testenv.Missing(t, "root, to give a file away")
	}
	path := w.at("o")
	w.must(os.Chown(path, 12345, 12345))
	w.must(os.Chmod(path, 0o666))
	w.must(os.Chmod(w.root, 0o777))
	if err := unix.Setxattr(path, "user.t", []byte("1"), 0); err != nil {
		testenv.Missing(t, "user attributes in the temporary folder: "+err.Error())
	}
	if err := unix.Setxattr(path, "system.posix_acl_access", posixACL, 0); err != nil {
		testenv.Missing(t, "access control lists in the temporary folder: "+err.Error())
	}
	kept := func() string {
		var st syscall.Stat_t
		w.must(syscall.Stat(path, &st))
		attr, acl := make([]byte, 64), make([]byte, 256)
		n, err := unix.Getxattr(path, "user.t", attr)
		w.must(err)
		m, err := unix.Getxattr(path, "system.posix_acl_access", acl)
		w.must(err)
		b, err := json.Marshal([]any{st.Mode, st.Uid, st.Gid, attr[:n], acl[:m]})
		w.must(err)
		return string(b)
	}
	before := kept()
	w.call("write_file", args{"path": path, "content": "b"}).ok()
	w.is(path, "b")
	if got := kept(); got != before {
		t.Errorf("attributes %s, want %s", got, before)
	}
	whole := state(t, path)
	c := w.spawn(w.as(nobody))
	c.call("write_file", args{"path": path, "content": "c"}).refused()
	if state(t, path) != whole || kept() != before {
		t.Error("the file was touched")
	}
}

// as is the setup for a server of another user, with a state of its own.
func (w *world) as(uid int) setup {
	s := w.setup
	s.UID, s.State = uid, filepath.Join(w.box, "state-other")
	w.must(os.MkdirAll(s.State, 0o700))
	if os.Getuid() == 0 {
		w.must(os.Chown(s.State, uid, uid))
	}
	return s
}

func writeReadonlyFile(t *testing.T) {
	w := newWorld(t, map[string]string{"ro": "A"})
	w.must(os.Chmod(w.at("ro"), 0o444))
	clients := []*client{}
	if os.Getuid() == 0 {
		w.must(os.Chown(w.root, nobody, nobody))
		w.must(os.Chown(w.at("ro"), nobody, nobody))
		clients = append(clients, w.spawn(w.as(nobody)))
	} else {
		clients = append(clients, w.client)
	}
	before := state(t, w.at("ro"))
	for _, c := range clients {
		c.call("write_file", args{"path": w.at("ro"), "content": "B"}).refused().has("read-only")
		c.call("edit_file", args{"path": w.at("ro"), "edits": edits("A", "B")}).refused().has("read-only")
		c.call("append_file", args{"path": w.at("ro"), "content": "B"}).refused().has("read-only")
		c.call("write_file", args{"path": w.at("ro"), "content": "B", "confirm": true}).refused()
		if state(t, w.at("ro")) != before {
			t.Error("the file was touched")
		}
		w.must(os.Chmod(w.at("ro"), 0o644))
		c.call("write_file", args{"path": w.at("ro"), "content": "B"}).ok() // control
	}
}

func writeDiskFull(t *testing.T) {
	w := newWorld(t, nil, later)
	if err := unix.Mount("tmpfs", w.root, "tmpfs", 0, "size=64k"); err != nil {
		testenv.Missing(t, "the right to mount a file system: "+err.Error())
	}
	t.Cleanup(func() { _ = unix.Unmount(w.root, unix.MNT_DETACH) })
	old := strings.Repeat("A", 40000)
	w.put(w.at("f"), old)
	c := w.serve(w.setup, nil)
	for _, dry := range []bool{true, false} {
		if r := c.call("write_file", args{"path": w.at("f"), "content": strings.Repeat("B", 90000), "dry_run": dry}); !dry {
			r.refused("io.failed").has("no space")
		}
		w.is(w.at("f"), old)
		w.unchanged(w.root, "f")
	}
	w.must(unix.Mount("tmpfs", w.root, "tmpfs", unix.MS_REMOUNT, "size=1m"))
	c.call("write_file", args{"path": w.at("f"), "content": strings.Repeat("B", 90000)}).ok()
	w.is(w.at("f"), strings.Repeat("B", 90000))
}

func moveClobber(t *testing.T) {
	w := newWorld(t, map[string]string{"a": "A", "b": "KEEP", "d/x": "X"})
	w.link("nowhere", "l")
	for _, to := range []string{"b", "d", "l", "a"} {
		for _, tool := range []string{"move_file", "copy_file"} {
			w.call(tool, args{"source": w.at("a"), "destination": w.at(to)}).refused("precondition.failed")
		}
	}
	w.is(w.at("a"), "A")
	w.is(w.at("b"), "KEEP")
	w.unchanged(w.at("d"), "x")
	w.call("move_file", args{"source": w.at("a"), "destination": w.at("c")}).ok() // control
	w.is(w.at("c"), "A")
}

func moveLink(t *testing.T) {
	w := newWorld(t, map[string]string{"t": "T"})
	w.link("t", "l")
	w.call("move_file", args{"source": w.at("l"), "destination": w.at("m")}).ok()
	if got, _ := os.Readlink(w.at("m")); got != "t" {
		t.Errorf("m leads to %q", got)
	}
	w.absent(w.at("l"))
	w.is(w.at("t"), "T")
}

func deleteRoot(t *testing.T) {
	allow := func(w *world) { w.setup.Rules = map[string]string{"fs.delete": "allow"} }
	w := newWorld(t, map[string]string{"a": "A", "d/b": "B"}, allow)
	w.call("delete_file", args{"path": w.root, "recursive": true, "confirm": true}).refused()
	w.call("delete_file", args{"path": "project://", "recursive": true, "confirm": true}).refused()
	w.call("move_file", args{"source": w.root, "destination": w.at("d/r")}).refused()
	w.is(w.at("a"), "A")
	w.is(w.at("d/b"), "B")
	w.call("delete_file", args{"path": w.at("d"), "confirm": true}).refused("precondition.failed").has("recursive")
	w.call("delete_file", args{"path": w.at("d"), "recursive": true}).refused("confirm.missing").
		has("PRECONDITION_FAILED: ", "Set confirm=True to proceed. [required=confirm]")
	w.call("delete_file", args{"path": w.at("d"), "recursive": true, "confirm": true}).ok() // control
	w.unchanged(w.root, "a")
}

func tailFromStart(t *testing.T) {
	w := newWorld(t, map[string]string{"t": "1\n2\n3\n4\n"})
	if got := w.call("read_text_file", args{"path": w.at("t"), "tail": 2}).body(); got != "3\n4\n" {
		t.Errorf("%q", got)
	}
}

func fdLeak(t *testing.T) {
	w := newWorld(t, map[string]string{"big": strings.Repeat("0123456789abcdef\n", 2000)}, later)
	c := w.spawn(w.setup)
	count := func() int { return len(w.names("/proc/" + itoa(c.pid) + "/fd")) }
	if _, err := os.Stat("/proc/self/fd"); err != nil {
		testenv.Missing(t, "/proc, to count open files")
	}
	c.call("read_text_file", args{"path": w.at("big"), "head": 1000}).ok()
	c.call("write_file", args{"path": w.at("first"), "content": "x"}).ok() // which opens the log
	before := count()
	for range 2000 {
		c.call("read_text_file", args{"path": w.at("big"), "head": 1000}).ok()
	}
	c.call("read_text_file", args{"path": w.at("absent")}).refused()
	c.call("write_file", args{"path": w.at("big"), "content": "x"}).ok()
	if after := count(); after != before {
		t.Errorf("%d open files after, %d before", after, before)
	}
	w.must(os.Remove(w.at("big")))
}

func binaryAsText(t *testing.T) {
	w := newWorld(t, map[string]string{"b": "\x00\x01\xff\xfe", "latin": "caf\xe9\n", "cut": "é\n\xff"})
	w.call("read_text_file", args{"path": w.at("b")}).refused().has("binary", "4 bytes", "read_media_file").lacks("\ufffd")
	w.call("read_text_file", args{"path": w.at("latin")}).refused("text.unsafe")
	w.call("read_multiple_files", args{"paths": []string{w.at("b")}}).ok().has(": Error - denied: fs.read", "read_media_file").lacks("\ufffd")
	if got := w.call("read_text_file", args{"path": w.at("cut"), "head": 1}).body(); got != "é" {
		t.Errorf("%q", got)
	}
	r := w.call("read_media_file", args{"path": w.at("b")}).ok()
	got, err := base64.StdEncoding.DecodeString(r.Content[0].Resource.Blob)
	if err != nil || string(got) != "\x00\x01\xff\xfe" || r.Content[0].Resource.URI != "file://"+w.at("b") {
		t.Errorf("%q %v %+v", got, err, r.Content[0])
	}
}
