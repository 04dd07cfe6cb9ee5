package main

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"github.com/netresearch/go-cron"

	"github.com/vibedata/roundhouse/blobs"
	"github.com/vibedata/roundhouse/internal/faults"
	"github.com/vibedata/roundhouse/poller"
)

const (
	// batchRows is the number of rows in the counted batches.
	batchRows = 10
	// manyBatches is the difference in batches between the two compared ticks.
	manyBatches = 100
)

// pollers lists the measurements of the pollers.
func pollers() []scenario {
	return []scenario{pollerCost(), pollerThroughput(), pollerLag()}
}

// newPoller makes a poller without a log, whose state is in memory, and counts its storage calls. Without a handler
// its rows are dropped.
func newPoller(ctx context.Context, memory *blobs.Memory, c poller.RunnerConfig) (*poller.Runner, *faults.Plan, error) {
	count := &faults.Plan{}
	if err := (poller.BlobStore{Blobs: memory}).Create(ctx); err != nil {
		return nil, nil, err
	}
	c.Name, c.Store = "bench", poller.BlobStore{Blobs: faults.Blobs(memory, count.Intercept)}
	if c.Handler == nil {
		c.Handler = poller.HandlerFunc(func(context.Context, poller.Delivery) error { return nil })
	}
	runner, err := poller.NewRunner(c)
	return runner, count, err
}

// drained runs a tick that must deliver all rows, so many.
func drained(ctx context.Context, r *poller.Runner, rows int) (poller.Result, error) {
	result, err := r.Tick(ctx)
	if err == nil && (!result.Drained || result.Rows != rows) {
		err = fmt.Errorf("a tick delivered %d rows, want %d: %+v", result.Rows, rows, result)
	}
	return result, err
}

// pollerCost counts the storage cost of pollers: for a batch, and in an hour without rows.
func pollerCost() scenario {
	metrics := []metric{
		{"poller/tx_per_batch", "transactions", fmt.Sprintf("budget 1, the commit: a tick of %d batches less a tick of 1, divided by %d", manyBatches+1, manyBatches)},
		{"poller/idle_tx_per_hour", "transactions", "budget 364, by the default schedule: 360 ticks read the state, 4 write that there was nothing"},
	}
	return scenario{metrics, func(ctx context.Context, _ time.Duration) ([]float64, error) {
		one, err := tickCost(ctx, 1)
		if err != nil {
			return nil, err
		}
		many, err := tickCost(ctx, manyBatches+1)
		if err != nil {
			return nil, err
		}
		idle, err := idleHour(ctx)
		return []float64{float64(many-one) / manyBatches, float64(idle)}, err
	}}
}

// tickCost counts the transactions of the first tick of a poller with so many batches to deliver.
func tickCost(ctx context.Context, batches int) (int, error) {
	options := poller.Options{BatchSize: batchRows, MaxBatch: batchRows}
	runner, count, err := newPoller(ctx, blobs.NewMemory(), poller.RunnerConfig{Source: numbered(batches * batchRows), Options: options})
	if err != nil {
		return 0, err
	}
	result, err := drained(ctx, runner, batches*batchRows)
	if err == nil && result.Batches != batches {
		err = fmt.Errorf("a tick delivered %d batches, want %d", result.Batches, batches)
	}
	return len(count.Calls()), err
}

// idleHour counts the transactions of an hour in which a poller with the default schedule and options finds no rows,
// after it has delivered some. The hour is that of a clock that jumps from one tick to the next.
func idleHour(ctx context.Context) (int, error) {
	parser, err := cron.TryNewParser(cron.Second | cron.Minute | cron.Hour | cron.Dom | cron.Month | cron.Dow)
	if err != nil {
		return 0, err
	}
	schedule, err := parser.Parse(poller.DefaultSchedule)
	if err != nil {
		return 0, err
	}
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	clock := func() time.Time { return now }
	memory := blobs.NewMemory()
	memory.Now = clock
	runner, count, err := newPoller(ctx, memory, poller.RunnerConfig{Source: numbered(batchRows), Now: clock})
	if err != nil {
		return 0, err
	}
	if _, err := drained(ctx, runner, batchRows); err != nil {
		return 0, err
	}
	before := len(count.Calls())
	end := now.Add(time.Hour)
	for now = schedule.Next(now); !now.After(end); now = schedule.Next(now) {
		if _, err := drained(ctx, runner, 0); err != nil {
			return 0, err
		}
	}
	return len(count.Calls()) - before, nil
}

// numbered is a source of so many rows, in memory.
type numbered int

// Definition returns that of a table.
func (numbered) Definition() poller.Definition {
	return poller.Definition{Dialect: "memory", SourceID: "bench", Object: "rows", Cursor: "id", Keys: []string{"id"}, Bound: "single-writer"}
}

// Check reports no problem.
func (numbered) Check(context.Context) ([]string, error) { return nil, nil }

// Fetch returns rows behind a place.
func (n numbered) Fetch(_ context.Context, after poller.Cursor, limit, _ int) (poller.Batch, error) {
	last := 0
	if !after.IsZero() {
		var err error
		if last, err = strconv.Atoi(after.Value); err != nil {
			return poller.Batch{}, fmt.Errorf("read the place: %w", err)
		}
	}
	var b poller.Batch
	for last < int(n) && len(b.Rows) < limit {
		last++
		key := fmt.Appendf(nil, `{"id":%d}`, last)
		b.Rows = append(b.Rows, poller.Row{Cursor: poller.Cursor{Kind: "integer", Value: strconv.Itoa(last)}, Key: key, Data: key})
	}
	b.More = last < int(n)
	return b, nil
}

// End returns the last row.
func (n numbered) End(context.Context) (poller.Cursor, error) {
	return poller.Cursor{Kind: "integer", Value: strconv.Itoa(int(n))}, nil
}

// Close does nothing.
func (numbered) Close() error { return nil }
