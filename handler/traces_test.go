package handler_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/vibedata/roundhouse/engine"
	"github.com/vibedata/roundhouse/handler"
	"github.com/vibedata/roundhouse/handler/handlertest"
	"github.com/vibedata/roundhouse/internal/otlpfake"
	"github.com/vibedata/roundhouse/internal/testenv"
	"github.com/vibedata/roundhouse/orchestrator"
)

// tracedShop returns an app whose engine calls a child, waits for an event and publishes one.
func tracedShop() handler.App {
	return handler.App{Engines: func(*handler.Platform) ([]engine.Definition, error) {
		pack := orchestrator.NewActivity("pack", func(ctx context.Context, n int) (int, error) { return n, nil })
		part := orchestrator.NewOrchestrator("part", func(ctx *orchestrator.Context, n int) (int, error) { return pack.Call(ctx, n).Await() })
		run := func(ctx *orchestrator.Context, r engine.Request[json.RawMessage]) (int, error) {
			n, err := part.Call(ctx, 1).Await()
			if err == nil {
				_, err = orchestrator.Event[bool](ctx, "paid").Await()
			}
			if err == nil {
				err = ctx.Publish(orchestrator.Publication{TenantID: "t", Type: "shop.sold", Payload: json.RawMessage(`{"n":1}`)})
			}
			return n, err
		}
		return []engine.Definition{{Name: "shop", Queue: "shop-queue", Orchestrator: engine.Orchestrate("shop", run), Operations: []orchestrator.AnyActivity{pack},
			Children: []orchestrator.AnyOrchestrator{part}}}, nil
	}}
}

// parentsOf returns each span's name with that of its parent, duplicates once.
func parentsOf(t *testing.T, spans []otlpfake.Span, trace string) map[string]string {
	t.Helper()
	names, out := map[string]string{}, map[string]string{}
	for _, s := range spans {
		names[s.ID] = s.Name + " " + s.Kind
	}
	for _, s := range spans {
		if s.Trace != trace {
			continue
		}
		out[s.Name+" "+s.Kind] = names[s.Parent]
		if s.Parent != "" && names[s.Parent] == "" {
			out[s.Name+" "+s.Kind] = s.Parent
		}
	}
	return out
}

// A message's trace is that of its run, its children, its events and their deliveries, over OTLP, in two processes.
func TestATraceFromMessageToWebhook(t *testing.T) {
	t.Parallel()
	const traceID, producer = "4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7"
	collector := otlpfake.New(t)
	var mu sync.Mutex
	var got []string
	receiver := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		got = append(got, r.Header.Get("traceparent"))
	}))
	t.Cleanup(receiver.Close)
	settings := map[string]string{"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": collector.URL,
		"ROUNDHOUSE_OUTBOX": `{"destinations":{"hook":{"http":{"url":"` + receiver.URL + `/hook","allow":["127.0.0.0/8"],"allowPlaintext":true}}},"routes":[{"eventType":"*","destination":"hook"}]}`}
	h := handlertest.New(t, tracedShop(), settings)
	h.Send("shop-queue", fmt.Sprintf(`{"correlationId":"c1","traceparent":"00-%s-%s-01"}`, traceID, producer))
	h.Deliver()
	h.Restart(settings, func(*handler.Config) {}) // which sends the first process's spans
	status, answer := h.Do(http.MethodPost, "/api/orchestrations/shop-c1/events/paid", `true`, func(r *http.Request) {
		r.Header.Set("traceparent", "00-aaaabbbbccccddddaaaabbbbccccdddd-1111222233334444-01")
	})
	if status != http.StatusAccepted {
		t.Fatalf("%d %s", status, answer)
	}
	h.Deliver()
	h.Tick("outbox-sweep-timer", time.Now())
	h.Restart(settings, func(*handler.Config) {})

	if out := h.Outcome("shop-c1"); out.Status != orchestrator.Completed {
		t.Fatalf("the run is %s: %v", out.Status, out.Failure)
	}
	want := map[string]string{
		"process shop-queue consumer":        "create_orchestration:shop producer",
		"create_orchestration:shop producer": producer,
		"orchestration:shop server":          "create_orchestration:shop producer",
		"orchestration:part client":          "orchestration:shop server",
		"orchestration:part server":          "orchestration:part client",
		"activity:pack client":               "orchestration:part server",
		"activity:pack server":               "activity:pack client",
		"orchestration_event:paid consumer":  "orchestration:shop server",
		"orchestration_event:paid producer":  "orchestration:shop server",
		"publish shop.sold producer":         "orchestration:shop server",
		"deliver hook client":                "publish shop.sold producer",
	}
	spans := collector.Spans()
	testenv.Equal(t, "spans and their parents", want, parentsOf(t, spans, traceID))
	api, published := "", ""
	for _, s := range spans {
		switch {
		case s.Trace == "aaaabbbbccccddddaaaabbbbccccdddd":
			api = s.ID
			if s.Name != "POST /api/orchestrations/:orchestration/events/:event" || s.Parent != "1111222233334444" {
				t.Errorf("the request is the span %s below %s", s.Name, s.Parent)
			}
		case strings.HasPrefix(s.Name, "publish"):
			published = s.ID
		}
	}
	for _, s := range spans {
		if s.Name == "orchestration_event:paid" && s.Kind == "producer" && (len(s.Links) != 1 || s.Links[0] != api) {
			t.Errorf("the event links to %v, the request is %s", s.Links, api)
		}
	}
	mu.Lock()
	defer mu.Unlock()
	if len(got) != 1 || got[0] != "00-"+traceID+"-"+published+"-01" {
		t.Errorf("the webhook got %v", got)
	}
}

// A message without a trace starts one that is derived from its correlation id; an unsampled trace is not recorded.
func TestTracesThatBegin(t *testing.T) {
	t.Parallel()
	collector := otlpfake.New(t)
	settings := map[string]string{"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": collector.URL}
	h := handlertest.New(t, tracedShop(), settings)
	h.Send("shop-queue", `{"correlationId":"c1"}`)
	h.Send("shop-queue", `{"correlationId":"c2","traceparent":"nonsense"}`)
	h.Send("shop-queue", `{"correlationId":"c3","traceparent":"00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-00"}`)
	h.Send("shop-queue", `this is no message`)
	h.Deliver()
	h.Restart(nil, func(*handler.Config) {})
	roots, letter := map[string]string{}, h.DeadLetters("shop")[0].CorrelationID
	for _, s := range collector.Spans() {
		if s.Parent == "" && s.Attributes["roundhouse.correlation_id"] != "" {
			roots[s.Attributes["roundhouse.correlation_id"]] = s.Name
		}
		if s.Attributes["roundhouse.correlation_id"] == "c3" {
			t.Errorf("%s was recorded", s.Name)
		}
	}
	want := map[string]string{"c1": "create_orchestration:shop", "c2": "create_orchestration:shop", letter: "process shop-queue"}
	testenv.Equal(t, "roots", want, roots)
}
