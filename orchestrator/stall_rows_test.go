package orchestrator

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/vibedata/roundhouse/internal/faults"
	"github.com/vibedata/roundhouse/tables"
)

// A run that is stalled for hours keeps one row of the sweeper's index, and is woken once in a sweep.
func TestRowsOfWhatIsStalled(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		w := newWorld(t)
		good := []AnyOrchestrator{NewOrchestrator("test", func(ctx *Context, _ int) (int, error) { return Event[int](ctx, "a").Await() })}
		bad := []AnyOrchestrator{NewOrchestrator("test", func(ctx *Context, _ int) (int, error) { return Event[int](ctx, "b").Await() })}
		mustRun(t, w.signalling(t, nil, good, nil), startOf("a", 1))
		raise(t, w, "a", 7, 0)
		var mu sync.Mutex
		slow := func(ctx context.Context, _ faults.Call, next func(context.Context) error) error {
			mu.Lock()
			time.Sleep(time.Millisecond)
			mu.Unlock()
			return next(ctx)
		}
		rt := w.intercepted(t, slow, Config{Orchestrators: bad})
		w.deliverDue(t, rt)
		for range 12 {
			w.mustSweep(t, rt)
			time.Sleep(time.Second)
			w.deliverDue(t, rt)
			time.Sleep(sweepEvery - time.Second)
		}
		wants(t, "it is", shownStatus(t, rt, "a"), Stalled)
		page, err := rt.config.Tables.Query(t.Context(), rt.config.IndexTable, tables.Query{Partition: indexPartition})
		if err != nil || len(page.Entities) > 1 {
			t.Errorf("%d rows, %v", len(page.Entities), err)
		}
		if n := rt.Counts().Woken; n > 12 || n < 11 {
			t.Errorf("it was woken %d times in 1 h", n)
		}
	})
}
