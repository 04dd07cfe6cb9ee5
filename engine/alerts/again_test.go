package alerts_test

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"testing"

	"github.com/vibedata/roundhouse/blobs"
	"github.com/vibedata/roundhouse/engine"
	"github.com/vibedata/roundhouse/engine/alerts"
	"github.com/vibedata/roundhouse/orchestrator"
	"github.com/vibedata/roundhouse/queues"
	"github.com/vibedata/roundhouse/tables"
)

// An alert that could not be told, because nobody took events, is told by the next attempt, by the rules of then.
func TestTheNextAttemptGoesByTheRulesOfThen(t *testing.T) {
	t.Parallel()
	store, payloads, messages := tables.NewMemory(), blobs.NewMemory(), queues.NewMemory()
	var told []string
	process := func(event string, publish func(context.Context, []orchestrator.Publication) error) *engine.Pipeline {
		t.Helper()
		steps, err := alerts.New(alerts.Config{Rules: []alerts.Rule{{Name: "page", Event: event}}})
		if err != nil {
			t.Fatal(err)
		}
		d, log := alerts.Definition(steps), slog.New(slog.NewTextHandler(io.Discard, nil))
		rt, err := orchestrator.New(orchestrator.Config{Tables: store, Blobs: payloads, Queues: messages, Log: log, Publish: publish,
			Orchestrators: []orchestrator.AnyOrchestrator{d.Orchestrator}, Activities: d.Operations})
		if err != nil {
			t.Fatal(err)
		}
		p, err := engine.NewPipeline(engine.Config{Definitions: []engine.Definition{d}, Runtime: rt, History: engine.NewHistory(store, ""),
			DeadLetters: engine.NewDeadLetters(store, ""), Queues: messages, Log: log})
		if err := errors.Join(err, rt.Prepare(t.Context()), p.Prepare(t.Context())); err != nil {
			t.Fatal(err)
		}
		return p
	}
	d := engine.Delivery{Queue: alerts.Queue, ID: "3f0c0a68-2f3d-4d0e-9a55-0f4f3c1a7b11", Body: []byte(common("Fired")), DequeueCount: 1}
	if err := process("alert.page", nil).Handle(t.Context(), d); err != nil { // it is a dead letter at once
		t.Fatal(err)
	}
	d.ID = "4f0c0a68-2f3d-4d0e-9a55-0f4f3c1a7b11" // and is sent again
	err := process("alert.call", func(_ context.Context, events []orchestrator.Publication) error {
		for _, e := range events {
			told = append(told, e.Type)
		}
		return nil
	}).Handle(t.Context(), d)
	if err != nil || len(told) != 1 || told[0] != "alert.call" {
		t.Errorf("told %v, %v", told, err)
	}
}
