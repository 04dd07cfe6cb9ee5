package alerts_test

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/vibedata/roundhouse/blobs"
	"github.com/vibedata/roundhouse/engine"
	"github.com/vibedata/roundhouse/engine/alerts"
	"github.com/vibedata/roundhouse/internal/faults"
	"github.com/vibedata/roundhouse/orchestrator"
	"github.com/vibedata/roundhouse/orchestrator/orchestratortest"
	"github.com/vibedata/roundhouse/queues"
	"github.com/vibedata/roundhouse/tables"
)

func definition(t *testing.T) engine.Definition {
	t.Helper()
	steps, err := alerts.New(alerts.Config{Rules: []alerts.Rule{{Name: "page", Event: "alert.page", TenantID: "ops"}, {Name: "note", Event: "alert.note"}}})
	if err != nil {
		t.Fatal(err)
	}
	return alerts.Definition(steps)
}

func scenario(t *testing.T) orchestratortest.Scenario[engine.Message, alerts.ProcessOutput] {
	t.Helper()
	d := definition(t)
	m, _, err := d.Adapt([]byte(common("Fired")))
	if err != nil {
		t.Fatal(err)
	}
	return orchestratortest.Scenario[engine.Message, alerts.ProcessOutput]{Orchestrator: d.Orchestrator, Activities: d.Operations, Input: m,
		Check: func(t *testing.T, r orchestratortest.Result[alerts.ProcessOutput]) {
			var told []string
			for _, p := range r.Published {
				told = append(told, p.TenantID+" "+p.Type)
				if strings.Contains(string(p.Payload), "in-the-context") || !strings.Contains(string(p.Payload), alertID) {
					t.Errorf("payload %s", p.Payload)
				}
			}
			if diff := cmp.Diff([]string{"ops alert.page", "publisher alert.note"}, told); r.Err != nil || diff != "" {
				t.Errorf("%v (-want +got):\n%s", r.Err, diff)
			}
		}}
}

// The engine decides as it did when the golden history was written.
func TestGolden(t *testing.T) {
	t.Parallel()
	orchestratortest.Golden(t, "testdata/golden.json", scenario(t))
}

// Whatever crashes in the runtime, each event is told once.
func TestCrashesEverywhere(t *testing.T) {
	t.Parallel()
	orchestratortest.CrashEverywhere(t, scenario)
}

// platform is the engine on the standard's path, over stores in memory that outlive it.
type platform struct {
	pipeline *engine.Pipeline
	tables   *tables.Memory
	blobs    *blobs.Memory
	queues   *queues.Memory
	claims   *engine.Claims
	told     []orchestrator.Publication
}

func newPlatform(t *testing.T, intercept faults.Interceptor) *platform {
	t.Helper()
	d, log := definition(t), slog.New(slog.NewTextHandler(io.Discard, nil))
	p := &platform{tables: tables.NewMemory(), blobs: blobs.NewMemory(), queues: queues.NewMemory()}
	p.claims = engine.NewClaims(faults.Blobs(p.blobs, intercept), "")
	rt, err := orchestrator.New(orchestrator.Config{Tables: p.tables, Blobs: p.blobs, Queues: p.queues, Log: log,
		Orchestrators: []orchestrator.AnyOrchestrator{d.Orchestrator}, Activities: d.Operations,
		Publish: func(_ context.Context, events []orchestrator.Publication) error {
			p.told = append(p.told, events...)
			return nil
		}})
	if err != nil {
		t.Fatal(err)
	}
	p.pipeline, err = engine.NewPipeline(engine.Config{Definitions: []engine.Definition{d}, Runtime: rt, History: engine.NewHistory(p.tables, ""),
		DeadLetters: engine.NewDeadLetters(p.tables, ""), Queues: p.queues, Claims: p.claims, Log: log})
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(rt.Prepare(t.Context()), p.pipeline.Prepare(t.Context())); err != nil {
		t.Fatal(err)
	}
	return p
}

// deliver is the body's only delivery, or the last of several.
func (p *platform) deliver(t *testing.T, body string, count int) error {
	t.Helper()
	return p.pipeline.Handle(t.Context(), engine.Delivery{Queue: alerts.Queue, ID: "3f0c0a68-2f3d-4d0e-9a55-0f4f3c1a7b11", Body: []byte(body), DequeueCount: count})
}

func through(ctx context.Context, _ faults.Call, next func(context.Context) error) error {
	return next(ctx)
}

// An alert as it arrives in the queue becomes a row of the history, its repetition none.
func TestQueueToHistory(t *testing.T) {
	t.Parallel()
	p := newPlatform(t, through)
	for range 2 {
		if err := p.deliver(t, common("Fired"), 1); err != nil {
			t.Fatal(err)
		}
	}
	m, _, err := alerts.Adapt([]byte(common("Fired")))
	if err != nil {
		t.Fatal(err)
	}
	entries, err := engine.NewHistory(p.tables, "").Run(t.Context(), alerts.Engine, m.CorrelationID)
	if err != nil || len(entries) != 1 || entries[0].Operation != alerts.OperationProcess || entries[0].RunStatus != engine.StatusSucceeded {
		t.Errorf("%+v, %v", entries, err)
	}
	if len(p.told) != 2 {
		t.Errorf("told %v", p.told)
	}
}

// An alert that fits no message runs from its blob, once the blob can be read.
func TestLargeAlert(t *testing.T) {
	t.Parallel()
	broken := true
	p := newPlatform(t, func(ctx context.Context, c faults.Call, next func(context.Context) error) error {
		if broken && c.Operation == "Get" {
			return blobs.ErrThrottled
		}
		return next(ctx)
	})
	m, _, err := alerts.Adapt([]byte(strings.Replace(common("Fired"), `"a":"b"`, `"a":"`+strings.Repeat("b", 200<<10)+`"`, 1)))
	if err != nil {
		t.Fatal(err)
	}
	body, err := p.claims.Pack(t.Context(), m)
	if err != nil || len(body) > engine.MaxMessage {
		t.Fatalf("%d bytes, %v", len(body), err)
	}
	if err := p.deliver(t, string(body), 1); !errors.Is(err, blobs.ErrThrottled) {
		t.Errorf("without the blob: %v", err)
	}
	broken = false
	if err := p.deliver(t, string(body), 2); err != nil || p.pipeline.Count(engine.Succeeded) != 1 || len(p.told) != 2 {
		t.Errorf("%v, %d succeeded, told %v", err, p.pipeline.Count(engine.Succeeded), p.told)
	}
}

// What is no alert is a dead letter, with its body as it arrived.
func TestQueueToDeadLetter(t *testing.T) {
	t.Parallel()
	for _, body := range []string{common("Closed"), `{"input":{"schemaId":"x"}}`, `{"operation":"rotate"}`, `{}`, `not JSON`} {
		p := newPlatform(t, through)
		if err := p.deliver(t, body, 1); err != nil {
			t.Fatal(err)
		}
		letters := engine.NewDeadLetters(p.tables, "")
		page, err := letters.List(t.Context(), engine.DeadLetterFilter{Engines: []string{alerts.Engine}, Limit: 10})
		if err != nil || len(page.DeadLetters) != 1 {
			t.Fatalf("%s: %+v, %v", body, page.DeadLetters, err)
		}
		d, err := letters.Get(t.Context(), alerts.Engine, page.DeadLetters[0].RowKey)
		if err != nil || string(d.OriginalMessage) != body || p.pipeline.Count(engine.DeadLettered) != 1 {
			t.Errorf("%s: %+v, %v", body, d, err)
		}
	}
}
