package health_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/vibedata/roundhouse/blobs"
	"github.com/vibedata/roundhouse/engine"
	"github.com/vibedata/roundhouse/engine/health"
	"github.com/vibedata/roundhouse/engine/health/healthtest"
	"github.com/vibedata/roundhouse/engine/release"
	"github.com/vibedata/roundhouse/internal/faults"
	"github.com/vibedata/roundhouse/orchestrator"
	"github.com/vibedata/roundhouse/queues"
)

// plant is a site with everything that the engine runs on.
type plant struct {
	*site
	queues   *queues.Memory
	pipeline *engine.Pipeline
	letters  *engine.DeadLetters
	schedule engine.Schedule

	mu    sync.Mutex
	told  map[string]bool // keys of events
	tells []string        // statuses that were published, in order
}

// publish takes what the engine publishes, as the outbox does: an event that was there before is no other.
func (p *plant) publish(_ context.Context, events []orchestrator.Publication) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, e := range events {
		var h release.Health
		if err := json.Unmarshal(e.Payload, &h); err != nil || e.Type != release.EventHealth || e.OrderKey == "" {
			return fmt.Errorf("event %+v: %w", e, err)
		}
		if !p.told[e.Key] {
			p.told[e.Key], p.tells = true, append(p.tells, h.Status)
		}
	}
	return nil
}

const visibility = 30 * time.Second

func newPlant(t *testing.T, components map[string]healthtest.Answer) *plant {
	t.Helper()
	s := newSite(t, components)
	return newPlantOver(t, s, s.registry)
}

// newPlantOver is one whose engine reaches the registry by r.
func newPlantOver(t *testing.T, s *site, r health.Registry) *plant {
	t.Helper()
	p := &plant{site: s, queues: queues.NewMemory(), told: map[string]bool{}}
	p.letters, p.schedule = engine.NewDeadLetters(p.tables, ""), health.Every("0 */5 * * * *", p.registry)
	d, log := health.Definition(p.steps(t, r)), slog.New(slog.DiscardHandler)
	rt, err := orchestrator.New(orchestrator.Config{Tables: p.tables, Blobs: blobs.NewMemory(), Queues: p.queues, Log: log,
		Orchestrators: []orchestrator.AnyOrchestrator{d.Orchestrator}, Activities: append(d.Operations, d.Activities...),
		Publish: p.publish, Ended: func(ctx context.Context, out orchestrator.Outcome) error { return p.pipeline.Ended(ctx, out) }})
	if err != nil {
		t.Fatal(err)
	}
	p.pipeline, err = engine.NewPipeline(engine.Config{Definitions: []engine.Definition{d}, Runtime: rt, Log: log, HostMaxDequeueCount: 8, Locks: p.registry,
		History: engine.NewHistory(p.tables, ""), DeadLetters: p.letters, Queues: p.queues})
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(p.pipeline.Prepare(t.Context()), rt.Prepare(t.Context())); err != nil {
		t.Fatal(err)
	}
	return p
}

func (p *plant) tick(t *testing.T, slot time.Time) {
	t.Helper()
	if _, err := p.schedule.Send(t.Context(), engine.Definition{Name: health.Engine, Queue: health.Queue}, p.queues, slot); err != nil {
		t.Fatal(err)
	}
}

// host delivers until the queues are empty, as the Functions host does.
func (p *plant) host(t *testing.T) {
	t.Helper()
	handlers := map[string]func(context.Context, engine.Delivery) error{health.Queue: p.pipeline.Handle,
		"orchestration-signals": p.pipeline.HandleSignal, "orchestration-schedules": p.pipeline.HandleSignal}
	for range 5_000 {
		left, idle := 0, true
		for queue, handle := range handlers {
			n, err := p.queues.Length(t.Context(), queue)
			if err != nil {
				t.Fatal(err)
			}
			left += n
			messages, err := p.queues.Receive(t.Context(), queue, 1, 10*time.Minute)
			if err != nil || len(messages) == 0 {
				continue
			}
			m := messages[0]
			idle = false
			if handle(t.Context(), engine.Delivery{Queue: queue, ID: m.ID, Body: queues.Decode(m.Text), DequeueCount: int(m.DequeueCount), InsertedAt: m.InsertedAt}) != nil {
				_, err = p.queues.Renew(t.Context(), queue, m.ID, m.PopReceipt, visibility)
			} else {
				err = p.queues.Delete(t.Context(), queue, m.ID, m.PopReceipt)
			}
			if err != nil {
				t.Error(err)
			}
		}
		if left == 0 {
			return
		}
		if idle {
			time.Sleep(visibility / 3) // of the bubble
		}
	}
	t.Fatal("the messages do not come to rest")
}

// history is what the engine's rows say, by instance.
func (p *plant) history(t *testing.T) map[string][]string {
	t.Helper()
	page, err := engine.NewHistory(p.tables, "").List(t.Context(), engine.HistoryFilter{Engines: []string{health.Engine}, Limit: 100})
	if err != nil {
		t.Fatal(err)
	}
	rows := map[string][]string{}
	for _, e := range page.Entries {
		rows[e.InstanceID] = append(rows[e.InstanceID], fmt.Sprintf("%s %s", e.Operation, e.Status))
	}
	return rows
}

func (p *plant) deadLetters(t *testing.T) []engine.DeadLetter {
	t.Helper()
	page, err := p.letters.List(t.Context(), engine.DeadLetterFilter{Engines: []string{health.Engine}})
	if err != nil {
		t.Fatal(err)
	}
	return page.DeadLetters
}

// A slot is checked once, for all instances, although the timer fires for it three times, and then once more when its
// work is done.
func TestFromTimerToHistory(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := newPlant(t, map[string]healthtest.Answer{"web": healthtest.Pass(), "db": healthtest.Warn()})
		p.add(t, "other")
		p.server.Set("other", "web", healthtest.Pass())
		slot := time.Now().Truncate(5 * time.Minute)
		p.tick(t, slot)
		p.tick(t, slot.In(time.FixedZone("elsewhere", 3600)))
		p.host(t)
		p.tick(t, slot)
		p.host(t)
		want := map[string][]string{instance: {"aggregate Succeeded", "check Succeeded", "check Succeeded"}, "other": {"aggregate Succeeded", "check Succeeded"}}
		if diff := cmp.Diff(want, p.history(t)); diff != "" {
			t.Errorf("history (-want +got):\n%s", diff)
		}
		if n, s := p.server.Looks(instance, "web"), p.state(t); n != 1 || s.Status != health.Degraded || s.Lock != "" || len(p.deadLetters(t)) != 0 {
			t.Errorf("%d checks, %+v, dead letters %+v", n, s, p.deadLetters(t))
		}
	})
}

// Slots that pile up while another job holds the lock cost one check, and no attempt.
func TestSlotsBehindALock(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := newPlant(t, map[string]healthtest.Answer{"web": healthtest.Pass()})
		if _, err := p.registry.Acquire(t.Context(), instance, "an update", time.Hour); err != nil {
			t.Fatal(err)
		}
		slot := time.Now()
		for n := range 10 {
			p.tick(t, slot.Add(time.Duration(n)*5*time.Minute))
		}
		p.host(t)
		if n, s := p.server.Looks(instance, "web"), p.state(t); n != 1 || s.Status != health.Healthy || time.Since(slot) < time.Hour || len(p.deadLetters(t)) != 0 {
			t.Errorf("%d checks, %+v, dead letters %+v", n, s, p.deadLetters(t))
		}
	})
}

// A check by hand between two slots drops neither of them.
func TestACheckByHandTakesNoSlot(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := newPlant(t, map[string]healthtest.Answer{"web": healthtest.Pass()})
		slot := time.Now()
		p.tick(t, slot)
		p.host(t)
		time.Sleep(6 * time.Minute)
		if _, err := p.queues.Send(t.Context(), health.Queue, []byte(`{"instanceId":"`+instance+`"}`), 0); err != nil {
			t.Fatal(err)
		}
		p.host(t)
		p.tick(t, slot.Add(5*time.Minute)) // it comes late
		p.host(t)
		if n := p.server.Looks(instance, "web"); n != 3 || len(p.deadLetters(t)) != 0 {
			t.Errorf("%d checks, dead letters %+v, history %v", n, p.deadLetters(t), p.history(t))
		}
	})
}

// What cannot be checked is a dead letter, and its retry through the same queue checks after all.
func TestFromTimerToDeadLetter(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := newPlant(t, map[string]healthtest.Answer{"web": healthtest.Pass()})
		for range 100 {
			p.server.Spoil(healthtest.Answer{Status: 503})
		}
		p.tick(t, time.Now())
		p.host(t)
		dead := p.deadLetters(t)
		if len(dead) != 1 || dead[0].InstanceID != instance || dead[0].OriginalQueue != health.Queue || !strings.Contains(dead[0].ErrorMessage, "HTTP 503") {
			t.Fatalf("dead letters: %+v", dead)
		}
		p.server.Forgive()
		letter, err := p.letters.Get(t.Context(), health.Engine, dead[0].RowKey)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := p.queues.Send(t.Context(), health.Queue, letter.OriginalMessage, 0); err != nil {
			t.Fatal(err)
		}
		p.host(t)
		if s := p.state(t); s.Status != health.Healthy || s.Lock != "" || len(p.deadLetters(t)) != 1 {
			t.Errorf("%+v, dead letters %+v, history %v", s, p.deadLetters(t), p.history(t))
		}
	})
}

// An instance that cannot be asked for does not keep the others from it, and the error says which it was.
func TestTickFails(t *testing.T) {
	t.Parallel()
	p := newPlant(t, nil)
	p.add(t, "other")
	throttled := faults.Queues(p.queues, (&faults.Plan{At: 1, Fault: faults.Throttled}).Intercept)
	sent, err := p.schedule.Send(t.Context(), engine.Definition{Name: health.Engine, Queue: health.Queue}, throttled, time.Now())
	if err == nil || sent != 1 || !strings.Contains(err.Error(), "message for instance") {
		t.Errorf("%d sent, error %v", sent, err)
	}
	if n, err := p.queues.Length(t.Context(), health.Queue); err != nil || n != 1 {
		t.Errorf("%d messages, %v", n, err)
	}
}
