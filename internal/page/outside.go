// SPDX-License-Identifier: Apache-2.0

package page

import (
	"context"
	"fmt"
	"time"

	"github.com/postern-gate/postern/enforce"
)

// outsideMost is how long a view waits for that count.
const outsideMost = 2 * time.Second

// outside says how much other programs changed since these changes began, as
// far as anybody saw it.
func (p *Page) outside(ctx context.Context, found []enforce.UndoEntry) string {
	counting, stop := context.WithTimeout(ctx, outsideMost)
	defer stop()
	c, err := p.o.State.OutsideOf(counting, found, p.o.Now())
	switch {
	case counting.Err() != nil:
		return "what changed outside the guard was not counted, since that takes too long: postern undo list"
	case err != nil:
		return "what changed outside the guard is not known: the log can't be read"
	}
	return outsideText(c)
}

// seen is what is not claimed.
const seen = ", as far as postern up saw it"

func outsideText(c enforce.OutsideCount) string {
	since := " outside the guard, in all folders, since " + c.Since.Local().Format(time.DateTime)
	files := fmt.Sprintf("%d files", c.Files)
	if c.Files == 1 {
		files = "1 file"
	}
	switch {
	case c.Files > 0 && c.Missed:
		return "at least " + files + " changed" + since + seen
	case c.Files > 0:
		return files + " changed" + since + seen
	case c.Missed:
		return "files may have changed" + since
	case c.Watched:
		return "no file changed" + since + seen
	}
	return "nothing is recorded of changes" + since + ": there were none, or nothing watched; only postern up does"
}
