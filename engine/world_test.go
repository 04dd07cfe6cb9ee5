package engine_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/vibedata/roundhouse/engine"
	"github.com/vibedata/roundhouse/engine/enginetest"
	"github.com/vibedata/roundhouse/orchestrator"
)

const (
	testQueue     = "turntable-queue"
	signalQueue   = "orchestration-signals"
	scheduleQueue = "orchestration-schedules"
	activityQueue = "orchestration-activities"
)

// world outlives processes: it holds storage, and the effects of the activities. It also configures the next process.
type world struct {
	*enginetest.World

	observe func(context.Context, engine.Settled)

	turns   atomic.Int32                    // runs of the first operation
	degrees atomic.Int32                    // last angle
	turn    func(ctx context.Context) error // its work; nil succeeds
	oiled   atomic.Int32                    // runs of the activity in between
	dry     error                           // its error
	waits   bool                            // for an event, and an hour, before any work
	rests   rest                            // an hour-long wait between the operations
	parts   int                             // number of final parallel activities, most of which run elsewhere

	adapt func(body []byte) (engine.Message, bool, error) // for foreign messages; nil for none
	scope engine.Scope                                    // of the singleton; "" for none

	claims *engine.Claims // of large inputs; nil for none

	now func() time.Time // the pipeline's clock; nil for the usual one
}

// rest is the place of an additional wait in a run of the engine.
type rest int

const (
	never   rest = iota
	between      // its operations
	after        // after its last operation, with an activity left that is no operation
)

func newWorld(t testing.TB) *world {
	t.Helper()
	w := &world{}
	w.World = enginetest.New(t, enginetest.Config{MaxDeliveries: 60,
		Engines: func(enginetest.Stores) []engine.Definition { return []engine.Definition{w.definition()} },
		Runtime: func(c *orchestrator.Config) { c.MaxInlineActivities = spreadAbove },
		Pipeline: func(c *engine.Config) {
			c.Claims, c.Now, c.Observe = w.claims, w.now, w.observe
		}})
	return w
}

type input struct {
	Degrees int `json:"degrees"`
}

// definition returns an engine of two operations, turn and lock, with an activity in between.
func (w *world) definition() engine.Definition {
	turn := orchestrator.NewActivity("turn", func(ctx context.Context, in input) (input, error) {
		w.turns.Add(1)
		w.degrees.Store(int32(in.Degrees))
		if w.turn != nil {
			return in, w.turn(ctx)
		}
		return in, nil
	})
	oil := orchestrator.NewActivity("oil", func(_ context.Context, n int) (int, error) {
		w.oiled.Add(1)
		if w.dry != nil {
			return n, w.dry
		}
		return n, nil
	})
	oils := func(ctx *orchestrator.Context) error {
		futures := make([]*orchestrator.Future[int], max(1, w.parts))
		for i := range futures {
			futures[i] = oil.Call(ctx, i)
		}
		_, err := orchestrator.All(futures...)
		return err
	}
	lock := orchestrator.NewActivity("lock", func(_ context.Context, instance string) (string, error) { return instance, nil })
	return engine.Definition{
		Name:       "turntable",
		Queue:      testQueue,
		Adapt:      w.adapt,
		Singleton:  w.scope,
		Operations: []orchestrator.AnyActivity{turn, lock},
		Activities: []orchestrator.AnyActivity{oil},
		Orchestrator: engine.Orchestrate("turntable", func(ctx *orchestrator.Context, r engine.Request[input]) (string, error) {
			if w.waits {
				if _, err := orchestrator.Event[int](ctx, "go").Await(); err != nil {
					return "", err
				}
				if err := ctx.Sleep(time.Hour); err != nil {
					return "", err
				}
			}
			if _, err := turn.Call(ctx, r.Input).Await(); err != nil {
				return "", err
			}
			if w.rests == between {
				if err := ctx.Sleep(time.Hour); err != nil {
					return "", err
				}
			}
			if err := oils(ctx); err != nil {
				return "", err
			}
			locked, err := lock.Call(ctx, r.InstanceID).Await()
			if err == nil && w.rests == after {
				if err = ctx.Sleep(time.Hour); err == nil {
					err = oils(ctx)
				}
			}
			return locked, err
		}),
	}
}

// spreadAbove bounds the activities of a run in one process.
const spreadAbove = 2

// event raises the event that the engine may wait for.
func (w *world) event(t *testing.T, correlationID string, delay time.Duration) {
	t.Helper()
	w.SendIn(signalQueue, fmt.Sprintf(`{"signalId":"go","workflowInstanceId":"turntable-%s","runtimeProvider":"roundhouse",
		"signalType":"ExternalSignal","payload":{"event":"go","data":1}}`, correlationID), delay)
}

// checkSucceeded checks that each operation and the whole run succeeded once, without a dead letter.
func (w *world) checkSucceeded(t *testing.T, correlationID string) {
	t.Helper()
	var succeeded []string
	runs := 0
	for _, e := range w.History("turntable", correlationID) {
		if e.Status == engine.StatusSucceeded {
			succeeded = append(succeeded, e.Operation)
		}
		if e.RunStatus == engine.StatusSucceeded {
			runs++
		}
	}
	if fmt.Sprint(succeeded) != "[turn lock]" || runs != 1 {
		t.Errorf("succeeded operations %v in %d runs", succeeded, runs)
	}
	if dead := w.DeadLetters("turntable"); len(dead) != 0 {
		t.Errorf("dead letters: %+v", dead)
	}
}

// checkSuperseded checks that lists of open failures leave out failures before the run's success, and that every
// other list has each selected entry once.
func (w *world) checkSuperseded(t *testing.T, correlationID string) {
	t.Helper()
	all := w.History("turntable", correlationID)
	failed, by := 0, ""
	for _, e := range all {
		if e.RunStatus == engine.StatusSucceeded {
			by = e.RowKey
		}
	}
	for _, e := range all {
		if e.Status == engine.StatusFailed {
			failed++
		}
		if e.Status == engine.StatusFailed && e.SupersededBy != by || e.Status == engine.StatusSucceeded && e.SupersededBy != "" {
			t.Errorf("%s of %s is superseded by %q", e.Operation, e.RowKey, e.SupersededBy)
		}
	}
	for _, tenantID := range []string{"", "contoso"} {
		for _, id := range []string{"", correlationID} {
			for want, f := range map[int]engine.HistoryFilter{
				0: {Status: engine.StatusFailed, Open: true}, failed: {Status: engine.StatusFailed}, len(all): {}, len(all) - failed: {Open: true},
			} {
				f.Engines, f.TenantID, f.CorrelationID, f.Limit = []string{"turntable"}, tenantID, id, engine.MaxLimit
				page, err := engine.NewHistory(w.Tables, "").List(t.Context(), f)
				if err != nil || len(page.Entries) != want {
					t.Errorf("%+v: %d entries of %d, %v", f, len(page.Entries), want, err)
				}
			}
		}
	}
}

const good = `{"correlationId":"c1","engine":"turntable","instanceId":"i1","tenantId":"Contoso","input":{"degrees":90}}`

// deliverWithin delivers at most one message, with a bounded invocation.
func (w *world) deliverWithin(p *enginetest.Process, budget time.Duration) int {
	if w.DeliverTo(testQueue, func(ctx context.Context, d engine.Delivery) error {
		ctx, cancel := context.WithTimeout(ctx, budget)
		defer cancel()
		return p.Handle(ctx, d)
	}) {
		return 1
	}
	time.Sleep(enginetest.Visibility) // virtual
	return 0
}

// checkDead checks that one dead letter exists, and that its run, if any, has failed for good.
func checkDead(message string) func(*testing.T, *world) {
	return func(t *testing.T, w *world) {
		t.Helper()
		dead := w.DeadLetters("turntable")
		if len(dead) != 1 || !strings.Contains(dead[0].ErrorMessage, message) {
			t.Errorf("dead letters: %+v", dead)
		}
		out, err := w.Restart(nil).Runtime.Get(t.Context(), "turntable-c1")
		if !errors.Is(err, orchestrator.ErrNotFound) && (err != nil || out.Status != orchestrator.Failed) {
			t.Errorf("its run is %s, %v", out.Status, err)
		}
	}
}
