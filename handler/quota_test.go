package handler_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/vibedata/roundhouse/engine"
	"github.com/vibedata/roundhouse/handler"
	"github.com/vibedata/roundhouse/handler/access/accesstest"
	"github.com/vibedata/roundhouse/handler/handlertest"
	"github.com/vibedata/roundhouse/internal/faults"
	"github.com/vibedata/roundhouse/internal/testenv"
	"github.com/vibedata/roundhouse/tables"
)

// narrow is storage that answers a limited number of simultaneous calls, each after 20 ms, and refuses others as
// busy, including the probe of an outage.
type narrow struct {
	most  int64
	calls atomic.Int64
	total atomic.Int64
}

func (n *narrow) intercept(ctx context.Context, _ faults.Call, next func(context.Context) error) error {
	n.total.Add(1)
	defer n.calls.Add(-1)
	if n.calls.Add(1) > n.most {
		time.Sleep(2 * time.Second) // as long as the adapter repeats it
		return tables.ErrThrottled
	}
	time.Sleep(20 * time.Millisecond)
	return next(ctx)
}

// sent returns the answer to one request.
func (m market) sent(t *testing.T, path string, who accesstest.Caller) *httptest.ResponseRecorder {
	t.Helper()
	r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, path, nil)
	r.Host = "localhost"
	who.Sign(r)
	rec := httptest.NewRecorder()
	m.ServeHTTP(rec, r)
	return rec
}

// A reader of another tenant who keeps requesting 40 timelines at the same time does not slow down storage for other
// callers, and gets 429 when its bucket is empty. Without a limit, the same requests trip the breaker of the whole
// app.
func TestCostOfACaller(t *testing.T) {
	t.Parallel()
	for limit, bounded := range map[string]bool{"": true, "50": true, "0": false} {
		t.Run("limit "+limit, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				storage, on := &narrow{most: 60}, atomic.Bool{}
				m := newMarketWith(t, limit, func(c *handler.Config) { through(c, while(&on, storage.intercept)) })
				for n := range 20 { // a timeline of many rows
					m.Send("shop-queue", fmt.Sprintf(`{"correlationId":"red-%d","instanceId":"instance-red","tenantId":%q,"input":{}}`, n, accesstest.ID("red")))
				}
				m.Deliver()
				on.Store(true)
				var all sync.WaitGroup
				var refused, unavailable atomic.Int64
				ctx, stop := context.WithTimeout(t.Context(), time.Minute)
				defer stop()
				for range 40 {
					all.Go(func() {
						for ctx.Err() == nil {
							switch rec := m.sent(t, "/api/timeline/red-waits", m.red); rec.Code {
							case http.StatusOK:
							case http.StatusTooManyRequests:
								refused.Add(1)
								if seconds, err := strconv.Atoi(rec.Header().Get("Retry-After")); err != nil || seconds < 1 {
									t.Errorf("Retry-After is %q: %s", rec.Header().Get("Retry-After"), rec.Body)
								}
								time.Sleep(100 * time.Millisecond)
							default:
								unavailable.Add(1)
								time.Sleep(100 * time.Millisecond)
							}
						}
					})
				}
				for _, who := range []accesstest.Caller{m.home, m.blue} {
					all.Go(func() {
						for ctx.Err() == nil {
							if rec := m.sent(t, "/api/orchestrations?limit=5", who); rec.Code != http.StatusOK {
								unavailable.Add(1)
								if bounded {
									t.Errorf("another caller: %d %s", rec.Code, rec.Body)
									return
								}
							}
							time.Sleep(time.Second)
						}
					})
				}
				all.Wait()
				if !bounded {
					if unavailable.Load() == 0 || refused.Load() != 0 {
						t.Errorf("without a limit, %d requests were refused and %d had no answer: the test finds nothing", refused.Load(), unavailable.Load())
					}
					return
				}
				if refused.Load() == 0 || unavailable.Load() != 0 {
					t.Errorf("%d requests were refused for their caller, %d had no answer", refused.Load(), unavailable.Load())
				}
			})
		})
	}
}

// Each entry point refuses a caller that has used up its quota with 429 and Retry-After, and answers others.
// Requests without storage calls are answered for all callers.
func TestQuotaAtEveryEntryPoint(t *testing.T) {
	t.Parallel()
	read := func(ctx context.Context, store tables.Store) error {
		_, err := store.Get(ctx, "audit", tables.Key{Partition: "none", Row: "none"})
		if errors.Is(err, tables.ErrNotFound) {
			err = nil
		}
		return err
	}
	app := handler.App{Engines: func(p *handler.Platform) ([]engine.Definition, error) {
		all, err := shop().Engines(p)
		all[0].Intakes = []engine.Intake{{Function: "orders", Route: "orders", Verify: func(ctx context.Context, _ http.Header, _ []byte) error {
			return errors.Join(read(ctx, p.Tables), engine.ErrUnauthorized)
		}}}
		all[0].Endpoints = []engine.Endpoint{{Function: "proof", Route: "proof", Methods: []string{"GET"}, Anonymous: true, Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if err := read(r.Context(), p.Tables); err != nil {
				http.Error(w, err.Error(), http.StatusInternalServerError)
			}
		})}}
		return all, err
	}}
	person := func(tenant, object string) func(*http.Request) {
		return accesstest.Caller{Tenant: tenant, Object: object, Name: object, AppRoles: []string{"Roundhouse.Administrator"}}.Sign
	}
	from := func(address string) func(*http.Request) {
		return func(r *http.Request) { r.Header.Set("X-Forwarded-For", address) }
	}
	for name, c := range map[string]struct {
		method, path string
		who, other   func(*http.Request)
		status       int // of an answer that is not refused
	}{
		"API":            {http.MethodGet, "/api/orchestrations", person("home", "ann"), person("home", "bob"), http.StatusOK},
		"other tenant":   {http.MethodGet, "/api/dlq", person("red", "ann"), person("red", "bob"), http.StatusOK},
		"refused change": {http.MethodPost, "/api/dlq/retry", person("red", "ann"), person("blue", "ann"), http.StatusForbidden},
		"Durable API":    {http.MethodGet, "/api/runtime/webhooks/durabletask/instances", person("home", "ann"), person("home", "bob"), http.StatusOK},
		"console":        {http.MethodGet, "/api/console/orchestrations", person("home", "ann"), person("home", "bob"), http.StatusOK},
		"key":            {http.MethodGet, "/api/machine/orchestrations", func(*http.Request) {}, person("home", "bob"), http.StatusOK},
		"intake":         {http.MethodPost, "/api/orders", from("203.0.113.9"), from("203.0.113.8"), http.StatusUnauthorized},
		"endpoint":       {http.MethodGet, "/api/proof", from("203.0.113.9"), from("203.0.113.8"), http.StatusOK},
	} {
		testenv.Bubble(t, name, func(t *testing.T) {
			h := handlertest.New(t, app, map[string]string{"WEBSITE_SITE_NAME": "shop", "WEBSITE_AUTH_ENABLED": "true", "ROUNDHOUSE_HOME_TENANT": accesstest.ID("home"),
				"ROUNDHOUSE_ROLES": `{"otherTenants": "operator"}`, "ROUNDHOUSE_CALLER_LIMIT": "1"})
			ask := func(method, path string, who func(*http.Request)) *httptest.ResponseRecorder {
				r := httptest.NewRequestWithContext(t.Context(), method, path, strings.NewReader(""))
				r.Host = "localhost"
				who(r)
				rec := httptest.NewRecorder()
				h.ServeHTTP(rec, r)
				return rec
			}
			refused := func() *httptest.ResponseRecorder {
				for range 500 {
					if rec := ask(c.method, c.path, c.who); rec.Code != c.status {
						return rec
					}
				}
				t.Fatal("not refused")
				return nil
			}
			rec := refused()
			seconds, err := strconv.Atoi(rec.Header().Get("Retry-After"))
			if rec.Code != http.StatusTooManyRequests || err != nil || seconds < 1 {
				t.Fatalf("%d, Retry-After %q: %s", rec.Code, rec.Header().Get("Retry-After"), rec.Body)
			}
			if rec := ask(c.method, c.path, c.other); rec.Code != c.status {
				t.Errorf("another caller: %d %s", rec.Code, rec.Body)
			}
			for _, path := range []string{"/api/health/live", "/api/health/ready"} {
				if rec := ask(http.MethodGet, path, c.who); rec.Code != http.StatusOK {
					t.Errorf("%s: %d %s", path, rec.Code, rec.Body)
				}
			}
			if time.Sleep(time.Duration(seconds) * time.Second); ask(c.method, c.path, c.who).Code != c.status {
				t.Errorf("still refused after the %d seconds of Retry-After", seconds)
			}
			_, metrics := h.Do(http.MethodGet, "/api/metrics", "", person("home", "carol"))
			if !strings.Contains(metrics, "roundhouse_quota_refusals_total{caller=") {
				t.Error("no metric")
			}
		})
	}
}
