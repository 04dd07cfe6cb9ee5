package engine_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/vibedata/roundhouse/engine"
	"github.com/vibedata/roundhouse/internal/faults"
	"github.com/vibedata/roundhouse/orchestrator"
	"github.com/vibedata/roundhouse/tables"
)

// A run that ends by a signal is settled like one that ends by its message; when it always fails, it uses up the
// attempts of its message.
func TestRunsThatWait(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		turn  error
		check func(*testing.T, *world)
		turns int32
	}{
		"succeeds":     {nil, func(t *testing.T, w *world) { w.checkSucceeded(t, "c1") }, 1},
		"always fails": {errors.New("jammed"), checkDead("jammed"), 4},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t)
				w.waits, w.turn = true, func(context.Context) error { return tt.turn }
				w.Send(testQueue, good)
				w.event(t, "c1", 24*time.Hour)
				began := time.Now()
				p := w.Restart(nil)
				p.Run()
				tt.check(t, w)
				if w.turns.Load() != tt.turns || time.Since(began) < 25*time.Hour || p.Count(engine.Parked) == 0 {
					t.Errorf("%d turns in %v", w.turns.Load(), time.Since(began))
				}
				// A late signal changes nothing.
				late := `{"signalId":"late","workflowInstanceId":"turntable-c1","runtimeProvider":"roundhouse","signalType":"TimerDue"}`
				w.Send(signalQueue, late)
				if n := p.Run(); n != 1 || w.turns.Load() != tt.turns {
					t.Errorf("a late signal led to %d deliveries and %d turns", n, w.turns.Load())
				}
				tt.check(t, w)
				for _, d := range w.DeadLetters("turntable") {
					if d.DequeueCount != 5 || string(d.OriginalMessage) != good {
						t.Errorf("%+v", d)
					}
				}
			})
		})
	}
}

// strays are signals for an orchestration that does not exist.
const (
	strayTimer = `{"signalId":"go","workflowInstanceId":"nobody","runtimeProvider":"roundhouse","signalType":"TimerDue"}`
	strayEvent = `{"signalId":"go","workflowInstanceId":"nobody","runtimeProvider":"roundhouse","signalType":"ExternalSignal","payload":{"event":"go"}}`
)

func TestSignalsThatNobodyCanApply(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		handle func(*engine.Pipeline, context.Context, engine.Delivery) error
		queue  string
		body   string
		want   error // nil acknowledges it
		stale  int
		dead   engine.Reason // "" for none
		from   string
		count  int
	}{
		"nobody to wake":                  {handle: (*engine.Pipeline).HandleSignal, queue: scheduleQueue, body: strayTimer, stale: 1},
		"nobody to wake, given up":        {handle: (*engine.Pipeline).HandleSignalPoison, queue: scheduleQueue + engine.PoisonSuffix, body: strayTimer, stale: 1},
		"an event for nobody, at once":    {handle: (*engine.Pipeline).HandleSignal, queue: signalQueue, body: strayEvent, dead: engine.ReasonNotFound, from: signalQueue, count: 1},
		"an event for nobody":             {handle: (*engine.Pipeline).HandleSignalPoison, queue: signalQueue + engine.PoisonSuffix, body: strayEvent, dead: engine.ReasonPoison, from: signalQueue, count: 8},
		"no signal":                       {handle: (*engine.Pipeline).HandleSignal, queue: signalQueue, body: "garbage", dead: engine.ReasonUndecodable, from: signalQueue, count: 1},
		"no signal among the schedules":   {handle: (*engine.Pipeline).HandleSignal, queue: scheduleQueue, body: "garbage", dead: engine.ReasonUndecodable, from: scheduleQueue, count: 1},
		"no signal, given up":             {handle: (*engine.Pipeline).HandleSignalPoison, queue: scheduleQueue + engine.PoisonSuffix, body: "garbage", dead: engine.ReasonPoison, from: scheduleQueue, count: 8},
		"no activities":                   {handle: (*engine.Pipeline).HandleActivities, queue: activityQueue, body: "garbage", dead: engine.ReasonUndecodable, from: activityQueue, count: 1},
		"no activities, given up":         {handle: (*engine.Pipeline).HandleActivitiesPoison, queue: activityQueue + engine.PoisonSuffix, body: "garbage", dead: engine.ReasonPoison, from: activityQueue, count: 8},
		"nobody waits for the activities": {handle: (*engine.Pipeline).HandleActivities, queue: activityQueue, body: strayBatch, stale: 1},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			p := w.Restart(nil)
			err := tt.handle(p.Pipeline, t.Context(), engine.Delivery{Queue: tt.queue, ID: "m1", Body: []byte(tt.body), DequeueCount: 1})
			if !errors.Is(err, tt.want) {
				t.Errorf("%v, want %v", err, tt.want)
			}
			if got := w.Runtime().Counts().Stale; got != tt.stale {
				t.Errorf("%d stale signals", got)
			}
			dead := w.DeadLetters(engine.SignalEngine)
			if tt.dead == "" {
				if len(dead) != 0 {
					t.Errorf("dead letters %+v", dead)
				}
				return
			}
			if len(dead) != 1 {
				t.Fatalf("%d dead letters", len(dead))
			}
			if d := dead[0]; d.DetectedReason != tt.dead || d.OriginalQueue != tt.from || d.DequeueCount != tt.count || string(d.OriginalMessage) != tt.body || d.MessageID != "m1" {
				t.Errorf("%+v", d)
			}
		})
	}
}

// While storage refuses the dead letter, a message of the runtime is requeued in its poison queue; later it is one
// dead letter.
func TestPoisonOfTheRuntimeWaitsForStorage(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		handle func(*engine.Pipeline, context.Context, engine.Delivery) error
		queue  string
		body   string
	}{
		"signal":     {(*engine.Pipeline).HandleSignalPoison, signalQueue, strayEvent},
		"activities": {(*engine.Pipeline).HandleActivitiesPoison, activityQueue, "garbage"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t)
				away := &faults.Plan{Refuse: func(c faults.Call) bool { return c.Service == "tables" }}
				d := engine.Delivery{Queue: tt.queue + engine.PoisonSuffix, ID: "poison-1", Body: []byte(tt.body), DequeueCount: 1, InsertedAt: time.Unix(1e9, 0)}
				for range 2 {
					if err := tt.handle(w.Restart(away).Pipeline, t.Context(), d); err != nil {
						t.Fatal(err)
					}
					time.Sleep(time.Minute)
					m := w.Take(d.Queue)
					d.ID, d.Body = m.ID, m.Body
				}
				if err := tt.handle(w.Restart(nil).Pipeline, t.Context(), d); err != nil {
					t.Fatal(err)
				}
				dead := w.DeadLetters(engine.SignalEngine)
				if len(dead) != 1 || dead[0].MessageID != "poison-1" || !dead[0].InsertedAtUtc.Equal(time.Unix(1e9, 0)) || string(dead[0].OriginalMessage) != tt.body || dead[0].DequeueCount != 8 {
					t.Errorf("%+v", dead)
				}
			})
		})
	}
}

// A signal to an orchestration that another process keeps changing is requeued in its own queue, and applied later.
// So is one that the host abandoned.
func TestSignalsToABusyOrchestration(t *testing.T) {
	t.Parallel()
	busy := func(ctx context.Context, c faults.Call, next func(context.Context) error) error {
		if c.Operation == "Apply" && c.Target == "orchestrations" {
			return tables.ErrExists // another process has committed a round
		}
		return next(ctx)
	}
	tests := map[string]struct {
		queue  string
		handle func(*engine.Pipeline, context.Context, engine.Delivery) error
	}{
		"signal":            {signalQueue, (*engine.Pipeline).HandleSignal},
		"signal given up":   {signalQueue + engine.PoisonSuffix, (*engine.Pipeline).HandleSignalPoison},
		"schedule":          {scheduleQueue, (*engine.Pipeline).HandleSignal},
		"schedule given up": {scheduleQueue + engine.PoisonSuffix, (*engine.Pipeline).HandleSignalPoison},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t)
				w.waits = true
				w.Send(testQueue, good)
				p := w.Restart(nil)
				if err := p.Handle(t.Context(), w.Take(testQueue)); err != nil {
					t.Fatal(err)
				}
				w.event(t, "c1", 0)
				if err := p.HandleSignal(t.Context(), w.Take(signalQueue)); err != nil {
					t.Fatal(err)
				}
				time.Sleep(2 * time.Hour)
				d := w.Take(scheduleQueue)
				d.Queue = tt.queue
				for range 2 {
					if err := tt.handle(w.RestartOver(busy).Pipeline, t.Context(), d); err != nil {
						t.Fatal(err)
					}
					time.Sleep(time.Minute)
					d = w.Take(d.Queue)
				}
				if err := tt.handle(p.Pipeline, t.Context(), d); err != nil {
					t.Fatal(err)
				}
				p.Run()
				w.checkSucceeded(t, "c1")
			})
		})
	}
}

// A run that an operator ends is settled: it is in the history, is no dead letter, and its message is not retried,
// whether it runs at the time or waits.
func TestRunsThatAPersonEnds(t *testing.T) {
	t.Parallel()
	type ending func(rt *orchestrator.Runtime, ctx context.Context, id, reason string) error
	for name, end := range map[string]ending{"terminated": (*orchestrator.Runtime).Terminate, "canceled": (*orchestrator.Runtime).Cancel} {
		for when, waits := range map[string]bool{"waiting": true, "running": false} {
			t.Run(name+" "+when, func(t *testing.T) {
				t.Parallel()
				synctest.Test(t, func(t *testing.T) {
					w := newWorld(t)
					w.waits = waits
					p := w.Restart(nil)
					w.turn = func(ctx context.Context) error { // signals reach the process that runs it
						if err := end(w.Runtime(), ctx, "turntable-c1", "not wanted"); err != nil {
							return err
						}
						d := w.Take(signalQueue)
						go func() { _ = p.HandleSignal(t.Context(), d) }()
						<-ctx.Done()
						return ctx.Err()
					}
					w.Send(testQueue, good)
					p.Run()
					if waits {
						if err := end(w.Runtime(), t.Context(), "turntable-c1", "not wanted"); err != nil {
							t.Fatal(err)
						}
						p.Run()
					}
					check := func(fates int) {
						t.Helper()
						entries := w.History("turntable", "c1")
						if len(entries) != 1 || entries[0].RunStatus != engine.StatusFailed || !strings.Contains(entries[0].Error, name) {
							t.Errorf("history %+v", entries)
						}
						if dead := w.DeadLetters("turntable"); len(dead) != 0 {
							t.Errorf("dead letters %+v", dead)
						}
						if p.Count(engine.Terminated) < fates || p.Count(engine.Failed) != 0 {
							t.Errorf("%d deliveries were terminated, %d failed", p.Count(engine.Terminated), p.Count(engine.Failed))
						}
					}
					check(1)
					turns := w.turns.Load()
					w.Send(testQueue, good)
					p.Run()
					check(2)
					if w.turns.Load() != turns {
						t.Error("it ran again")
					}
				})
			})
		}
	}
}

// A run that is ended and purged elsewhere while it runs here is dead-lettered, unless it had succeeded.
func TestARunThatIsPurged(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		p := w.Restart(nil)
		w.turn = func(ctx context.Context) error {
			other := w.Restart(nil)
			if err := w.Runtime().Terminate(ctx, "turntable-c1", ""); err != nil {
				return err
			}
			return errors.Join(other.HandleSignal(ctx, w.Take(signalQueue)), w.Runtime().Purge(ctx, "turntable-c1"))
		}
		w.Send(testQueue, good)
		if n := p.Run(); n != 1 {
			t.Errorf("%d deliveries", n)
		}
		checkDead("purged")(t, w)
		if w.turns.Load() != 1 || p.Count(engine.DeadLettered) != 1 {
			t.Errorf("%d turns", w.turns.Load())
		}
	})
}
