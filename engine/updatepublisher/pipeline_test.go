package updatepublisher_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/vibedata/roundhouse/blobs"
	"github.com/vibedata/roundhouse/engine"
	"github.com/vibedata/roundhouse/engine/updatepublisher"
	"github.com/vibedata/roundhouse/orchestrator"
	"github.com/vibedata/roundhouse/queues"
)

// platform is the engine on the standard's path, over stores in memory.
type platform struct {
	*publisher
	queues   *queues.Memory
	pipeline *engine.Pipeline
	told     map[string]orchestrator.Publication // by tenant and key, as the outbox keeps them
}

func newPlatform(t *testing.T) *platform {
	t.Helper()
	p := newPublisher(t)
	return newPlatformOver(t, p, p.steps(t))
}

// newPlatformOver is one whose process has the steps.
func newPlatformOver(t *testing.T, over *publisher, steps *updatepublisher.Steps) *platform {
	t.Helper()
	p := &platform{publisher: over, queues: queues.NewMemory(), told: map[string]orchestrator.Publication{}}
	d, log := updatepublisher.Definition(steps), slog.New(slog.DiscardHandler)
	rt, err := orchestrator.New(orchestrator.Config{Tables: p.tables, Blobs: blobs.NewMemory(), Queues: p.queues, Log: log,
		Orchestrators: []orchestrator.AnyOrchestrator{d.Orchestrator}, Activities: append(d.Operations, d.Activities...),
		Publish: func(_ context.Context, events []orchestrator.Publication) error {
			for _, e := range events {
				p.told[e.TenantID+" "+e.Key] = e
			}
			return nil
		}})
	if err != nil {
		t.Fatal(err)
	}
	p.pipeline, err = engine.NewPipeline(engine.Config{Definitions: []engine.Definition{d}, Runtime: rt, Log: log,
		History: engine.NewHistory(p.tables, ""), DeadLetters: engine.NewDeadLetters(p.tables, ""), Queues: p.queues})
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(rt.Prepare(t.Context()), p.pipeline.Prepare(t.Context())); err != nil {
		t.Fatal(err)
	}
	return p
}

// host delivers what is in the queue once.
func (p *platform) host(t *testing.T) {
	t.Helper()
	for {
		messages, err := p.queues.Receive(t.Context(), updatepublisher.Queue, 32, time.Hour)
		if err != nil {
			t.Fatal(err)
		}
		if len(messages) == 0 {
			return
		}
		for _, m := range messages {
			if err := p.pipeline.Handle(t.Context(), engine.Delivery{Queue: updatepublisher.Queue, ID: m.ID, Body: queues.Decode(m.Text),
				DequeueCount: int(m.DequeueCount), InsertedAt: m.InsertedAt}); err != nil {
				t.Fatal(err)
			}
			if err := p.queues.Delete(t.Context(), updatepublisher.Queue, m.ID, m.PopReceipt); err != nil {
				t.Fatal(err)
			}
		}
	}
}

func (p *platform) history(t *testing.T) map[string]int {
	t.Helper()
	page, err := engine.NewHistory(p.tables, "").List(t.Context(), engine.HistoryFilter{Engines: []string{updatepublisher.Engine}, Limit: 100})
	if err != nil {
		t.Fatal(err)
	}
	rows := map[string]int{}
	for _, e := range page.Entries {
		rows[fmt.Sprintf("%s %s %s", e.InstanceID, e.Operation, e.Status)]++
	}
	return rows
}

// A slot is evaluated once, however often the timer fires; the next one tells nobody anything that it knows already,
// unless somebody asks for it.
func TestFromTimerToHistory(t *testing.T) {
	t.Parallel()
	p := newPlatform(t)
	p.fill(t)
	slot := time.Date(2026, 1, 1, 12, 23, 0, 0, time.UTC)
	tick := func(slot time.Time) {
		t.Helper()
		if _, err := updatepublisher.Every("0 23 * * * *").Send(t.Context(), engine.Definition{Name: updatepublisher.Engine, Queue: updatepublisher.Queue}, p.queues, slot); err != nil {
			t.Fatal(err)
		}
		p.host(t)
	}
	tick(slot)
	tick(slot.In(time.FixedZone("elsewhere", 3600)))
	// Three pages, of which the third has nobody to tell.
	want := map[string]int{"publisher evaluate Succeeded": 3, "publisher notify Succeeded": 2}
	if diff := cmp.Diff(want, p.history(t)); diff != "" || len(p.told) != 4 {
		t.Errorf("%d events, history (-want +got):\n%s", len(p.told), diff)
	}
	tick(slot.Add(time.Hour))
	if rows := p.history(t); rows["publisher evaluate Succeeded"] != 6 || len(p.told) != 4 {
		t.Errorf("%d events, history %v", len(p.told), rows)
	}
	if _, err := p.queues.Send(t.Context(), updatepublisher.Queue, []byte(`{"correlationId":"again","operation":"notify","instanceId":"new"}`), 0); err != nil {
		t.Fatal(err)
	}
	p.host(t)
	if rows := p.history(t); rows["new notify Succeeded"] != 1 || len(p.told) != 5 {
		t.Errorf("%d events, history %v", len(p.told), rows)
	}
}

// Many instances are told, page by page.
func TestManyInstances(t *testing.T) {
	t.Parallel()
	p := newPlatform(t)
	for n := range 50 {
		p.add(t, fmt.Sprintf("i%03d", n), "t", nil)
	}
	if _, err := updatepublisher.Every("0 23 * * * *").Send(t.Context(), engine.Definition{Name: updatepublisher.Engine, Queue: updatepublisher.Queue}, p.queues, time.Unix(0, 0)); err != nil {
		t.Fatal(err)
	}
	p.host(t)
	if len(p.told) != 50 {
		t.Errorf("%d events", len(p.told))
	}
}

func TestFromMessageToDeadLetter(t *testing.T) {
	t.Parallel()
	p := newPlatform(t)
	if _, err := p.queues.Send(t.Context(), updatepublisher.Queue, []byte(`{"correlationId":"c1","operation":"notify"}`), 0); err != nil {
		t.Fatal(err)
	}
	p.host(t)
	page, err := engine.NewDeadLetters(p.tables, "").List(t.Context(), engine.DeadLetterFilter{Engines: []string{updatepublisher.Engine}})
	if err != nil || len(page.DeadLetters) != 1 {
		t.Fatalf("%+v, %v", page, err)
	}
	if d := page.DeadLetters[0]; !strings.Contains(d.ErrorMessage, updatepublisher.ErrInput.Error()) || d.OriginalQueue != updatepublisher.Queue || d.CorrelationID != "c1" {
		t.Errorf("%+v", d)
	}
	if rows := p.history(t); rows["publisher notify Failed"] != 1 || len(p.told) != 0 {
		t.Errorf("history %v", rows)
	}
}
