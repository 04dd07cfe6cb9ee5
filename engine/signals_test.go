package engine_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/vibedata/roundhouse/engine"
	"github.com/vibedata/roundhouse/orchestrator"
)

// A run that a signal brings to its end is settled as if its message had; when it always fails, it uses up the attempts
// of its message.
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
				w := newWorld()
				w.waits, w.turn = true, func(context.Context) error { return tt.turn }
				w.prepare(t)
				w.send(t, good)
				w.event(t, "c1", 24*time.Hour)
				began := time.Now()
				p := w.process(t, nil)
				w.host(t, w.always(p))
				tt.check(t, w)
				if w.turns.Load() != tt.turns || time.Since(began) < 25*time.Hour || p.Count(engine.Parked) == 0 {
					t.Errorf("%d turns in %v", w.turns.Load(), time.Since(began))
				}
				// A signal that comes late changes nothing.
				late := `{"signalId":"late","workflowInstanceId":"turntable-c1","runtimeProvider":"roundhouse","signalType":"TimerDue"}`
				if _, err := w.queues.Send(t.Context(), signalQueue, []byte(late), 0); err != nil {
					t.Fatal(err)
				}
				if n := w.host(t, w.always(p)); n != 1 || w.turns.Load() != tt.turns {
					t.Errorf("a late signal led to %d deliveries and %d turns", n, w.turns.Load())
				}
				tt.check(t, w)
				for _, d := range w.deadLetters(t) {
					if d.DequeueCount != 5 || string(d.OriginalMessage) != good {
						t.Errorf("%+v", d)
					}
				}
			})
		})
	}
}

func TestSignalsThatNobodyCanApply(t *testing.T) {
	t.Parallel()
	w := newWorld()
	w.prepare(t)
	p := w.process(t, nil)
	stray := `{"signalId":"go","workflowInstanceId":"nobody","runtimeProvider":"roundhouse","signalType":"TimerDue"}`
	if err := p.HandleSignal(t.Context(), engine.Delivery{Queue: signalQueue, ID: "1", Body: []byte(stray), DequeueCount: 1}); !errors.Is(err, orchestrator.ErrNotFound) {
		t.Errorf("%v", err)
	}
	for id, d := range map[string]struct {
		handle func(context.Context, engine.Delivery) error
		body   string
	}{"2": {p.HandleSignal, "garbage"}, "3": {p.HandleSignalPoison, stray}} {
		if err := d.handle(t.Context(), engine.Delivery{Queue: signalQueue, ID: id, Body: []byte(d.body), DequeueCount: 1}); err != nil {
			t.Errorf("%s: %v", d.body, err)
		}
	}
	page, err := engine.NewDeadLetters(w.tables, "").List(t.Context(), engine.DeadLetterFilter{Engines: []string{engine.SignalEngine}})
	if err != nil || len(page.DeadLetters) != 2 {
		t.Errorf("%+v %v", page, err)
	}
}
