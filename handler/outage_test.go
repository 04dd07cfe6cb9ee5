package handler_test

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
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
	"github.com/vibedata/roundhouse/internal/sample"
	"github.com/vibedata/roundhouse/internal/storage"
	"github.com/vibedata/roundhouse/internal/testenv"
	"github.com/vibedata/roundhouse/orchestrator"
	"github.com/vibedata/roundhouse/tables"
)

// parcels is an app with an engine that uses every feature: spread activities, a sub-orchestration, a large result, a
// timer, an event that it waits for and one that it publishes.
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
		if _, err := orchestrator.Event[bool](ctx, "paid").Await(); err != nil {
			return "", err
		}
		return shipping.Call(ctx, r.Input).Await()
	}
	return []engine.Definition{{Name: "order", Queue: "order-queue", Orchestrator: engine.Orchestrate("order", order),
		Children: []orchestrator.AnyOrchestrator{shipping}, Operations: []orchestrator.AnyActivity{charge, ship}, Activities: []orchestrator.AnyActivity{pack}}}, nil
}

const (
	items = 70
	delay = time.Minute
)

// gone is storage that is unavailable for a while from one of its calls on.
type gone struct {
	from   int // the number of the call, from 1; 0 is never
	length time.Duration
	first  faults.Fault // fault of that call

	mu    sync.Mutex
	calls int
	since time.Time
	vain  int
}

func (g *gone) intercept(ctx context.Context, c faults.Call, next func(context.Context) error) error {
	g.mu.Lock()
	g.calls++
	first := g.calls == g.from
	if first {
		g.since = time.Now()
	}
	away := !g.since.IsZero() && time.Since(g.since) < g.length
	if away && c.Operation != "SendHidden" && c.Operation != "Update" { // the heartbeat has its own interval
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

// only makes storage unavailable during do, and returns the number of calls.
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

// ended is a log that records the outcomes of invocations.
type ended struct {
	mu       sync.Mutex
	outcomes []string // by function and outcome
}

func (e *ended) Write(line []byte) (int, error) {
	var r struct{ Msg, Function, Outcome, Reason string }
	if json.Unmarshal(line, &r) == nil && r.Msg == "invocation" {
		e.mu.Lock()
		defer e.mu.Unlock()
		e.outcomes = append(e.outcomes, strings.TrimSpace(r.Function+" "+r.Outcome+" "+r.Reason))
	}
	return len(line), nil
}

// check checks that every invocation has succeeded, and that the order needed one.
func (e *ended) check(t *testing.T) {
	t.Helper()
	e.mu.Lock()
	defer e.mu.Unlock()
	orders := 0
	for _, outcome := range e.outcomes {
		if !strings.HasSuffix(outcome, " done") {
			t.Error(outcome)
		}
		if strings.HasPrefix(outcome, "order-") {
			orders++
		}
	}
	if orders != 1 {
		t.Errorf("the order took %d invocations: %v", orders, e.outcomes)
	}
}

// runOrder runs an order over storage that is unavailable for a while, and returns the number of calls.
func runOrder(t *testing.T, g *gone) (calls int) {
	t.Helper()
	s, log := &parcels{}, &ended{}
	g.from = -g.from // not yet
	h := handlertest.NewWith(t, handler.App{Engines: s.engines}, map[string]string{"ROUNDHOUSE_OUTBOX": toQueue}, func(c *handler.Config) {
		through(c, g.intercept)
		c.Log = slog.New(slog.NewJSONHandler(log, nil))
	})
	h.Send("order-queue", `{"correlationId": "c1", "input": "ada"}`)
	calls = g.only(func() {
		h.Deliver()
		left(t, h, "before the timer", 2)
		time.Sleep(delay + 5*time.Second)
		h.Deliver()
		left(t, h, "before the event", 0)
		h.Send("orchestration-signals", `{"signalId": "s1", "workflowInstanceId": "order-c1", "runtimeProvider": "roundhouse", "signalType": "ExternalSignal", "payload": {"event": "paid", "data": true}}`)
		h.Deliver()
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
	log.check(t)
	time.Sleep(3 * time.Minute) // a dispatcher whose claim has expired meanwhile leaves the event to the sweep
	h.Tick("outbox-sweep-timer", time.Now())
	if n, err := h.Queues.Length(t.Context(), "events"); err != nil || n < 1 || n > 1 && g.first != faults.Applied {
		t.Errorf("%d events: %v", n, err)
	}
	return calls
}

// toQueue delivers events to a queue.
const toQueue = `{"destinations":{"q":{"queue":{"queue":"events"}}},"routes":[{"eventType":"*","destination":"q"}]}`

// left checks that no message was refused: only timers are left, the process's heartbeats (the lost one and the
// next), and a later wake-up.
func left(t *testing.T, h *handlertest.Host, when string, timers int) {
	t.Helper()
	for queue, want := range map[string]int{"order-queue": 0, "orchestration-signals": 0, "orchestration-activities": 0, "outbox-wake": 1, "orchestration-schedules": timers + 2} {
		if n, err := h.Queues.Length(t.Context(), queue); err != nil || n > want {
			t.Errorf("%s: %d messages in %s, at most %d are right: %v", when, n, queue, want, err)
		}
	}
}

// An outage of 12 s or of 2 min at any call of a message's work: each delivery in progress ends with success, nothing
// is done twice, and no attempt is used up.
func TestAnOutageAtEveryCall(t *testing.T) {
	t.Parallel()
	var calls int
	synctest.Test(t, func(t *testing.T) { calls = runOrder(t, &gone{}) })
	for _, first := range []faults.Fault{faults.Throttled, faults.Unknown, faults.Applied} {
		for _, length := range []time.Duration{12 * time.Second, 2 * time.Minute} {
			for from := 1; from <= calls; from++ {
				name := fmt.Sprintf("%v for %v from call %d", first, length, from)
				if !sample.Keep(t, name) {
					continue
				}
				t.Run(name, func(t *testing.T) {
					t.Parallel()
					sample.Repeat(t)
					synctest.Test(t, func(t *testing.T) {
						g := &gone{from: from, length: length, first: first}
						runOrder(t, g)
						if limit := 40 + int(length/time.Second); g.vain > limit {
							t.Errorf("%d of %d calls in vain", g.vain, calls)
						}
					})
				})
			}
		}
	}
}

// silence is storage that does not answer while it lasts: it refuses connections, or accepts requests without an
// answer.
type silence struct {
	hangs    bool
	on       atomic.Bool
	requests atomic.Int64
}

func (s *silence) intercept(ctx context.Context, _ faults.Call, _ func(context.Context) error) error {
	s.requests.Add(1)
	limit := 2 * time.Second // as the adapter repeats a request whose connection is refused
	switch {
	case s.hangs:
		limit = 40 * time.Second
	case storage.SingleTry(ctx):
		return tables.ErrOutcomeUnknown
	}
	select {
	case <-time.After(limit):
	case <-ctx.Done():
	}
	return tables.ErrOutcomeUnknown
}

// ask sends a request, and returns the duration of the answer.
func ask(t *testing.T, h *handlertest.Host, method, path, body string) (*httptest.ResponseRecorder, time.Duration) {
	t.Helper()
	began := time.Now()
	req := httptest.NewRequestWithContext(t.Context(), method, path, strings.NewReader(body))
	req.Host = "localhost"
	req.Header.Set("Content-Type", "application/json")
	rec := httptest.NewRecorder()
	h.ServeHTTP(rec, req)
	return rec, time.Since(began)
}

// While storage does not answer, requests are answered with 503 and Retry-After immediately, probes report the
// reason, and requests without storage work as usual. When storage is back, all requests work.
func TestRequestsDuringAnOutage(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		hangs bool
		first time.Duration // duration of the request that detects the outage
	}{"refused": {false, time.Second}, "hanging": {true, 4 * time.Second}} {
		testenv.Bubble(t, name, func(t *testing.T) {
			s := &silence{hangs: tt.hangs}
			h := handlertest.NewWith(t, handler.App{Engines: engines}, map[string]string{"GREETING": "Hello"}, func(c *handler.Config) {
				through(c, while(&s.on, s.intercept))
			})
			time.Sleep(time.Minute) // cached values are old
			s.on.Store(true)
			for _, r := range []struct{ method, path, body string }{
				{http.MethodGet, "/api/history?engine=hello", ""},
				{http.MethodPost, "/api/hello", `{"correlationId": "c1", "input": "ada"}`},
				{http.MethodGet, "/api/health/ready", ""}, // no other request uses blobs
			} {
				if _, took := ask(t, h, r.method, r.path, r.body); took > tt.first {
					t.Errorf("%s %s: the first answer took %v", r.method, r.path, took)
				}
			}
			for _, r := range []struct {
				method, path, body string
				status             int
			}{
				{http.MethodGet, "/api/history?engine=hello", "", http.StatusServiceUnavailable},
				{http.MethodGet, "/api/dlq?engine=hello", "", http.StatusServiceUnavailable},
				{http.MethodGet, "/api/orchestrations/hello-c1", "", http.StatusServiceUnavailable},
				{http.MethodPost, "/api/orchestrations/hello-c1/terminate", `{"reason":"r"}`, http.StatusServiceUnavailable},
				{http.MethodPost, "/api/hello", `{"correlationId": "c1", "input": "ada"}`, http.StatusServiceUnavailable},
				{http.MethodGet, "/runtime/webhooks/durabletask/instances/hello-c1", "", http.StatusServiceUnavailable},
				{http.MethodGet, "/api/health/ready", "", http.StatusServiceUnavailable},
				{http.MethodGet, "/api/health/live", "", http.StatusOK},
				{http.MethodGet, "/api/openapi.json", "", http.StatusOK},
			} {
				rec, took := ask(t, h, r.method, r.path, r.body)
				if rec.Code != r.status || took > time.Second {
					t.Errorf("%s %s: %d after %v: %s", r.method, r.path, rec.Code, took, rec.Body)
				}
				probe := strings.HasPrefix(r.path, "/api/health/")
				if r.status == http.StatusServiceUnavailable && !probe && rec.Header().Get("Retry-After") == "" {
					t.Errorf("%s %s does not say when to come again: %s", r.method, r.path, rec.Body)
				}
				if r.path == "/api/health/ready" && !strings.Contains(rec.Body.String(), "Queues: No answer; the log has the reason. Tables: No answer; the log has the reason.") {
					t.Errorf("the probe does not say why: %s", rec.Body)
				}
			}
			before := s.requests.Load()
			for range 1000 {
				ask(t, h, http.MethodGet, "/api/history?engine=hello", "")
			}
			if more := s.requests.Load() - before; more > 1 {
				t.Errorf("a thousand requests made %d calls of storage", more)
			}
			s.on.Store(false)
			time.Sleep(10 * time.Second)
			for _, path := range []string{"/api/history?engine=hello", "/api/health/ready"} {
				if rec, took := ask(t, h, http.MethodGet, path, ""); rec.Code != http.StatusOK || took > time.Second {
					t.Errorf("%s, when storage is back: %d after %v: %s", path, rec.Code, took, rec.Body)
				}
			}
			if rec, _ := ask(t, h, http.MethodPost, "/api/hello", `{"correlationId": "c2", "input": "ada"}`); rec.Code/100 != 2 {
				t.Errorf("an intake, when storage is back: %d: %s", rec.Code, rec.Body)
			}
		})
	}
}

// An outage beyond the budget fails the invocation: the host redelivers the message.
func TestAnOutageLongerThanTheBudget(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := &silence{}
		h := handlertest.NewWith(t, handler.App{Engines: engines}, map[string]string{"GREETING": "Hello", "ROUNDHOUSE_INVOCATION_BUDGET": "3m"}, func(c *handler.Config) {
			through(c, while(&s.on, s.intercept))
		})
		s.on.Store(true)
		began := time.Now()
		message := `{"Data":{"message":"{\"correlationId\": \"c1\", \"input\": \"ada\"}"},"Metadata":{"Id":"\"11111111-1111-4111-8111-111111111111\"","DequeueCount":"1"}}`
		rec, took := ask(t, h, http.MethodPost, "/hello-queue-trigger", message)
		if rec.Code != http.StatusInternalServerError || took < 3*time.Minute || took > 3*time.Minute+5*time.Second {
			t.Errorf("%d after %v: %s", rec.Code, took, rec.Body)
		}
		if time.Sleep(time.Until(began.Add(20 * time.Minute))); s.requests.Load() > 200 {
			t.Errorf("%d calls of storage in vain", s.requests.Load())
		}
		s.on.Store(false)
		time.Sleep(10 * time.Second)
		if rec, took := ask(t, h, http.MethodPost, "/hello-queue-trigger", message); rec.Code != http.StatusOK || took > time.Second {
			t.Errorf("%d after %v: %s", rec.Code, took, rec.Body)
		}
		if entries := h.History("hello"); len(entries) != 1 {
			t.Errorf("%+v", entries)
		}
	})
}
