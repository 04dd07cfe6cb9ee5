package api

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"

	"github.com/vibedata/roundhouse/handler/api/health"
	"github.com/vibedata/roundhouse/internal/faults"
	"github.com/vibedata/roundhouse/internal/testenv"
)

// A scrape is well-formed, and contains the counts.
func TestScrape(t *testing.T) {
	t.Parallel()
	b := newFilledOutbox(t)
	rec := b.get(t, "/api/metrics", "Accept", "text/plain;version=0.0.4")
	parser := expfmt.NewTextParser(model.LegacyValidation)
	families, err := parser.TextToMetricFamilies(bytes.NewReader(rec.Body.Bytes()))
	if err != nil || rec.Code != http.StatusOK || !strings.HasPrefix(rec.Header().Get("Content-Type"), "text/plain; version=0.0.4") {
		t.Fatalf("%d %s: %v", rec.Code, rec.Header(), err)
	}
	for name, want := range map[string]float64{
		"roundhouse_collector_leader": 1, "roundhouse_outbox_pending": 16, "roundhouse_outbox_failed_pending": 8,
		"roundhouse_outbox_oldest_pending_age_seconds": 960,
	} {
		if f := families[name]; f == nil || f.GetMetric()[0].GetGauge().GetValue() != want {
			t.Errorf("%s: %v, want %v", name, f, want)
		}
	}
	if f := families["roundhouse_outbox_added_total"]; f == nil || f.GetMetric()[0].GetCounter().GetValue() != 32 {
		t.Errorf("added: %v", f)
	}
	head := b.send(t, http.MethodHead, "/api/metrics", "")
	if head.Code != http.StatusOK || head.Body.Len() != 0 || head.Header().Get("Content-Length") == "" {
		t.Errorf("HEAD: %d %v", head.Code, head.Header())
	}
}

// A scrape has the available metrics, and reports the missing ones.
func TestScrapeWithoutStorage(t *testing.T) {
	t.Parallel()
	b := newFilledOutbox(t)
	b.refuse = func(faults.Call) bool { return true }
	body := b.get(t, "/api/metrics").Body.String()
	for text, want := range map[string]bool{
		"roundhouse_collector_failures_total 1\n": true, "roundhouse_collector_leader 1\n": true,
		"roundhouse_outbox_added_total 32\n": true, "roundhouse_outbox_pending": false,
	} {
		testenv.Equal(t, fmt.Sprintf("it has %q", text), want, strings.Contains(body, text))
	}
	if !strings.Contains(b.log.String(), "scrape without") {
		t.Errorf("log %q", b.log.String())
	}
}

func TestProbes(t *testing.T) {
	t.Parallel()
	b := newFilledOutbox(t)
	get := func(path string) (int, health.Report) {
		rec := b.get(t, "/api/health/"+path)
		var r health.Report
		if err := json.Unmarshal(rec.Body.Bytes(), &r); err != nil || rec.Header().Get("Content-Type") != healthType {
			t.Fatalf("%s: %s: %v", path, rec.Body, err)
		}
		return rec.Code, r
	}
	words := func(path string) string {
		return b.get(t, "/api/health/"+path, "Accept", "text/plain").Body.String()
	}
	check := func(when, path string, code int, status health.Status, word string) health.Report {
		gotCode, report := get(path)
		if gotCode != code || report.Status != status || words(path) != word+"\n" {
			t.Errorf("%s %s: %d %+v %q", when, path, gotCode, report, words(path))
		}
		if path != "full" {
			want := health.Report{Status: status}
			if status == health.Fail {
				want.Output = "Storage cannot be used. Queues: Too busy."
			}
			testenv.Equal(t, fmt.Sprintf("%s %s tells too much", when, path), want, report)
		}
		return report
	}
	// The oldest pending message is 16 minutes old.
	check("old", "live", 200, health.Pass, "Healthy")
	check("old", "ready", 200, health.Pass, "Healthy")
	full := check("old", "full", 200, health.Warn, "Degraded")
	if full.ReleaseID != "1.2.3" || full.Checks["outbox:oldestAge"][0].Status != health.Warn || full.Checks["outbox:backlog"][0].ObservedValue != 16.0 {
		t.Errorf("%+v", full)
	}
	b.pass(time.Hour)
	check("older", "ready", 200, health.Pass, "Healthy")
	check("older", "full", 503, health.Fail, "Unhealthy")
	b.refuse = func(c faults.Call) bool { return c.Service == "queues" }
	b.pass(time.Minute)
	check("without queues", "live", 200, health.Pass, "Healthy")
	check("without queues", "ready", 503, health.Fail, "Unhealthy")
	full = check("without queues", "full", 503, health.Fail, "Unhealthy")
	if q := full.Checks["queues:responseTime"][0]; q.Status != health.Fail || q.Output != "Too busy." || full.Checks["tables:responseTime"][0].Status != health.Pass {
		t.Errorf("%+v", full)
	}
	if accept := b.get(t, "/api/health/live", "Accept", "text/html, */*"); accept.Header().Get("Content-Type") != healthType {
		t.Errorf("a browser gets %s", accept.Header().Get("Content-Type"))
	}
}
