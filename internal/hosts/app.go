package hosts

import (
	"context"
	"encoding/json"
	"os"
	"time"

	"github.com/vibedata/roundhouse/engine"
	"github.com/vibedata/roundhouse/handler"
	"github.com/vibedata/roundhouse/orchestrator"
)

const (
	// Engine is the engine of the app.
	Engine = "work"
	// Queue is the queue of its messages.
	Queue = "work-queue"
	// Tenant is the tenant of the events that it publishes.
	Tenant = "acme"
	// part is the orchestrator of the children.
	part = "part"
	// goEvent is the event that Work.Event waits for.
	goEvent = "go"
)

// Work is the work of an orchestration of the app, in the order of the fields.
type Work struct {
	// Event makes it wait for an event first (Cluster.Raise).
	Event bool `json:"event,omitempty"`
	// Ask makes it then create a user task of that name.
	Ask string `json:"ask,omitempty"`
	// Children is the number of parallel children that do the rest; 0 means that it does it itself.
	Children int `json:"children,omitempty"`
	// Naps is how often it sleeps, for Nap each.
	Naps int           `json:"naps,omitempty"`
	Nap  time.Duration `json:"nap,omitempty"`
	// Calls is the number of consecutive activities, which take Lasts each.
	Calls int           `json:"calls,omitempty"`
	Lasts time.Duration `json:"lasts,omitempty"`
	// Hold makes it then run an activity that lasts until this file exists: it is in flight for as long as the caller
	// wants.
	Hold string `json:"hold,omitempty"`
	// Publish is the type of the event that it publishes last; "" for none.
	Publish string `json:"publish,omitempty"`
}

// lookEvery is the interval at which an activity checks for the file that ends it.
const lookEvery = 100 * time.Millisecond

// hold returns when a file exists.
func hold(ctx context.Context, file string) (bool, error) {
	tick := time.NewTicker(lookEvery)
	defer tick.Stop()
	for {
		if _, err := os.Stat(file); err == nil {
			return true, nil
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return false, ctx.Err()
		}
	}
}

// app is the handler under test.
func app() handler.App {
	retry := orchestrator.WithRetry(orchestrator.Retry{MaxAttempts: 10, FirstInterval: time.Second})
	held := orchestrator.NewActivity("hold", hold, retry)
	step := orchestrator.NewActivity("step", func(ctx context.Context, lasts time.Duration) (bool, error) {
		select {
		case <-time.After(lasts):
			return true, nil
		case <-ctx.Done():
			return false, ctx.Err()
		}
	}, retry)
	do := func(ctx *orchestrator.Context, w Work) (int, error) {
		for range w.Naps {
			if err := ctx.Sleep(w.Nap); err != nil {
				return 0, err
			}
		}
		for range w.Calls {
			if _, err := step.Call(ctx, w.Lasts).Await(); err != nil {
				return 0, err
			}
		}
		if w.Hold != "" {
			if _, err := held.Call(ctx, w.Hold).Await(); err != nil {
				return 0, err
			}
		}
		return w.Naps + w.Calls, nil
	}
	child := orchestrator.NewOrchestrator(part, do)
	run := func(ctx *orchestrator.Context, r engine.Request[Work]) (int, error) {
		w := r.Input
		if err := await(ctx, w); err != nil {
			return 0, err
		}
		done, err := share(ctx, w, do, child)
		if err == nil && w.Publish != "" {
			err = ctx.Publish(orchestrator.Publication{TenantID: Tenant, Type: w.Publish, Payload: json.RawMessage(`{}`)})
		}
		return done, err
	}
	return handler.App{Engines: func(*handler.Platform) ([]engine.Definition, error) {
		return []engine.Definition{{Name: Engine, Queue: Queue, Orchestrator: engine.Orchestrate(Engine, run),
			Children: []orchestrator.AnyOrchestrator{child}, Operations: []orchestrator.AnyActivity{step, held}}}, nil
	}}
}

// await waits for outside events.
func await(ctx *orchestrator.Context, w Work) error {
	if w.Event {
		if _, err := orchestrator.Event[bool](ctx, goEvent).Await(); err != nil {
			return err
		}
	}
	if w.Ask == "" {
		return nil
	}
	_, err := orchestrator.AskPerson[bool](ctx, orchestrator.HumanTask{Name: w.Ask}).Await()
	return err
}

// share does the work, or lets children do it.
func share(ctx *orchestrator.Context, w Work, do func(*orchestrator.Context, Work) (int, error), child *orchestrator.Orchestrator[Work, int]) (int, error) {
	if w.Children == 0 {
		return do(ctx, w)
	}
	var all []*orchestrator.Future[int]
	for range w.Children {
		all = append(all, child.Call(ctx, Work{Naps: w.Naps, Nap: w.Nap, Calls: w.Calls, Lasts: w.Lasts, Hold: w.Hold}))
	}
	done, err := orchestrator.All(all...)
	return len(done), err
}
