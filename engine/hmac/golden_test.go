package hmac_test

import (
	"testing"
	"time"

	"github.com/vibedata/roundhouse/engine"
	"github.com/vibedata/roundhouse/engine/consumers"
	"github.com/vibedata/roundhouse/engine/hmac"
	"github.com/vibedata/roundhouse/orchestrator/orchestratortest"
)

// The engine decides as when the golden histories were written.
func TestGolden(t *testing.T) {
	t.Parallel()
	orchestratortest.Golden(t, "testdata/golden.json", rotation(t))
	orchestratortest.Golden(t, "testdata/grace.json", following(t))
	orchestratortest.Golden(t, "testdata/waiting.json", confirmed(t))
}

// rotation returns a run of the engine over a world of its own. Its output is not compared: versions are random.
func rotation(t *testing.T) orchestratortest.Scenario[engine.Message, struct{}] {
	t.Helper()
	return scenarioOver(t, newWorld(t), 0)
}

// following returns a run over a world with a key that it replaces.
func following(t *testing.T) orchestratortest.Scenario[engine.Message, struct{}] {
	t.Helper()
	return scenarioOver(t, withBefore(t), grace)
}

// confirmed returns a run whose version does not arrive, until an operator decides.
func confirmed(t *testing.T) orchestratortest.Scenario[engine.Message, struct{}] {
	t.Helper()
	w := withBefore(t)
	w.outbox.Down = true
	s := scenarioOver(t, w, grace+10*time.Hour)
	s.Steps = []orchestratortest.Step{{At: grace + 10*time.Hour, Task: consumers.Task, Data: consumers.Decision{Action: consumers.Retire}}}
	return s
}

// withBefore returns a world with a key from the day before the scenario.
func withBefore(t *testing.T) *world {
	t.Helper()
	w := newWorld(t)
	w.move(time.Date(1999, 12, 31, 0, 0, 0, 0, time.UTC))
	w.turn(t, "before")
	w.clock = time.Now
	return w
}

// scenarioOver returns a run that takes this time, except for seconds.
func scenarioOver(t *testing.T, w *world, lasts time.Duration) orchestratortest.Scenario[engine.Message, struct{}] {
	t.Helper()
	d := hmac.Definition(w.steps(t))
	return orchestratortest.Scenario[engine.Message, struct{}]{
		Orchestrator: d.Orchestrator,
		Activities:   append(d.Operations, d.Activities...),
		Input:        engine.Message{CorrelationID: "golden", InstanceID: instance},
		Check: func(t *testing.T, r orchestratortest.Result[struct{}]) {
			if r.Err != nil || len(w.usable(t)) != 1 || len(w.enabled(t, "golden")) != 1 {
				t.Errorf("%v, usable versions %v", r.Err, w.usable(t))
			}
			if r.Elapsed < lasts-time.Second || r.Elapsed > lasts+time.Hour {
				t.Errorf("it took %v", r.Elapsed)
			}
		},
	}
}
