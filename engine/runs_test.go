package engine_test

import (
	"errors"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"

	"github.com/vibedata/roundhouse/engine"
	"github.com/vibedata/roundhouse/engine/registry"
	"github.com/vibedata/roundhouse/internal/faults"
	"github.com/vibedata/roundhouse/orchestrator"
)

// ids are the orchestrations of an engine under a correlation id.
func ids(t *testing.T, p *engine.Pipeline, name, correlationID string) (got []string) {
	t.Helper()
	found, more, err := p.Runs(t.Context(), name, correlationID)
	if err != nil || more {
		t.Fatalf("more: %v, %v", more, err)
	}
	for _, s := range found {
		got = append(got, s.ID+" "+string(s.Status))
	}
	return got
}

// The runs of a singleton are found under their correlation ids, though their orchestration is named after its instance;
// one that waits has no history yet.
func TestRunsOfASingleton(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		h := newHall(t)
		h.waits = true
		p := h.process(t, nil)
		if _, err := p.registry.Create(t.Context(), registry.Instance{InstanceID: "i2"}); err != nil {
			t.Fatal(err)
		}
		for instance, id := range map[string]string{"i1": "one", "i2": "both"} {
			m := engine.Delivery{Queue: doorQueue, ID: id, DequeueCount: 1, Body: []byte(`{"correlationId":"` + id + `","instanceId":"` + instance + `"}`)}
			if err := p.pipeline.Handle(t.Context(), m); err != nil {
				t.Fatal(err)
			}
		}
		for id, want := range map[string][]string{"one": {"door-i1 Running"}, "both": {"door-i2 Running"}, "i1": nil} {
			if diff := cmp.Diff(want, ids(t, p.pipeline, "door", id)); diff != "" {
				t.Errorf("%s (-want +got):\n%s", id, diff)
			}
		}
		for _, id := range []string{"door-i1", "door-i2"} {
			if err := p.runtime.Terminate(t.Context(), id, "enough"); err != nil {
				t.Fatal(err)
			}
		}
		h.serve(t, func() hallProcess { return p })
		h.send(t, "both") // one id for runs of several instances
		h.waits = false
		h.serve(t, func() hallProcess { return p })
		for id, want := range map[string][]string{"one": nil, "both": {"door-i1 Completed", "door-i2 Terminated"}} {
			if diff := cmp.Diff(want, ids(t, p.pipeline, "door", id)); diff != "" {
				t.Errorf("afterwards %s (-want +got):\n%s", id, diff)
			}
		}
		_, _, err := h.process(t, &faults.Plan{At: 1, Fault: faults.CrashBefore}).pipeline.Runs(t.Context(), "door", "both")
		if err == nil {
			t.Error("storage is away, and nobody says so")
		}
	})
}

// The run of an engine that may run many at a time is found by its name, and belongs to the correlation id itself.
func TestRuns(t *testing.T) {
	t.Parallel()
	w := newWorld()
	w.prepare(t)
	p := w.process(t, nil)
	for id, correlation := range map[string]string{"turntable-c1": "c1", "turntable-c2": "another"} {
		_, err := w.runtime.Start(t.Context(), orchestrator.Start{ID: id, Orchestrator: "turntable", Input: []byte("{}"), CorrelationID: correlation})
		if err != nil {
			t.Fatal(err)
		}
	}
	for id, want := range map[string][]string{"c1": {"turntable-c1 Pending"}, "c2": nil, "c3": nil} {
		if diff := cmp.Diff(want, ids(t, p, "turntable", id)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", id, diff)
		}
	}
	if got := ids(t, p, "of another context", "c1"); got != nil {
		t.Errorf("an engine that is not known: %q", got)
	}
	away := w.process(t, &faults.Plan{At: 1, Fault: faults.CrashBefore})
	if _, _, err := away.Runs(t.Context(), "turntable", "c1"); err == nil || errors.Is(err, orchestrator.ErrNotFound) {
		t.Errorf("storage is away: %v", err)
	}
}
