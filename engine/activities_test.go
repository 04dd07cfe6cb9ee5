package engine_test

import (
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/vibedata/roundhouse/engine"
	"github.com/vibedata/roundhouse/orchestrator"
)

// strayBatch is a message of the activity queue for an orchestration that does not exist.
const strayBatch = `{"runtimeProvider":"roundhouse","workflowInstanceId":"nobody","execution":1,"activities":[{"task":1,"name":"oil","input":1,"attempt":1}]}`

// Activities that exceed the limit of one process go through their queue, and the run succeeds.
func TestActivitiesOfOtherProcesses(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.parts = spreadAbove + 100
		w.Send(testQueue, good)
		p := w.Restart(nil)
		p.Run()
		w.checkSucceeded(t, "c1")
		if int(w.oiled.Load()) != w.parts || p.Count(engine.Parked) != 1 {
			t.Errorf("%d activities ran, %d times it was parked", w.oiled.Load(), p.Count(engine.Parked))
		}
	})
}

// A batch that the host abandoned fails its activities, and the orchestration handles it: here its run fails, and the
// next attempt of its message succeeds.
func TestActivitiesThatTheHostGaveUpOn(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.parts = spreadAbove + 3
		p := w.Restart(nil)
		w.Send(testQueue, good)
		if err := p.Handle(t.Context(), w.Take(testQueue)); err != nil || p.Count(engine.Parked) != 1 {
			t.Fatalf("it was not parked: %v", err)
		}
		d := w.Take(activityQueue)
		d.Queue += engine.PoisonSuffix
		if err := p.HandleActivitiesPoison(t.Context(), d); err != nil {
			t.Fatal(err)
		}
		p.Run()
		w.checkSucceeded(t, "c1")
		if e := w.History("turntable", "c1"); len(e) != 3 || e[1].RunStatus != engine.StatusFailed || !strings.Contains(e[1].Error, "the host gave up on the message "+d.ID) {
			t.Errorf("history %+v", e)
		}
		if dead := w.DeadLetters(engine.SignalEngine); len(dead) != 0 {
			t.Errorf("dead letters %+v", dead)
		}
	})
}

// Activities that fail in another process use up the attempts of the run's message like local failures.
func TestActivitiesThatFailElsewhere(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.parts, w.dry = spreadAbove+3, orchestrator.Permanent(errors.New("no oil"))
		w.Send(testQueue, good)
		w.Restart(nil).Run()
		checkDead("no oil")(t, w)
	})
}

// A timer's message is deleted; the sweeper wakes the run.
func TestTheSweeperWakesWhatNobodyWakes(t *testing.T) {
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
		sweep := func(want int) {
			t.Helper()
			if n, err := w.Runtime().Sweep(t.Context(), 100); err != nil || n != want {
				t.Errorf("%d woken, want %d: %v", n, want, err)
			}
		}
		sweep(0)
		time.Sleep(time.Hour + time.Second)
		w.Take(scheduleQueue) // it never arrives
		sweep(0)              // it may be on its way
		time.Sleep(10 * time.Minute)
		sweep(1)
		p.Run()
		w.checkSucceeded(t, "c1")
		time.Sleep(2 * time.Hour)
		sweep(0)
	})
}
