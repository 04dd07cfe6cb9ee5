package sqlsource

import (
	"context"

	"github.com/vibedata/roundhouse/poller"
)

// ReadAll fetches all rows of a source, in batches of limit, and counts them, as the baseline of a poller's
// measurement. The rows are dropped.
func ReadAll(ctx context.Context, s poller.Source, limit int) (rows int, err error) {
	var after poller.Cursor
	for {
		b, err := s.Fetch(ctx, after, limit, 64<<20)
		if err != nil {
			return rows, err
		}
		rows += len(b.Rows)
		if !b.More {
			return rows, nil
		}
		after = b.Rows[len(b.Rows)-1].Cursor
	}
}
