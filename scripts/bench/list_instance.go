package main

import (
	"context"
	"fmt"
	"time"

	"github.com/vibedata/roundhouse/engine"
	"github.com/vibedata/roundhouse/internal/faults"
	"github.com/vibedata/roundhouse/tables"
)

// rareInstance has one row of the history, the oldest, so that a list without an index reads all of them.
const rareInstance = "rare"

// listsByInstance counts the queries of a list that finds one row of the history by its instance, in a process that has just
// started.
func listsByInstance() scenario {
	metrics := []metric{
		{fmt.Sprintf("list/instance/%d", fewRows), "queries", "budget 2: which engines are indexed, and the rows of the instance"},
		{fmt.Sprintf("list/instance/%d", manyRows), "queries", "budget 2: the same"},
	}
	return scenario{metrics, func(ctx context.Context, _ time.Duration) ([]float64, error) {
		var out []float64
		for _, rows := range []int{fewRows, manyRows} {
			queries, err := queriesByInstance(ctx, rows)
			if err != nil {
				return nil, err
			}
			out = append(out, queries)
		}
		return out, nil
	}}
}

func queriesByInstance(ctx context.Context, rows int) (float64, error) {
	store := tables.NewMemory()
	history := engine.NewHistory(store, "")
	if err := history.CreateTable(ctx); err != nil {
		return 0, err
	}
	if err := history.Register(ctx, nil, []string{listEngine}); err != nil {
		return 0, err
	}
	rare := engine.Entry{Engine: listEngine, InstanceID: rareInstance, Operation: "rotate", Status: engine.StatusSucceeded,
		CreatedAtUtc: time.Date(2025, 1, 1, 0, 0, 0, 0, time.UTC), CorrelationID: rareInstance}
	if err := history.Record(ctx, rare); err != nil {
		return 0, err
	}
	if err := fillHistory(ctx, history, rows-1, 1); err != nil {
		return 0, err
	}
	var plan faults.Plan
	page, err := engine.NewHistory(faults.Tables(store, plan.Intercept), "").List(ctx, engine.HistoryFilter{Engines: []string{listEngine}, InstanceID: rareInstance})
	if err == nil && (len(page.Entries) != 1 || page.Token != "") {
		err = fmt.Errorf("%d entries of an instance that has one", len(page.Entries))
	}
	return float64(len(plan.Calls())), err
}
