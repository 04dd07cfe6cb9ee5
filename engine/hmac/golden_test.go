package hmac_test

import (
	"testing"

	"github.com/vibedata/roundhouse/engine"
	"github.com/vibedata/roundhouse/engine/hmac"
	"github.com/vibedata/roundhouse/orchestrator/orchestratortest"
)

// The engine decides as it did when the golden history was written.
func TestGolden(t *testing.T) {
	t.Parallel()
	orchestratortest.Golden(t, "testdata/golden.json", rotation(t))
}

// Whatever crashes in the runtime, a rotation succeeds and leaves one usable key.
func TestRotationCrashesEverywhere(t *testing.T) {
	t.Parallel()
	orchestratortest.CrashEverywhere(t, rotation)
}

// rotation is a run of the engine over a world of its own. Its output is not compared: versions are random.
func rotation(t *testing.T) orchestratortest.Scenario[engine.Message, struct{}] {
	t.Helper()
	w := newWorld(t)
	d := hmac.Definition(w.steps(t))
	return orchestratortest.Scenario[engine.Message, struct{}]{
		Orchestrator: d.Orchestrator,
		Activities:   d.Operations,
		Input:        engine.Message{CorrelationID: "golden", InstanceID: instance},
		Check: func(t *testing.T, r orchestratortest.Result[struct{}]) {
			if left := w.enabled(t, "golden"); r.Err != nil || len(left) != 1 {
				t.Errorf("%v, usable versions %v", r.Err, left)
			}
		},
	}
}
