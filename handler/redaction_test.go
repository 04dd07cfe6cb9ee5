package handler_test

import (
	"bytes"
	"compress/flate"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/vibedata/roundhouse/blobs"
	"github.com/vibedata/roundhouse/engine"
	"github.com/vibedata/roundhouse/handler"
	"github.com/vibedata/roundhouse/handler/function"
	"github.com/vibedata/roundhouse/internal/redact/redacttest"
	"github.com/vibedata/roundhouse/internal/testenv"
	"github.com/vibedata/roundhouse/orchestrator"
	"github.com/vibedata/roundhouse/orchestrator/tasks"
	"github.com/vibedata/roundhouse/outbox"
	"github.com/vibedata/roundhouse/queues"
	"github.com/vibedata/roundhouse/tables"
)

// record is all that an app has written: into storage, into its log, and as answers.
type record struct {
	mu    sync.Mutex
	texts map[string][]string // by where they were written
}

func (r *record) add(place, text string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.texts[place] = append(r.texts[place], text)
}

// Write takes the log.
func (r *record) Write(line []byte) (int, error) {
	r.add("log", string(line))
	return len(line), nil
}

type recordedTables struct {
	*tables.Memory
	*record
}

func (t recordedTables) Apply(ctx context.Context, table string, ops ...tables.Op) error {
	for _, op := range ops {
		for name, value := range op.Entity.Properties {
			switch value := value.(type) {
			case string:
				t.add("column "+table+"."+name, value)
			case []byte:
				t.add("column "+table+"."+name, inflated(value))
			}
		}
	}
	return t.Memory.Apply(ctx, table, ops...)
}

// inflated is what a column of a round holds, whether it is compressed or not.
func inflated(data []byte) string {
	if text, err := io.ReadAll(flate.NewReader(bytes.NewReader(data))); err == nil {
		return string(text)
	}
	return string(data)
}

type recordedQueues struct {
	*queues.Memory
	*record
}

func (q recordedQueues) Send(ctx context.Context, queue string, body []byte, delay time.Duration) (string, error) {
	q.add("queue "+queue, string(body))
	return q.Memory.Send(ctx, queue, body, delay)
}

type recordedBlobs struct {
	*blobs.Memory
	*record
}

func (b recordedBlobs) Put(ctx context.Context, container, name string, data []byte) error {
	b.add("container "+container, inflated(data))
	return b.Memory.Put(ctx, container, name, data)
}

// house is an app whose outside tells secrets, and what the app has written.
type house struct {
	t testing.TB
	*handler.Handler
	*record
	tables recordedTables
	queues recordedQueues
	blobs  recordedBlobs
	// seen are the errors that orchestrators were given.
	seen *record
}

func newHouse(t testing.TB, app handler.App, settings map[string]string) *house {
	t.Helper()
	r := &record{texts: map[string][]string{}}
	h := &house{t: t, record: r, tables: recordedTables{tables.NewMemory(), r}, queues: recordedQueues{queues.NewMemory(), r},
		blobs: recordedBlobs{blobs.NewMemory(), r}}
	lookup := func(name string) (string, bool) {
		host := map[string]string{"AZURE_FUNCTIONS_ENVIRONMENT": "Development", "FUNCTIONS_CORETOOLS_ENVIRONMENT": "true",
			"AzureWebJobsStorage": "UseDevelopmentStorage=true", "FUNCTIONS_CUSTOMHANDLER_PORT": "0",
			"AzureFunctionsJobHost__extensions__queues__maxDequeueCount": "100"}
		if value, ok := settings[name]; ok {
			return value, true
		}
		value, ok := host[name]
		return value, ok
	}
	var err error
	h.Handler, err = handler.New(app, handler.Config{Lookup: lookup, Tables: h.tables, Queues: h.queues, Blobs: h.blobs,
		Log: slog.New(slog.NewJSONHandler(r, &slog.HandlerOptions{Level: slog.LevelDebug}))})
	testenv.Check(t, err)
	t.Cleanup(h.Close)
	testenv.Check(t, h.Start(t.Context()))
	return h
}

func (h *house) do(method, path, body string) (int, string) {
	req := httptest.NewRequestWithContext(h.t.Context(), method, path, strings.NewReader(body))
	req.Host = "localhost"
	req.Header.Set("Content-Type", "application/json")
	rec := httptest.NewRecorder()
	h.ServeHTTP(rec, req)
	h.add("answer of "+method, rec.Body.String())
	return rec.Code, rec.Body.String()
}

// deliver delivers what is in the queues until nothing is left that the app takes.
func (h *house) deliver() {
	for again := true; again; {
		again = false
		testenv.Check(h.t, h.Settled(h.t.Context()))
		for name, f := range h.Manifest().Functions {
			queue := f.Bindings[0].QueueName
			if queue == "" {
				continue
			}
			messages, err := h.queues.Receive(h.t.Context(), queue, queues.MaxReceive, time.Hour)
			if err != nil && !errors.Is(err, queues.ErrNotFound) {
				h.t.Fatal(err)
			}
			for _, m := range messages {
				again = true
				body, err := json.Marshal(map[string]any{"Data": map[string]any{function.QueueParameter: base64.StdEncoding.EncodeToString([]byte(m.Text))},
					"Metadata": map[string]any{"Id": m.ID, "DequeueCount": m.DequeueCount, "InsertionTime": m.InsertedAt}})
				testenv.Check(h.t, err)
				if status, _ := h.do(http.MethodPost, "/"+name, string(body)); status == http.StatusOK {
					testenv.Check(h.t, h.queues.Delete(h.t.Context(), queue, m.ID, m.PopReceipt))
				}
			}
		}
	}
}

func (h *house) runtime() *orchestrator.Runtime {
	r, err := orchestrator.New(orchestrator.Config{Tables: h.tables, Queues: h.queues, Blobs: h.blobs, Log: slog.New(slog.NewJSONHandler(h.record, nil))})
	testenv.Check(h.t, err)
	return r
}

// scan looks for secrets in what was written, apart from the places that hold what the app needs to go on.
func (h *house) scan(secrets []redacttest.Sample, needed ...string) {
	h.t.Helper()
	h.mu.Lock()
	defer h.mu.Unlock()
	for place, texts := range h.texts {
		if slices.Contains(needed, place) {
			continue
		}
		all := strings.Join(texts, "\n")
		for _, s := range secrets {
			if part := s.FoundIn(all); part != "" {
				h.t.Errorf("%s: %q of the secret %q", place, part, s.Kind)
			}
		}
	}
}

// secretError is an error that tells a secret in its fields, too.
type secretError struct{ Detail string }

func (e secretError) Error() string { return "the vault refused: " + e.Detail }

// leaks is an engine whose activities fail with secrets, in all the ways in which they can fail. Its inputs are numbers of
// secrets, so that no payload has one.
func leaks(secrets []redacttest.Sample, seen *record) func(*handler.Platform) ([]engine.Definition, error) {
	typed := orchestrator.WithError[secretError]()
	leak := orchestrator.NewActivity("leak", func(_ context.Context, n int) (int, error) {
		text := secrets[n/3].Text
		switch n % 3 {
		case 0:
			return 0, orchestrator.Permanent(fmt.Errorf("post to the vault: %w", errors.New(text)))
		case 1:
			return 0, orchestrator.Permanent(secretError{text})
		default:
			panic(text)
		}
	})
	run := func(ctx *orchestrator.Context, r engine.Request[int]) (string, error) {
		for way := range 3 {
			_, err := leak.Call(ctx, 3*r.Input+way, typed, orchestrator.WithRetry(orchestrator.Retry{MaxAttempts: 1})).Await()
			if told, ok := errors.AsType[secretError](err); ok {
				seen.add("typed error", told.Detail)
			}
			seen.add("error", fmt.Sprint(err))
			ctx.Logger().Warn("it failed: "+err.Error(), "secret", secrets[r.Input].Text, "error", errors.New(secrets[r.Input].Text))
		}
		if err := ctx.Publish(orchestrator.Publication{TenantID: "contoso", Type: "leak.told", Payload: json.RawMessage(strconv.Itoa(r.Input))}); err != nil {
			return "", err
		}
		answer, err := orchestrator.AskPerson[bool](ctx, orchestrator.HumanTask{Name: "decide"}).Await()
		if err != nil || answer.Output {
			return "", err
		}
		return "", orchestrator.Permanent(errors.New(secrets[r.Input].Text))
	}
	return func(*handler.Platform) ([]engine.Definition, error) {
		return []engine.Definition{{Name: "leak", Queue: "leak-queue", Orchestrator: engine.Orchestrate("leak", run), Operations: []orchestrator.AnyActivity{leak}}}, nil
	}
}

// TestNoSecretGetsThrough sends the corpus of secrets through the doors by which texts come in from outside: errors and
// panics of activities, errors of orchestrators, logs, receivers' answers, notes on tasks and dead letters, and reasons of
// commands. None is left in any table, queue, blob, log or answer.
func TestNoSecretGetsThrough(t *testing.T) {
	t.Parallel()
	secrets := redacttest.Secrets()
	var asked sync.Map
	receiver := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		body, _ := io.ReadAll(req.Body)
		n, err := strconv.Atoi(string(body))
		if err != nil {
			t.Errorf("the event %s: %v", body, err)
		}
		asked.Store(n, true)
		w.WriteHeader(http.StatusBadRequest)
		_, _ = io.WriteString(w, "refused: "+secrets[n].Text)
	}))
	t.Cleanup(receiver.Close)

	seen := &record{texts: map[string][]string{}}
	h := newHouse(t, handler.App{Engines: leaks(secrets, seen)}, map[string]string{
		"ROUNDHOUSE_OUTBOX": `{"destinations":{"r":{"http":{"url":"` + receiver.URL + `/hook","allow":["127.0.0.0/8"],"allowPlaintext":true}}},"routes":[{"eventType":"*","destination":"r"}]}`})
	h.seen = seen
	for n := range secrets {
		testenv.Done(t)(h.queues.Send(t.Context(), "leak-queue", fmt.Appendf(nil, `{"correlationId":"c%d","input":%d}`, n, n), 0))
	}
	h.deliver()
	for range 10 { // a wake-up delivers some of the events, the sweeper the rest
		body, _ := json.Marshal(map[string]any{"Data": map[string]any{function.TimerParameter: map[string]any{"ScheduleStatus": map[string]any{"Next": time.Now()}}},
			"Metadata": map[string]any{"sys": map[string]any{"UtcNow": time.Now()}}})
		if status, answer := h.do(http.MethodPost, "/outbox-sweep-timer", string(body)); status != http.StatusOK {
			t.Fatal(status, answer)
		}
		h.deliver()
	}
	for n := range secrets {
		if _, told := asked.Load(n); !told {
			t.Errorf("the receiver was not told of %d", n)
		}
	}

	// Half of them are decided by people, half of them are commanded. Both leave the secret as a note or reason.
	runtime := h.runtime()
	service := runtime.Tasks()
	everybody := tasks.Person{ID: "ann", All: true}
	open := map[string]tasks.Ref{}
	for place := ""; ; {
		page, err := service.List(t.Context(), tasks.Filter{}, 100, place)
		testenv.Check(t, err)
		for _, task := range page.Tasks {
			open[task.Orchestration] = task.Ref
		}
		if place = page.Continuation; place == "" {
			break
		}
	}
	if len(open) != len(secrets) {
		t.Fatalf("%d tasks of %d are open", len(open), len(secrets))
	}
	commands := []func(context.Context, string, string) error{runtime.Suspend, runtime.Cancel, runtime.Terminate}
	for n, s := range secrets {
		id := fmt.Sprintf("leak-c%d", n)
		if n%2 == 1 {
			testenv.Check(t, commands[n/2%3](t.Context(), id, "because of "+s.Text))
			continue
		}
		ref := open[id]
		testenv.Done(t)(service.Assign(t.Context(), ref, everybody, tasks.Person{ID: "ann"}, "", "assigned with "+s.Text))
		testenv.Done(t)(service.Complete(t.Context(), ref, everybody, json.RawMessage("false"), "", "done with "+s.Text))
	}
	h.deliver()

	letters := engine.NewDeadLetters(h.tables, "")
	for _, name := range []string{"leak", "outbox"} {
		page, err := letters.List(t.Context(), engine.DeadLetterFilter{Engines: []string{name}, Limit: engine.MaxLimit})
		if err != nil || len(page.DeadLetters) < len(secrets)/2 {
			t.Fatalf("%d dead letters of %s: %v", len(page.DeadLetters), name, err)
		}
		for n, d := range page.DeadLetters {
			note := "noted: " + secrets[n].Text
			testenv.Done(t)(letters.Decide(t.Context(), name, d.RowKey, engine.Decision{Status: engine.StatusResolved, Notes: &note, By: "ann", At: time.Now()}))
			h.do(http.MethodGet, "/api/dlq/"+name+"/"+d.RowKey, "")
		}
	}
	for n := range secrets {
		id := fmt.Sprintf("leak-c%d", n)
		for _, path := range []string{"/api/orchestrations/" + id, "/api/orchestrations/" + id + "/rounds", fmt.Sprintf("/api/timeline/c%d", n)} {
			if status, answer := h.do(http.MethodGet, path, ""); status != http.StatusOK {
				t.Fatal(path, status, answer)
			}
		}
	}
	for _, path := range []string{"/api/history?engine=leak", "/api/dlq?engine=leak", "/api/workflow/outbox?tenant=contoso&pageSize=100", "/api/tasks", "/api/metrics"} {
		if status, answer := h.do(http.MethodGet, path, ""); status != http.StatusOK {
			t.Fatal(path, status, answer)
		}
	}
	h.scan(secrets)
	seenBy := &house{t: t, record: seen}
	seenBy.scan(secrets)
	if len(seen.texts["typed error"]) < len(secrets) {
		t.Errorf("%d of %d errors kept their type", len(seen.texts["typed error"]), len(secrets))
	}
}

// keeps is an engine whose payloads are secrets: its input, what it tells others and asks people, and its output.
func keeps(*handler.Platform) ([]engine.Definition, error) {
	echo := orchestrator.NewActivity("echo", func(_ context.Context, text string) (string, error) { return text, nil })
	run := func(ctx *orchestrator.Context, r engine.Request[string]) (string, error) {
		text, err := json.Marshal(r.Input)
		if err != nil {
			return "", err
		}
		if err := ctx.Publish(orchestrator.Publication{TenantID: "contoso", Type: "kept", Payload: text}); err != nil {
			return "", err
		}
		if _, err := orchestrator.AskPerson[string](ctx, orchestrator.HumanTask{Name: "decide", Payload: r.Input}).Await(); err != nil {
			return "", err
		}
		return echo.Call(ctx, r.Input).Await()
	}
	return []engine.Definition{{Name: "keep", Queue: "keep-queue", Orchestrator: engine.Orchestrate("keep", run), Operations: []orchestrator.AnyActivity{echo}}}, nil
}

// TestPayloadsAreShownWithoutSecrets: what the app needs to go on keeps its secrets in storage, and shows none in answers and
// in the log.
func TestPayloadsAreShownWithoutSecrets(t *testing.T) {
	t.Parallel()
	h := newHouse(t, handler.App{Engines: keeps}, nil)
	// One secret of a kind is enough: the samples are held elsewhere.
	secrets := redacttest.Secrets()[:1]
	text := secrets[0].Text
	for _, body := range []string{`{"correlationId":"c1","input":"` + text + `"}`, `no message, but ` + text} {
		testenv.Done(t)(h.queues.Send(t.Context(), "keep-queue", []byte(body), 0))
	}
	h.deliver()
	runtime := h.runtime()
	page, err := runtime.Tasks().List(t.Context(), tasks.Filter{}, 100, "")
	if err != nil || len(page.Tasks) != 1 {
		t.Fatal(page, err)
	}
	output, err := json.Marshal(text)
	testenv.Check(t, err)
	ref := page.Tasks[0].Ref
	show := func(path string) {
		t.Helper()
		status, answer := h.do(http.MethodGet, path, "")
		if status != http.StatusOK || !strings.Contains(answer, "[redacted]") {
			t.Errorf("%s: %d %s", path, status, answer)
		}
	}
	show("/api/tasks/keep-c1/" + ref.ID)
	testenv.Done(t)(runtime.Tasks().Complete(t.Context(), ref, tasks.Person{ID: "ann", All: true}, output, "", ""))
	h.deliver()
	if out, err := runtime.Get(t.Context(), "keep-c1"); err != nil || string(out.Output) != string(output) {
		t.Errorf("the orchestration ended with %s (%v), which is not what the next one needs", out.Output, err)
	}
	show("/api/tasks/keep-c1/" + ref.ID)
	show("/api/orchestrations/keep-c1")
	show("/api/orchestrations/keep-c1/rounds")
	show("/runtime/webhooks/durabletask/instances/keep-c1?showHistory=true&showHistoryOutput=true")
	events, err := outbox.New(outbox.Config{Tables: h.tables, Queues: h.queues, Blobs: h.blobs, Options: outbox.DefaultOptions(), Logger: slog.New(slog.DiscardHandler)})
	testenv.Check(t, err)
	list, err := outbox.NewAdmin(events).List(t.Context(), outbox.Filter{TenantID: "contoso"})
	if err != nil || len(list.Records) != 1 {
		t.Fatal(list, err)
	}
	show("/api/workflow/outbox/contoso/" + list.Records[0].ID)
	letters, err := engine.NewDeadLetters(h.tables, "").List(t.Context(), engine.DeadLetterFilter{Engines: []string{"keep"}, Limit: engine.MaxLimit})
	if err != nil || len(letters.DeadLetters) != 1 {
		t.Fatal(letters, err)
	}
	show("/api/dlq/keep/" + letters.DeadLetters[0].RowKey)
	h.scan(secrets, "queue keep-queue", "queue outbox-wake", "column orchestrations.Data", "column orchestrations.Payload", "column orchestrations.Output",
		"column outbox.Payload", "column engineDlq.OriginalMessage")
}
