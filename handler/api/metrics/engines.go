package metrics

import (
	"context"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/vibedata/roundhouse/engine"
)

// engineSeries are the metrics of one engine.
type engineSeries struct {
	attempts    map[engine.Fate]prometheus.Counter
	took, whole prometheus.Observer
	succeeded   prometheus.Gauge
}

// Engines counts the outcomes of deliveries of the engines with these names: pass the result to engine.Config. Call
// it once.
func (m *Metrics) Engines(names ...string) func(ctx context.Context, s engine.Settled) {
	attempts := m.counterVec("engine_attempts_total", "Deliveries of engine messages, and ends of their runs, by what became of them.", "engine", "outcome")
	took := m.histogramVec("engine_attempt_duration_seconds", "How long the handling of a delivery took.", quick, "engine")
	whole := m.histogramVec("engine_message_duration_seconds",
		"Time from when a message was sent to when its run was over, or it became a dead letter: waits and earlier attempts included.", patient, "engine")
	succeeded := prometheus.NewGaugeVec(prometheus.GaugeOpts{Namespace: namespace, Name: "engine_last_success_timestamp_seconds",
		Help: "When a run of the engine last succeeded here; 0 when this process has not seen that."}, []string{"engine"})
	m.registry.MustRegister(succeeded)
	series := map[string]engineSeries{}
	for _, name := range append([]string{other}, names...) {
		s := engineSeries{map[engine.Fate]prometheus.Counter{}, took.WithLabelValues(name), whole.WithLabelValues(name), succeeded.WithLabelValues(name)}
		for _, fate := range engine.Fates() {
			s.attempts[fate] = attempts.WithLabelValues(name, string(fate))
		}
		series[name] = s
	}
	return func(ctx context.Context, s engine.Settled) {
		of, ok := series[s.Engine]
		if !ok {
			of = series[other]
		}
		if c := of.attempts[s.Fate]; c != nil {
			c.Inc()
		}
		observe(ctx, of.took, s.Took)
		if s.Fate.Final() && s.SinceSent > 0 {
			observe(ctx, of.whole, s.SinceSent)
		}
		if s.Fate == engine.Succeeded {
			of.succeeded.SetToCurrentTime()
		}
	}
}
