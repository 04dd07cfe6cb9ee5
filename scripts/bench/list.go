package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/vibedata/roundhouse/azure"
	"github.com/vibedata/roundhouse/engine"
	"github.com/vibedata/roundhouse/internal/azurite"
	"github.com/vibedata/roundhouse/internal/faults"
	"github.com/vibedata/roundhouse/tables"
)

const (
	// fewRows and manyRows are the compared sizes of history.
	fewRows  = 100
	manyRows = 100_000
	// azuriteRows is the longer one over Azurite.
	azuriteRows = 2_000
	// rowsPerRun fills the largest transaction that the history makes.
	rowsPerRun = 33
	// listSamples is the minimum number of samples of each list.
	listSamples = 10
	listEngine  = "hmac"
	// fillConcurrency is low because Azurite takes long over a transaction of a hundred rows.
	fillConcurrency = 2
)

// lists counts the cost of a list page in storage transactions, for any length of the history.
func lists() scenario {
	metrics := []metric{
		{fmt.Sprintf("tx/list/%d", fewRows), "transactions", "budget 3: one query for each of what succeeded, what failed, and what failed and was made good"},
		{fmt.Sprintf("tx/list/%d", manyRows), "transactions", "budget 3: the same"},
	}
	return scenario{metrics, func(ctx context.Context, _ time.Duration) ([]float64, error) {
		var out []float64
		for _, rows := range []int{fewRows, manyRows} {
			var plan faults.Plan
			store := tables.NewMemory()
			if err := fillHistory(ctx, engine.NewHistory(store, ""), rows, 1); err != nil {
				return nil, err
			}
			if err := listPage(ctx, engine.NewHistory(faults.Tables(store, plan.Intercept), "")); err != nil {
				return nil, err
			}
			out = append(out, float64(len(plan.Calls())))
		}
		return out, nil
	}}
}

// listsInMemory measures how much longer a page of a long history takes than one of a short.
func listsInMemory() scenario {
	metrics := []metric{{"memory/list/ratio", "ratio", "goal 1.3 or less: the time of a page of 100,000 rows, divided by that of a page of 100"}}
	return scenario{metrics, func(ctx context.Context, d time.Duration) ([]float64, error) {
		store := tables.NewMemory()
		few, many := engine.NewHistory(store, "few"), engine.NewHistory(store, "many")
		if err := errors.Join(fillHistory(ctx, few, fewRows, 1), fillHistory(ctx, many, manyRows, 1)); err != nil {
			return nil, err
		}
		times, err := inTurns(ctx, d, pageOf(few), pageOf(many))
		if err != nil {
			return nil, err
		}
		return []float64{times[1] / times[0]}, nil
	}}
}

// listsOverAzurite measures how much longer a page of a longer history takes, next to the bare queries of the page:
// Azurite reads all rows of a table for every query, for any range, so these take longer, too. It also searches a
// partition for every row that it writes, so the longer history is no longer than this.
func listsOverAzurite() scenario {
	metrics := []metric{{"azurite/list/ratio", "ratio", "goal 1.3 or less: by what a page grows from 100 to 2,000 rows, divided by what its bare queries do"}}
	return scenario{metrics, func(ctx context.Context, d time.Duration) (values []float64, err error) {
		startCtx, cancel := context.WithTimeout(ctx, azuriteStart)
		defer cancel()
		server, err := azurite.Start(startCtx, azurite.Config{})
		if err != nil {
			return nil, err
		}
		defer func() { err = errors.Join(err, server.Close()) }()
		store, err := azure.NewTables(server.Account())
		if err != nil {
			return nil, err
		}
		few, many := engine.NewHistory(store, "few"), engine.NewHistory(store, "many")
		if err := errors.Join(fillHistory(ctx, few, fewRows, fillConcurrency), fillHistory(ctx, many, azuriteRows, fillConcurrency)); err != nil {
			return nil, err
		}
		t, err := inTurns(ctx, d, pageOf(few), pageOf(many), bareQueries(store, "few"), bareQueries(store, "many"))
		if err != nil {
			return nil, err
		}
		return []float64{(t[1] / t[0]) / (t[3] / t[2])}, nil
	}}
}

// inTurns times works in turns, because a slow machine has to affect all of them, and returns the median of each.
func inTurns(ctx context.Context, d time.Duration, works ...func(context.Context) error) ([]float64, error) {
	measured, err := repeat(ctx, d, func(ctx context.Context, slice time.Duration) ([]float64, error) {
		samples := make([][]float64, len(works))
		for began := time.Now(); len(samples[0]) < listSamples || time.Since(began) < slice; {
			for i, work := range works {
				began := time.Now()
				if err := work(ctx); err != nil {
					return nil, err
				}
				samples[i] = append(samples[i], float64(time.Since(began).Nanoseconds()))
			}
		}
		medians := make([]float64, len(works))
		for i := range works {
			medians[i] = median(samples[i : i+1])
		}
		return medians, nil
	})
	if err != nil {
		return nil, err
	}
	out := make([]float64, len(works))
	for i := range works {
		out[i] = median(column(measured, i))
	}
	return out, nil
}

// bareQueries returns the queries of a page, by the documented keys of the history: one for each list, in parallel.
func bareQueries(store tables.Store, table string) func(context.Context) error {
	return func(ctx context.Context) error {
		group, ctx := errgroup.WithContext(ctx)
		for _, prefix := range []string{"~S-", "~F-", "~O-"} {
			group.Go(func() error {
				_, err := store.Query(ctx, table, tables.Query{Partition: listEngine, From: prefix, To: tables.PrefixEnd(prefix), Limit: engine.DefaultLimit + 1})
				return err
			})
		}
		return group.Wait()
	}
}

func pageOf(h *engine.History) func(context.Context) error {
	return func(ctx context.Context) error { return listPage(ctx, h) }
}

// listPage reads the newest page, which both histories have in full.
func listPage(ctx context.Context, h *engine.History) error {
	page, err := h.List(ctx, engine.HistoryFilter{Engines: []string{listEngine}})
	if err == nil && len(page.Entries) != engine.DefaultLimit {
		err = fmt.Errorf("a page has %d entries, want %d", len(page.Entries), engine.DefaultLimit)
	}
	return err
}

// fillHistory records so many entries, of which every tenth failed, some runs at the same time.
func fillHistory(ctx context.Context, h *engine.History, rows, concurrent int) error {
	if err := h.CreateTable(ctx); err != nil {
		return err
	}
	began := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(concurrent)
	for first := 0; first < rows; first += rowsPerRun {
		group.Go(func() error {
			entries := make([]engine.Entry, min(rowsPerRun, rows-first))
			for i := range entries {
				n := first + i
				entries[i] = engine.Entry{
					Engine: listEngine, InstanceID: fmt.Sprintf("instance-%d", n%100), Operation: "rotate", Status: engine.StatusSucceeded,
					CreatedAtUtc: began.Add(time.Duration(n) * time.Second), CorrelationID: fmt.Sprintf("run-%d", first/rowsPerRun),
				}
				if n%10 == 0 {
					entries[i].Status = engine.StatusFailed
				}
			}
			return h.Record(ctx, entries...)
		})
	}
	return group.Wait()
}
