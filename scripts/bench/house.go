package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/vibedata/roundhouse/blobs"
	"github.com/vibedata/roundhouse/engine"
	"github.com/vibedata/roundhouse/internal/faults"
	"github.com/vibedata/roundhouse/orchestrator"
	"github.com/vibedata/roundhouse/queues"
	"github.com/vibedata/roundhouse/tables"
)

const (
	engineName  = "bench"
	engineQueue = "bench-queue"
)

// plan is the input of the engine: n activities, in a "sequence", in one of "local" ones, or in a "fanout".
type plan struct {
	Shape string `json:"shape"`
	N     int    `json:"n"`
}

// house is the whole path of an engine message over storage in memory. Every delivery gets a new process, so nothing is
// warm.
type house struct {
	tables *tables.Memory
	blobs  *blobs.Memory
	queues *queues.Memory
	worked atomic.Int64 // activities that have run
}

// newHouse creates everything that a deployment finds.
func newHouse(ctx context.Context) (*house, error) {
	h := &house{tables: tables.NewMemory(), blobs: blobs.NewMemory(), queues: queues.NewMemory()}
	runtime, pipeline, err := h.process(&faults.Plan{})
	if err != nil {
		return nil, err
	}
	return h, errors.Join(runtime.Prepare(ctx), pipeline.Prepare(ctx))
}

// process returns the engine in a process of its own, whose storage calls count counts.
func (h *house) process(count *faults.Plan) (*orchestrator.Runtime, *engine.Pipeline, error) {
	store, log, d := faults.Tables(h.tables, count.Intercept), slog.New(slog.DiscardHandler), h.definition()
	runtime, err := orchestrator.New(orchestrator.Config{Tables: store, Blobs: faults.Blobs(h.blobs, count.Intercept), Log: log,
		Orchestrators: []orchestrator.AnyOrchestrator{d.Orchestrator}, Activities: append(d.Operations, d.Activities...)})
	if err != nil {
		return nil, nil, err
	}
	pipeline, err := engine.NewPipeline(engine.Config{Definitions: []engine.Definition{d}, Runtime: runtime, Log: log,
		History: engine.NewHistory(store, ""), DeadLetters: engine.NewDeadLetters(store, ""), Queues: faults.Queues(h.queues, count.Intercept)})
	return runtime, pipeline, err
}

// definition returns an engine that carries out a plan. Its first activity is an operation, which the history shows:
// engines have a few of those, for any number of activities.
func (h *house) definition() engine.Definition {
	work := func(_ context.Context, n int) (int, error) { h.worked.Add(1); return n + 1, nil }
	operation, step := orchestrator.NewActivity("operation", work), orchestrator.NewActivity("step", work)
	local := orchestrator.NewActivity("local", work, orchestrator.WithLocal())
	activity := func(i int) *orchestrator.Activity[int, int] {
		if i == 0 {
			return operation
		}
		return step
	}
	return engine.Definition{
		Name:       engineName,
		Queue:      engineQueue,
		Operations: []orchestrator.AnyActivity{operation},
		Activities: []orchestrator.AnyActivity{step, local},
		Orchestrator: engine.Orchestrate(engineName, func(ctx *orchestrator.Context, r engine.Request[plan]) (int, error) {
			if r.Input.Shape == "fanout" {
				return fanOut(ctx, r.Input.N, activity)
			}
			if r.Input.Shape == "local" {
				return sequence(ctx, r.Input.N, func(int) *orchestrator.Activity[int, int] { return local })
			}
			return sequence(ctx, r.Input.N, activity)
		}),
	}
}

// deliver sends a message, delivers it as the host does and returns the number of storage transactions from the
// host's get to its delete. Messages with one plan are one message: the second is a duplicate.
func (h *house) deliver(ctx context.Context, p plan) (int, error) {
	calls, err := h.calls(ctx, p)
	return len(calls), err
}

// calls is deliver, and returns the transactions.
func (h *house) calls(ctx context.Context, p plan) ([]faults.Call, error) {
	if err := h.send(ctx, p); err != nil {
		return nil, err
	}
	count := &faults.Plan{}
	_, pipeline, err := h.process(count)
	if err != nil {
		return nil, err
	}
	queue := faults.Queues(h.queues, count.Intercept)
	received, err := queue.Receive(ctx, engineQueue, 1, time.Minute)
	if err != nil {
		return nil, err
	}
	if len(received) != 1 {
		return nil, fmt.Errorf("%d messages were received from %s", len(received), engineQueue)
	}
	m := received[0]
	err = pipeline.Handle(ctx, engine.Delivery{Queue: engineQueue, ID: m.ID, Body: queues.Decode(m.Text),
		DequeueCount: int(m.DequeueCount), InsertedAt: m.InsertedAt})
	if err != nil {
		return nil, fmt.Errorf("handle the message: %w", err)
	}
	if pipeline.Count(engine.Succeeded)+pipeline.Count(engine.Duplicate) != 1 {
		return nil, errors.New("the message neither succeeded nor was a duplicate")
	}
	err = queue.Delete(ctx, engineQueue, m.ID, m.PopReceipt)
	return count.Calls(), err
}

// send sends a plan to the engine's queue.
func (h *house) send(ctx context.Context, p plan) error {
	input, err := json.Marshal(p)
	if err != nil {
		return err
	}
	body, err := json.Marshal(engine.Message{CorrelationID: fmt.Sprintf("%s-%d", p.Shape, p.N), Engine: engineName, Input: input})
	if err != nil {
		return err
	}
	_, err = h.queues.Send(ctx, engineQueue, body, 0)
	return err
}
