package main

import (
	"context"
	"fmt"
	"time"

	"github.com/vibedata/roundhouse/engine"
	"github.com/vibedata/roundhouse/internal/faults"
	"github.com/vibedata/roundhouse/tables"
)

const (
	// manyLetters is the number of dead letters in the longer table: each is a transaction of its own.
	manyLetters = 20_000
	// letterCauses is the number of their causes.
	letterCauses = 20
)

// deadLetterGroups counts the queries of the groups of pending dead letters.
func deadLetterGroups() scenario {
	metrics := []metric{
		{fmt.Sprintf("list/groups/%d", fewRows), "queries", "budget 2: the counts, and the newest dead letters for the samples"},
		{fmt.Sprintf("list/groups/%d", manyLetters), "queries", "budget 2: the same"},
	}
	return scenario{metrics, func(ctx context.Context, _ time.Duration) ([]float64, error) {
		var out []float64
		for _, rows := range []int{fewRows, manyLetters} {
			queries, err := queriesOfGroups(ctx, rows)
			if err != nil {
				return nil, err
			}
			out = append(out, queries)
		}
		return out, nil
	}}
}

func queriesOfGroups(ctx context.Context, rows int) (float64, error) {
	store := tables.NewMemory()
	letters := engine.NewDeadLetters(store, "")
	if err := letters.CreateTable(ctx); err != nil {
		return 0, err
	}
	began := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	for i := range rows {
		_, err := letters.Add(ctx, engine.DeadLetter{
			Engine: listEngine, MessageID: fmt.Sprintf("message-%d", i), CorrelationID: fmt.Sprintf("run-%d", i), InstanceID: fmt.Sprintf("instance-%d", i%100),
			ErrorSignature: fmt.Sprintf("cause-%d", i%letterCauses), ErrorMessage: "it failed", LastFailureAtUtc: began.Add(time.Duration(i) * time.Second),
		})
		if err != nil {
			return 0, err
		}
	}
	var plan faults.Plan
	found, err := engine.NewDeadLetters(faults.Tables(store, plan.Intercept), "").Groups(ctx,
		engine.DeadLetterFilter{Engines: []string{listEngine}, Status: engine.StatusPending})
	if err == nil && (len(found.Groups) != letterCauses || found.Examined != rows || !found.Complete) {
		err = fmt.Errorf("%d groups of %d dead letters, want %d of all %d", len(found.Groups), found.Examined, letterCauses, rows)
	}
	return float64(len(plan.Calls())), err
}
