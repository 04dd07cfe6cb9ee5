package engine_test

import (
	"testing"
	"testing/synctest"

	"github.com/vibedata/roundhouse/engine"
	"github.com/vibedata/roundhouse/orchestrator"
)

// The dead letter of a stalled run that no message started belongs to its engine, with the run's correlation id.
func TestStalledRunThatWasStarted(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.waits = true
		w.Restart(nil)
		if _, err := w.Runtime().Start(t.Context(), orchestrator.Start{ID: "turntable-x", Orchestrator: "turntable", Input: []byte(good), CorrelationID: "c1", TenantID: "Contoso"}); err != nil {
			t.Fatal(err)
		}
		w.Restart(nil).Run()
		w.event(t, "x", 0)
		if err := w.deployed(changed()).HandleSignal(t.Context(), w.Take(signalQueue)); err != nil {
			t.Fatal(err)
		}
		dead := w.DeadLetters("turntable")
		if len(dead) != 1 || dead[0].DetectedReason != engine.ReasonStalled || dead[0].CorrelationID != "c1" || dead[0].TenantID != "Contoso" || dead[0].OriginalQueue != signalQueue {
			t.Errorf("%+v", dead)
		}
	})
}
