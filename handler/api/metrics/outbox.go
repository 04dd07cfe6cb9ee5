package metrics

import (
	"context"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/vibedata/roundhouse/outbox"
)

// outboxCounters are the counters of an outbox.Observer.
type outboxCounters struct {
	added      prometheus.Counter
	duplicates prometheus.Counter
	conflicts  prometheus.Counter
	batches    prometheus.Histogram
	dispatched *prometheus.CounterVec
	took       *prometheus.HistogramVec
	settled    *prometheus.CounterVec
	latency    prometheus.Histogram
	lost       prometheus.Counter
	circuits   *prometheus.GaugeVec
}

func newOutboxCounters() outboxCounters {
	const subsystem = "outbox"
	counter := func(name, help string) prometheus.CounterOpts {
		return prometheus.CounterOpts{Namespace: namespace, Subsystem: subsystem, Name: name, Help: help}
	}
	histogram := func(name, help string, buckets ...float64) prometheus.HistogramOpts {
		return prometheus.HistogramOpts{Namespace: namespace, Subsystem: subsystem, Name: name, Help: help, Buckets: buckets}
	}
	return outboxCounters{
		added:      prometheus.NewCounter(counter("added_total", "Messages that were added.")),
		duplicates: prometheus.NewCounter(counter("duplicates_total", "Messages that were added again under their key.")),
		conflicts:  prometheus.NewCounter(counter("key_conflicts_total", "Messages that were added again under their key with another payload: a mistake of their producer.")),
		batches: prometheus.NewHistogram(histogram("claim_batch_size", "Messages in a claimed batch.",
			1, 2, 5, 10, 20, 50, 100, 200, 500)),
		dispatched: prometheus.NewCounterVec(counter("dispatched_total", "Attempts to deliver a message."), []string{"destination", "result"}),
		took: prometheus.NewHistogramVec(histogram("dispatch_duration_seconds", "How long an attempt took.",
			.005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 15, 30), []string{"destination"}),
		settled: prometheus.NewCounterVec(counter("settled_total", "Messages that came to their end."), []string{"status"}),
		latency: prometheus.NewHistogram(histogram("delivery_latency_seconds", "Time from a message's creation to its delivery.",
			.05, .1, .25, .5, 1, 2.5, 5, 10, 30, 60, 300, 900, 3600, 14400, 86400)),
		lost: prometheus.NewCounter(counter("claims_lost_total", "Deliveries whose claim was lost before they were settled: they may happen twice.")),
		circuits: prometheus.NewGaugeVec(prometheus.GaugeOpts{Namespace: namespace, Subsystem: subsystem, Name: "circuit_open",
			Help: "Whether this process holds the deliveries to a destination back."}, []string{"destination"}),
	}
}

func (c outboxCounters) all() []prometheus.Collector {
	return []prometheus.Collector{c.added, c.duplicates, c.conflicts, c.batches, c.dispatched, c.took, c.settled, c.latency, c.lost, c.circuits}
}

// Outbox counts the work of an outbox; pass it to outbox.Config.
func (m *Metrics) Outbox() outbox.Observer {
	c := m.outbox
	return outbox.Observer{
		Added: c.added.Inc,
		Duplicate: func(payloadDiffers bool) {
			c.duplicates.Inc()
			if payloadDiffers {
				c.conflicts.Inc()
			}
		},
		Claimed: func(messages int) { c.batches.Observe(float64(messages)) },
		Attempted: func(ctx context.Context, destination string, outcome outbox.Outcome, took time.Duration) {
			c.dispatched.WithLabelValues(destination, string(outcome)).Inc()
			observe(ctx, c.took.WithLabelValues(destination), took)
		},
		Settled: func(status outbox.Status, sinceCreated time.Duration) {
			c.settled.WithLabelValues(string(status)).Inc()
			if status == outbox.StatusProcessed {
				c.latency.Observe(sinceCreated.Seconds())
			}
		},
		Lost: c.lost.Inc,
		Circuit: func(destination string, open bool) {
			value := 0.0
			if open {
				value = 1
			}
			c.circuits.WithLabelValues(destination).Set(value)
		},
	}
}
