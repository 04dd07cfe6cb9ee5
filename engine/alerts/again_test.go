package alerts_test

import (
	"context"
	"testing"

	"github.com/vibedata/roundhouse/engine"
	"github.com/vibedata/roundhouse/engine/alerts"
	"github.com/vibedata/roundhouse/engine/enginetest"
	"github.com/vibedata/roundhouse/orchestrator"
)

// An alert whose event could not be published is published by the next attempt, by the rules of that time.
func TestTheNextAttemptGoesByTheRulesOfThen(t *testing.T) {
	t.Parallel()
	var told []string
	refuse, event := true, "alert.page"
	w := enginetest.New(t, enginetest.Config{
		Engines: func(enginetest.Stores) []engine.Definition {
			steps, err := alerts.New(alerts.Config{Rules: []alerts.Rule{{Name: "page", Event: event}}})
			if err != nil {
				t.Fatal(err)
			}
			return []engine.Definition{alerts.Definition(steps)}
		},
		Publish: func(_ context.Context, events []orchestrator.Publication) error {
			for _, e := range events {
				told = append(told, e.Type)
			}
			return nil
		},
		Runtime: func(c *orchestrator.Config) {
			if refuse {
				c.Publish = nil
			}
		}})
	d := engine.Delivery{Queue: alerts.Queue, ID: "3f0c0a68-2f3d-4d0e-9a55-0f4f3c1a7b11", Body: []byte(common("Fired")), DequeueCount: 1}
	if err := w.Process().Handle(t.Context(), d); err != nil || len(w.DeadLetters(alerts.Engine)) != 1 { // it is dead-lettered immediately
		t.Fatal(err)
	}
	refuse, event = false, "alert.call"
	d.ID = "4f0c0a68-2f3d-4d0e-9a55-0f4f3c1a7b11" // and is resent
	if err := w.Restart(nil).Handle(t.Context(), d); err != nil || len(told) != 1 || told[0] != "alert.call" {
		t.Errorf("told %v, %v", told, err)
	}
}
