package durable

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/labstack/echo/v4"
	"go.uber.org/goleak"

	"github.com/vibedata/roundhouse/audit"
	"github.com/vibedata/roundhouse/blobs"
	"github.com/vibedata/roundhouse/engine"
	"github.com/vibedata/roundhouse/handler/access"
	"github.com/vibedata/roundhouse/handler/access/accesstest"
	"github.com/vibedata/roundhouse/handler/api"
	"github.com/vibedata/roundhouse/internal/testenv"
	"github.com/vibedata/roundhouse/orchestrator"
	"github.com/vibedata/roundhouse/orchestrator/catalog"
	"github.com/vibedata/roundhouse/queues"
	"github.com/vibedata/roundhouse/tables"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// base is the address that the Functions host forwards for users, and machines the one for clients with a key.
const (
	base     = "/api/runtime/webhooks/durabletask"
	machines = "/api/machine/runtime/webhooks/durabletask"
)

// bench is the API on the program's router, with the real runtime over stores in memory.
type bench struct {
	echo    *echo.Echo
	runtime *orchestrator.Runtime
	list    *catalog.Catalog
	tables  tables.Store
	queues  queues.Store
	log     bytes.Buffer
	// changed makes the code of Turns decide differently, and mended makes that of Flaky succeed.
	changed, mended atomic.Bool
}

func newBench(t *testing.T) *bench {
	t.Helper()
	b := &bench{echo: echo.New(), queues: queues.NewMemory()}
	store := tables.NewMemory()
	b.tables = store
	greet := orchestrator.NewActivity("greet", func(_ context.Context, name string) (string, error) {
		if name == "nobody" {
			return "", orchestrator.Permanent(errors.New("there is nobody"))
		}
		return "hello " + name, nil
	})
	// hello greets; one name fails.
	hello := orchestrator.NewOrchestrator("Hello", func(ctx *orchestrator.Context, name string) (string, error) {
		return greet.Call(ctx, name).Await()
	})
	// gate waits for the event open, and then for a child.
	gate := orchestrator.NewOrchestrator("Gate", func(ctx *orchestrator.Context, name string) (string, error) {
		if err := ctx.SetStatus("closed"); err != nil {
			return "", err
		}
		guest, err := orchestrator.Event[string](ctx, "open").Await()
		if err != nil {
			return "", err
		}
		if err := ctx.Sleep(time.Second); err != nil {
			return "", err
		}
		return hello.Call(ctx, guest).Await()
	})
	var err error
	b.list, err = catalog.New(catalog.Config{Tables: store, Runtime: func() *orchestrator.Runtime { return b.runtime }, Linger: time.Hour})
	testenv.OK(t, err)
	t.Cleanup(b.list.Close)
	b.runtime, err = orchestrator.New(orchestrator.Config{Tables: store, Blobs: blobs.NewMemory(), Queues: b.queues, StatusChanged: b.list.Record,
		Orchestrators: []orchestrator.AnyOrchestrator{hello, gate, b.turns(), b.flaky()}, Activities: []orchestrator.AnyActivity{greet}, Log: slog.New(slog.DiscardHandler)})
	testenv.OK(t, err)
	// The other API shares the router, and answers everything below /api.
	other := api.Config{History: engine.NewHistory(store, ""), DeadLetters: engine.NewDeadLetters(store, ""), Engines: []string{"hmac"}, Door: b.door()}
	err = errors.Join(b.runtime.Prepare(t.Context()), b.list.Prepare(t.Context()), b.door().Audit.CreateTable(t.Context()), api.Register(b.echo, other),
		Register(b.echo, Config{PublicURL: "https://app.example.net", Runtime: b.runtime, List: b.list.List, Door: b.door(), Log: slog.New(slog.NewTextHandler(&b.log, nil))}))
	testenv.OK(t, err)
	return b
}

// door grants machines everything, users of the tenant "home" the permissions of their roles, and operators of other
// tenants theirs.
func (b *bench) door() access.Door {
	return access.Door{Name: "durable", Audit: &audit.Log{Tables: b.tables}, Control: access.Control{EasyAuth: true,
		Policy: access.Policy{HomeTenant: accesstest.ID("home"), OtherTenants: access.Operator, Keys: string(access.Administrator)}}}
}

// send sends a request as the host forwards it; headers are name, value, name, value. A request without credentials
// comes from a machine with a key.
func (b *bench) send(t *testing.T, method, target, body string, headers ...string) *httptest.ResponseRecorder {
	t.Helper()
	var content io.Reader
	if body != "" {
		content = strings.NewReader(body)
	}
	r := httptest.NewRequestWithContext(t.Context(), method, target, content)
	r.Host = "evil.example" // regardless of it, links have the configured address
	r.Header.Set("X-Forwarded-Host", "evil.example")
	r.Header.Set("X-Forwarded-Proto", "http")
	for i := 0; i < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	switch {
	case strings.HasPrefix(target, access.MachinePrefix):
		r = access.Machine(r)
	case r.Header.Get("X-MS-CLIENT-PRINCIPAL") == "":
		r = accesstest.Machine(r)
	}
	rec := httptest.NewRecorder()
	b.echo.ServeHTTP(rec, r)
	return rec
}

// drive delivers the messages of the runtime's queues, delayed ones included.
func (b *bench) drive(t *testing.T) {
	t.Helper()
	for b.deliver(t.Context(), t) {
	}
}

// deliver delivers a batch of each queue; false for none.
func (b *bench) deliver(ctx context.Context, t *testing.T) (some bool) {
	t.Helper()
	for _, queue := range []string{b.runtime.SignalQueue(), b.runtime.ScheduleQueue()} {
		batch, err := b.queues.Receive(ctx, queue, 32, time.Minute)
		if err != nil {
			t.Error(err)
			return false
		}
		for _, m := range batch {
			some = true
			s, err := orchestrator.DecodeSignal(queues.Decode(m.Text))
			if err == nil {
				_, err = b.runtime.Deliver(ctx, s)
			}
			if err == nil {
				err = b.queues.Delete(ctx, queue, m.ID, m.PopReceipt)
			}
			if err != nil {
				t.Error(err)
			}
		}
	}
	return some
}

// begin starts an instance and lets it run as far as possible.
func (b *bench) begin(t *testing.T, name, id, input string) {
	t.Helper()
	if rec := b.send(t, http.MethodPost, base+"/orchestrators/"+name+"/"+id, input); rec.Code != http.StatusAccepted {
		t.Fatalf("%d %s", rec.Code, rec.Body)
	}
	b.drive(t)
}

// filled returns a bench with instances in every status, named after it; "ended" is Completed, and "Pending" is not
// started yet.
func filled(t *testing.T) *bench {
	t.Helper()
	b := newBench(t)
	b.begin(t, "Hello", "Completed", `"you"`)
	b.begin(t, "Hello", "Failed", `"nobody"`)
	for _, id := range []string{"Running", "Suspended", "Terminated", "Canceled"} {
		b.begin(t, "Gate", id, `"in"`)
	}
	err := errors.Join(b.runtime.Suspend(t.Context(), "Suspended", ""), b.runtime.Terminate(t.Context(), "Terminated", "enough"), b.runtime.Cancel(t.Context(), "Canceled", ""))
	testenv.OK(t, err)
	b.drive(t)
	if rec := b.send(t, http.MethodPost, base+"/orchestrators/Gate/Pending", ""); rec.Code != http.StatusAccepted {
		t.Fatalf("%d %s", rec.Code, rec.Body)
	}
	testenv.OK(t, b.list.Flush(t.Context()))
	return b
}

func body[T any](t *testing.T, rec *httptest.ResponseRecorder) T {
	t.Helper()
	var v T
	if err := json.Unmarshal(rec.Body.Bytes(), &v); err != nil {
		t.Fatalf("%d %q: %v", rec.Code, rec.Body, err)
	}
	return v
}
