// SPDX-License-Identifier: Apache-2.0

package pathguard_test

import (
	"errors"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/postern-gate/postern/core/fault"
	"github.com/postern-gate/postern/core/pathguard"
)

// proposals are the names that each try leads to, without a judge between them,
// and the code of the last.
func (b *box) proposals(spelling string, try func(pathguard.Name) error) string {
	n, all := b.name(spelling), ""
	for range 41 {
		err := try(n)
		var link *pathguard.LinkError
		if !errors.As(err, &link) {
			return all + codeOf(err)
		}
		n = link.To
		all += n.Rel() + " "
	}
	return all
}

// TestProposals: each proposal is one link on, with the rest as it was spelled,
// whatever is there: nothing beneath a link's target is looked at before that
// name was judged.
func TestProposals(t *testing.T) {
	setup := []string{
		"pub/", "pub/y=Y", "private/", "private/x=X", "private/ln -> ../pub", "a/b/",
		"l -> private", "abs -> $R/private", "up -> ../allowed/private", "a/b/l -> ../../private", "dots -> ./private//./",
		"walk -> l/../pub", "walk2 -> $R/a/b/../../private", "none -> absent/../private",
		"out -> $O", "file -> private/x/", "self -> self", nfd + "/", nfd + "/" + nfd + "=N", "$O/there=T",
	}
	tests := map[string]string{
		"l/x":           "private/x ok",
		"l/nope":        "private/nope path.missing",
		"l/x/z":         "private/x/z path.missing",
		"l/ln/y":        "private/ln/y pub/y ok",
		"abs/nope/z":    "private/nope/z path.missing",
		"up/x/z":        "private/x/z path.missing",
		"a/b/l/nope":    "private/nope path.missing",
		"dots/ln/y":     "private/ln/y pub/y ok",
		"walk/no":       "pub/no path.missing", // leaves what l leads to
		"walk2/x":       "private/x ok",
		"none/x":        "path.missing",
		"out/there":     "path.escape",
		"out/absent":    "path.escape",
		"out/there/x":   "path.escape",
		"file":          "private/x path.missing",
		"self/x":        "path.symlink",
		nfc + "/" + nfc: nfd + "/" + nfc + " " + nfd + "/" + nfd + " ok",
		nfc + "/gone":   nfd + "/gone path.missing",
	}
	for name, prepare := range map[string]func(*pathguard.Root){
		"openat2": func(*pathguard.Root) {},
		"walk":    func(r *pathguard.Root) { pathguard.WithoutOpenat2(r, unix.ENOSYS) },
		"folding": func(r *pathguard.Root) { r.SetFolds(true) },
	} {
		b := newBox(t, setup)
		prepare(b.root)
		for spelling, want := range tests {
			if got := b.proposals(spelling, func(n pathguard.Name) error { _, err := n.Stat(); return err }); got != want {
				t.Errorf("%s, %s: %q, want %q", name, spelling, got, want)
			}
		}
		// A change proposes the same, but for equivalent names.
		pin := func(n pathguard.Name) error {
			tg, err := n.Pin()
			if err == nil {
				tg.Close()
			}
			return err
		}
		for spelling, want := range map[string]string{
			"l/nope": "private/nope ok", "l/nope/z": "private/nope/z path.missing", "l/x/z": "private/x/z path.missing",
			"l/ln/new": "private/ln/new pub/new ok", nfc + "/new": "path.missing",
		} {
			if got := b.proposals(spelling, pin); got != want {
				t.Errorf("%s, pinning %s: %q, want %q", name, spelling, got, want)
			}
		}
	}
}

// TestFolderSpelling: a name that ends like a directory's opens nothing else.
func TestFolderSpelling(t *testing.T) {
	b := newBox(t, []string{"f=F", "d/", "l -> d", "lf -> f"})
	for _, s := range []string{"f/", "f/.", "$R/f/", "project://f/", "lf/"} {
		b.wantRefused(s, fault.PathMissing)
		wantCode(t, b.write(s, "x"), fault.PathMissing)
		wantCode(t, b.append(s, "x"), fault.PathMissing)
		wantCode(t, b.removeAll(s), fault.PathMissing)
		wantCode(t, b.follow(s, func(n pathguard.Name) error { _, err := n.Lstat(); return err }), fault.PathMissing)
		wantCode(t, b.follow(s, func(n pathguard.Name) error { _, err := n.OpenDir(); return err }), fault.PathMissing)
	}
	wantCode(t, b.removeAll("l/"), fault.PathMissing) // neither the link nor what it leads to
	wantCode(t, b.write("new/", "x"), fault.PathMissing)
	wantCode(t, b.move("f", "new/"), fault.PathMissing)
	for _, s := range []string{"d/", "l/", "d/.", "."} {
		wantCode(t, b.follow(s, func(n pathguard.Name) error { _, err := listName(n); return err }), fault.OK)
	}
	b.wantBody("f", "F")
	must(t, b.move("d/", "e/"))
	must(t, b.removeAll("e/"))
}
