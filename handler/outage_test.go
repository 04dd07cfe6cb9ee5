package handler_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/vibedata/roundhouse/engine"
	"github.com/vibedata/roundhouse/handler"
	"github.com/vibedata/roundhouse/handler/handlertest"
	"github.com/vibedata/roundhouse/internal/faults"
	"github.com/vibedata/roundhouse/orchestrator"
	"github.com/vibedata/roundhouse/tables"
)

// parcels is an app with an engine that does a bit of everything: activities, so many of them that they are spread, a
// sub-orchestration, a large result, a timer and an event.
type parcels struct {
	charged, packed, shipped atomic.Int32
}

func (s *parcels) engines(*handler.Platform) ([]engine.Definition, error) {
	charge := orchestrator.NewActivity("charge", func(context.Context, string) (string, error) {
		s.charged.Add(1)
		return strings.Repeat("receipt ", 20_000), nil
	})
	pack := orchestrator.NewActivity("pack", func(context.Context, int) (int, error) { s.packed.Add(1); return 1, nil })
	ship := orchestrator.NewActivity("ship", func(context.Context, string) (string, error) { s.shipped.Add(1); return "shipped", nil })
	shipping := orchestrator.NewOrchestrator("shipping", func(ctx *orchestrator.Context, to string) (string, error) {
		return ship.Call(ctx, to).Await()
	})
	order := func(ctx *orchestrator.Context, r engine.Request[string]) (string, error) {
		if _, err := charge.Call(ctx, r.Input).Await(); err != nil {
			return "", err
		}
		var parts []*orchestrator.Future[int]
		for n := range items {
			parts = append(parts, pack.Call(ctx, n))
		}
		for _, p := range parts {
			if _, err := p.Await(); err != nil {
				return "", err
			}
		}
		if err := ctx.Sleep(delay); err != nil {
			return "", err
		}
		if err := ctx.Publish(orchestrator.Publication{TenantID: "contoso", Type: "order.packed", Payload: []byte(`{}`)}); err != nil {
			return "", err
		}
		return shipping.Call(ctx, r.Input).Await()
	}
	return []engine.Definition{{Name: "order", Queue: "order-queue", Orchestrator: engine.Orchestrate("order", order),
		Children: []orchestrator.AnyOrchestrator{shipping}, Operations: []orchestrator.AnyActivity{charge, ship}, Activities: []orchestrator.AnyActivity{pack}}}, nil
}

const (
	items = 40
	delay = time.Minute
)

// gone is storage that is gone for a while from one of its calls on.
type gone struct {
	from   int // the number of the call, from 1; 0 is never
	length time.Duration
	first  faults.Fault // what happens to that call

	mu    sync.Mutex
	calls int
	since time.Time
	vain  int
}

func (g *gone) intercept(ctx context.Context, _ faults.Call, next func(context.Context) error) error {
	g.mu.Lock()
	g.calls++
	first := g.calls == g.from
	if first {
		g.since = time.Now()
	}
	away := !g.since.IsZero() && time.Since(g.since) < g.length
	if away {
		g.vain++
	}
	g.mu.Unlock()
	switch {
	case first && g.first == faults.Applied:
		if err := next(ctx); err != nil {
			return err
		}
		return tables.ErrOutcomeUnknown
	case first && g.first == faults.Throttled:
		return tables.ErrThrottled
	case away:
		return tables.ErrOutcomeUnknown
	}
	return next(ctx)
}

// only has storage gone while something is done, and says how many calls that took.
func (g *gone) only(do func()) (calls int) {
	g.mu.Lock()
	g.from, g.calls = -g.from, 0
	g.mu.Unlock()
	do()
	g.mu.Lock()
	defer g.mu.Unlock()
	g.from, g.since = -g.from, time.Time{}
	return g.calls
}

// runOrder runs an order over storage that is gone for a while, and says how many calls that took, and how many deliveries.
func runOrder(t *testing.T, g *gone) (calls, deliveries int) {
	t.Helper()
	s := &parcels{}
	g.from = -g.from // not yet
	h := handlertest.NewWith(t, handler.App{Engines: s.engines}, nil, func(c *handler.Config) {
		c.Tables, c.Queues, c.Blobs = faults.Tables(c.Tables, g.intercept), faults.Queues(c.Queues, g.intercept), faults.Blobs(c.Blobs, g.intercept)
	})
	h.Send("order-queue", `{"correlationId": "c1", "input": "ada"}`)
	calls = g.only(func() {
		deliveries = h.Deliver()
		left(t, h, "before the timer", 2)
		time.Sleep(delay + 5*time.Second)
		deliveries += h.Deliver()
		time.Sleep(3 * time.Minute) // then the process gives no sign of life any more
		left(t, h, "at the end", 0)
	})
	got := h.Outcome("order-c1")
	if got.Status != orchestrator.Completed || string(got.Output) != `"shipped"` {
		t.Errorf("%s, %s", got.Status, got.Output)
	}
	var succeeded, others []string
	for _, e := range h.History("order") {
		if full, err := engine.NewHistory(h.Tables, "").Get(t.Context(), "order", e.RowKey); err == nil && full.RunStatus == engine.StatusSucceeded && e.Status == engine.StatusSucceeded {
			succeeded = append(succeeded, e.Operation)
		} else if e.Status != engine.StatusSucceeded {
			others = append(others, e.Operation)
		}
	}
	if len(succeeded) != 1 || len(others) != 0 {
		t.Errorf("the history has %v as the run's success, and %v that failed", succeeded, others)
	}
	if letters := h.DeadLetters("order"); len(letters) != 0 {
		t.Errorf("dead letters: %+v", letters)
	}
	if s.charged.Load() != 1 || s.packed.Load() != items || s.shipped.Load() != 1 {
		t.Errorf("charged %d times, packed %d, shipped %d", s.charged.Load(), s.packed.Load(), s.shipped.Load())
	}
	return calls, deliveries
}

// left checks that no message was refused: only timers are left.
func left(t *testing.T, h *handlertest.Host, when string, timers int) {
	t.Helper()
	for queue, want := range map[string]int{"order-queue": 0, "orchestration-signals": 0, "orchestration-activities": 0, "orchestration-schedules": timers} {
		if n, err := h.Queues.Length(t.Context(), queue); err != nil || n > want {
			t.Errorf("%s: %d messages in %s, at most %d are right: %v", when, n, queue, want, err)
		}
	}
}

// An outage in the middle of anything that a message leads to, of 12 s and of 2 min: each delivery that had begun ends with success,
// nothing is done twice, and no attempt is used up.
func TestAnOutageAtEveryCall(t *testing.T) {
	t.Parallel()
	var calls, deliveries int
	synctest.Test(t, func(t *testing.T) { calls, deliveries = runOrder(t, &gone{}) })
	t.Logf("%d calls, %d deliveries", calls, deliveries)
	for _, first := range []faults.Fault{faults.Throttled, faults.Unknown, faults.Applied} {
		for _, length := range []time.Duration{12 * time.Second, 2 * time.Minute} {
			t.Run(fmt.Sprintf("%v for %v", first, length), func(t *testing.T) {
				t.Parallel()
				for from := 1; from <= calls && !t.Failed(); from++ {
					synctest.Test(t, func(t *testing.T) {
						g := &gone{from: from, length: length, first: first}
						// The process's sign of life may be delivered once, when it could not be renewed.
						if _, took := runOrder(t, g); took > deliveries+1 && first != faults.Applied {
							t.Errorf("%d deliveries, at most %d are right", took, deliveries+1)
						}
						if limit := 40 + int(length/time.Second); g.vain > limit {
							t.Errorf("%d calls in vain", g.vain)
						}
						if t.Failed() {
							t.Logf("the outage began at call %d of %d", from, calls)
						}
					})
				}
			})
		}
	}
}
