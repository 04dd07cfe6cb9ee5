package handler_test

import (
	"bytes"
	"compress/flate"
	"context"
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

	"github.com/vibedata/roundhouse/engine"
	"github.com/vibedata/roundhouse/handler"
	"github.com/vibedata/roundhouse/handler/handlertest"
	"github.com/vibedata/roundhouse/internal/redact/redacttest"
	"github.com/vibedata/roundhouse/internal/sample"
	"github.com/vibedata/roundhouse/internal/testenv"
	"github.com/vibedata/roundhouse/orchestrator"
	"github.com/vibedata/roundhouse/orchestrator/tasks"
)

// record is all output of an app: in storage, in its log, and as answers.
type record struct {
	mu    sync.Mutex
	texts map[string][]string // by place
}

func (r *record) add(place, text string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.texts[place] = append(r.texts[place], text)
}

// Write records the log.
func (r *record) Write(line []byte) (int, error) {
	r.add("log", string(line))
	return len(line), nil
}

// look records a value written to storage, as written and decompressed.
func (r *record) look(place string, value []byte) {
	r.add(place, string(value))
	if text, err := io.ReadAll(flate.NewReader(bytes.NewReader(value))); err == nil {
		r.add(place, string(text))
	}
}

// scan searches the output for secrets, except for places that hold data which the app needs to continue.
func (r *record) scan(t *testing.T, secrets []redacttest.Sample, needed ...string) {
	t.Helper()
	r.mu.Lock()
	defer r.mu.Unlock()
	for place, texts := range r.texts {
		if slices.Contains(needed, place) {
			continue
		}
		all := strings.Join(texts, "\n")
		for _, s := range secrets {
			if part := s.FoundIn(all); part != "" {
				t.Errorf("%s: %q of the secret %q", place, part, s.Kind)
			}
		}
	}
}

// house is an app whose environment leaks secrets, and the app's output.
type house struct {
	*handlertest.Host
	*record
	stores handler.Config // the stores, recorded
}

func newHouse(t *testing.T, engines func(*handler.Platform) ([]engine.Definition, error), settings map[string]string) *house {
	t.Helper()
	h := &house{record: &record{texts: map[string][]string{}}}
	h.Host = handlertest.NewWith(t, handler.App{Engines: engines}, settings, func(c *handler.Config) {
		watch(c, h.look)
		c.Log = slog.New(slog.NewJSONHandler(h.record, &slog.HandlerOptions{Level: slog.LevelDebug}))
		h.stores = *c
	})
	return h
}

// show reads an existing object, and records the answer.
func (h *house) show(t *testing.T, path string) string {
	t.Helper()
	status, answer := h.Do(http.MethodGet, path, "")
	if h.add("answer", answer); status != http.StatusOK {
		t.Fatal(path, status, answer)
	}
	return answer
}

// runtime returns a runtime that commands the orchestrations from outside.
func (h *house) runtime(t *testing.T) *orchestrator.Runtime {
	t.Helper()
	r, err := orchestrator.New(orchestrator.Config{Tables: h.stores.Tables, Queues: h.stores.Queues, Blobs: h.stores.Blobs, Log: h.stores.Log})
	testenv.OK(t, err)
	return r
}

// secretError is an error with a secret in its fields, too.
type secretError struct{ Detail string }

func (e secretError) Error() string { return "the vault refused: " + e.Detail }

// leaks returns an engine whose activities fail with secrets, in every way. Its inputs are numbers of secrets, so
// that no payload has one.
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

// The corpus of secrets arrives by every way of external texts: errors and panics of activities, errors of
// orchestrators, logs, receivers' answers, notes on tasks and dead letters, and reasons of commands. None is left in
// any table, queue, blob, log or answer.
func TestNoSecretGetsThrough(t *testing.T) {
	t.Parallel()
	sample.Repeat(t)
	all, secrets := redacttest.Secrets(), []redacttest.Sample{}
	for _, n := range sample.Seeds(t, len(all)) {
		secrets = append(secrets, all[n-1])
	}
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

	seen := &record{texts: map[string][]string{}} // the inputs of orchestrators
	h := newHouse(t, leaks(secrets, seen), map[string]string{
		"ROUNDHOUSE_OUTBOX": `{"destinations":{"r":{"http":{"url":"` + receiver.URL + `/hook","allow":["127.0.0.0/8"],"allowPlaintext":true}}},"routes":[{"eventType":"*","destination":"r"}]}`})
	for n := range secrets {
		h.Send("leak-queue", fmt.Sprintf(`{"correlationId":"c%d","input":%d}`, n, n))
	}
	h.Deliver()
	for range 10 { // a wake-up delivers some of the events, the sweeper the rest
		if !h.Tick("outbox-sweep-timer", time.Now()) {
			t.Fatal("the sweep failed")
		}
		h.Deliver()
	}
	for n := range secrets {
		if _, told := asked.Load(n); !told {
			t.Errorf("the receiver did not get event %d", n)
		}
	}

	// Half of them are decided by tasks, half of them are commanded. Both leave the secret as a note or reason.
	runtime, everybody := h.runtime(t), tasks.Person{ID: "ann", All: true}
	service := runtime.Tasks()
	open := map[string]tasks.Ref{}
	for place, first := "", true; first || place != ""; first = false {
		page, err := service.List(t.Context(), tasks.Filter{}, 100, place)
		testenv.OK(t, err)
		for _, task := range page.Tasks {
			open[task.Orchestration] = task.Ref
		}
		place = page.Continuation
	}
	if len(open) != len(secrets) {
		t.Fatalf("%d tasks of %d are open", len(open), len(secrets))
	}
	commands := []func(context.Context, string, string) error{runtime.Suspend, runtime.Cancel, runtime.Terminate}
	for n, s := range secrets {
		id := fmt.Sprintf("leak-c%d", n)
		if n%2 == 1 {
			testenv.OK(t, commands[n/2%3](t.Context(), id, "because of "+s.Text))
			continue
		}
		testenv.Must(service.Assign(t.Context(), open[id], everybody, tasks.Person{ID: "ann"}, "", "assigned with "+s.Text))(t)
		testenv.Must(service.Complete(t.Context(), open[id], everybody, json.RawMessage("false"), "", "done with "+s.Text))(t)
	}
	h.Deliver()

	letters := engine.NewDeadLetters(h.stores.Tables, "")
	for _, name := range []string{"leak", "outbox"} {
		all := h.DeadLetters(name)
		if len(all) < len(secrets)/2 {
			t.Fatalf("%d dead letters of %s", len(all), name)
		}
		for n, d := range all {
			note := "noted: " + secrets[n].Text
			testenv.Must(letters.Decide(t.Context(), name, d.RowKey, engine.Decision{Status: engine.StatusResolved, Notes: &note, By: "ann", At: time.Now()}))(t)
			h.show(t, "/api/dlq/"+name+"/"+d.RowKey)
		}
	}
	for n := range secrets {
		for _, path := range []string{"/api/orchestrations/leak-c%d", "/api/orchestrations/leak-c%d/rounds", "/api/timeline/c%d"} {
			h.show(t, fmt.Sprintf(path, n))
		}
	}
	for _, path := range []string{"/api/history?engine=leak", "/api/dlq?engine=leak", "/api/workflow/outbox?tenant=contoso&pageSize=100", "/api/tasks", "/api/metrics"} {
		h.show(t, path)
	}
	h.scan(t, secrets)
	seen.scan(t, secrets)
	if len(seen.texts["typed error"]) < len(secrets) {
		t.Errorf("%d of %d errors kept their type", len(seen.texts["typed error"]), len(secrets))
	}
}

// keeps returns an engine whose payloads are secrets: its input, its events, its tasks, and its output.
func keeps(*handler.Platform) ([]engine.Definition, error) {
	echo := orchestrator.NewActivity("echo", func(_ context.Context, text string) (string, error) { return text, nil })
	run := func(ctx *orchestrator.Context, r engine.Request[string]) (string, error) {
		text, err := json.Marshal(r.Input)
		err = errors.Join(err, ctx.Publish(orchestrator.Publication{TenantID: "contoso", Type: "kept", Payload: text}))
		if err != nil {
			return "", err
		}
		if _, err := orchestrator.AskPerson[string](ctx, orchestrator.HumanTask{Name: "decide", Payload: r.Input}).Await(); err != nil {
			return "", err
		}
		return echo.Call(ctx, r.Input).Await()
	}
	return []engine.Definition{{Name: "keep", Queue: "keep-queue", Orchestrator: engine.Orchestrate("keep", run), Operations: []orchestrator.AnyActivity{echo}}}, nil
}

// Payloads that the app needs to continue keep their secrets in storage, and show none in answers and in the log.
func TestPayloadsAreShownWithoutSecrets(t *testing.T) {
	t.Parallel()
	h := newHouse(t, keeps, nil)
	secrets := redacttest.Secrets()[:1] // one secret of a kind is enough: other tests check the samples
	text := secrets[0].Text
	for _, body := range []string{`{"correlationId":"c1","input":"` + text + `"}`, `no message, but ` + text} {
		h.Send("keep-queue", body)
	}
	h.Deliver()
	service := h.runtime(t).Tasks()
	page, err := service.List(t.Context(), tasks.Filter{}, 100, "")
	if err != nil || len(page.Tasks) != 1 {
		t.Fatal(page, err)
	}
	output, err := json.Marshal(text)
	testenv.OK(t, err)
	ref := page.Tasks[0].Ref
	show := func(path string) {
		t.Helper()
		if answer := h.show(t, path); !strings.Contains(answer, "[redacted]") {
			t.Errorf("%s: %s", path, answer)
		}
	}
	show("/api/tasks/keep-c1/" + ref.ID)
	testenv.Must(service.Complete(t.Context(), ref, tasks.Person{ID: "ann", All: true}, output, "", ""))(t)
	h.Deliver()
	if out := h.Outcome("keep-c1"); string(out.Output) != string(output) {
		t.Errorf("the orchestration ended with %s, which is not what the next one needs", out.Output)
	}
	letters := h.DeadLetters("keep")
	if len(letters) != 1 {
		t.Fatal(letters)
	}
	var events struct {
		Data struct{ Items []struct{ ID string } }
	}
	testenv.OK(t, json.Unmarshal([]byte(h.show(t, "/api/workflow/outbox?tenant=contoso")), &events))
	for _, path := range []string{"/api/tasks/keep-c1/" + ref.ID, "/api/orchestrations/keep-c1", "/api/orchestrations/keep-c1/rounds",
		"/runtime/webhooks/durabletask/instances/keep-c1?showHistory=true&showHistoryOutput=true",
		"/api/workflow/outbox/contoso/" + events.Data.Items[0].ID, "/api/dlq/keep/" + letters[0].RowKey} {
		show(path)
	}
	h.scan(t, secrets, "queue keep-queue", "queue outbox-wake", "table orchestrations", "table orchestrations column Data", "table orchestrations column Payload",
		"table orchestrations column Output", "table outbox", "table outbox column Payload", "table engineDlq", "table engineDlq column OriginalMessage")
}
