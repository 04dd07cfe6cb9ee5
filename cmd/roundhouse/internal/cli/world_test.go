package cli

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
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/labstack/echo/v4"

	"github.com/vibedata/roundhouse/audit"
	"github.com/vibedata/roundhouse/blobs"
	"github.com/vibedata/roundhouse/engine"
	"github.com/vibedata/roundhouse/engine/consumers"
	"github.com/vibedata/roundhouse/engine/hmac"
	"github.com/vibedata/roundhouse/engine/registry"
	"github.com/vibedata/roundhouse/engine/schedule"
	"github.com/vibedata/roundhouse/handler/access"
	"github.com/vibedata/roundhouse/handler/access/accesstest"
	"github.com/vibedata/roundhouse/handler/api"
	"github.com/vibedata/roundhouse/handler/api/bulk"
	"github.com/vibedata/roundhouse/handler/api/health"
	"github.com/vibedata/roundhouse/handler/api/metrics"
	"github.com/vibedata/roundhouse/internal/azurite/azuritetest"
	"github.com/vibedata/roundhouse/internal/testenv"
	"github.com/vibedata/roundhouse/orchestrator"
	"github.com/vibedata/roundhouse/orchestrator/catalog"
	"github.com/vibedata/roundhouse/orchestrator/nodes"
	"github.com/vibedata/roundhouse/outbox"
	"github.com/vibedata/roundhouse/queues"
	"github.com/vibedata/roundhouse/tables"
)

var storage azuritetest.Shared

func TestMain(m *testing.M) { storage.Main(m) }

const functionKey = "a-function-key"

// world is the whole API over stores in memory, served over HTTP: to callers with the key at the address for
// machines, and to callers authenticated by the platform at the other. Background work of a request is done before
// the next one.
type world struct {
	url     string
	tables  *tables.Memory
	queues  *queues.Memory
	runtime *orchestrator.Runtime
	letters *engine.DeadLetters
	history *engine.History
	outbox  *outbox.Outbox
	sweep   func(context.Context) error
	list    *catalog.Catalog

	// changed makes the code of "turns" decide differently; ahead is the lead of the API's clock.
	changed atomic.Bool
	ahead   atomic.Int64

	mu sync.Mutex
	// refuse answers requests instead of the API when it is not nil.
	refuse http.HandlerFunc
	// idle skips the background work of requests.
	idle bool
	// asked are the received requests, by method and path of the API, and outside those as sent.
	asked, outside []string
	// platform authenticates callers when it is not nil.
	platform func(r *http.Request)
}

// sink is a destination that accepts everything except unreadable payloads.
type sink struct{}

func (sink) Deliver(_ context.Context, e outbox.Event) error {
	if strings.Contains(string(e.Payload), "bad") {
		return &outbox.DeliveryError{Permanent: true, Status: http.StatusGone, Err: errors.New("gone for good")}
	}
	return nil
}

// approval returns an orchestrator that creates a task, or waits for the event "decision".
func approval() orchestrator.AnyOrchestrator {
	return orchestrator.NewOrchestrator("approval", func(ctx *orchestrator.Context, in string) (string, error) {
		switch in {
		case "ask":
			said, err := orchestrator.AskPerson[json.RawMessage](ctx, orchestrator.HumanTask{Name: "approve", Roles: []string{"approver"}, Due: time.Hour}).Await()
			return string(said.Output), err
		case "fail":
			return "", orchestrator.Permanent(errors.New("it is broken"))
		}
		_, err := orchestrator.Event[bool](ctx, "decision").Await()
		return "decided", err
	})
}

func must(t *testing.T, errs ...error) {
	t.Helper()
	testenv.OK(t, errors.Join(errs...))
}

func newWorld(t *testing.T) *world {
	t.Helper()
	w := &world{tables: tables.NewMemory(), queues: queues.NewMemory()}
	store := blobs.NewMemory()
	quiet := slog.New(slog.DiscardHandler)
	w.history, w.letters = engine.NewHistory(w.tables, ""), engine.NewDeadLetters(w.tables, "")
	instances := registry.New(w.tables, "")
	must(t, instances.CreateTable(t.Context()))
	var err error
	counted := metrics.New()
	w.outbox, err = outbox.New(outbox.Config{Tables: w.tables, Queues: w.queues, Blobs: store, Options: outbox.DefaultOptions(), Node: "node-1", Logger: quiet, Observer: counted.Outbox()})
	must(t, err)
	router, err := outbox.NewRouter([]outbox.Route{{EventType: "*", Destination: "sink"}}, outbox.Destinations{"sink": sink{}})
	must(t, err)
	dispatcher, err := outbox.NewDispatcher(w.outbox, outbox.DispatcherConfig{Router: router})
	must(t, err)
	w.sweep = func(ctx context.Context) error { _, err := dispatcher.Sweep(ctx); return err }
	admin := outbox.NewAdmin(w.outbox)
	retrier, err := engine.NewRetrier(engine.RetrierConfig{DeadLetters: w.letters, Queues: w.queues, CheckEdit: func(context.Context, engine.DeadLetter, []byte) error { return nil }})
	must(t, err)
	kinds := []bulk.Kind{bulk.Outbox(admin), bulk.DeadLetters{Letters: w.letters, Retrier: retrier, Engines: []string{"hmac", "tls"}}.Kind(),
		bulk.Orchestrations(func() bulk.Purger { return w.runtime })}
	w.list, err = catalog.New(catalog.Config{Tables: w.tables, Runtime: func() *orchestrator.Runtime { return w.runtime }, Linger: time.Hour})
	must(t, err)
	t.Cleanup(w.list.Close)
	w.runtime, err = orchestrator.New(orchestrator.Config{Tables: w.tables, Blobs: store, Queues: w.queues, Log: quiet, StatusChanged: w.list.Record,
		Orchestrators: append(bulk.Orchestrators(kinds...), approval(), w.turns(), hmacRun()), Activities: bulk.Activities(kinds...)})
	must(t, err)
	snapshot := metrics.Cached(outbox.NewMonitor(w.outbox).Snapshot, 0, nil)
	checks, err := health.New(health.Config{Tables: w.tables, Table: outbox.DefaultTable, Queues: w.queues, Queue: outbox.DefaultQueue, Outbox: snapshot, ReleaseID: "1.2.3", Log: quiet,
		Damaged: func(ctx context.Context) (int, error) {
			found, _, err := w.runtime.Damages(ctx, 1000)
			return len(found), err
		}})
	must(t, err, w.outbox.Create(t.Context()), w.runtime.Prepare(t.Context()), w.list.Prepare(t.Context()), w.history.CreateTable(t.Context()),
		w.letters.CreateTable(t.Context()), w.door().Audit.CreateTable(t.Context()), w.queues.CreateQueue(t.Context(), hmac.Queue))
	needed, err := consumers.New(consumers.Config{Engine: "hmac", Tables: w.tables, Outbox: admin, Targets: map[string]consumers.Target{"i-1": {Names: []string{"gateway"}}},
		Knows: func(_ context.Context, _, version string) (bool, error) { return version == "v2", nil }})
	must(t, err, w.tables.CreateTable(t.Context(), consumers.Table))
	e := echo.New()
	must(t, api.Register(e, api.Config{Consumers: map[string]*consumers.Consumers{"hmac": needed}, Descriptions: []engine.Description{{Name: "hmac", Queue: hmac.Queue, Operations: []string{"rotate"}}}, History: w.history, DeadLetters: w.letters, Engines: []string{"hmac", "tls"}, Outbox: admin,
		Operations: bulk.NewOperations(w.runtime, nil), Snapshot: snapshot, Backlog: dispatcher.Backlog, Metrics: counted, Health: checks, Tasks: w.runtime.Tasks(), Schedules: w.schedules(t), Nodes: w.nodes, Registry: instances, Door: w.door(),
		Retrier: retrier, Runtime: w.runtime, List: w.list.List, Log: quiet, RunID: w.runID, Now: func() time.Time { return time.Now().Add(time.Duration(w.ahead.Load())) }}))
	server := httptest.NewServer(w.serve(t, e))
	t.Cleanup(func() {
		http.DefaultClient.CloseIdleConnections()
		server.Close()
	})
	w.url = server.URL
	return w
}

// nodes returns the nodes of the API: one that was lost, one whose takeover is not finished, and the node that took
// over both.
func (w *world) nodes(context.Context) ([]nodes.Info, error) {
	began := time.Date(2026, 11, 21, 9, 0, 0, 0, time.UTC)
	lost := nodes.Info{Name: "web-1-398", State: nodes.StateTaken, Since: began, Seen: began.Add(time.Hour), Hand: nodes.Hand{Count: 3},
		TakenBy: "web-2-411", TakenAt: began.Add(2 * time.Hour), TakenOver: 3, Finished: true}
	begun := nodes.Info{Name: "web-1-399", State: nodes.StateTaken, Since: began, Seen: began.Add(time.Hour), TakenBy: "web-2-411", TakenAt: time.Now()}
	return []nodes.Info{lost, begun, {Name: "web-2-411", Version: "4f0c2d9", State: nodes.StateAlive, Since: began, Seen: began.Add(3 * time.Hour),
		Said: outbox.EncodeCircuits([]outbox.OpenCircuit{{Destination: "crm", Since: began, Until: began.Add(time.Minute), Failures: 5, Reason: "status 503"}})}}, nil
}

// schedules returns the schedules of the API: one of an engine with a target.
func (w *world) schedules(t *testing.T) *schedule.Scheduler {
	t.Helper()
	items := engine.FixedItems(engine.Item{Name: "payments", Message: func(time.Time) (engine.Message, error) { return engine.Message{InstanceID: "payments"}, nil }})
	plan, err := schedule.NewPlan([]engine.Definition{{Name: "hmac", Queue: hmac.Queue, Schedules: []engine.Schedule{{Name: "schedule", Cron: "0 11 2 * * *", Items: items}}}}, nil)
	must(t, err)
	s, err := schedule.New(schedule.Config{Plan: plan, Tables: w.tables, Queues: w.queues})
	must(t, err, s.CreateTable(t.Context()))
	return s
}

// door returns an entry point that grants everything to callers with the key, and to users of the tenant "home" the
// permissions of their roles.
func (w *world) door() access.Door {
	return access.Door{Name: "api", Audit: &audit.Log{Tables: w.tables}, Control: access.Control{EasyAuth: true,
		Policy: access.Policy{HomeTenant: accesstest.ID("home"), Keys: string(access.Administrator)}}}
}

// serve returns the API behind the host, which requires the key at the address for machines.
func (w *world) serve(t *testing.T, next http.Handler) http.Handler {
	return http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		w.mu.Lock()
		w.outside = append(w.outside, r.Method+" "+r.URL.EscapedPath())
		machine := strings.HasPrefix(r.URL.Path, access.MachinePrefix)
		r = access.Machine(r)
		w.asked = append(w.asked, r.Method+" "+r.URL.EscapedPath())
		refuse, idle, platform := w.refuse, w.idle, w.platform
		w.mu.Unlock()
		if platform != nil {
			platform(r)
		}
		switch {
		case refuse != nil:
			refuse(rw, r)
			return
		case machine && r.Header.Get("x-functions-key") != functionKey:
			rw.WriteHeader(http.StatusUnauthorized)
			return
		}
		if !idle {
			w.drive(t)
		}
		next.ServeHTTP(rw, r)
	})
}

// drive delivers the runtime's signals until none is left, and updates the list of orchestrations.
func (w *world) drive(t *testing.T) {
	ctx := context.Background()
	defer func() {
		if err := w.list.Flush(ctx); err != nil {
			t.Error(err)
		}
	}()
	for _, queue := range []string{w.runtime.ScheduleQueue(), w.runtime.SignalQueue()} {
		for {
			batch, err := w.queues.Receive(ctx, queue, 32, time.Minute)
			if err != nil {
				t.Error(err)
			}
			if len(batch) == 0 {
				break
			}
			for _, m := range batch {
				s, err := orchestrator.DecodeSignal(queues.Decode(m.Text))
				if err == nil {
					_, err = w.runtime.Deliver(ctx, s)
				}
				if err == nil {
					err = w.queues.Delete(ctx, queue, m.ID, m.PopReceipt)
				}
				if err != nil {
					t.Error(err)
				}
			}
		}
	}
}

// refusing replaces the API's answers.
func (w *world) refusing(answer http.HandlerFunc) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.refuse = answer
}

// leave skips the background work of requests.
func (w *world) leave() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.idle = true
}

// changes returns the requests that changed something.
func (w *world) changes() (changes []string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, r := range w.asked {
		if !strings.HasPrefix(r, http.MethodGet) {
			changes = append(changes, r)
		}
	}
	return changes
}

// deadLetter adds a dead letter, and returns its row key.
func (w *world) deadLetter(t *testing.T, id, reason string, failed time.Time) string {
	t.Helper()
	d := engine.DeadLetter{Engine: "hmac", MessageID: id, InsertedAtUtc: failed.Truncate(time.Second), InstanceID: "i-1", OriginalQueue: hmac.Queue,
		OriginalMessage: []byte(`{"correlationId":"` + id + `"}`), ErrorMessage: reason, DequeueCount: 5, LastFailureAtUtc: failed, CorrelationID: "run-" + id}
	_, err := w.letters.Add(t.Context(), d)
	must(t, err)
	page, err := w.letters.List(t.Context(), engine.DeadLetterFilter{Engines: []string{"hmac"}, CorrelationID: "run-" + id})
	must(t, err)
	return page.DeadLetters[0].RowKey
}

// record adds an entry to the history.
func (w *world) record(t *testing.T, correlationID string, ended time.Time) engine.Entry {
	t.Helper()
	e := engine.Entry{Engine: "hmac", InstanceID: "i-1", Operation: "rotate", Status: engine.StatusSucceeded, RunStatus: engine.StatusSucceeded, DurationMs: 1234,
		Output: json.RawMessage(`{"version":"v2"}`), CreatedAtUtc: ended, CorrelationID: correlationID}
	must(t, w.history.Record(t.Context(), e))
	run, err := w.history.Run(t.Context(), "hmac", correlationID)
	must(t, err)
	return run[0]
}

// add adds a message to the outbox, and returns its id.
func (w *world) add(t *testing.T, tenant, payload string) string {
	t.Helper()
	key := outbox.Key("test", tenant, payload, "", "")
	_, err := outbox.NewWriter(w.outbox).Add(t.Context(), outbox.Message{TenantID: tenant, EventType: "type.1", Payload: json.RawMessage(payload), Key: key})
	must(t, err)
	return key.String()
}

// result is the result of a program run.
type result struct {
	code     int
	out, err string
}

// environment returns a lookup.
func environment(settings map[string]string) func(string) (string, bool) {
	return func(name string) (string, bool) {
		v, ok := settings[name]
		return v, ok
	}
}

// main returns the program for this world, without a terminal.
func (w *world) main(settings map[string]string) (m Main, out, errs *bytes.Buffer) {
	all := map[string]string{"ROUNDHOUSE_URL": w.url, "ROUNDHOUSE_KEY": functionKey}
	for name, value := range settings {
		all[name] = value
	}
	out, errs = &bytes.Buffer{}, &bytes.Buffer{}
	return Main{Stdin: strings.NewReader(""), Stdout: out, Stderr: errs, Lookup: environment(all), Poll: time.Millisecond}, out, errs
}

func (w *world) run(t *testing.T, args ...string) result {
	t.Helper()
	return w.runWith(t, nil, args...)
}

func (w *world) runWith(t *testing.T, settings map[string]string, args ...string) result {
	t.Helper()
	m, out, errs := w.main(settings)
	code := m.Run(t.Context(), args)
	return result{code, out.String(), errs.String()}
}

// want runs the program, and fails the test for another exit code, or if a text is missing in the output.
func (w *world) want(t *testing.T, code int, texts []string, args ...string) result {
	t.Helper()
	r := w.run(t, args...)
	check(t, r, code, texts, args...)
	return r
}

func check(t *testing.T, r result, code int, texts []string, args ...string) {
	t.Helper()
	for _, text := range texts {
		if !strings.Contains(r.out+r.err, text) {
			t.Errorf("%q: no %q in\n%s%s", args, text, r.out, r.err)
		}
	}
	if r.code != code {
		t.Errorf("%q: exit code %d, want %d\n%s%s", args, r.code, code, r.out, r.err)
	}
}

// begin starts an approval.
func (w *world) begin(t *testing.T, id, input string) {
	t.Helper()
	_, err := w.runtime.Run(t.Context(), orchestrator.Start{Orchestrator: "approval", ID: id, Input: fmt.Appendf(nil, "%q", input)})
	var failed *orchestrator.Failure
	if err != nil && !errors.As(err, &failed) {
		t.Fatal(err)
	}
}

// file makes a file with a text.
func file(t *testing.T, text string) string {
	t.Helper()
	f, err := os.CreateTemp(t.TempDir(), "input")
	must(t, err)
	_, err = io.WriteString(f, text)
	must(t, err, f.Close())
	return f.Name()
}
