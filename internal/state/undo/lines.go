// SPDX-License-Identifier: Apache-2.0

package undo

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

const (
	// maxLine bounds a line: a batch of the largest size.
	maxLine = 64 << 20

	// maxJournal is more than a process can write to one: it begins another
	// long before.
	maxJournal = 2 * maxLine
)

// journals lists the files, which sort by their age, and by their base names
// the odd ones that no process of ours made: what is no file, and what is larger
// than a journal can be. Those are not read.
func journals(dir string) (names, odd []string, err error) {
	found, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil, nil
	}
	if err != nil {
		return nil, nil, unusable("the journals can't be read", err)
	}
	for _, f := range found {
		if !strings.HasSuffix(f.Name(), journalSuffix) {
			continue
		}
		info, err := f.Info()
		switch {
		case errors.Is(err, fs.ErrNotExist): // pruned meanwhile
		case err != nil || !info.Mode().IsRegular() || info.Size() > maxJournal:
			odd = append(odd, f.Name())
		default:
			names = append(names, filepath.Join(dir, f.Name()))
		}
	}
	return names, odd, nil
}

// eachLine reads line by line, without their ends. One that is longer than any
// of ours is nil, and what follows it is read.
func eachLine(from io.Reader, each func([]byte)) error {
	in := bufio.NewReaderSize(from, 64<<10)
	var line []byte
	begun, skip := false, false
	for {
		part, err := in.ReadSlice('\n')
		whole := err == nil
		if err != nil && !errors.Is(err, bufio.ErrBufferFull) && !errors.Is(err, io.EOF) {
			return err
		}
		begun = begun || len(part) > 0
		skip = skip || foreign(line, part, whole)
		if !skip {
			line = append(line, part...)
		}
		last := errors.Is(err, io.EOF)
		if whole || last && begun {
			if skip {
				line = nil
			}
			each(bytes.TrimSuffix(line, []byte("\n")))
			if cap(line) > 1<<20 { // one large line is not held for all that come
				line = nil
			}
			line, begun, skip = line[:0], false, false
		}
		if last {
			return nil
		}
	}
}

// foreign reports a line of which no more is collected: it is too long, or a
// long one that does not begin like ours.
func foreign(line, part []byte, whole bool) bool {
	return len(line)+len(part) > maxLine || !whole && len(line) == 0 && len(part) > sumLen && part[sumLen-1] != ' '
}
