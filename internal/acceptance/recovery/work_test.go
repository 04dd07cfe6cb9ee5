package recovery

import (
	"context"
	"fmt"
	"time"

	"github.com/google/uuid"

	"github.com/vibedata/roundhouse/azure"
	"github.com/vibedata/roundhouse/engine"
	"github.com/vibedata/roundhouse/orchestrator"
	"github.com/vibedata/roundhouse/tables"
)

const (
	drillEngine  = "drill"
	legacyEngine = "legacy"
	// doneTable has a row for each completed step.
	doneTable     = "drillDone"
	donePartition = "done"
	columnBy      = "Orchestration"
	columnWhat    = "What"
	columnNode    = "Node"
	// lasts is how long an activity continues after its effect, so that a test that sees the effect finds the node at
	// work.
	lasts = 300 * time.Millisecond
	// steps is the number of timer waits, each followed by a wait for an event.
	steps = 3
)

// work is the input of an orchestration of the drill.
type work struct {
	Nap time.Duration `json:"nap"`
}

func queueOf(engine string) string { return engine + "-queue" }

// drillOf returns the engine of the drill: its orchestrations alternately sleep and wait for an event, and record each
// step.
func drillOf(store *azure.Tables, node string) engine.Definition {
	note := orchestrator.NewActivity("note", func(ctx context.Context, what string) (string, error) {
		row := tables.Entity{Key: tables.Key{Partition: donePartition, Row: uuid.NewString()},
			Properties: map[string]any{columnBy: orchestrator.Info(ctx).Orchestration, columnWhat: what, columnNode: node}}
		if err := store.Apply(ctx, doneTable, tables.Insert(row)); err != nil {
			return "", err
		}
		select {
		case <-time.After(lasts):
			return what, nil
		case <-ctx.Done():
			return "", ctx.Err()
		}
	}, orchestrator.WithRetry(orchestrator.Retry{MaxAttempts: 100, FirstInterval: inlineWait, MaxInterval: 2 * inlineWait})) // storage may be unavailable
	finish := orchestrator.NewActivity("finish", func(_ context.Context, taken []string) ([]string, error) { return taken, nil })
	run := func(ctx *orchestrator.Context, r engine.Request[work]) ([]string, error) {
		var taken []string
		for i := range steps {
			if err := ctx.Sleep(r.Input.Nap); err != nil {
				return nil, err
			}
			if _, err := note.Call(ctx, fmt.Sprint("slept ", i)).Await(); err != nil {
				return nil, err
			}
			e, err := orchestrator.Event[string](ctx, "go").Await()
			if err != nil {
				return nil, err
			}
			if _, err := note.Call(ctx, "took "+e).Await(); err != nil {
				return nil, err
			}
			taken = append(taken, e)
		}
		return finish.Call(ctx, taken).Await()
	}
	return engine.Definition{Name: drillEngine, Queue: queueOf(drillEngine), Orchestrator: engine.Orchestrate(drillEngine, run),
		Operations: []orchestrator.AnyActivity{finish}, Activities: []orchestrator.AnyActivity{note}, MaxAttempts: maxDequeue - 1}
}

// legacy is an engine that only some nodes have. Its orchestrations wait for an event.
func legacy() engine.Definition {
	end := orchestrator.NewActivity("end", func(_ context.Context, v string) (string, error) { return v, nil })
	run := func(ctx *orchestrator.Context, _ engine.Request[work]) (string, error) {
		v, err := orchestrator.Event[string](ctx, "go").Await()
		if err != nil {
			return "", err
		}
		return end.Call(ctx, v).Await()
	}
	return engine.Definition{Name: legacyEngine, Queue: queueOf(legacyEngine), Orchestrator: engine.Orchestrate(legacyEngine, run),
		Operations: []orchestrator.AnyActivity{end}}
}
