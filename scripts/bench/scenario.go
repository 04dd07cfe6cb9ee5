package main

import (
	"context"
	"fmt"
	"strings"
	"time"
)

// scenario measures related metrics.
type scenario struct {
	metrics []metric
	// measure returns one value for each metric, in their order. d is the duration of the measurement.
	measure func(ctx context.Context, d time.Duration) ([]float64, error)
}

// metric is a measured value.
type metric struct {
	name string
	unit string
	goal string // goal of the value. A comparison sets it to its counterpart.
}

// scenarios lists all measurements, in their order.
func scenarios() []scenario {
	var all []scenario
	for _, m := range messages() {
		all = append(all, m.scenario())
	}
	all = append(all, lists(), listsByInstance(), deadLetterGroups())
	all = append(all, prices()...)
	all = append(all, speeds()...)
	all = append(all, peers()...)
	all = append(all, linears()...)
	all = append(all, encryption(), traces())
	all = append(all, replays(), events(), parkedEvents(), parked(), listsInMemory(), overAzurite(), listsOverAzurite())
	all = append(all, starts(), idleNode(), takenAtOnce())
	all = append(all, outboxes()...)
	all = append(all, requests()...)
	all = append(all, taskCompletion(), taskLists(), eternal(), consoleFirstPage(), consoleLists(), consolePolling())
	all = append(all, pollers()...)
	all = append(all, overloads()...)
	return append(all, recoveries()...)
}

// selected returns the scenarios with a metric whose name begins with prefix.
func selected(all []scenario, prefix string) []scenario {
	var out []scenario
	for _, s := range all {
		for _, m := range s.metrics {
			if strings.HasPrefix(m.name, prefix) {
				out = append(out, s)
				break
			}
		}
	}
	return out
}

// figures measures.
func (s scenario) figures(ctx context.Context, d time.Duration) ([]figure, error) {
	values, err := s.measure(ctx, d)
	if err != nil {
		return nil, fmt.Errorf("measure %s: %w", s.metrics[0].name, err)
	}
	if len(values) != len(s.metrics) {
		return nil, fmt.Errorf("measure %s: %d values for %d figures", s.metrics[0].name, len(values), len(s.metrics))
	}
	out := make([]figure, len(values))
	for i, m := range s.metrics {
		out[i] = figure{Name: m.name, Value: rounded(values[i]), Unit: m.unit, note: m.goal}
	}
	return out, nil
}
