package metrics

import (
	"errors"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/vibedata/roundhouse/orchestrator/nodes"
)

// Nodes exports the counts of this process as a node, from nodes.Node.Counts. A second call returns an error.
func (m *Metrics) Nodes(counts func() nodes.Counts) error {
	show := func(name, help string, of func(nodes.Counts) int) error {
		return m.registry.Register(prometheus.NewCounterFunc(
			prometheus.CounterOpts{Namespace: namespace, Subsystem: "node", Name: name, Help: help},
			func() float64 { return float64(of(counts())) }))
	}
	return errors.Join(
		show("takeovers_total", "Dead processes that this one has taken over from.", func(c nodes.Counts) int { return c.Takeovers }),
		show("taken_over_total", "Orchestrations that went on here or by its signals for that.", func(c nodes.Counts) int { return c.TakenOver }),
		show("fenced_total", "How often others have taken over from this process although it lived.", func(c nodes.Counts) int { return c.Fenced }),
	)
}
