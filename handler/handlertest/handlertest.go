// Package handlertest runs a whole app in a test: on memory stores, with the test as the Functions host (it delivers
// messages, fires timers and sends HTTP requests). It owns no storage keys.
//
//	h := handlertest.New(t, handler.App{Engines: engines}, nil)
//	h.Send("backup-queue", `{"correlationId": "c1", "input": {"days": 7}}`)
//	h.Deliver()
//	entries := h.History("backup")
//
// An app handles its own messages immediately; here it does not, unless a test sets ROUNDHOUSE_DIRECT, because
// Deliver delivers.
//
// In a bubble of testing/synctest, time is virtual: time.Sleep lets timers of any length become due, which Deliver then delivers.
package handlertest

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/vibedata/roundhouse/blobs"
	"github.com/vibedata/roundhouse/engine"
	"github.com/vibedata/roundhouse/handler"
	"github.com/vibedata/roundhouse/handler/function"
	"github.com/vibedata/roundhouse/orchestrator"
	"github.com/vibedata/roundhouse/queues"
	"github.com/vibedata/roundhouse/tables"
)

// visibility is the time until a failed message is redelivered, as in the host.json of new modules.
const visibility = 30 * time.Second

// maxDeliveries bounds Deliver: an app that sends messages for ever fails its test.
const maxDeliveries = 10_000

// Host is an app on memory stores. An error fails the test.
type Host struct {
	t       testing.TB
	app     handler.App
	handler *handler.Handler
	listens map[string]string // functions by queue
	// disabled are functions that are not called.
	disabled map[string]bool

	// Tables, Queues and Blobs are the app's stores. With ROUNDHOUSE_PAYLOAD_KEY, payloads in them are encrypted.
	Tables *tables.Memory
	Queues *queues.Memory
	Blobs  *blobs.Memory
}

// New starts an app with settings, in addition to those of a developer's host. With WEBSITE_SITE_NAME it is an app in
// Azure. It is closed when the test ends.
func New(t testing.TB, a handler.App, settings map[string]string) *Host {
	t.Helper()
	return NewWith(t, a, settings, func(*handler.Config) {})
}

// NewWith is New for an app whose configuration change may change, for example to add faults to its stores.
func NewWith(t testing.TB, a handler.App, settings map[string]string, change func(c *handler.Config)) *Host {
	t.Helper()
	h := &Host{t: t, app: a, Tables: tables.NewMemory(), Queues: queues.NewMemory(), Blobs: blobs.NewMemory()}
	h.Restart(settings, change)
	t.Cleanup(func() { h.handler.Close() })
	return h
}

// Restart ends the app's process and starts another one, which continues with the same stores. The settings and the
// configuration are for the new process alone.
func (h *Host) Restart(settings map[string]string, change func(c *handler.Config)) {
	h.t.Helper()
	if h.handler != nil {
		h.handler.Close()
	}
	config := handler.Config{Lookup: lookup(settings), Tables: h.Tables, Queues: h.Queues, Blobs: h.Blobs}
	change(&config)
	var err error
	if h.handler, err = handler.New(h.app, config); err != nil {
		h.t.Fatalf("the app: %v", err)
	}
	if err := h.handler.Start(h.t.Context()); err != nil {
		h.t.Fatalf("start the app: %v", err)
	}
	h.listens = map[string]string{}
	for name, f := range h.handler.Manifest().Functions {
		if queue := f.Bindings[0].QueueName; queue != "" {
			h.listens[queue] = name
		}
	}
}

// Leave ends the work of the app's process like a signal to stop: its work in progress is requeued for others, and
// later deliveries, too.
func (h *Host) Leave() {
	h.t.Helper()
	if err := h.handler.Leave(h.t.Context()); err != nil {
		h.t.Error(err)
	}
}

// lookup finds the settings of a test, and those of the host and its host.json.
func lookup(settings map[string]string) func(string) (string, bool) {
	host := map[string]string{"AZURE_FUNCTIONS_ENVIRONMENT": "Development", "FUNCTIONS_CORETOOLS_ENVIRONMENT": "true", "AzureWebJobsStorage": "UseDevelopmentStorage=true", "FUNCTIONS_CUSTOMHANDLER_PORT": "0",
		"ROUNDHOUSE_DIRECT": "0", // the test delivers messages
		"AzureFunctionsJobHost__extensions__queues__maxDequeueCount": "100"}
	return func(name string) (string, bool) {
		if value, ok := settings[name]; ok {
			return value, true
		}
		value, ok := host[name]
		return value, ok
	}
}

// Manifest describes the app.
func (h *Host) Manifest() handler.Manifest { return h.handler.Manifest() }

// Disable stops deliveries to a function, or resumes them, like the app setting AzureWebJobs.{function}.Disabled.
func (h *Host) Disable(function string, disabled bool) {
	h.t.Helper()
	if _, ok := h.handler.Manifest().Functions[function]; !ok {
		h.t.Fatalf("there is no function %s", function)
	}
	if h.disabled == nil {
		h.disabled = map[string]bool{}
	}
	h.disabled[function] = disabled
}

// Send sends a message to a queue.
func (h *Host) Send(queue, body string) {
	h.t.Helper()
	if _, err := h.Queues.Send(h.t.Context(), queue, []byte(body), 0); err != nil {
		h.t.Fatal(err)
	}
}

// Deliver delivers the due messages, and those that they cause, until none is due, and returns the number of accepted
// deliveries. A refused message stays in its queue and is due again after 30 s.
func (h *Host) Deliver() (taken int) {
	h.t.Helper()
	for deliveries := 0; ; {
		before := deliveries
		if err := h.handler.Settled(h.t.Context()); err != nil { // deliveries of events, which may leave wake-ups behind
			h.t.Fatal(err)
		}
		for queue, name := range h.listens {
			if h.disabled[name] {
				continue
			}
			received, err := h.Queues.Receive(h.t.Context(), queue, queues.MaxReceive, visibility)
			if err != nil && !errors.Is(err, queues.ErrNotFound) { // like the host, it waits for missing queues
				h.t.Fatal(err)
			}
			for _, m := range received {
				if deliveries++; deliveries > maxDeliveries {
					h.t.Fatalf("after %d deliveries there are still messages, the last in %s", maxDeliveries, queue)
				}
				if h.invoke(name, function.QueueParameter, base64.StdEncoding.EncodeToString([]byte(m.Text)),
					map[string]any{"Id": m.ID, "DequeueCount": m.DequeueCount, "InsertionTime": m.InsertedAt}) {
					taken++
					if err := h.Queues.Delete(h.t.Context(), queue, m.ID, m.PopReceipt); err != nil {
						h.t.Fatal(err)
					}
				}
			}
		}
		if deliveries == before {
			return taken
		}
	}
}

// Tick fires a timer function for the time at which it was due, and reports whether it succeeded.
func (h *Host) Tick(name string, due time.Time) bool {
	h.t.Helper()
	return h.invoke(name, function.TimerParameter, map[string]any{"ScheduleStatus": map[string]any{"Next": due}, "IsPastDue": false},
		map[string]any{"sys": map[string]any{"UtcNow": due.Add(time.Second)}})
}

// Schedule sends the messages of an occurrence of a schedule, of all its targets, and returns their number. An app
// itself sends due slots when the timer "schedules-timer" fires.
func (h *Host) Schedule(engine, schedule string, slot time.Time) (sent int) {
	h.t.Helper()
	sent, err := h.handler.SendSlot(h.t.Context(), engine, schedule, slot)
	if err != nil {
		h.t.Fatal(err)
	}
	return sent
}

// invoke calls a function as the host does.
func (h *Host) invoke(name, parameter string, value any, metadata map[string]any) bool {
	h.t.Helper()
	body, err := json.Marshal(map[string]any{"Data": map[string]any{parameter: value}, "Metadata": metadata})
	if err != nil {
		h.t.Fatal(err)
	}
	status, answer := h.Do(http.MethodPost, "/"+name, string(body))
	if status == http.StatusNotFound {
		h.t.Fatalf("there is no function %s: %s", name, answer)
	}
	return status == http.StatusOK
}

// ServeHTTP lets the app's process answer a request, for example over a Network.
func (h *Host) ServeHTTP(w http.ResponseWriter, r *http.Request) { h.handler.ServeHTTP(w, r) }

// Do sends an HTTP request, such as POST /api/orders, with JSON in its body. On a developer's host, it comes from the
// local user; as sets another caller, like accesstest.Caller.Sign.
func (h *Host) Do(method, path, body string, as ...func(*http.Request)) (status int, answer string) {
	h.t.Helper()
	req := httptest.NewRequestWithContext(h.t.Context(), method, path, strings.NewReader(body))
	req.Host = "localhost"
	req.Header.Set("Content-Type", "application/json")
	for _, change := range as {
		change(req)
	}
	rec := httptest.NewRecorder()
	h.handler.ServeHTTP(rec, req)
	return rec.Code, rec.Body.String()
}

// History returns the history of an engine, newest first, up to a hundred entries.
func (h *Host) History(name string) []engine.Entry {
	h.t.Helper()
	page, err := engine.NewHistory(h.tables(), "").List(h.t.Context(), engine.HistoryFilter{Engines: []string{name}, Limit: engine.MaxLimit})
	if err != nil {
		h.t.Fatal(err)
	}
	return page.Entries
}

// DeadLetters returns an engine's dead letters, newest first, up to a hundred.
func (h *Host) DeadLetters(name string) []engine.DeadLetter {
	h.t.Helper()
	page, err := engine.NewDeadLetters(h.tables(), "").List(h.t.Context(), engine.DeadLetterFilter{Engines: []string{name}, Limit: engine.MaxLimit})
	if err != nil {
		h.t.Fatal(err)
	}
	return page.DeadLetters
}

// Outcome returns the state or the end of an orchestration. The id of an engine's run is "{engine}-{correlation id}",
// of a singleton's "{engine}-{instance id}" or "{engine}-{tenant id}".
func (h *Host) Outcome(id string) orchestrator.Outcome {
	h.t.Helper()
	rows, _, data := h.handler.Stores()
	runtime, err := orchestrator.New(orchestrator.Config{Tables: rows, Blobs: data})
	if err != nil {
		h.t.Fatal(err)
	}
	outcome, err := runtime.Get(h.t.Context(), id)
	if err != nil {
		h.t.Fatalf("orchestration %s: %v", id, err)
	}
	return outcome
}

// tables returns the app's table store, as the app uses it.
func (h *Host) tables() tables.Store {
	rows, _, _ := h.handler.Stores()
	return rows
}
