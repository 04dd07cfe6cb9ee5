package metrics

import (
	"context"
	"net/http"
	"slices"
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/vibedata/roundhouse/handler/quota"
)

// Doors counts invocations of queue and timer functions, by functions' names and triggers ("queue" or "timer"): pass
// the result to trigger.Config. Other functions count as other. Call it once.
func (m *Metrics) Doors(triggers map[string]string) func(ctx context.Context, function, outcome string, direct bool, took time.Duration) {
	total := m.counterVec("invocations_total",
		"Invocations of queue and timer functions, by how they ended; direct are those whose message this process has sent itself.", "function", "trigger", "direct", "outcome")
	duration := m.histogramVec("invocation_duration_seconds", "How long an invocation took, with the wait until the program was ready.", quick, "function", "trigger")
	return func(ctx context.Context, function, outcome string, direct bool, took time.Duration) {
		by, known := triggers[function]
		if !known {
			function, by = other, other
		}
		total.WithLabelValues(function, by, strconv.FormatBool(direct), outcome).Inc()
		observe(ctx, duration.WithLabelValues(function, by), took)
	}
}

// methods returns the HTTP methods in labels.
func methods() []string {
	return []string{http.MethodGet, http.MethodHead, http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete, http.MethodOptions}
}

// Requests counts the requests of HTTP functions, by the pattern of their route, "" for none, and by status code.
// Call it once.
func (m *Metrics) Requests() func(ctx context.Context, method, route string, code int, took time.Duration) {
	total := m.counterVec("http_requests_total", "Requests of HTTP functions, by the code of the answer.", "method", "route", "code")
	duration := m.histogramVec("http_request_duration_seconds", "How long the answer to a request of an HTTP function took.", quick, "method", "route")
	return func(ctx context.Context, method, route string, code int, took time.Duration) {
		if !slices.Contains(methods(), method) {
			method = other
		}
		if route == "" {
			route = other
		}
		total.WithLabelValues(method, route, strconv.Itoa(code)).Inc()
		observe(ctx, duration.WithLabelValues(method, route), took)
	}
}

// Quota counts the requests refused because their callers had used up their quota, by kind of caller. Call it once.
func (m *Metrics) Quota() func(quota.Kind) {
	total := m.counterVec("quota_refusals_total", "Requests that were refused with 429 because of the storage transactions of their callers.", "caller")
	return func(k quota.Kind) { total.WithLabelValues(string(k)).Inc() }
}

// Refusals counts the refused changes that the audit log skips, because their caller has had too many. Call it once.
func (m *Metrics) Refusals() func() {
	total := prometheus.NewCounter(prometheus.CounterOpts{Namespace: namespace, Name: "audit_refusals_skipped_total",
		Help: "Refused changes without an entry of their own in the audit log: a later entry counts them."})
	m.registry.MustRegister(total)
	return total.Inc
}

// Ticks measures the runs of the timers of pollers, by their names. Call it once.
func (m *Metrics) Ticks() func(ctx context.Context, poller string, took time.Duration) {
	duration := m.histogramVec("poller_tick_duration_seconds", "How long a run of the poller's timer took, one that left the work to another process included.", quick, "poller")
	return func(ctx context.Context, poller string, took time.Duration) {
		observe(ctx, duration.WithLabelValues(poller), took)
	}
}
