package metrics

import (
	"errors"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/vibedata/roundhouse/orchestrator"
)

// Runtime exports the counts of a runtime, from runtime.Counts. A second call returns an error.
func (m *Metrics) Runtime(counts func() orchestrator.Counts) error {
	const subsystem = "runtime"
	show := func(name, help string, labels prometheus.Labels, of func(orchestrator.Counts) int) error {
		return m.registry.Register(prometheus.NewCounterFunc(
			prometheus.CounterOpts{Namespace: namespace, Subsystem: subsystem, Name: name, Help: help, ConstLabels: labels},
			func() float64 { return float64(of(counts())) }))
	}
	const dropped, droppedHelp = "signals_dropped_total", "Signals that were not needed: about something that is over (stale), or brought before (duplicate)."
	return errors.Join(
		show(dropped, droppedHelp, prometheus.Labels{"reason": "stale"}, func(c orchestrator.Counts) int { return c.Stale }),
		show(dropped, droppedHelp, prometheus.Labels{"reason": "duplicate"}, func(c orchestrator.Counts) int { return c.Duplicates }),
		show("conflicts_total", "Rounds that another process committed first.", nil, func(c orchestrator.Counts) int { return c.Conflicts }),
		show("damaged_total", "Meetings with an orchestration that cannot be read.", nil, func(c orchestrator.Counts) int { return c.Damaged }),
		show("woken_total", "Overdue orchestrations that the sweeper woke.", nil, func(c orchestrator.Counts) int { return c.Woken }),
	)
}
