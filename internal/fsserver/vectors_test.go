// SPDX-License-Identifier: Apache-2.0

//go:build linux

package fsserver

import (
	"bufio"
	"encoding/json"
	"os"
	"path/filepath"
	"testing"
)

// cases are the tests of vectors/fs, by id.
var cases = map[string]func(*testing.T){
	"fs-prefix-sibling":          prefixSibling,
	"fs-symlink-file-read":       symlinkFileRead,
	"fs-symlink-parent-newfile":  symlinkParentNewFile,
	"fs-dangling-link-write":     danglingLinkWrite,
	"fs-lexical-only-write":      lexicalOnlyWrite,
	"fs-dotdot-traversal-write":  dotdotTraversalWrite,
	"fs-case-fold-sibling":       caseFoldSibling,
	"fs-quote-sibling-read":      quoteSiblingRead,
	"fs-default-roots-too-wide":  defaultRootsTooWide,
	"fs-dotdot-inside-ok":        dotdotInside,
	"fs-root-is-symlink":         rootIsSymlink,
	"fs-root-slash":              rootSlash,
	"fs-nested-under-inner-link": nestedUnderInnerLink,
	"fs-missing-second-root":     missingSecondRoot,
	"fs-toctou-dir-swap-read":    raceDirSwapRead,
	"fs-agent-edits-own-limits":  agentEditsOwnLimits,
	"fs-dot-dirs-leak":           dotDirs,
	"fs-listing-sizes-leak":      listingSizes,
	"fs-exist-oracle":            existOracle,
	"fs-roots-replace-cli":       rootsReplace,
	"fs-roots-uri-escapes":       rootsURIEscapes,
	"fs-edit-crlf":               editCRLF,
	"fs-edit-dollar":             editDollar,
	"fs-edit-ambiguous":          editAmbiguous,
	"fs-edit-notfound-success":   editNotFound,
	"fs-edit-near-miss":          editNearMiss,
	"fs-edit-growth-truncated":   editGrowth,
	"fs-write-stale-base":        writeStaleBase,
	"fs-write-mode-bits":         writeModeBits,
	"fs-write-owner-xattr":       writeOwnerXattr,
	"fs-write-readonly-file":     writeReadonlyFile,
	"fs-write-disk-full":         writeDiskFull,
	"fs-move-clobber":            moveClobber,
	"fs-move-link":               moveLink,
	"fs-delete-root":             deleteRoot,
	"fs-fifo-block":              fifoBlock,
	"fs-slow-provider-hang":      slowProvider,
	"fs-exclude-plain-name":      excludePlainName,
	"fs-search-head-of-line":     searchHeadOfLine,
	"fs-tail-from-start":         tailFromStart,
	"fs-big-file-read":           bigFileRead,
	"fs-search-utf8-panic":       searchUTF8Panic,
	"fs-partial-read-fd-leak":    fdLeak,
	"fs-binary-as-text":          binaryAsText,
	"fs-structured-mismatch":     structuredMismatch,
	"fs-readonly-hints":          readonlyHints,
	"fs-nfc-nfd":                 nfcNFD,
	"fs-invalid-utf8-name":       invalidUTF8Name,
	"fs-unreadable-subfolder":    unreadableSubfolder,
}

// TestVectors runs the test of each vector; a vector without one fails.
func TestVectors(t *testing.T) {
	files, err := filepath.Glob("../../vectors/fs/*.jsonl")
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	seen := map[string]bool{}
	for _, file := range files {
		f, err := os.Open(file)
		if err != nil {
			t.Fatal(err)
		}
		for sc := bufio.NewScanner(f); sc.Scan(); {
			var v struct{ ID, Kind string }
			if err := json.Unmarshal(sc.Bytes(), &v); err != nil {
				t.Fatalf("%s: %v", file, err)
			}
			if v.Kind+".jsonl" != filepath.Base(file) {
				t.Errorf("%s is in %s", v.ID, file)
			}
			seen[v.ID] = true
			run := cases[v.ID]
			if run == nil {
				t.Errorf("%s has no test", v.ID)
				continue
			}
			t.Run(v.ID, run)
		}
		_ = f.Close()
	}
	for id := range cases {
		if !seen[id] {
			t.Errorf("%s is no vector", id)
		}
	}
}
