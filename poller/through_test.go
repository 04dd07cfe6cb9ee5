package poller_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/vibedata/roundhouse/poller"
	"github.com/vibedata/roundhouse/poller/pollertest"
)

// quiet is a source without rows that knows the position up to which none exist.
type quiet struct {
	*pollertest.Source
	through int
}

func (q *quiet) Fetch(ctx context.Context, after poller.Cursor, limit, maxBytes int) (poller.Batch, error) {
	b, err := q.Source.Fetch(ctx, after, limit, maxBytes)
	if q.through > 0 && len(b.Rows) == 0 {
		b.Through = pollertest.Row(q.through).Cursor
	}
	return b, err
}

// When a source without rows returns such a position, the checkpoint moves there once per idle heartbeat, under a
// lease, and never back; later rows are delivered.
func TestThrough(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.state.rewinds = true // the rows before the position do not exist
		q := &quiet{Source: w.source}
		r := w.process(nil, func(c *poller.RunnerConfig) {
			c.Source, c.Options = q, poller.Options{IdleHeartbeat: 10 * time.Minute}
		})
		w.source.Append(2)
		w.tick(r)
		at := func(want int) {
			t.Helper()
			if got := pollertest.Number(w.document().Cursor()); got != want {
				t.Errorf("the checkpoint is at %d, not %d", got, want)
			}
		}
		at(2)
		q.through = 10
		writes := w.state.count()
		w.tick(r)
		at(2)
		if n := w.state.count() - writes; n != 0 {
			t.Errorf("%d writes before the heartbeat is due", n)
		}
		wait(11 * time.Minute)
		token := w.document().Lease.Token
		result := w.tick(r)
		at(10)
		if d := w.document(); d.Lease.Token <= token || d.Lease.Owner != "" || !result.Drained || result.Rows != 0 {
			t.Errorf("lease %+v, result %+v", d.Lease, result)
		}
		q.through = 5
		wait(11 * time.Minute)
		w.tick(r)
		at(10)
		w.source.Append(10)
		if result = w.tick(r); result.Rows != 2 { // 11 and 12
			t.Errorf("%+v", result)
		}
		at(12)
	})
}
