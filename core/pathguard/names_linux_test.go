// SPDX-License-Identifier: Apache-2.0

package pathguard_test

import (
	"errors"
	"io"
	"os"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/postern-gate/postern/core/fault"
	"github.com/postern-gate/postern/core/pathguard"
)

const (
	nfc      = "caf\u00e9"
	nfd      = "cafe\u0301"
	angstrom = "\u212b"
	aRing    = "\u00c5"
	aNFD     = "A\u030a"
)

// TestNamesEquivalent: reads take the one entry that is NFC-equal to an absent
// name, the exact one wins, two are refused; mutations never do.
func TestNamesEquivalent(t *testing.T) {
	b := newBox(t, []string{nfd + "=D", nfd + "d/", nfd + "d/f=F", "K=K"})
	b.wantBody(nfc, "D")
	b.wantBody(nfc+"d/f", "F")
	b.wantRefused("\u212a", 0+fault.OK) // the Kelvin sign is K's other spelling
	err := b.follow(nfc, func(n pathguard.Name) error { _, err := n.Stat(); return err })
	wantCode(t, err, fault.OK)
	err = b.follow(nfc+"d", func(n pathguard.Name) error { _, err := listName(n); return err })
	wantCode(t, err, fault.OK)
	_, err = b.name(nfc).Open()
	var link *pathguard.LinkError
	if !errors.As(err, &link) || link.To.Rel() != nfd {
		t.Errorf("%v is no proposal", err)
	}

	wantCode(t, b.removeAll(nfc), fault.PathMissing)
	wantCode(t, b.move(nfc, "x"), fault.PathMissing)
	must(t, b.write(nfc, "C"))
	b.wantBody(nfc, "C")
	b.wantBody(nfd, "D")
	wantCode(t, b.write(nfc+"d/new", "x"), fault.PathMissing)

	b.make(angstrom+"=1", aNFD+"=2")
	_, err = b.read(aRing)
	if fault.CodeOf(err) != fault.PathMissing || !strings.Contains(err.Error(), "two names are equivalent") {
		t.Errorf("two equivalent names: %v", err)
	}
	b.wantRefused("\u00e9", fault.PathMissing)
}

// TestNamesEquivalentRoot: a root's own path in the other normal form is found
// for reads, and only for them; a sibling with exactly these bytes is not it.
func TestNamesEquivalentRoot(t *testing.T) {
	b := emptyBox(t)
	b.make(nfd+"/", nfd+"/f=F", nfd+"/d/", nfd+"/d/f=G")
	b.root = b.openRoot("project", b.R()+"/"+nfd)
	ws, err := pathguard.NewWorkspace(b.root)
	must(t, err)
	b.ws = ws
	for spelling, want := range map[string]string{"$R/" + nfc + "/f": "F", "$R/" + nfd + "/f": "F", "$R/" + nfc + "/d/f": "G"} {
		b.wantBody(spelling, want)
	}
	err = b.follow("$R/"+nfc, func(n pathguard.Name) error { _, err := listName(n); return err })
	wantCode(t, err, fault.OK)
	_, err = b.name("$R/" + nfc + "/d").Lstat()
	if link := (*pathguard.LinkError)(nil); !errors.As(err, &link) || link.To != b.name("d") {
		t.Errorf("Lstat: %v", err)
	}
	wantCode(t, b.write("$R/"+nfc+"/f", "x"), fault.PathEscape)
	wantCode(t, b.removeAll("$R/"+nfc+"/f"), fault.PathEscape)
	b.wantRefused("$R/"+nfc+"x/f", fault.PathEscape)
	b.wantBody("f", "F")
}

// TestNamesEquivalentOutside: an equivalent name that is a link to outside is
// refused like any other.
func TestNamesEquivalentOutside(t *testing.T) {
	b := newBox(t, []string{"$O/s=SECRET", nfd + " -> $O/s"})
	b.wantRefused(nfc, fault.PathEscape)
}

func TestNamesMayHaveEqual(t *testing.T) {
	for s, want := range map[string]bool{"plain/name": false, "K": true, "a;b": true, "`": true, "é": true, "": false} {
		if pathguard.MayHaveEqual(s) != want {
			t.Errorf("%q", s)
		}
	}
}

func TestNamesInvalidUTF8(t *testing.T) {
	b := newBox(t, []string{"bad\xff\xfe.txt=B", "ok.txt=K", "d/", "d/bad\xff=B"})
	d, err := b.name(".").OpenDir()
	must(t, err)
	defer d.Close()
	all, err := d.Entries(100)
	must(t, err)
	for _, e := range all {
		if e.Reachable != !strings.HasPrefix(e.Name, "bad") {
			t.Errorf("%q reachable: %v", e.Name, e.Reachable)
		}
	}
	if len(all) != 3 {
		t.Errorf("%d entries", len(all))
	}
	for _, e := range []string{"bad\xff\xfe.txt"} {
		_, err := d.Lstat(e)
		wantCode(t, err, fault.PathDenied)
	}
	// What no policy can judge is not moved or removed with its directory.
	wantCode(t, b.removeAll("d"), fault.PathDenied)
	b.wantRefused(`bad\xff\xfe.txt`, fault.PathMissing)
}

// TestNamesMany: a big directory is listed in bounded batches, each entry once.
func TestNamesMany(t *testing.T) {
	b := newBox(t, nil)
	const n = 3000
	for i := range n {
		b.make("file-with-a-longer-name-" + strconv.Itoa(i) + "=")
	}
	d, err := b.name(".").OpenDir()
	must(t, err)
	defer d.Close()
	seen := map[string]bool{}
	for {
		batch, err := d.Entries(7)
		if err == io.EOF {
			break
		}
		must(t, err)
		if len(batch) > 7 {
			t.Fatalf("a batch of %d", len(batch))
		}
		for _, e := range batch {
			if seen[e.Name] || e.Kind != pathguard.KindFile {
				t.Fatalf("%+v", e)
			}
			seen[e.Name] = true
		}
	}
	if len(seen) != n {
		t.Errorf("%d of %d", len(seen), n)
	}
	_, err = d.Entries(0)
	wantCode(t, err, fault.RequestInvalid)
}

// TestNamesDotsAlone: a batch of the kernel that holds only the two dots, as
// when a signal interrupts it, is not the end.
func TestNamesDotsAlone(t *testing.T) {
	b := newBox(t, []string{"inside=I"})
	fd, err := unix.Open(b.R(), unix.O_RDONLY|unix.O_DIRECTORY, 0)
	must(t, err)
	defer unix.Close(fd)
	const twoDots = 24 * 2 // and no room for a name that needs 32 bytes
	var seen []string
	for {
		batch, err := pathguard.ReadEntries(fd, twoDots)
		must(t, err)
		if len(batch) == 0 {
			break
		}
		for _, e := range batch {
			seen = append(seen, e.Name)
		}
	}
	if len(seen) != 1 || seen[0] != "inside" {
		t.Errorf("%q", seen)
	}
	if _, err := pathguard.ParseEntries(make([]byte, 24)); err == nil {
		t.Error("an entry without a length")
	}
}

func TestNamesInfo(t *testing.T) {
	b := newBox(t, []string{"f=12345", "f@0640", "d/", "d@1750", "s=x", "s@4755", "g=x", "g@2755", "p|", "l -> f"})
	for name, want := range map[string]string{
		"f": "file -rw-r-----", "d": "dir dtrwxr-x---", "s": "file urwxr-xr-x", "g": "file grwxr-xr-x",
		"p": "fifo prw-r--r--", "l": "link Lrwxrwxrwx", ".": "dir drwxr-xr-x",
	} {
		i, err := b.name(name).Lstat()
		must(t, err)
		if got := i.Kind.String() + " " + i.Mode.String(); got != want {
			t.Errorf("%s: %s, want %s", name, got, want)
		}
		fi, err := os.Lstat(b.place(name))
		must(t, err)
		if !i.ModTime.Equal(fi.ModTime()) || i.Size != fi.Size() || i.Mode != fi.Mode() {
			t.Errorf("%s: %+v, %v", name, i, fi)
		}
		if i.AccessTime.IsZero() || i.Nlink == 0 {
			t.Errorf("%s: %+v", name, i)
		}
	}
	if pathguard.Kind(200).String() != "unknown" || !pathguard.KindUnknown.Special() {
		t.Error("an unknown kind")
	}
}

// TestFingerprint: each part of it changes the etag; it is a URL-safe word.
func TestFingerprint(t *testing.T) {
	b := newBox(t, []string{"f=A", "g=A"})
	tag := func(name string) string {
		i, err := b.name(name).Stat()
		must(t, err)
		return i.Fingerprint.String()
	}
	seen := map[string]string{tag("f"): "f"}
	add := func(what string) {
		s := tag("f")
		if was, ok := seen[s]; ok {
			t.Errorf("%s has the etag of %s", what, was)
		}
		seen[s] = what
		if len(s) != 21 || strings.Trim(s, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_") != "" {
			t.Errorf("etag %q", s)
		}
	}
	if _, ok := seen[tag("g")]; ok {
		t.Error("two files have one etag")
	}
	b.make("f=B")
	add("content")
	b.make("f@0600")
	add("mode")
	must(t, os.Chtimes(b.R()+"/f", b.time(), b.time()))
	add("times")
	must(t, b.write("f", "B"))
	add("replaced")

	f, err := b.name("f").Open()
	must(t, err)
	defer f.Close()
	p := f.Fingerprint()
	if p == (pathguard.Fingerprint{}) || p != f.Info().Fingerprint {
		t.Error("the fingerprint of an open file")
	}
	if (pathguard.Fingerprint{}).String() != "" {
		t.Error("the zero fingerprint")
	}
}

// TestFile: what an open file answers, and a change beside it.
func TestFile(t *testing.T) {
	b := newBox(t, []string{"f=0123456789"})
	f, err := b.name("f").Open()
	must(t, err)
	if f.Name().Rel() != "f" || f.Size() != 10 {
		t.Error("name or size")
	}
	buf := make([]byte, 4)
	if n, err := f.ReadAt(buf, 8); n != 2 || err != io.EOF || string(buf[:n]) != "89" {
		t.Errorf("%d, %v", n, err)
	}
	if n, err := f.ReadAt(buf, 3); n != 4 || err != nil || string(buf) != "3456" {
		t.Errorf("%d, %v", n, err)
	}
	if n, err := f.Read(nil); n != 0 || err != nil {
		t.Errorf("%d, %v", n, err)
	}
	if _, err := f.ReadAt(buf, -1); fault.CodeOf(err) != fault.IOFailed {
		t.Errorf("negative: %v", err)
	}
	all, err := io.ReadAll(f)
	if string(all) != "0123456789" || err != nil {
		t.Errorf("%q, %v", all, err)
	}
	same, err := f.Stat()
	must(t, err)
	if same.Fingerprint != f.Fingerprint() {
		t.Error("changed without a change")
	}
	b.make("f=x")
	now, err := f.Stat()
	must(t, err)
	if now.Fingerprint == f.Fingerprint() {
		t.Error("a change does not show")
	}
	must(t, f.Close())
	wantCode(t, f.Close(), fault.Bug)
	_, err = f.Read(buf)
	wantCode(t, err, fault.IOFailed)
	_, err = f.Stat()
	wantCode(t, err, fault.IOFailed)

	d, err := b.name(".").OpenDir()
	must(t, err)
	if d.Name().Rel() != "" {
		t.Error("name or kind of a directory")
	}
	_, err = d.Lstat("absent")
	wantCode(t, err, fault.PathMissing)
	must(t, d.Close())
	wantCode(t, d.Close(), fault.Bug)
	_, err = d.Entries(1)
	wantCode(t, err, fault.IOFailed)
}
