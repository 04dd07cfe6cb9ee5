package main

import (
	"context"
	"crypto/rand"
	"fmt"
	"log/slog"
	"time"

	"github.com/vibedata/roundhouse/blobs"
	"github.com/vibedata/roundhouse/orchestrator"
	"github.com/vibedata/roundhouse/tables"
)

const (
	// eternalTurns is the number of times that the orchestration continues as new.
	eternalTurns = 1000
	// eternalResult is the size of the result of each execution, in bytes: a blob holds it.
	eternalResult = 100 << 10
	eternalID     = "eternal"
)

// eternal counts the stored rows of an orchestration that has continued as new often: they must not grow.
func eternal() scenario {
	name := fmt.Sprintf("storage/eternal/%d/", eternalTurns)
	metrics := []metric{
		{name + "rows", "rows", "goal: no more than after 10 continue-as-news"},
		{name + "blobs", "blobs", "goal: no more than after 10 continue-as-news, of a result of 100 KiB each"},
	}
	return scenario{metrics, func(ctx context.Context, _ time.Duration) ([]float64, error) {
		rows, payloads, err := storedAfter(ctx, eternalTurns)
		return []float64{float64(rows), float64(payloads)}, err
	}}
}

// storedAfter runs an orchestration that continues as new so often, and counts its rows and blobs.
func storedAfter(ctx context.Context, turns int) (rows, payloads int, err error) {
	table, container := tables.NewMemory(), blobs.NewMemory()
	fetch := orchestrator.NewActivity("fetch", func(context.Context, int) ([]byte, error) {
		b := make([]byte, eternalResult)
		_, err := rand.Read(b)
		return b, err
	})
	runtime, err := orchestrator.New(orchestrator.Config{Tables: table, Blobs: container, Log: slog.New(slog.DiscardHandler), Activities: []orchestrator.AnyActivity{fetch},
		Orchestrators: []orchestrator.AnyOrchestrator{orchestrator.NewOrchestrator("eternal", func(ctx *orchestrator.Context, left int) (int, error) {
			if _, err := fetch.Call(ctx, left).Await(); err != nil || left == 0 {
				return 0, err
			}
			return 0, orchestrator.ContinueAsNew(left - 1)
		})}})
	if err == nil {
		err = runtime.Prepare(ctx)
	}
	if err != nil {
		return 0, 0, err
	}
	out, err := runtime.Run(ctx, orchestrator.Start{ID: eternalID, Orchestrator: "eternal", Input: fmt.Append(nil, turns), CorrelationID: eternalID})
	if err == nil && (out.Status != orchestrator.Completed || out.Execution != turns+1) {
		err = fmt.Errorf("it is %s in execution %d: %v", out.Status, out.Execution, out.Failure)
	}
	if err != nil {
		return 0, 0, err
	}
	for _, err := range tables.All(ctx, table, "orchestrations", tables.Query{Partition: eternalID, Select: []string{"Status"}}) {
		if rows++; err != nil {
			return 0, 0, err
		}
	}
	for _, err := range blobs.All(ctx, container, "orchestrations", "") {
		if payloads++; err != nil {
			return 0, 0, err
		}
	}
	return rows, payloads, nil
}
