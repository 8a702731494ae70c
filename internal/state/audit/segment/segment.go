// SPDX-License-Identifier: Apache-2.0

// Package segment names, lists and reads the files that a log consists of:
// NNNNNN.jsonl with the lines of one segment, and NNNNNN.hashes with the leaf
// hashes that are left of a segment whose lines are no longer kept.
package segment

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"sync"
)

// The endings of the two kinds of files.
const (
	Lines  = ".jsonl"
	Hashes = ".hashes"
)

// File is one segment of a log.
type File struct {
	Number int
	Path   string
	Pruned bool // Path holds hashes, the lines are gone
}

// Path returns the path of a segment with one of the two endings.
func Path(dir string, number int, ending string) string {
	return filepath.Join(dir, fmt.Sprintf("%06d%s", number, ending))
}

// Name is what a segment's file with its lines is called.
func Name(number int) string { return filepath.Base(Path("", number, Lines)) }

var named = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^([0-9]{6,9})(\.jsonl|\.hashes)$`) })

// List returns the segments in dir in their order. A segment that has both
// files counts as not pruned. Other files are left out. A missing dir is
// fs.ErrNotExist.
func List(dir string) ([]File, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	var all []File
	for _, e := range entries {
		m := named().FindStringSubmatch(e.Name())
		if m == nil {
			continue
		}
		n, err := strconv.Atoi(m[1])
		if err != nil || filepath.Base(Path(dir, n, m[2])) != e.Name() {
			continue
		}
		all = append(all, File{Number: n, Path: filepath.Join(dir, e.Name()), Pruned: m[2] == Hashes})
	}
	slices.SortFunc(all, func(a, b File) int {
		if a.Number == b.Number && a.Pruned != b.Pruned {
			if a.Pruned {
				return 1
			}
			return -1
		}
		return a.Number - b.Number
	})
	return slices.CompactFunc(all, func(a, b File) bool { return a.Number == b.Number }), nil
}

// ErrTorn is returned with the bytes after the last line end of a file.
var ErrTorn = errors.New("a line without its end")

// Reader reads lines. It keeps one line in memory.
type Reader struct {
	r      *bufio.Reader
	long   []byte
	line   int
	offset int64
}

// NewReader reads from the beginning of a segment. For a reader that begins
// elsewhere, offset is the place in the file and line the number of lines
// before it.
func NewReader(r io.Reader, offset int64, line int) *Reader {
	return &Reader{r: bufio.NewReaderSize(r, 64<<10), line: line, offset: offset}
}

// Next returns the next line without its end; it is valid until the next
// call. At the end of the file it returns io.EOF, or the rest and ErrTorn.
func (r *Reader) Next() ([]byte, error) {
	line, err := r.r.ReadSlice('\n')
	if errors.Is(err, bufio.ErrBufferFull) {
		r.long = append(r.long[:0], line...)
		for errors.Is(err, bufio.ErrBufferFull) {
			line, err = r.r.ReadSlice('\n')
			r.long = append(r.long, line...)
		}
		line = r.long
	}
	switch {
	case err == nil:
		r.line++
		r.offset += int64(len(line))
		return line[:len(line)-1], nil
	case errors.Is(err, io.EOF) && len(line) > 0:
		return line, ErrTorn
	}
	return nil, err
}

// Line returns the number of the line that Next returned last, from 1.
func (r *Reader) Line() int { return r.line }

// Offset returns the place in the file after the line that Next returned last.
func (r *Reader) Offset() int64 { return r.offset }
