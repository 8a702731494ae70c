// SPDX-License-Identifier: Apache-2.0

package fsserver

import (
	"bytes"
	"context"
	"errors"
	"hash/fnv"
	"strings"
	"sync"

	"github.com/postern-gate/postern/core/fault"
	"github.com/postern-gate/postern/core/pathguard"
	"github.com/postern-gate/postern/core/untrusted"
	"github.com/postern-gate/postern/internal/fsserver/grep"
)

// Bounds of a search in contents.
const (
	defaultMatches = 200
	maxContext     = 20
	// waiting is how many files are searched or wait to be told of.
	waiting = 32
)

// contents is a search in files. The walk hands them to workers and tells of
// what they found in its own order.
type contents struct {
	walk    *traversal
	query   *grep.Query
	files   *pattern // nil for all
	near    int
	bare    bool
	ctx     context.Context //nolint:containedctx // it lives no longer than the call
	jobs    chan *job
	queue   []*job
	workers sync.WaitGroup

	failed error // what ends the search

	lines      []byte // of the answer, guarded by the walk's mu
	structured []byte
}

// job is the search of one file.
type job struct {
	name     pathguard.Name
	path     string
	options  grep.Options
	done     chan struct{}
	result   grep.Result
	err      error
	panicked any
	tag      uint64 // of the file's state
	linked   bool
	raced    bool // it changed while it was searched
}

func searchContent(ctx context.Context, c *call) (reply, error) {
	s, err := c.newSearch()
	if err != nil {
		return reply{}, err
	}
	ctx, cancel := context.WithCancel(ctx)
	s.ctx = ctx
	defer s.workers.Wait()
	defer close(s.jobs)
	defer cancel()
	r, err := c.gather(ctx, s.walk)
	if fault.CodeOf(err) == fault.IOFailed && !s.walk.began {
		file, refused := c.gate.OpenListed(ctx, c.args.path)
		switch {
		case refused == nil:
			defer file.Close()
			return s.alone(file)
		case fault.CodeOf(refused) != fault.IOFailed: // it is no directory, nor is that why
			return reply{}, refused
		}
	}
	return r, err
}

// alone searches the one file that the path names, whatever is ignored.
func (s *contents) alone(f *pathguard.File) (reply, error) {
	t := s.walk
	j := &job{name: f.Name(), path: f.Name().Base(), options: grep.Options{Matches: t.most, Context: s.near, After: t.from.n}}
	j.search(s, f, new(grep.Scanner))
	if err := s.ctx.Err(); err != nil {
		return reply{}, &fault.Error{Code: fault.Cancelled, Op: "fs.read", Retry: true, Err: err}
	}
	if j.err != nil {
		return reply{}, j.err
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.top, t.met = f.Name(), true
	s.account(j)
	if err := s.add(j); err != nil {
		return reply{}, err
	}
	return t.reply(false), nil
}

func (c *call) newSearch() (*contents, error) {
	query, err := grep.Compile(c.args.query, c.args.literal, c.args.ignoreCase)
	if err != nil {
		return nil, err
	}
	if c.args.context.n > maxContext {
		return nil, invalid("context must be at most 20", "read the file around a line with read_text_file, line and lines")
	}
	patterns := newCompiler()
	exclude, err := patterns.exclude(c.args.exclude)
	if err != nil {
		return nil, err
	}
	s := &contents{
		query: query, near: int(c.args.context.n), bare: c.o.Bare, jobs: make(chan *job, waiting),
		walk: &traversal{exclude: exclude, most: defaultMatches},
	}
	if c.args.glob != "" {
		files, err := patterns.files(c.args.glob)
		if err != nil {
			return nil, err
		}
		s.files = &files
	}
	if !c.args.includeIgnored {
		s.walk.ignore = &ignoring{}
	}
	s.walk.first, s.walk.answer, s.walk.finish, s.walk.work = s, s.answer, s.drain, s.first
	return s, nil
}

func (s *contents) unreadable() {}

// entry has a file searched; while too many wait, the first of them is told of.
func (s *contents) entry(e entry) visitor {
	if e.item.Kind != pathguard.KindFile || !e.item.Reachable || s.files != nil && !s.files.match(e.path) {
		return s
	}
	from := s.walk.from
	if e.told && (e.path != from.path || from.n == 0) {
		return s // all of it was told
	}
	name, err := e.dir.Join(e.item.Name)
	if err != nil {
		return s
	}
	j := &job{name: name, path: e.path, done: make(chan struct{}), options: grep.Options{Matches: s.walk.most, Context: s.near}}
	if e.told {
		j.options.After = from.n
	}
	if len(s.queue) == waiting {
		s.tellFirst()
	}
	if s.queue == nil {
		s.employ()
	}
	s.queue = append(s.queue, j)
	s.jobs <- j // as many as may wait have room
	return s
}

// first is the file that is to be told of next, closed when it is searched.
func (s *contents) first() (searched <-chan struct{}, tell func()) {
	if len(s.queue) == 0 || s.failed != nil || s.walk.full() {
		return nil, nil
	}
	return s.queue[0].done, s.tellFirst
}

// tellFirst tells of the first file; where it can't, the walk ends.
func (s *contents) tellFirst() {
	if s.failed = s.tell(); s.failed != nil {
		_ = s.walk.stop() // drain says why
	}
}

func (s *contents) employ() {
	for range workers() {
		s.workers.Go(func() {
			var scanner grep.Scanner
			for j := range s.jobs {
				j.run(s, &scanner)
			}
		})
	}
}

func (j *job) run(s *contents, scanner *grep.Scanner) {
	defer close(j.done)
	defer func() { j.panicked = recover() }() // it goes on in the walk, where a bug is answered for
	if j.err = s.ctx.Err(); j.err != nil {
		return
	}
	f, err := s.walk.walk.Open(j.name)
	if err != nil {
		j.err = err
		return
	}
	defer f.Close()
	j.search(s, f, scanner)
}

func (j *job) search(s *contents, f *pathguard.File, scanner *grep.Scanner) {
	j.result, j.err = scanner.Scan(s.ctx, f, f.Size(), s.query, j.options)
	if len(j.result.Lines) == 0 && j.options.After == 0 {
		return
	}
	h := fnv.New64a()
	_, _ = h.Write([]byte(f.Fingerprint().String())) // never fails
	j.tag, j.linked = max(1, h.Sum64()), f.Info().Nlink > 1
	now, err := f.Stat()
	j.raced = err != nil || now.Fingerprint != f.Fingerprint()
}

// drain tells of all that waits.
func (s *contents) drain() error {
	for s.failed == nil && len(s.queue) > 0 && !s.walk.answered() {
		s.failed = s.tell()
	}
	if s.failed == nil && !s.walk.answered() {
		s.walk.reach(s.walk.last)
	}
	return s.failed
}

// tell tells of the first file that waits.
func (s *contents) tell() error {
	j := s.queue[0]
	s.queue = s.queue[1:]
	t := s.walk
	t.await(j)
	if j.panicked != nil {
		panic(j.panicked)
	}
	if errors.Is(j.err, context.Canceled) || errors.Is(j.err, context.DeadlineExceeded) {
		return j.err
	}
	if len(j.result.Lines) > 0 {
		if err := t.walk.Told(j.name); err != nil {
			j.result, j.err = grep.Result{}, err
		}
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	s.account(j)
	return s.add(j)
}

// await waits for a file to be searched, and says so to an answer at the
// deadline.
func (t *traversal) await(j *job) {
	select {
	case <-j.done:
		return
	default:
	}
	t.mu.Lock()
	dir := t.at
	t.at = j.name
	t.mu.Unlock()
	<-j.done
	t.mu.Lock()
	t.at = dir
	t.mu.Unlock()
}

// answer is what there is. The caller holds the walk's mu.
func (s *contents) answer(top pathguard.Name) reply {
	r := reply{kind: untrusted.Search, source: top.String(), body: "No matches found"}
	if len(s.lines) > 0 {
		r.body = strings.TrimSuffix(string(s.lines), "\n")
	}
	if s.bare {
		r.structured = append([]byte(`{"matches":[`), bytes.TrimSuffix(s.structured, []byte{','})...)
		r.structured = append(r.structured, ']')
	}
	return r
}
