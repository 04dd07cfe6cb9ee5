package nodes

import (
	"context"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/vibedata/roundhouse/orchestrator"
)

// step is one step of an orchestration.
type step struct {
	Kind string        // activity, spread, timer, event, child, again
	For  time.Duration // duration of an activity or a timer
	Wide int           // number of parallel activities
	Plan []step        // of a child
}

// plan is the input of an orchestration: it runs the steps in order and adds up their results.
type plan struct {
	Steps []step
	Sum   int
}

// sum returns the result of an orchestration with these steps.
func sum(steps []step) int {
	total := 0
	for _, one := range steps {
		switch one.Kind {
		case "activity":
			total++
		case "spread":
			total += one.Wide
		case "event":
			total += eventValue
		case "child":
			total += sum(one.Plan)
		}
	}
	return total
}

const (
	eventName  = "go on"
	eventValue = 100
)

// randomPlan draws the steps of an orchestration. depth is its number of callers.
func randomPlan(chance *rand.Rand, depth int) []step {
	steps := make([]step, 1+chance.IntN(6))
	for i := range steps {
		switch kind := chance.IntN(12); {
		case kind < 4:
			steps[i] = step{Kind: "activity", For: upTo(chance, []time.Duration{time.Second, 20 * time.Second, 4 * time.Minute}[chance.IntN(3)])}
		case kind < 6:
			steps[i] = step{Kind: "spread", Wide: 2 + chance.IntN(12), For: upTo(chance, []time.Duration{time.Second, time.Minute}[chance.IntN(2)])}
		case kind < 8:
			steps[i] = step{Kind: "timer", For: upTo(chance, []time.Duration{25 * time.Second, 15 * time.Minute}[chance.IntN(2)])}
		case kind < 9 && depth == 0:
			steps[i] = step{Kind: "event"}
		case kind < 10 && depth == 0:
			steps[i] = step{Kind: "again"}
		case kind < 11 && depth < 2:
			steps[i] = step{Kind: "child", Plan: randomPlan(chance, depth+1)}
		default:
			steps[i] = step{Kind: "activity", For: upTo(chance, 5*time.Second)}
		}
	}
	return steps
}

// work is the input of an activity.
type work struct {
	For time.Duration
	No  int
}

func (m *machine) programs() ([]orchestrator.AnyOrchestrator, []orchestrator.AnyActivity) {
	working := orchestrator.NewActivity("work", func(ctx context.Context, w work) (int, error) {
		key := orchestrator.Info(ctx).IdempotencyKey()
		m.ledger.began(key, m)
		select {
		case <-ctx.Done():
			return 0, ctx.Err()
		case <-time.After(w.For * m.slow):
		}
		if err := m.pass(); err != nil {
			return 0, err
		}
		m.ledger.did(key)
		return 1, nil
	})
	child := &orchestrator.Orchestrator[plan, int]{}
	parent := orchestrator.NewOrchestrator("plan", func(ctx *orchestrator.Context, p plan) (int, error) { return perform(ctx, p, working, child) })
	*child = *orchestrator.NewOrchestrator("part", func(ctx *orchestrator.Context, p plan) (int, error) { return perform(ctx, p, working, child) })
	return []orchestrator.AnyOrchestrator{parent, child}, []orchestrator.AnyActivity{working}
}

// perform is the orchestrator.
func perform(ctx *orchestrator.Context, p plan, working *orchestrator.Activity[work, int], child *orchestrator.Orchestrator[plan, int]) (int, error) {
	for i, one := range p.Steps {
		var got int
		var err error
		switch one.Kind {
		case "activity":
			got, err = working.Call(ctx, work{one.For, 0}).Await()
		case "spread":
			got, err = spread(ctx, one, working)
		case "timer":
			err = ctx.Sleep(one.For)
		case "event":
			got, err = orchestrator.Event[int](ctx, eventName).Await()
		case "child":
			got, err = child.Call(ctx, plan{Steps: one.Plan}).Await()
		case "again":
			return 0, orchestrator.ContinueAsNew(plan{p.Steps[i+1:], p.Sum})
		default:
			err = fmt.Errorf("there is no step %q", one.Kind)
		}
		if err != nil {
			return 0, err
		}
		p.Sum += got
	}
	return p.Sum, nil
}

func spread(ctx *orchestrator.Context, one step, working *orchestrator.Activity[work, int]) (int, error) {
	calls := make([]*orchestrator.Future[int], one.Wide)
	for i := range calls {
		calls[i] = working.Call(ctx, work{one.For, i})
	}
	total := 0
	for _, call := range calls {
		got, err := call.Await()
		if err != nil {
			return 0, err
		}
		total += got
	}
	return total, nil
}
