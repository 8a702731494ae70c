// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"context"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/postern-gate/postern/internal/state/live"
)

const (
	// mostLooked bounds how many entries of roots are looked at.
	mostLooked = 200_000
	// unfinishedAfter is the age at which a file is not one of a write under way.
	unfinishedAfter = time.Minute
	// tempName begins the names of files beside those that are written.
	tempName = ".postern-tmp-"
)

// checkLitter finds what killed processes left: in the state directory, where
// the next start removes it, and in the roots, where a person looks first, since
// a file may hold what was replaced.
func checkLitter(ctx context.Context, l *look) []Result {
	var all []Result
	if n, first := l.stateLitter(); n > 0 {
		all = append(all, warn("a server removes them an hour later", "%d unfinished files in the state directory, the first is %s", n, first))
	}
	if dead := l.dead(ctx); dead > 0 {
		all = append(all, warn("start a server: it says in the log what became of their changes", "%d processes ended in the middle of something", dead))
	}
	looked := 0
	if l.cfg != nil {
		for _, r := range l.cfg.Roots {
			shut := r.Shut()
			if len(shut) > 0 {
				all = append(all, skip("%s:// is not looked through where another file system is mounted, which no call enters: %s", r.Name, some(shut)))
			}
			n, first := l.rootLitter(ctx, r.Path, shut, &looked)
			if n > 0 {
				all = append(all, warn("look whether it holds something that you miss, then remove it", "%d files of killed writes in %s://, hidden from agents, the first is %s", n, r.Name, first))
			}
		}
	}
	switch {
	case slices.ContainsFunc(all, func(r Result) bool { return r.Status == Warn }):
		return all
	case looked > mostLooked:
		return append(all, pass("nothing of killed processes in the first %d entries", mostLooked))
	}
	return append(all, pass("nothing of killed processes"))
}

// some are the first of many names.
func some(names []string) string {
	const most = 5
	if len(names) > most {
		names = append(slices.Clone(names[:most]), "...")
	}
	return strings.Join(names, ", ")
}

func (l *look) stateLitter() (n int, first string) {
	for dir, prefixes := range map[string][]string{
		".": {".new-", ".version-"}, "audit": {".new-"}, "keys": {".key-"}, "endpoints": {".endpoint-"},
	} {
		entries, _ := os.ReadDir(filepath.Join(l.Policy.StateDir, dir)) // what is absent holds nothing
		for _, e := range entries {
			info, err := e.Info()
			if err != nil || l.Now().Sub(info.ModTime()) < unfinishedAfter {
				continue
			}
			for _, p := range prefixes {
				if strings.HasPrefix(e.Name(), p) {
					if n++; first == "" {
						first = filepath.Join(l.Policy.StateDir, dir, e.Name())
					}
				}
			}
		}
	}
	return n, first
}

func (l *look) dead(ctx context.Context) (n int) {
	all, _ := live.Open(l.Policy.StateDir).List(ctx) // its failure is that of the check signed
	for _, p := range all {
		if !p.Alive {
			n++
		}
	}
	return n
}

func (l *look) rootLitter(ctx context.Context, root string, shut []string, looked *int) (n int, first string) {
	closed := map[string]bool{}
	for _, name := range shut {
		closed[filepath.Join(root, filepath.FromSlash(name))] = true
	}
	_ = filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error { // what can't be read holds none of ours
		if *looked++; *looked > mostLooked || ctx.Err() != nil {
			return fs.SkipAll
		}
		switch {
		case closed[path] && d != nil && d.IsDir(): // it may not answer
			return fs.SkipDir
		case closed[path]:
			return nil
		}
		if err != nil || !d.Type().IsRegular() || !strings.HasPrefix(d.Name(), tempName) {
			return nil //nolint:nilerr // the walk goes on beside it
		}
		info, err := d.Info()
		if err == nil && l.Now().Sub(info.ModTime()) >= unfinishedAfter {
			if n++; first == "" {
				first = path
			}
		}
		return nil // one that is gone is no litter
	})
	return n, first
}
