// SPDX-License-Identifier: Apache-2.0

package attach

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"time"

	"github.com/postern-gate/postern/core/fault"
	"github.com/postern-gate/postern/internal/state"
	"github.com/postern-gate/postern/internal/state/lock"
	"github.com/postern-gate/postern/internal/state/regular"
)

// journal is what init did for one project, kept in the state directory. It is
// written before the files are, so that a process that dies in between has left
// what it needs to be undone. It holds no contents, but for an entry that another
// took the place of, which is given back.
type journal struct {
	Project string   `json:"project"`
	Files   []record `json:"files"`
}

// record is what init did to one file.
type record struct {
	Path      string   `json:"path"`
	InProject bool     `json:"in_project"`
	Client    string   `json:"client,omitempty"` // "" for a policy
	Entry     string   `json:"entry,omitempty"`
	New       bool     `json:"new,omitempty"`
	Dirs      []string `json:"dirs,omitempty"` // that were made, the outermost first
	Made      made     `json:"made"`
	Runs      []string `json:"runs,omitempty"`  // what the entry ran each time that init wrote it, as entry.runs
	Sum       string   `json:"sum"`             // SHA-256 of what was written
	Print     string   `json:"print,omitempty"` // of a policy's file, once it is written
	// Temps are the sums of what a write that is killed may leave beside the
	// file: the new content, or the one that it displaced.
	Temps []string `json:"temps,omitempty"`
}

// everyFolder is the lock that the books of all projects have in common: what one
// does about the user's policy hangs on the others.
const everyFolder = 1

// lockWait is how long one init waits for another one's writing.
const lockWait = 10 * time.Second

// book is the open journal of a project, held by this process alone.
type book struct {
	journal
	path    string
	release func()
}

// journalPath is where the journal of a project is.
func journalPath(stateDir, project string) string {
	return filepath.Join(stateDir, "attached", hash([]byte(project))[:32]+".json")
}

// readJournal returns what is remembered of the project: nothing where there is
// no journal.
func readJournal(stateDir, project string) (journal, error) {
	j := journal{Project: project}
	return j, j.read(journalPath(stateDir, project))
}

// read takes what the file says, if it is there.
func (j *journal) read(path string) error {
	text, err := regular.Read(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err == nil {
		err = json.Unmarshal(text, j)
	}
	if err != nil {
		return &fault.Error{Code: fault.ConfigInvalid, Op: op, Resource: path, Rule: "what init remembers of this project can't be read", Hint: "remove the file; --undo then takes out our entries alone", Err: err}
	}
	return nil
}

// Remembers reports whether init wrote the file of an entry of this project, and
// nobody has changed it since: what the entry runs is then what init was told.
func Remembers(stateDir, project string, a Attachment) bool {
	j, err := readJournal(stateDir, project)
	i := slices.IndexFunc(j.Files, record{Path: a.File, Entry: a.Entry}.same)
	if err != nil || i < 0 || a.Client.ID != j.Files[i].Client {
		return false
	}
	f, err := os.Open(a.File)
	if err != nil {
		return false
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, maxFile+1))
	return err == nil && hash(text) == j.Files[i].Sum
}

// openBook prepares the state directory and takes the project's journal.
func openBook(ctx context.Context, stateDir, project string) (*book, error) {
	dir, err := state.Open(stateDir) //nolint:contextcheck // an upgrade of the layout is finished once it is begun
	if err != nil {
		return nil, err
	}
	if err := os.Mkdir(dir.Join("attached"), homeDir); err != nil && !errors.Is(err, fs.ErrExist) {
		return nil, unkept(err)
	}
	ctx, stop := context.WithTimeout(ctx, lockWait)
	defer stop()
	key, err := strconv.ParseInt(hash([]byte(project))[:15], 16, 64)
	if err != nil {
		return nil, unkept(err)
	}
	release, err := lock.Open(dir.Join("attached", "lock")).Lock(ctx, key, everyFolder)
	if err != nil {
		return nil, err
	}
	j, err := readJournal(dir.Path(), project)
	if err != nil {
		release()
		return nil, err
	}
	return &book{j, journalPath(dir.Path(), project), release}, nil
}

// note remembers a change. Of an entry of ours that was there before, what was
// made with it stays remembered.
func (b *book) note(c Change) {
	r := record{
		Path: c.Path, InProject: c.InProject, Client: c.Client, Entry: c.Entry, New: c.New, Dirs: c.spot.missing, Made: c.made, Sum: hash(c.After),
	}
	if c.Client != "" {
		r.Runs = []string{c.runs}
	}
	if i := slices.IndexFunc(b.Files, r.same); i >= 0 {
		old := b.Files[i]
		if slices.Contains(old.Runs, c.made.WasRuns) { // it is ours that was displaced
			r.New, r.Made = old.New, old.Made
			r.Runs = append(slices.DeleteFunc(old.Runs, func(s string) bool { return s == c.runs }), c.runs)
		}
		for _, dir := range old.Dirs {
			if !slices.Contains(r.Dirs, dir) {
				r.Dirs = append(r.Dirs, dir)
			}
		}
		slices.Sort(r.Dirs) // an outer one is shorter and the front of the inner one
		b.Files[i] = r
		return
	}
	b.Files = append(b.Files, r)
}

// expect remembers what a kill while this change is written would leave.
func (b *book) expect(c Change) {
	for i, r := range b.Files {
		if r.Path == c.Path {
			b.Files[i].Temps = []string{hash(c.Before), hash(c.After)}
		}
	}
}

func (r record) same(o record) bool { return r.Path == o.Path && r.Entry == o.Entry }

// drop forgets a file.
func (b *book) drop(r record) { b.Files = slices.DeleteFunc(b.Files, r.same) }

// save writes the journal, whole or not at all; one that remembers nothing goes.
func (b *book) save() error {
	if len(b.Files) == 0 {
		if err := os.Remove(b.path); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return unkept(err)
		}
		return nil
	}
	text, err := json.MarshalIndent(b.journal, "", "  ")
	if err != nil {
		return unkept(err)
	}
	tmp, err := os.CreateTemp(filepath.Dir(b.path), ".attached-*") // mode 0600
	if err != nil {
		return unkept(err)
	}
	defer os.Remove(tmp.Name())
	_, werr := tmp.Write(append(text, '\n'))
	if err := errors.Join(werr, tmp.Sync(), tmp.Close()); err != nil {
		return unkept(err)
	}
	if err := os.Rename(tmp.Name(), b.path); err != nil {
		return unkept(err)
	}
	return nil
}

func unkept(err error) error {
	return &fault.Error{
		Code: fault.IOFailed, Op: op, Rule: "what is done can't be remembered in the state directory, so nothing is done",
		Hint: "free space or repair the state directory", Err: err,
	}
}
