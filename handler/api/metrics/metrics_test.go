package metrics

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil/promlint"
	"go.uber.org/goleak"

	"github.com/vibedata/roundhouse/internal/testenv"
	"github.com/vibedata/roundhouse/orchestrator"
	"github.com/vibedata/roundhouse/orchestrator/catalog"
	"github.com/vibedata/roundhouse/orchestrator/nodes"
	"github.com/vibedata/roundhouse/outbox"
	"github.com/vibedata/roundhouse/poller"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

type lease bool

func (l lease) Held(context.Context) bool { return bool(l) }

// ours returns the program's own lines of a scrape, without comments and buckets.
func ours(t *testing.T, m *Metrics) map[string]string {
	t.Helper()
	page, err := m.Scrape(t.Context(), nil)
	testenv.OK(t, err)
	lines := map[string]string{}
	for line := range strings.Lines(string(page.Body)) {
		name, value, _ := strings.Cut(strings.TrimSpace(line), " ")
		if strings.HasPrefix(name, "roundhouse_") && !strings.Contains(name, "_bucket{") {
			lines[name] = value
		}
	}
	return lines
}

func fixed(s outbox.Snapshot, err error) func(context.Context) (outbox.Snapshot, error) {
	return func(context.Context) (outbox.Snapshot, error) { return s, err }
}

func full(t *testing.T) *Metrics {
	t.Helper()
	m := New()
	o := m.Outbox()
	o.Added()
	o.Added()
	o.Duplicate(false)
	o.Duplicate(true)
	o.Claimed(50)
	o.Attempted(t.Context(), "sink", outbox.Succeeded, time.Second)
	o.Attempted(t.Context(), "sink", outbox.Failed, 2*time.Second)
	o.Settled(outbox.StatusProcessed, time.Minute)
	o.Settled(outbox.StatusDead, time.Hour)
	o.Lost()
	o.Circuit("sink", true)
	o.Circuit("other", true)
	o.Circuit("other", false)
	err := errors.Join(
		m.Runtime(func() orchestrator.Counts {
			return orchestrator.Counts{Stale: 1, Duplicates: 2, Conflicts: 3, Woken: 4, Damaged: 5}
		}),
		m.Nodes(func() nodes.Counts { return nodes.Counts{Takeovers: 2, TakenOver: 7, Fenced: 1} }),
		m.Pollers(func() map[string]poller.Counters {
			return map[string]poller.Counters{
				"orders": {Rows: 1, Batches: 2, Quarantined: 3, Ticks: 4, Failures: 5, LeasesLost: 6, Unconfirmed: 7, Idle: 91, Skipped: 92, Failed: 93,
					BatchSize: 800, Lag: 1500 * time.Millisecond, LastSuccess: time.UnixMilli(1_700_000_000_250)},
				"new": {Lag: -1},
			}
		}),
	)
	testenv.OK(t, err)
	return m
}

func TestNamesAndValues(t *testing.T) {
	t.Parallel()
	m := full(t)
	want := map[string]string{
		"roundhouse_collector_failures_total":                                       "0",
		"roundhouse_outbox_added_total":                                             "2",
		"roundhouse_outbox_duplicates_total":                                        "2",
		"roundhouse_outbox_key_conflicts_total":                                     "1",
		"roundhouse_outbox_claim_batch_size_sum":                                    "50",
		"roundhouse_outbox_claim_batch_size_count":                                  "1",
		`roundhouse_outbox_dispatched_total{destination="sink",result="succeeded"}`: "1",
		`roundhouse_outbox_dispatched_total{destination="sink",result="failed"}`:    "1",
		`roundhouse_outbox_dispatch_duration_seconds_sum{destination="sink"}`:       "3",
		`roundhouse_outbox_dispatch_duration_seconds_count{destination="sink"}`:     "2",
		`roundhouse_outbox_settled_total{status="processed"}`:                       "1",
		`roundhouse_outbox_settled_total{status="dead"}`:                            "1",
		"roundhouse_outbox_delivery_latency_seconds_sum":                            "60",
		"roundhouse_outbox_delivery_latency_seconds_count":                          "1",
		"roundhouse_outbox_claims_lost_total":                                       "1",
		`roundhouse_outbox_circuit_open{destination="sink"}`:                        "1",
		`roundhouse_outbox_circuit_open{destination="other"}`:                       "0",
		`roundhouse_runtime_signals_dropped_total{reason="stale"}`:                  "1",
		`roundhouse_runtime_signals_dropped_total{reason="duplicate"}`:              "2",
		"roundhouse_runtime_conflicts_total":                                        "3",
		"roundhouse_runtime_woken_total":                                            "4",
		"roundhouse_node_takeovers_total":                                           "2",
		"roundhouse_node_taken_over_total":                                          "7",
		"roundhouse_node_fenced_total":                                              "1",
		"roundhouse_runtime_damaged_total":                                          "5",
		`roundhouse_poller_rows_total{poller="orders"}`:                             "1",
		`roundhouse_poller_batches_total{poller="orders"}`:                          "2",
		`roundhouse_poller_quarantined_total{poller="orders"}`:                      "3",
		`roundhouse_poller_ticks_total{poller="orders"}`:                            "4",
		`roundhouse_poller_failures_total{poller="orders"}`:                         "5",
		`roundhouse_poller_leases_lost_total{poller="orders"}`:                      "6",
		`roundhouse_poller_unconfirmed_total{poller="orders"}`:                      "7",
		`roundhouse_poller_lag_seconds{poller="orders"}`:                            "1.5",
		`roundhouse_poller_last_success_timestamp_seconds{poller="orders"}`:         "1.70000000025e+09",
		`roundhouse_poller_batch_size{poller="orders"}`:                             "800",
		`roundhouse_poller_rows_total{poller="new"}`:                                "0",
		`roundhouse_poller_batches_total{poller="new"}`:                             "0",
		`roundhouse_poller_quarantined_total{poller="new"}`:                         "0",
		`roundhouse_poller_ticks_total{poller="new"}`:                               "0",
		`roundhouse_poller_failures_total{poller="new"}`:                            "0",
		`roundhouse_poller_leases_lost_total{poller="new"}`:                         "0",
		`roundhouse_poller_unconfirmed_total{poller="new"}`:                         "0",
		`roundhouse_poller_last_success_timestamp_seconds{poller="new"}`:            "0",
		`roundhouse_poller_batch_size{poller="new"}`:                                "0",
	}
	testenv.Equal(t, "", want, ours(t, m))
	if m.Runtime(nil) == nil || m.Pollers(nil) == nil || m.Nodes(nil) == nil {
		t.Error("a second registration is no error")
	}
}

// The names follow the rules of Prometheus: units, _total, help.
func TestNamesAreLinted(t *testing.T) {
	t.Parallel()
	m := full(t)
	m.Collect(lease(true))
	m.Events(fixed(outbox.Snapshot{BacklogSize: 1}, nil))
	m.Orchestrations(func(context.Context) (catalog.StatusCounts, error) { return nil, nil }, []string{"hmac"})
	m.Damaged(func(context.Context) (int, error) { return 1, nil })
	page, err := m.Scrape(t.Context(), nil)
	testenv.OK(t, err)
	problems, err := promlint.New(strings.NewReader(string(page.Body))).Lint()
	if err != nil || len(problems) > 0 {
		t.Errorf("%v, %v", problems, err)
	}
}

func TestOnlyTheLeaderShowsWhatIsShared(t *testing.T) {
	t.Parallel()
	snapshot := outbox.Snapshot{BacklogSize: 7, FailedPending: 3, OldestAgeSeconds: 1.5, Throughput: 9, FailureRatio: 1}
	gauges := func(m *Metrics) map[string]string {
		out := ours(t, m)
		for name := range out {
			if !strings.Contains(name, "pending") && !strings.Contains(name, "leader") {
				delete(out, name)
			}
		}
		return out
	}
	m := New()
	m.Events(func(context.Context) (outbox.Snapshot, error) {
		t.Error("who does not lead asks storage")
		return outbox.Snapshot{}, nil
	})
	if got := gauges(m); len(got) != 0 {
		t.Errorf("without Collect: %v", got)
	}
	m.Collect(lease(false))
	testenv.Equal(t, "", map[string]string{"roundhouse_collector_leader": "0"}, gauges(m))
	m = New()
	m.Collect(lease(true))
	m.Events(fixed(snapshot, nil))
	want := map[string]string{
		"roundhouse_collector_leader": "1", "roundhouse_outbox_pending": "7", "roundhouse_outbox_failed_pending": "3",
		"roundhouse_outbox_oldest_pending_age_seconds": "1.5",
	}
	testenv.Equal(t, "", want, gauges(m))
	m = New()
	m.Collect(lease(true))
	m.Events(fixed(outbox.Snapshot{}, errors.New("no line")))
	page, err := m.Scrape(t.Context(), nil)
	if err == nil || !strings.Contains(string(page.Body), "roundhouse_collector_failures_total 1\n") || strings.Contains(string(page.Body), "outbox_pending") {
		t.Errorf("%v: %s", err, page.Body)
	}
}

func TestFormats(t *testing.T) {
	t.Parallel()
	m := full(t)
	for accept, want := range map[string]string{
		"": "text/plain", "*/*": "text/plain", "nonsense": "text/plain",
		"application/openmetrics-text;version=1.0.0":                                                 "application/openmetrics-text",
		"application/vnd.google.protobuf;proto=io.prometheus.client.MetricFamily;encoding=delimited": "application/vnd.google.protobuf",
	} {
		page, err := m.Scrape(t.Context(), http.Header{"Accept": {accept}})
		if err != nil || !strings.HasPrefix(page.ContentType, want) || len(page.Body) == 0 {
			t.Errorf("%s: %s, %v", accept, page.ContentType, err)
		}
		testenv.Equal(t, fmt.Sprintf("%s: ends with EOF", accept), want == "application/openmetrics-text", strings.HasSuffix(string(page.Body), "# EOF\n"))
	}
}

func TestTwoRegistriesAreApart(t *testing.T) {
	t.Parallel()
	a, b := New(), New()
	a.Outbox().Added()
	testenv.Equal(t, "events that were added", "0", ours(t, b)["roundhouse_outbox_added_total"])
}

func TestCached(t *testing.T) {
	t.Parallel()
	now, calls := time.Unix(1000, 0), 0
	get := Cached(func(context.Context) (outbox.Snapshot, error) {
		calls++
		return outbox.Snapshot{BacklogSize: calls}, nil
	}, 0, func() time.Time { return now })
	for _, step := range []struct {
		pass time.Duration
		want int
	}{{0, 1}, {DefaultMaxAge - 1, 1}, {1, 2}} {
		now = now.Add(step.pass)
		if s, err := get(t.Context()); err != nil || s.BacklogSize != step.want {
			t.Errorf("%+v, %v", s, err)
		}
	}
}
