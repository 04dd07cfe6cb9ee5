// Package otlpfake is a collector of OpenTelemetry for tests: an HTTP server that accepts OTLP in protobuf and keeps
// the spans.
package otlpfake

import (
	"compress/gzip"
	"encoding/hex"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	collector "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	trace "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"
)

// Span is a received span, with the attributes that tests use.
type Span struct {
	Trace, ID, Parent string
	Name              string
	Kind              string
	Begin, End        time.Time
	Failed            bool
	Attributes        map[string]string
	Links             []string // ids of spans
}

// Collector keeps received spans. Make it with New.
type Collector struct {
	// URL is the address for traces, with its path.
	URL string

	mu    sync.Mutex
	spans []Span
}

// New starts a collector, which ends with the test.
func New(t testing.TB) *Collector {
	t.Helper()
	c := &Collector{}
	server := httptest.NewServer(http.HandlerFunc(c.serve))
	t.Cleanup(server.Close)
	c.URL = server.URL + "/v1/traces"
	return c
}

func (c *Collector) serve(w http.ResponseWriter, r *http.Request) {
	var body io.Reader = r.Body
	if r.Header.Get("Content-Encoding") == "gzip" {
		unzipped, err := gzip.NewReader(r.Body)
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		body = unzipped
	}
	text, err := io.ReadAll(body)
	var request collector.ExportTraceServiceRequest
	if err == nil {
		err = proto.Unmarshal(text, &request)
	}
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	c.take(&request)
	w.Header().Set("Content-Type", "application/x-protobuf")
}

func (c *Collector) take(request *collector.ExportTraceServiceRequest) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, of := range request.GetResourceSpans() {
		for _, scope := range of.GetScopeSpans() {
			for _, s := range scope.GetSpans() {
				c.spans = append(c.spans, spanOf(s))
			}
		}
	}
}

func spanOf(s *trace.Span) Span {
	out := Span{Trace: hex.EncodeToString(s.GetTraceId()), ID: hex.EncodeToString(s.GetSpanId()), Parent: hex.EncodeToString(s.GetParentSpanId()), Name: s.GetName(),
		Kind: strings.ToLower(strings.TrimPrefix(s.GetKind().String(), "SPAN_KIND_")), Begin: time.Unix(0, int64(s.GetStartTimeUnixNano())).UTC(), End: time.Unix(0, int64(s.GetEndTimeUnixNano())).UTC(),
		Failed: s.GetStatus().GetCode() == trace.Status_STATUS_CODE_ERROR, Attributes: map[string]string{}}
	for _, a := range s.GetAttributes() {
		value := a.GetValue().GetStringValue()
		if value == "" {
			value = strings.TrimSpace(strings.TrimPrefix(a.GetValue().String(), "int_value:"))
		}
		out.Attributes[a.GetKey()] = value
	}
	for _, l := range s.GetLinks() {
		out.Links = append(out.Links, hex.EncodeToString(l.GetSpanId()))
	}
	return out
}

// Spans returns all received spans, in that order; one that was sent twice occurs twice.
func (c *Collector) Spans() []Span {
	c.mu.Lock()
	defer c.mu.Unlock()
	return append([]Span(nil), c.spans...)
}
