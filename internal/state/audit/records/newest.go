// SPDX-License-Identifier: Apache-2.0

package records

import (
	"context"
	"errors"
	"io"
	"slices"
)

// Newest returns the place of the n-th newest record that the filter chooses,
// or the beginning of the log where there are fewer: what follows it are those
// n. It also reports whether there are more before it. Only the segments that
// are needed are read; n places are kept in memory.
func Newest(ctx context.Context, dir string, f *Filter, n int) (from Cursor, more bool, err error) {
	files, err := list(dir)
	if err != nil {
		return Cursor{}, false, err
	}
	for _, file := range slices.Backward(files) {
		if file.Pruned {
			continue
		}
		found, err := matches(ctx, dir, f, file.Number, n+1)
		if err != nil {
			return Cursor{}, false, err
		}
		if len(found) > n {
			return found[len(found)-n-1], true, nil // it is after the one before
		}
		n -= len(found)
	}
	return Cursor{}, false, nil
}

// matches returns the places after the newest matches in a segment, at most.
func matches(ctx context.Context, dir string, f *Filter, number, most int) ([]Cursor, error) {
	r := NewReader(dir, Cursor{Segment: number})
	defer r.Close()
	var found []Cursor
	next, all := 0, f.Zero()
	for ctx.Err() == nil {
		e, err := r.leaf()
		if errors.Is(err, io.EOF) || err == nil && e.Segment != number {
			break
		}
		if err != nil {
			return nil, err
		}
		if !all {
			e.Record, e.Err = Parse(e.Text)
			if !f.Match(&e) {
				continue
			}
		}
		if len(found) < most {
			found = append(found, r.at)
			continue
		}
		found[next] = r.at
		next = (next + 1) % most
	}
	slices.SortFunc(found, func(a, b Cursor) int { return a.Line - b.Line })
	return found, ctx.Err()
}
