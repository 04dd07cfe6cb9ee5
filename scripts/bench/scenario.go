package main

import (
	"context"
	"fmt"
	"strings"
	"time"
)

// scenario measures what belongs together.
type scenario struct {
	metrics []metric
	// measure gives one value for each metric, in their order. d is for how long to measure.
	measure func(ctx context.Context, d time.Duration) ([]float64, error)
}

// metric is something that can be measured.
type metric struct {
	name string
	unit string
	goal string // what the value should be, for people. A comparison sets it when it knows whom it compared with.
}

// scenarios lists everything that can be measured, in the order in which it is.
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

// selected gives the scenarios that measure something with a name that begins with prefix.
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
