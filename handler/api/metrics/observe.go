package metrics

import (
	"context"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.opentelemetry.io/otel/trace"
)

// other is the label value for unknown values.
const other = "other"

// traceLabel is the label of an exemplar.
const traceLabel = "trace_id"

// buckets of durations, in seconds.
var (
	// quick is for work that usually takes milliseconds, and at most minutes.
	quick = []float64{.005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30, 60, 300}
	// patient is for work that may wait: from a fraction of a second to a week.
	patient = []float64{.1, .25, .5, 1, 2.5, 5, 15, 30, 60, 300, 900, 3600, 14400, 86400, 604800}
)

// counterVec and histogramVec make and register metrics whose names are below namespace.
func (m *Metrics) counterVec(name, help string, labels ...string) *prometheus.CounterVec {
	v := prometheus.NewCounterVec(prometheus.CounterOpts{Namespace: namespace, Name: name, Help: help}, labels)
	m.registry.MustRegister(v)
	return v
}

func (m *Metrics) histogramVec(name, help string, buckets []float64, labels ...string) *prometheus.HistogramVec {
	v := prometheus.NewHistogramVec(prometheus.HistogramOpts{Namespace: namespace, Name: name, Help: help, Buckets: buckets}, labels)
	m.registry.MustRegister(v)
	return v
}

// observe adds a duration to a histogram, with the trace of ctx as an exemplar if it is sampled.
func observe(ctx context.Context, o prometheus.Observer, took time.Duration) {
	if span := trace.SpanContextFromContext(ctx); span.IsSampled() && span.HasTraceID() {
		if e, ok := o.(prometheus.ExemplarObserver); ok {
			e.ObserveWithExemplar(took.Seconds(), prometheus.Labels{traceLabel: span.TraceID().String()})
			return
		}
	}
	o.Observe(took.Seconds())
}
