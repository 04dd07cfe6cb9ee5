package metrics

import (
	"context"
	"encoding/json"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/vibedata/roundhouse/engine"
	"github.com/vibedata/roundhouse/orchestrator"
)

// The results of an attempt at an activity.
const (
	succeeded = "succeeded"
	failed    = "failed"    // retried, within its retries
	permanent = "permanent" // not retried
)

// Platform is the engine label of activities without an engine.
const Platform = "platform"

// activitySeries are the metrics of one activity.
type activitySeries struct {
	results map[string]prometheus.Counter
	took    prometheus.Observer
}

// Activities counts the attempts at activities: those of the definitions, whose operation is that of the history, and
// all others, which belong to Platform. The result wraps an activity before it is registered. Call Activities once.
func (m *Metrics) Activities(definitions []engine.Definition) func(orchestrator.AnyActivity) orchestrator.AnyActivity {
	labels := []string{"engine", "operation", "activity"}
	attempts := m.counterVec("activity_attempts_total",
		"Attempts at activities, by how they ended. operation is empty for those that the history does not show.", append(labels, "result")...)
	took := m.histogramVec("activity_attempt_duration_seconds", "How long an attempt at an activity took.", quick, labels...)
	owners := map[string]engine.Definition{}
	for _, d := range definitions {
		for _, some := range [][]orchestrator.AnyActivity{d.Operations, d.Activities} {
			for _, a := range some {
				owners[a.Name()] = d
			}
		}
	}
	return func(a orchestrator.AnyActivity) orchestrator.AnyActivity {
		of := []string{Platform, "", a.Name()}
		if d, ok := owners[a.Name()]; ok {
			of[0], of[1] = d.Name, d.Operation(a.Name())
		}
		s := activitySeries{map[string]prometheus.Counter{}, took.WithLabelValues(of...)}
		for _, result := range []string{succeeded, failed, permanent} {
			s.results[result] = attempts.WithLabelValues(append(of[:len(of):len(of)], result)...)
		}
		return orchestrator.Around(a, s.around)
	}
}

// around counts one attempt.
func (s activitySeries) around(ctx context.Context, _ json.RawMessage, next func(context.Context) (json.RawMessage, error)) (json.RawMessage, error) {
	began, result := time.Now(), failed
	output, err := next(ctx)
	switch {
	case err == nil:
		result = succeeded
	case orchestrator.IsPermanent(err):
		result = permanent
	}
	s.results[result].Inc()
	observe(ctx, s.took, time.Since(began))
	return output, err
}
