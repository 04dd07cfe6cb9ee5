package acceptance

import (
	"context"
	"errors"
	"log/slog"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/vibedata/roundhouse/azure"
	"github.com/vibedata/roundhouse/engine"
	"github.com/vibedata/roundhouse/engine/consumers"
	"github.com/vibedata/roundhouse/engine/hmac"
	"github.com/vibedata/roundhouse/internal/faults"
	"github.com/vibedata/roundhouse/internal/localhost"
	"github.com/vibedata/roundhouse/internal/testenv"
	"github.com/vibedata/roundhouse/orchestrator"
	"github.com/vibedata/roundhouse/services/secrets"
)

// deserted is a queue without a consumer.
const deserted = "orchestration-deserted"

// A run waits for the next attempt of an activity, and its wake-up message is gone. The sweeper finds it, and the
// handler finishes it.
func (p *platform) testSweep(t *testing.T) {
	id := uuid.NewString()
	p.parkElsewhere(t, id, "instance-swept")
	if entries, err := engine.NewHistory(p.tables, "").Run(t.Context(), hmac.Engine, id); err != nil || len(entries) != 0 {
		t.Fatalf("the run has ended before it was swept: %v %v", entries, err)
	}
	const function = "orchestration-sweep-timer"
	p.fire(t, function)
	p.succeeded(t, id, "instance-swept")
	p.drained(t, signalQueue)
	if n := p.seen(func(i localhost.Invocation) bool { return i.Function == function && i.Err != nil }); n != 0 {
		t.Errorf("%d runs of the sweeper failed", n)
	}
}

// nobody is the publisher of a parked run that never publishes.
type nobody struct{}

func (nobody) Publish(context.Context, hmac.Event) (string, error) {
	return "", errors.New("the run was not to come so far")
}

// ID implements hmac.Publisher.
func (nobody) ID(hmac.Event) string { return "" }

// Arrived implements hmac.Arrivals.
func (nobody) Arrived(context.Context, consumers.Question) (*consumers.Waiting, error) {
	return nil, errors.New("the run was not to come so far")
}

// Settled implements hmac.Arrivals.
func (nobody) Settled(context.Context, string) error {
	return errors.New("the run was not to come so far")
}

// parkElsewhere starts a run in its own process, an hour ago, while the vault was unavailable. Its wake-up message goes
// to a queue without a consumer.
func (p *platform) parkElsewhere(t *testing.T, id, instance string) {
	t.Helper()
	ago := func() time.Time { return time.Now().Add(-time.Hour) }
	away := &faults.Plan{Refuse: func(faults.Call) bool { return true }}
	steps, err1 := hmac.New(hmac.Config{Vault: secrets.NewDevelopment(faults.Tables(p.tables, away.Intercept)), Tables: p.tables, Publisher: nobody{}, Arrivals: nobody{}})
	payloads, err2 := azure.NewBlobs(p.account)
	testenv.OK(t, errors.Join(err1, err2, p.queues.CreateQueue(t.Context(), deserted)))
	log, definition := slog.New(slog.DiscardHandler), hmac.Definition(steps)
	rt, err := orchestrator.New(orchestrator.Config{Tables: p.tables, Blobs: payloads, Queues: p.queues, ScheduleQueue: deserted,
		InlineWait: time.Nanosecond, Now: ago, Log: log, Activities: append(definition.Operations, definition.Activities...),
		Orchestrators: []orchestrator.AnyOrchestrator{definition.Orchestrator}})
	if err != nil {
		t.Fatal(err)
	}
	pipeline, err := engine.NewPipeline(engine.Config{Definitions: []engine.Definition{definition}, Runtime: rt, Queues: p.queues, Now: ago, Log: log,
		History: engine.NewHistory(p.tables, ""), DeadLetters: engine.NewDeadLetters(p.tables, "")})
	if err != nil {
		t.Fatal(err)
	}
	d := engine.Delivery{Queue: hmac.Queue, ID: uuid.NewString(), Body: []byte(rotation(id, instance)), DequeueCount: 1, InsertedAt: ago()}
	if err := pipeline.Handle(testenv.Context(t), d); err != nil || pipeline.Count(engine.Parked) != 1 {
		t.Fatalf("the run was not parked: %v", err)
	}
	if n, err := p.queues.Length(t.Context(), deserted); err != nil || n != 1 || !p.empty(t, hmac.Queue) {
		t.Fatalf("%d messages to wake the run, %v", n, err)
	}
}
