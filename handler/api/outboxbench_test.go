package api

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/labstack/echo/v4"

	"github.com/vibedata/roundhouse/azure"
	"github.com/vibedata/roundhouse/blobs"
	"github.com/vibedata/roundhouse/engine"
	"github.com/vibedata/roundhouse/engine/registry"
	"github.com/vibedata/roundhouse/engine/schedule"
	"github.com/vibedata/roundhouse/handler/api/bulk"
	"github.com/vibedata/roundhouse/handler/api/health"
	"github.com/vibedata/roundhouse/handler/api/metrics"
	"github.com/vibedata/roundhouse/internal/faults"
	"github.com/vibedata/roundhouse/internal/testenv"
	"github.com/vibedata/roundhouse/orchestrator"
	"github.com/vibedata/roundhouse/orchestrator/catalog"
	"github.com/vibedata/roundhouse/orchestrator/nodes"
	"github.com/vibedata/roundhouse/outbox"
	"github.com/vibedata/roundhouse/poller/admin"
	"github.com/vibedata/roundhouse/queues"
	"github.com/vibedata/roundhouse/tables"
	"github.com/vibedata/roundhouse/tables/hostlock"
)

// lease is held or not.
type lease bool

func (l lease) Held(context.Context) bool { return bool(l) }

// outboxBench is the whole API over stores in memory, at a fixed time that tests move.
type outboxBench struct {
	echo       *echo.Echo
	tables     tables.Store
	queues     queues.Store
	outbox     *outbox.Outbox
	writer     *outbox.Writer
	dispatcher *outbox.Dispatcher
	runtime    *orchestrator.Runtime
	list       *catalog.Catalog
	metrics    *metrics.Metrics
	letters    *engine.DeadLetters
	history    *engine.History
	registry   *registry.Registry
	placement  *engine.Placement
	schedules  *schedule.Scheduler
	pollers    *admin.Admin
	log        bytes.Buffer

	mu    sync.Mutex
	clock time.Time
	// refuse reports whether a storage call is refused.
	refuse func(faults.Call) bool
	// deliver is the behavior of the destination.
	deliver func(ctx context.Context, e outbox.Event) error
	// changed makes the code of "turns" decide differently, and mended makes that of "flaky" succeed.
	changed, mended atomic.Bool
}

func (b *outboxBench) now() time.Time {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.clock
}

func (b *outboxBench) pass(d time.Duration) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.clock = b.clock.Add(d)
}

// Deliver is the destination "sink".
func (b *outboxBench) Deliver(ctx context.Context, e outbox.Event) error {
	if b.deliver == nil {
		return nil
	}
	return b.deliver(ctx, e)
}

// stores are the stores of a bench.
type stores struct {
	tables tables.Store
	queues queues.Store
	blobs  blobs.Store
}

func inMemory() stores { return stores{tables.NewMemory(), queues.NewMemory(), blobs.NewMemory()} }

// emulator is held by the test that uses the stores of the emulator, which all tests of this package share.
var emulator sync.Mutex

// inAzurite returns the stores of the emulator, for one test at a time.
func inAzurite(t *testing.T) stores {
	t.Helper()
	emulator.Lock()
	t.Cleanup(emulator.Unlock)
	account := storage.Account(t)
	var s stores
	var errs [3]error
	s.tables, errs[0] = azure.NewTables(account)
	s.queues, errs[1] = azure.NewQueues(account)
	s.blobs, errs[2] = azure.NewBlobs(account)
	testenv.OK(t, errors.Join(errs[:]...))
	return s
}

func newOutboxBench(t *testing.T) *outboxBench {
	t.Helper()
	return newOutboxBenchOver(t, inMemory())
}

func newOutboxBenchOver(t *testing.T, s stores) *outboxBench {
	t.Helper()
	return newOutboxBenchWith(t, s, func(*Config) {})
}

// newOutboxBenchWith is newOutboxBenchOver for an API whose configuration change may change.
func newOutboxBenchWith(t *testing.T, s stores, change func(c *Config)) *outboxBench {
	t.Helper()
	b := &outboxBench{echo: echo.New(), clock: time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC), metrics: metrics.New()}
	plan := &faults.Plan{Refuse: func(c faults.Call) bool { return b.refuse != nil && b.refuse(c) }}
	b.tables = faults.Tables(s.tables, plan.Intercept)
	b.queues = faults.Queues(s.queues, plan.Intercept)
	store := faults.Blobs(s.blobs, plan.Intercept)
	history, letters := engine.NewHistory(b.tables, ""), engine.NewDeadLetters(b.tables, "")
	b.registry = registry.New(b.tables, "")
	b.registry.Now = b.now
	b.placement = engine.NewPlacement(engine.PlacementConfig{Tables: b.tables, Registry: b.registry, InstanceID: func() string { return "publisher" }, Account: "acct1"})
	quiet := slog.New(slog.NewTextHandler(io.Discard, nil))

	var errs [6]error
	options := outbox.DefaultOptions()
	options.CircuitFailures = 1000
	b.outbox, errs[0] = outbox.New(outbox.Config{Tables: b.tables, Queues: b.queues, Blobs: store, Options: options, Node: "node-1",
		Now: b.now, Random: func() float64 { return 0.5 }, Logger: quiet, Observer: b.metrics.Outbox()})
	router, err := outbox.NewRouter([]outbox.Route{{EventType: "*", Destination: "sink"}}, outbox.Destinations{"sink": b})
	testenv.OK(t, errors.Join(errs[0], err))
	b.writer = outbox.NewWriter(b.outbox)
	b.dispatcher, errs[1] = outbox.NewDispatcher(b.outbox, outbox.DispatcherConfig{Router: router})
	admin := outbox.NewAdmin(b.outbox)
	other := orchestrator.NewOrchestrator("other", func(*orchestrator.Context, int) (int, error) { return 0, nil })
	people := orchestrator.NewOrchestrator("hmac", func(ctx *orchestrator.Context, h orchestrator.HumanTask) (json.RawMessage, error) {
		said, err := orchestrator.AskPerson[json.RawMessage](ctx, h).Await()
		return said.Output, err
	})
	b.letters, b.history = letters, history
	retrier, err := engine.NewRetrier(engine.RetrierConfig{DeadLetters: letters, Queues: b.queues, Now: b.now, CheckEdit: checkEdit})
	testenv.OK(t, err)
	kinds := []bulk.Kind{bulk.Outbox(admin), bulk.DeadLetters{Letters: letters, Retrier: retrier, Engines: []string{"hmac", "tls"}, Now: b.now}.Kind(),
		bulk.Orchestrations(func() bulk.Purger { return b.runtime })}
	b.list, err = catalog.New(catalog.Config{Tables: b.tables, Runtime: func() *orchestrator.Runtime { return b.runtime }, Linger: time.Hour})
	testenv.OK(t, err)
	t.Cleanup(b.list.Close)
	b.runtime, errs[2] = orchestrator.New(orchestrator.Config{Tables: b.tables, Blobs: store, Queues: b.queues, Node: "lost", Log: quiet, StatusChanged: b.list.Record,
		Orchestrators: append(bulk.Orchestrators(kinds...), other, people, approval(), b.turns(), b.takes(), b.flaky(), leaves(), holder()), Activities: append(bulk.Activities(kinds...), order())})
	testenv.OK(t, errors.Join(errs[:]...))
	snapshot := metrics.Cached(outbox.NewMonitor(b.outbox).Snapshot, 0, b.now)
	checks, err := health.New(health.Config{Tables: b.tables, Table: outbox.DefaultTable, Queues: b.queues, Queue: outbox.DefaultQueue,
		Outbox: snapshot, Stalled: b.stalled, Now: b.now, ReleaseID: "1.2.3", Log: slog.New(slog.NewTextHandler(&b.log, nil))})
	testenv.OK(t, err)
	if b.schedules, err = schedule.New(schedule.Config{Plan: benchSchedules(t), Tables: b.tables, Queues: b.queues, Now: b.now}); err != nil {
		t.Fatal(err)
	}
	b.pollers = benchPollers(t, b.tables, store)
	b.metrics.Collect(lease(true))
	b.metrics.Events(snapshot)
	b.metrics.Orchestrations(b.census, []string{"approval", "turns"})
	errs[0], errs[1] = b.outbox.Create(t.Context()), errors.Join(b.runtime.Prepare(t.Context()), b.list.Prepare(t.Context()), b.tables.CreateTable(t.Context(), hostlock.DefaultTable))
	errs[2], errs[3] = errors.Join(history.CreateTable(t.Context()), b.schedules.CreateTable(t.Context()), b.queues.CreateQueue(t.Context(), "hmac-queue"), b.registry.CreateTable(t.Context())), errors.Join(letters.CreateTable(t.Context()), door(b.tables).Audit.CreateTable(t.Context()))
	rotating, err := rotating(t, b.tables, admin, b.now)
	testenv.OK(t, err)
	config := Config{
		Consumers: rotating,
		History:   history, DeadLetters: letters, Engines: []string{"hmac", "tls"}, Now: b.now, Log: slog.New(slog.NewTextHandler(&b.log, nil)),
		Outbox: admin, Operations: bulk.NewOperations(b.runtime, b.now), Snapshot: snapshot, Backlog: b.dispatcher.Backlog, Metrics: b.metrics, Health: checks,
		Tasks: b.runtime.Tasks(), Schedules: b.schedules, Result: b.result, Nodes: b.listNodes, Pollers: b.pollers, PollerCounts: benchCounts, Registry: b.registry, Placement: b.placement, Door: door(b.tables), Retrier: retrier, RunID: b.runID, EventID: b.eventID, Runtime: b.runtime, List: b.list.List,
	}
	change(&config)
	errs[4] = Register(b.echo, config)
	testenv.OK(t, errors.Join(errs[:]...))
	return b
}

// listNodes lists nodes, unless storage fails.
func (b *outboxBench) listNodes(ctx context.Context) ([]nodes.Info, error) {
	return nodes.List(ctx, b.tables, "")
}

// runID returns the id of an engine's run, as for independent runs.
func (b *outboxBench) runID(name string, m engine.Message) string {
	return name + "-" + m.CorrelationID
}

// eventID returns the id of an event that a run publishes.
func (b *outboxBench) eventID(tenantID, eventType, key string) string {
	return b.writer.Key(tenantID, "orchestration", key, eventType, "").String()
}

// census and stalled count the orchestrations in the list.
func (b *outboxBench) census(ctx context.Context) (catalog.StatusCounts, error) {
	return b.list.CountByStatus(ctx, orchestrator.Stalled, orchestrator.Retrying)
}

func (b *outboxBench) stalled(ctx context.Context) (catalog.StatusCount, error) {
	c, err := b.census(ctx)
	return c[orchestrator.Stalled], err
}

func key(n int) uuid.UUID { return outbox.Key("test", "key", fmt.Sprint(n), "", "") }

func (b *outboxBench) add(t *testing.T, tenant string, n int) {
	t.Helper()
	_, err := b.writer.Add(t.Context(), outbox.Message{
		TenantID: tenant, EventType: fmt.Sprint("type.", n%2), Payload: json.RawMessage(fmt.Sprintf(`{"n":%d}`, n)), Key: key(n), CorrelationID: "run-1",
	})
	testenv.OK(t, err)
}

func (b *outboxBench) sweep(t *testing.T) {
	t.Helper()
	testenv.Must(b.dispatcher.Sweep(t.Context()))(t)
}

// newFilledOutbox returns an outbox with four messages of each status and of each of two tenants, a minute apart: 0
// to 3 pending, 4 to 7 failed, 8 to 11 processed, 12 to 15 dead. It is 12:16.
func newFilledOutbox(t *testing.T) *outboxBench {
	t.Helper()
	b := newOutboxBench(t)
	b.fill(t)
	return b
}

func (b *outboxBench) fill(t *testing.T) {
	t.Helper()
	b.deliver = func(_ context.Context, e outbox.Event) error {
		var body struct{ N int }
		if err := json.Unmarshal(e.Payload, &body); err != nil {
			return err
		}
		switch body.N / 4 {
		case 1:
			return errors.New("no line")
		case 3:
			return &outbox.DeliveryError{Permanent: true, Status: 410, Err: errors.New("gone for good")}
		}
		return nil
	}
	fill := func(from, to int) {
		for n := from; n < to; n++ {
			b.add(t, "acme", n)
			b.add(t, "/b%", n)
			b.pass(time.Minute)
		}
	}
	fill(4, 16)
	b.sweep(t)
	fill(0, 4)
	b.deliver = nil
}

// send sends a request with a body; headers are name, value, name, value.
func (b *outboxBench) send(t *testing.T, method, target, body string, headers ...string) *httptest.ResponseRecorder {
	t.Helper()
	req := httptest.NewRequestWithContext(t.Context(), method, target, strings.NewReader(body))
	for i := 0; i < len(headers); i += 2 {
		req.Header.Add(headers[i], headers[i+1])
	}
	rec := serve(b.echo, req)
	conform(t, req, body, rec)
	return rec
}

func (b *outboxBench) get(t *testing.T, target string, headers ...string) *httptest.ResponseRecorder {
	t.Helper()
	return b.send(t, http.MethodGet, target, "", headers...)
}

// drive delivers the runtime's due signals until none is left.
func (b *outboxBench) drive(t *testing.T) {
	t.Helper()
	b.driveFrom(t, b.runtime.ScheduleQueue())
	b.driveFrom(t, b.runtime.SignalQueue())
}

func (b *outboxBench) driveFrom(t *testing.T, queue string) {
	t.Helper()
	for {
		batch, err := b.queues.Receive(t.Context(), queue, 32, time.Minute)
		testenv.OK(t, err)
		if len(batch) == 0 {
			return
		}
		for _, m := range batch {
			s, err := orchestrator.DecodeSignal(queues.Decode(m.Text))
			if err == nil {
				_, err = b.runtime.Deliver(t.Context(), s)
			}
			if err == nil {
				err = b.queues.Delete(t.Context(), queue, m.ID, m.PopReceipt)
			}
			testenv.OK(t, err)
		}
	}
}

// data returns the data of an answer.
func data[T any](t *testing.T, rec *httptest.ResponseRecorder) T {
	t.Helper()
	var a struct {
		Status string
		Data   T
	}
	if err := json.Unmarshal(rec.Body.Bytes(), &a); err != nil || a.Status != "Succeeded" {
		t.Fatalf("%d %s, %v", rec.Code, rec.Body, err)
	}
	return a.Data
}

// walk reads a list to its end, page by page.
func walk[T any](t *testing.T, b *outboxBench, target string, headers ...string) (items []T) {
	t.Helper()
	from := target
	for range 200 {
		rec := b.get(t, from, headers...)
		expect(t, rec, http.StatusOK, "", "%.100s", from)
		page := data[list[T]](t, rec)
		if items = append(items, page.Items...); page.ContinuationToken == "" {
			return items
		}
		from = target + map[bool]string{true: "&", false: "?"}[strings.Contains(target, "?")] + "continuationToken=" + url.QueryEscape(page.ContinuationToken)
	}
	t.Fatalf("%.100s does not end", target)
	return nil
}

// each returns a text of each item.
func each[T any](items []T, of func(item T) string) (texts []string) {
	for _, item := range items {
		texts = append(texts, of(item))
	}
	return texts
}

// expect checks the status of an answer, and the code of its error unless that is ""; format describes the request.
func expect(t *testing.T, rec *httptest.ResponseRecorder, status int, errorCode, format string, args ...any) {
	t.Helper()
	if rec.Code != status || errorCode != "" && code(t, rec) != errorCode {
		t.Errorf("%s: %d, want %d %s: %.1000s", fmt.Sprintf(format, args...), rec.Code, status, errorCode, rec.Body)
	}
}
