package metricpush

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	collector "go.opentelemetry.io/proto/otlp/collector/metrics/v1"
	common "go.opentelemetry.io/proto/otlp/common/v1"
	metrics "go.opentelemetry.io/proto/otlp/metrics/v1"
	"go.uber.org/goleak"
	"google.golang.org/protobuf/proto"

	"github.com/vibedata/roundhouse/internal/testenv"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// receiver accepts messages, like a collector.
type receiver struct {
	*httptest.Server
	got    chan *collector.ExportMetricsServiceRequest
	status int
	header http.Header
}

func newReceiver(t *testing.T, status int) *receiver {
	t.Helper()
	r := &receiver{got: make(chan *collector.ExportMetricsServiceRequest, 100), status: status}
	r.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		body := io.Reader(q.Body)
		if q.Header.Get("Content-Encoding") == "gzip" {
			var err error
			if body, err = gzip.NewReader(q.Body); err != nil {
				t.Error(err)
				return
			}
		}
		raw, err := io.ReadAll(body)
		var request collector.ExportMetricsServiceRequest
		if err != nil || proto.Unmarshal(raw, &request) != nil || q.URL.Path != "/v1/metrics" {
			t.Errorf("%s %s: %v", q.Method, q.URL.Path, err)
		}
		r.header = q.Header
		w.WriteHeader(r.status)
		r.got <- &request
	}))
	t.Cleanup(func() { http.DefaultTransport.(*http.Transport).CloseIdleConnections() })
	t.Cleanup(r.Close)
	return r
}

func texts(attributes []*common.KeyValue) map[string]string {
	all := map[string]string{}
	for _, a := range attributes {
		all[a.Key] = a.Value.GetStringValue()
	}
	return all
}

// sent finds a metric.
func sent(t *testing.T, r *collector.ExportMetricsServiceRequest, name string) *metrics.Metric {
	t.Helper()
	for _, scope := range r.ResourceMetrics[0].ScopeMetrics {
		for _, m := range scope.Metrics {
			if m.Name == name {
				return m
			}
		}
	}
	t.Fatalf("%s was not sent", name)
	return nil
}

// Counts are sent at the latest when the program leaves, with the sender's attributes, labels, and exemplars.
func TestPush(t *testing.T) {
	t.Parallel()
	r := newReceiver(t, http.StatusOK)
	registry := prometheus.NewRegistry()
	count := prometheus.NewCounterVec(prometheus.CounterOpts{Name: "roundhouse_x_total", Help: "x"}, []string{"engine"})
	took := prometheus.NewHistogram(prometheus.HistogramOpts{Name: "roundhouse_x_seconds", Help: "x", Buckets: []float64{1, 2}})
	registry.MustRegister(count, took)
	count.WithLabelValues("hmac").Add(7)
	took.(prometheus.ExemplarObserver).ObserveWithExemplar(1.5, prometheus.Labels{"trace_id": "ab000000000000000000000000000000"})
	p := New(Config{Endpoint: r.URL + "/v1/metrics", Headers: map[string]string{"x-key": "k"}, Interval: time.Hour, Version: "v1", Instance: "n1",
		Attributes: map[string]string{"faas.name": "app"}}, registry, slog.New(slog.DiscardHandler))
	for range 2 {
		testenv.OK(t, p.Start(t.Context()))
	}
	for range 2 {
		testenv.OK(t, p.Close(t.Context()))
	}
	if err := p.Start(t.Context()); err != nil || len(r.got) != 1 {
		t.Fatalf("%v: %d messages, want one", err, len(r.got))
	}
	got := <-r.got
	want := map[string]string{"service.name": "roundhouse", "service.version": "v1", "service.instance.id": "n1", "faas.name": "app"}
	testenv.Equal(t, "", want, texts(got.ResourceMetrics[0].Resource.Attributes))
	sum := sent(t, got, "roundhouse_x_total").GetSum()
	if point := sum.DataPoints[0]; !sum.IsMonotonic || point.GetAsDouble() != 7 || texts(point.Attributes)["engine"] != "hmac" {
		t.Errorf("%v", sum)
	}
	point := sent(t, got, "roundhouse_x_seconds").GetHistogram().DataPoints[0]
	if point.Count != 1 || len(point.Exemplars) != 1 || len(point.Exemplars[0].TraceId) != 16 || point.Exemplars[0].TraceId[0] != 0xab {
		t.Errorf("%v", point)
	}
	testenv.Equal(t, fmt.Sprintf("headers %v", r.header), "k", r.header.Get("x-key"))
}

// Metrics are sent regularly, not only at the end.
func TestInterval(t *testing.T) {
	t.Parallel()
	r := newReceiver(t, http.StatusOK)
	registry := prometheus.NewRegistry()
	registry.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: "roundhouse_x"}, func() float64 { return 1 }))
	p := New(Config{Endpoint: r.URL + "/v1/metrics", Interval: time.Millisecond}, registry, slog.New(slog.DiscardHandler))
	testenv.OK(t, p.Start(t.Context()))
	for range 3 {
		sent(t, <-r.got, "roundhouse_x")
	}
	if err := p.Close(t.Context()); err != nil {
		t.Error(err)
	}
}

// A refusal of the receiver is logged, and ends nothing.
func TestReceiverThatRefuses(t *testing.T) {
	t.Parallel()
	r := newReceiver(t, http.StatusForbidden)
	var log bytes.Buffer
	p := New(Config{Endpoint: r.URL + "/v1/metrics", Headers: map[string]string{"x-key": "secret"}, Interval: time.Hour}, prometheus.NewRegistry(), slog.New(slog.NewTextHandler(&log, nil)))
	testenv.OK(t, p.Start(t.Context()))
	if err := p.Close(t.Context()); err != nil {
		t.Error(err)
	}
	if text := log.String(); !strings.Contains(text, "metrics are not sent") || strings.Contains(text, "secret") {
		t.Errorf("the log says %q", text)
	}
}

// Without an endpoint, nothing is sent.
func TestNoEndpoint(t *testing.T) {
	t.Parallel()
	p := New(Config{}, nil, nil)
	if err := p.Start(t.Context()); err != nil {
		t.Error(err)
	}
	if err := p.Close(t.Context()); err != nil {
		t.Error(err)
	}
}
