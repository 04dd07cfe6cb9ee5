package handler_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/vibedata/roundhouse/handler"
	"github.com/vibedata/roundhouse/handler/handlertest"
	"github.com/vibedata/roundhouse/internal/faults"
	"github.com/vibedata/roundhouse/internal/storage"
	"github.com/vibedata/roundhouse/tables"
)

// silence is storage that does not answer while it lasts: it refuses connections, or takes requests and says nothing.
type silence struct {
	hangs    bool
	on       atomic.Bool
	requests atomic.Int64
}

func (s *silence) intercept(ctx context.Context, _ faults.Call, next func(context.Context) error) error {
	if !s.on.Load() {
		return next(ctx)
	}
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

// ask sends a request, and says how long the answer took.
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

// While storage does not answer, requests are answered with 503 and Retry-After at once, probes say why, and what does not need
// storage answers as ever. When storage is back, so are they.
func TestRequestsDuringAnOutage(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		hangs bool
		first time.Duration // how long the request takes that notices
	}{"refused": {false, time.Second}, "hanging": {true, 4 * time.Second}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				s := &silence{hangs: tt.hangs}
				h := handlertest.NewWith(t, handler.App{Engines: engines}, map[string]string{"GREETING": "Hello"}, func(c *handler.Config) {
					c.Tables, c.Queues, c.Blobs = faults.Tables(c.Tables, s.intercept), faults.Queues(c.Queues, s.intercept), faults.Blobs(c.Blobs, s.intercept)
				})
				time.Sleep(time.Minute) // what is kept for a while is old
				s.on.Store(true)
				for _, r := range []struct{ method, path, body string }{
					{http.MethodGet, "/api/history?engine=hello", ""},
					{http.MethodPost, "/api/hello", `{"correlationId": "c1", "input": "ada"}`},
					{http.MethodGet, "/api/health/ready", ""}, // nothing else asks for blobs
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
		})
	}
}

// What outlives the budget fails as ever: the host delivers it again.
func TestAnOutageLongerThanTheBudget(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := &silence{}
		h := handlertest.NewWith(t, handler.App{Engines: engines}, map[string]string{"GREETING": "Hello", "ROUNDHOUSE_INVOCATION_BUDGET": "3m"}, func(c *handler.Config) {
			c.Tables, c.Queues, c.Blobs = faults.Tables(c.Tables, s.intercept), faults.Queues(c.Queues, s.intercept), faults.Blobs(c.Blobs, s.intercept)
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
