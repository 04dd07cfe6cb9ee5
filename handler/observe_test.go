package handler

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	otlp "go.opentelemetry.io/proto/otlp/collector/metrics/v1"
	"google.golang.org/protobuf/proto"

	"github.com/vibedata/roundhouse/blobs"
	"github.com/vibedata/roundhouse/engine"
	"github.com/vibedata/roundhouse/engine/consumers"
	"github.com/vibedata/roundhouse/internal/testenv"
	"github.com/vibedata/roundhouse/queues"
	"github.com/vibedata/roundhouse/tables"
)

// measured returns a running app with everything that has a metric.
func measured(t *testing.T, settings map[string]string) *Handler {
	t.Helper()
	app := workApp(func(d *engine.Definition) {
		d.Consumers, d.Tables = &consumers.Consumers{}, []string{consumers.Table}
		d.Credentials = func(context.Context) ([]engine.Credential, error) {
			return []engine.Credential{{Name: "c", ExpiresAt: time.Now().Add(time.Hour)}}, nil
		}
	})
	h, err := New(app, Config{Tables: tables.NewMemory(), Queues: queues.NewMemory(), Blobs: blobs.NewMemory(), Lookup: func(name string) (string, bool) {
		if v, ok := settings[name]; ok {
			return v, true
		}
		return emulator.Lookup(name)
	}})
	testenv.OK(t, err)
	t.Cleanup(h.Close)
	testenv.OK(t, h.Start(t.Context()))
	return h
}

// described finds name, labels and meaning in the text of a prometheus.Desc, and documented in a line of the table.
var (
	described  = regexp.MustCompile(`fqName: "(roundhouse_[a-z_]+)", help: "(.*?)"(?:, unit: "[^"]*")?, constLabels: \{(.*?)\}, variableLabels: \{(.*?)\}`)
	documented = regexp.MustCompile("(?m)^\\| `(roundhouse_[a-z_]+)` \\| (counter|gauge|histogram) \\| ([a-z_`, ]*) \\| (.+) \\|$")
	constLabel = regexp.MustCompile(`([a-z_]+)="`)
)

// The table of docs/observability.md has all metrics of a running app, with their types and labels, and no other.
func TestMetricsAreDocumented(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../docs/observability.md")
	testenv.OK(t, err)
	type metric struct{ Labels string }
	told, types := map[string]metric{}, map[string]string{}
	for _, m := range documented.FindAllStringSubmatch(string(text), -1) {
		if _, twice := told[m[1]]; twice {
			t.Errorf("%s is documented twice", m[1])
		}
		told[m[1]], types[m[1]] = metric{strings.NewReplacer("`", "", " ", "").Replace(m[3])}, m[2]
	}
	h := measured(t, nil)
	descs, err := h.program.Metrics.Describe(t.Context())
	testenv.OK(t, err)
	have := map[string]metric{}
	for _, d := range descs {
		m := described.FindStringSubmatch(d.String())
		if m == nil {
			continue // those of the Go runtime
		}
		labels := m[4]
		for _, c := range constLabel.FindAllStringSubmatch(m[3], -1) {
			labels = strings.TrimPrefix(labels+","+c[1], ",")
		}
		have[m[1]] = metric{labels}
		if m[2] == "" {
			t.Errorf("%s says nothing", m[1])
		}
	}
	if diff := cmp.Diff(have, told); diff != "" {
		t.Errorf("docs/observability.md (+) differs from the program (-):\n%s", diff)
	}
	families, err := h.program.Metrics.Gather()
	testenv.OK(t, err)
	for _, f := range families {
		if want, ok := types[f.GetName()]; ok && !strings.EqualFold(f.GetType().String(), want) {
			t.Errorf("%s is a %s, and documented as a %s", f.GetName(), f.GetType(), want)
		}
	}
}

// Requests are counted by the patterns of their routes, with any parameters, and so are requests without a route.
func TestRequestsAreCounted(t *testing.T) {
	t.Parallel()
	h := measured(t, nil)
	for _, path := range []string{"/api/health/live", "/api/health/live?x=secret-1", "/api/orchestrations/secret-2", "/secret-3/secret-4", "/api/secret-5", "/"} {
		h.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest(http.MethodGet, path, nil))
	}
	page, err := h.program.Metrics.Scrape(t.Context(), nil)
	testenv.OK(t, err)
	text := string(page.Body)
	for _, want := range []string{`roundhouse_http_requests_total{code="200",method="GET",route="/api/health/live"} 2`, `route="/api/orchestrations/:orchestration"} 1`} {
		if !strings.Contains(text, want) {
			t.Errorf("%s is missing", want)
		}
	}
	if strings.Contains(text, "secret-") {
		t.Error("what a path holds is a label")
	}
}

// An app sends its metrics at the latest when it leaves, with its last counts.
func TestMetricsAreSentWhenTheAppLeaves(t *testing.T) {
	t.Parallel()
	got := make(chan *otlp.ExportMetricsServiceRequest, 10)
	receiver := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var request otlp.ExportMetricsServiceRequest
		if raw, err := io.ReadAll(r.Body); err != nil || proto.Unmarshal(raw, &request) != nil {
			t.Errorf("%v", err)
		}
		got <- &request
	}))
	t.Cleanup(receiver.Close)
	h := measured(t, map[string]string{"OTEL_METRICS_EXPORTER": "otlp", "OTEL_EXPORTER_OTLP_ENDPOINT": receiver.URL, "OTEL_METRIC_EXPORT_INTERVAL": "3600000"})
	h.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest(http.MethodGet, "/api/health/live", nil))
	testenv.OK(t, h.Leave(t.Context()))
	if len(got) != 1 {
		t.Fatalf("%d messages, want one", len(got))
	}
	found := map[string]bool{}
	for _, scope := range (<-got).ResourceMetrics[0].ScopeMetrics {
		for _, m := range scope.Metrics {
			found[m.Name] = true
		}
	}
	for _, name := range []string{"roundhouse_http_requests_total", "roundhouse_dead_letters", "roundhouse_collector_leader"} {
		if !found[name] {
			t.Errorf("%s was not sent", name)
		}
	}
}

// A message counts at its entry point, for its engine, and for its activity.
func TestAMessageIsCounted(t *testing.T) {
	t.Parallel()
	h := measured(t, nil)
	body := `{"Data": {"message": "{\"correlationId\": \"c1\"}"}, "Metadata": {"DequeueCount": "1", "Id": "\"11111111-1111-1111-1111-111111111111\"", "InsertionTime": "\"2026-11-21T12:00:00+00:00\""}}`
	answer := httptest.NewRecorder()
	h.ServeHTTP(answer, httptest.NewRequest(http.MethodPost, "/work-queue-trigger", strings.NewReader(body)))
	page, err := h.program.Metrics.Scrape(t.Context(), nil)
	testenv.OK(t, err)
	for _, want := range []string{
		`roundhouse_invocations_total{direct="false",function="work-queue-trigger",outcome="done",trigger="queue"} 1`,
		`roundhouse_engine_attempts_total{engine="work",outcome="succeeded"} 1`,
		`roundhouse_activity_attempts_total{activity="do",engine="work",operation="do",result="succeeded"} 1`,
		`roundhouse_engine_message_duration_seconds_count{engine="work"} 1`,
	} {
		if !strings.Contains(string(page.Body), want) {
			t.Errorf("%s is missing; the invocation was answered with %d %s", want, answer.Code, answer.Body)
		}
	}
}
