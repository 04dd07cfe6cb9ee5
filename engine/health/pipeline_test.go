package health_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/vibedata/roundhouse/engine"
	"github.com/vibedata/roundhouse/engine/enginetest"
	"github.com/vibedata/roundhouse/engine/health"
	"github.com/vibedata/roundhouse/engine/health/healthtest"
	"github.com/vibedata/roundhouse/engine/release"
	"github.com/vibedata/roundhouse/internal/faults"
	"github.com/vibedata/roundhouse/orchestrator"
)

// plant is a site with the engine's whole environment.
type plant struct {
	*site
	*enginetest.World
	schedule engine.Schedule

	mu    sync.Mutex
	told  map[string]bool // keys of events
	tells []string        // statuses that were published, in order
}

// publish accepts the engine's events, as the outbox does: a repeated event is the same event.
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

func newPlant(t *testing.T, components map[string]healthtest.Answer) *plant {
	t.Helper()
	s := newSite(t, components)
	return newPlantOver(t, s, s.registry)
}

// newPlantOver returns a plant whose engine reaches the registry through r.
func newPlantOver(t *testing.T, s *site, r health.Registry) *plant {
	t.Helper()
	p := &plant{site: s, told: map[string]bool{}, schedule: health.Every("0 */5 * * * *", s.registry)}
	p.World = enginetest.New(t, enginetest.Config{Tables: s.tables, Publish: p.publish, Engines: func(enginetest.Stores) []engine.Definition {
		return []engine.Definition{health.Definition(p.steps(t, r))}
	}})
	return p
}

func (p *plant) tick(t *testing.T, slot time.Time) {
	t.Helper()
	if _, err := p.schedule.Send(t.Context(), engine.Definition{Name: health.Engine, Queue: health.Queue}, p.Queues, slot); err != nil {
		t.Fatal(err)
	}
}

// history returns the engine's rows, by instance.
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

func (p *plant) deadLetters() []engine.DeadLetter { return p.DeadLetters(health.Engine) }

// A slot is checked once, for all instances, although the timer fires for it three times, and once more when its work
// is done.
func TestFromTimerToHistory(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := newPlant(t, map[string]healthtest.Answer{"web": healthtest.Pass(), "db": healthtest.Warn()})
		p.add(t, "other")
		p.server.Set("other", "web", healthtest.Pass())
		slot := time.Now().Truncate(5 * time.Minute)
		p.tick(t, slot)
		p.tick(t, slot.In(time.FixedZone("elsewhere", 3600)))
		p.Run()
		p.tick(t, slot)
		p.Run()
		want := map[string][]string{instance: {"aggregate Succeeded", "check Succeeded", "check Succeeded"}, "other": {"aggregate Succeeded", "check Succeeded"}}
		if diff := cmp.Diff(want, p.history(t)); diff != "" {
			t.Errorf("history (-want +got):\n%s", diff)
		}
		if n, s := p.server.Looks(instance, "web"), p.state(t); n != 1 || s.Status != health.Degraded || s.Lock != "" || len(p.deadLetters()) != 0 {
			t.Errorf("%d checks, %+v, dead letters %+v", n, s, p.deadLetters())
		}
	})
}

// Slots that accumulate while another job holds the lock cost one check, and no attempt.
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
		p.Run()
		if n, s := p.server.Looks(instance, "web"), p.state(t); n != 1 || s.Status != health.Healthy || time.Since(slot) < time.Hour || len(p.deadLetters()) != 0 {
			t.Errorf("%d checks, %+v, dead letters %+v", n, s, p.deadLetters())
		}
	})
}

// A manual check between two slots drops neither of them.
func TestACheckByHandTakesNoSlot(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := newPlant(t, map[string]healthtest.Answer{"web": healthtest.Pass()})
		slot := time.Now()
		p.tick(t, slot)
		p.Run()
		time.Sleep(6 * time.Minute)
		p.Send(health.Queue, `{"instanceId":"`+instance+`"}`)
		p.Run()
		p.tick(t, slot.Add(5*time.Minute)) // it comes late
		p.Run()
		if n := p.server.Looks(instance, "web"); n != 3 || len(p.deadLetters()) != 0 {
			t.Errorf("%d checks, dead letters %+v, history %v", n, p.deadLetters(), p.history(t))
		}
	})
}

// A failed check is a dead letter, and its retry through the same queue succeeds.
func TestFromTimerToDeadLetter(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := newPlant(t, map[string]healthtest.Answer{"web": healthtest.Pass()})
		for range 100 {
			p.server.Spoil(healthtest.Answer{Status: 503})
		}
		p.tick(t, time.Now())
		p.Run()
		dead := p.deadLetters()
		if len(dead) != 1 || dead[0].InstanceID != instance || dead[0].OriginalQueue != health.Queue || !strings.Contains(dead[0].ErrorMessage, "HTTP 503") {
			t.Fatalf("dead letters: %+v", dead)
		}
		p.server.Forgive()
		p.Send(health.Queue, string(dead[0].OriginalMessage))
		p.Run()
		if s := p.state(t); s.Status != health.Healthy || s.Lock != "" || len(p.deadLetters()) != 1 {
			t.Errorf("%+v, dead letters %+v, history %v", s, p.deadLetters(), p.history(t))
		}
	})
}

// An instance whose message cannot be sent does not stop the others, and the error names it.
func TestTickFails(t *testing.T) {
	t.Parallel()
	p := newPlant(t, nil)
	p.add(t, "other")
	throttled := faults.Queues(p.Queues, (&faults.Plan{At: 1, Fault: faults.Throttled}).Intercept)
	sent, err := p.schedule.Send(t.Context(), engine.Definition{Name: health.Engine, Queue: health.Queue}, throttled, time.Now())
	if err == nil || sent != 1 || !strings.Contains(err.Error(), "message for instance") {
		t.Errorf("%d sent, error %v", sent, err)
	}
	if n, err := p.Queues.Length(t.Context(), health.Queue); err != nil || n != 1 {
		t.Errorf("%d messages, %v", n, err)
	}
}
