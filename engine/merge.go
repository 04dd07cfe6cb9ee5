package engine

import (
	"cmp"
	"context"
	"fmt"
	"runtime/debug"

	"golang.org/x/sync/errgroup"

	"github.com/vibedata/roundhouse/tables"
)

// parallelQueries bounds the parallel reads of the streams of a page.
const parallelQueries = 8

// position is the position of a row in a list: by place, and by engine when two engines share a place.
type position struct {
	place  string
	engine string
}

func (p position) compare(q position) int {
	return cmp.Or(cmp.Compare(p.place, q.place), cmp.Compare(p.engine, q.engine))
}

// bound returns the first place behind p in the streams of an engine. All places have one length, so nothing sorts
// between a place and the same place with a hyphen.
func (p position) bound(engine string) string {
	if engine > p.engine {
		return p.place
	}
	return p.place + "-"
}

// listedRow is a main row or an index row that a list shows.
type listedRow struct {
	at     position
	entity tables.Entity
}

// rowStream reads one key range of one partition, page by page, newest row first.
type rowStream struct {
	fetch func(ctx context.Context) (rows []listedRow, more bool, err error)
	rows  []listedRow
	done  bool // nothing is left to fetch
}

// fill loads a first row, if any are left. Pages of a store can be empty.
func (l *rowStream) fill(ctx context.Context) error {
	for len(l.rows) == 0 && !l.done {
		rows, more, err := l.fetch(ctx)
		if err != nil {
			return err
		}
		l.rows, l.done = rows, !more
	}
	return nil
}

// merge takes up to limit rows from the streams, in order. A row that moves between two streams while they are read
// appears twice with the same position, and counts once.
func merge(ctx context.Context, lanes []*rowStream, limit int) ([]listedRow, error) {
	group, groupCtx := errgroup.WithContext(ctx)
	group.SetLimit(parallelQueries)
	for _, l := range lanes {
		group.Go(func() (err error) {
			defer func() {
				// A panic in this goroutine would end the process.
				if p := recover(); p != nil {
					err = fmt.Errorf("panic: %v\n%s", p, debug.Stack())
				}
			}()
			return l.fill(groupCtx)
		})
	}
	if err := group.Wait(); err != nil {
		return nil, err
	}
	var merged []listedRow
	for len(merged) < limit {
		var first *rowStream
		for _, l := range lanes {
			if err := l.fill(ctx); err != nil {
				return nil, err
			}
			if len(l.rows) > 0 && (first == nil || l.rows[0].at.compare(first.rows[0].at) < 0) {
				first = l
			}
		}
		if first == nil {
			break
		}
		if n := len(merged); n == 0 || merged[n-1].at != first.rows[0].at {
			merged = append(merged, first.rows[0])
		}
		first.rows = first.rows[1:]
	}
	return merged, nil
}
