package provisioning_test

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/vibedata/roundhouse/blobs"
	"github.com/vibedata/roundhouse/engine"
	"github.com/vibedata/roundhouse/engine/provisioning"
	"github.com/vibedata/roundhouse/orchestrator"
	"github.com/vibedata/roundhouse/queues"
	"github.com/vibedata/roundhouse/tables"
)

// platform is the engine on the standard's path, over stores in memory.
type platform struct {
	pipeline *engine.Pipeline
	runtime  *orchestrator.Runtime
	queues   *queues.Memory
	history  *engine.History
	letters  *engine.DeadLetters
}

func newPlatform(t *testing.T, d engine.Definition) *platform {
	t.Helper()
	store, files, log := tables.NewMemory(), blobs.NewMemory(), slog.New(slog.NewTextHandler(io.Discard, nil))
	p := &platform{queues: queues.NewMemory(), history: engine.NewHistory(store, ""), letters: engine.NewDeadLetters(store, "")}
	var err error
	p.runtime, err = orchestrator.New(orchestrator.Config{Tables: store, Blobs: files, Queues: p.queues, Log: log,
		Orchestrators: []orchestrator.AnyOrchestrator{d.Orchestrator}, Activities: append(append([]orchestrator.AnyActivity{}, d.Operations...), d.Activities...),
		Publish: func(context.Context, []orchestrator.Publication) error { return nil },
		Ended:   func(ctx context.Context, out orchestrator.Outcome) error { return p.pipeline.Ended(ctx, out) }})
	if err != nil {
		t.Fatal(err)
	}
	p.pipeline, err = engine.NewPipeline(engine.Config{Definitions: []engine.Definition{d}, Runtime: p.runtime, History: p.history,
		DeadLetters: p.letters, Queues: p.queues, Claims: engine.NewClaims(files, ""), HostMaxDequeueCount: 8, Log: log})
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(p.runtime.Prepare(t.Context()), p.pipeline.Prepare(t.Context())); err != nil {
		t.Fatal(err)
	}
	return p
}

func (p *platform) send(t *testing.T, queue, body string) {
	t.Helper()
	if _, err := p.queues.Send(t.Context(), queue, []byte(body), 0); err != nil {
		t.Fatal(err)
	}
}

// deliver hands out what is visible, as the host would, until both queues are empty or nothing moves for an hour.
func (p *platform) deliver(t *testing.T) {
	t.Helper()
	handlers := map[string]func(context.Context, engine.Delivery) error{provisioning.Queue: p.pipeline.Handle,
		p.runtime.SignalQueue(): p.pipeline.HandleSignal, p.runtime.ScheduleQueue(): p.pipeline.HandleSignal}
	for idle := 0; idle < 120; idle++ {
		for queue, handle := range handlers {
			messages, err := p.queues.Receive(t.Context(), queue, 1, 30*time.Second)
			if err != nil {
				t.Fatal(err)
			}
			for _, m := range messages {
				idle = 0
				d := engine.Delivery{Queue: queue, ID: m.ID, Body: queues.Decode(m.Text), DequeueCount: int(m.DequeueCount), InsertedAt: m.InsertedAt}
				if handle(t.Context(), d) == nil {
					if err := p.queues.Delete(t.Context(), queue, m.ID, m.PopReceipt); err != nil {
						t.Fatal(err)
					}
				}
			}
		}
		time.Sleep(30 * time.Second) // virtual
	}
}

// A webhook body as it arrives in the queue becomes rows of the history, one for each operation, and so does its
// repetition: none more.
func TestQueueToHistory(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.sells("PendingFulfillmentStart", "Subscribe", "InProgress")
		p := newPlatform(t, provisioning.Definition(w.steps(t)))
		m, _, err := provisioning.Adapt([]byte(webhook("Subscribe")))
		if err != nil {
			t.Fatal(err)
		}
		p.send(t, provisioning.Queue, webhook("Subscribe"))
		p.send(t, p.runtime.SignalQueue(), `{"signalId":"s1","workflowInstanceId":"provisioning-`+m.CorrelationID+`","runtimeProvider":"roundhouse",
			"signalType":"ExternalSignal","payload":{"event":"bootstrap-complete","data":{"status":"Succeeded"}}}`)
		p.deliver(t)
		p.send(t, provisioning.Queue, webhook("Subscribe"))
		p.deliver(t)
		entries, err := p.history.Run(t.Context(), provisioning.Engine, m.CorrelationID)
		if err != nil {
			t.Fatal(err)
		}
		var rows []string
		for _, e := range entries {
			rows = append(rows, e.Operation+" "+string(e.Status)+" "+e.InstanceID)
		}
		want := "webhook-received Succeeded " + subscription + "\ninstance-registered Succeeded " + subscription + "\nbootstrap-complete Succeeded " + subscription
		if got := strings.Join(rows, "\n"); got != want {
			t.Errorf("history:\n%s", got)
		}
		if i := w.instance(t, subscription); i.State != provisioning.StateActive || w.market.OperationStatus(operation) != "Succeeded" {
			t.Errorf("%+v, operation %s", i, w.market.OperationStatus(operation))
		}
	})
}

// What nobody can carry out ends in the dead letters, at once or after its attempts, with its body as it arrived.
func TestQueueToDeadLetter(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		body, reason string
		attempts     int
	}{
		"unknown action": {strings.Replace(webhook("Renew"), "Renew", "Transfer", 1), "is not known", 1},
		"forged":         {webhook("Unsubscribe"), "the marketplace says otherwise", 1},
		"never there":    {strings.Replace(webhook("Renew"), operation, subscription, 2), "not found", 5},
		"no notice":      {`{"correlationId":"c","input":{"hello":"world"}}`, "not a notice", 1},
		"a stray blob":   {`{"correlationId":"c","blob":"provisioning/other/00"}`, "the input of the message cannot be had", 1},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t)
				w.sells("Subscribed", "Renew", "Succeeded")
				p := newPlatform(t, provisioning.Definition(w.steps(t)))
				p.send(t, provisioning.Queue, tt.body)
				p.deliver(t)
				page, err := p.letters.List(t.Context(), engine.DeadLetterFilter{Engines: []string{provisioning.Engine}, Limit: 10})
				if err != nil || len(page.DeadLetters) != 1 {
					t.Fatalf("%+v, %v", page.DeadLetters, err)
				}
				d, err := p.letters.Get(t.Context(), provisioning.Engine, page.DeadLetters[0].RowKey)
				if err != nil || !strings.Contains(d.ErrorMessage, tt.reason) || d.DequeueCount != tt.attempts || string(d.OriginalMessage) != tt.body {
					t.Errorf("%+v, %v", d, err)
				}
			})
		})
	}
}
