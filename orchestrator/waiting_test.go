package orchestrator

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/vibedata/roundhouse/internal/sample"
)

// awaiting is a step of a coroutine: it makes calls, and waits so often for any of the last ones.
type awaiting struct {
	Activities, Events int
	Timers             []int // in seconds
	Begin              int   // coroutines
	Waits, Latest      int
}

// The waits of an execution are those that a check of all coroutines finds, for all kinds of waits and ends.
func TestWaitingFor(t *testing.T) {
	t.Parallel()
	sample.Rapid(t)
	rapid.Check(t, func(t *rapid.T) {
		all := rapid.SliceOfN(rapid.SliceOfN(rapid.Custom(func(t *rapid.T) awaiting {
			return awaiting{rapid.IntRange(0, 2).Draw(t, "activities"), rapid.IntRange(0, 2).Draw(t, "events"),
				rapid.SliceOfN(rapid.IntRange(1, 9), 0, 2).Draw(t, "timers"), rapid.IntRange(0, 2).Draw(t, "begin"),
				rapid.IntRange(0, 3).Draw(t, "waits"), rapid.IntRange(1, 4).Draw(t, "latest")}
		}), 1, 4), 1, 8).Draw(t, "coroutines")
		x := awaitingExecution(all)
		defer x.close()
		check := func() {
			task, until := lookAtAll(x)
			if got, _ := x.waitingFor(); got != task {
				t.Fatalf("it waits for %+v, not for %+v", task, got)
			}
			if got := x.waitingUntil(); got != until {
				t.Fatalf("it waits until %d, not %d", until, got)
			}
		}
		check()
		for !x.ended {
			var open []*task
			for _, t := range x.tasks {
				if t.open() {
					open = append(open, t)
				}
			}
			if len(open) == 0 {
				t.Fatal("it waits for nothing")
			}
			noError(t, x.apply(endOrFail(t, x, open)))
			if rapid.Bool().Draw(t, "look") {
				check()
			}
		}
		check()
	})
}

// awaitingExecution returns an execution whose coroutines run the steps in all, each begun by an earlier one.
func awaitingExecution(all [][]awaiting) *execution {
	step := NewActivity("step", func(context.Context, int) (int, error) { return 0, nil })
	begun := 0
	var play func(ctx *Context) (int, error)
	play = func(ctx *Context) (int, error) {
		if begun == len(all) {
			return 0, nil
		}
		me := all[begun]
		begun++
		var calls []Waitable
		for _, a := range me {
			for range a.Activities {
				calls = append(calls, step.Call(ctx, 0))
			}
			for range a.Events {
				calls = append(calls, Event[int](ctx, "event"))
			}
			for _, s := range a.Timers {
				calls = append(calls, Timer(ctx, time.Duration(s)*time.Second))
			}
			for range min(a.Begin, len(all)-begun) {
				calls = append(calls, Go(ctx, play))
			}
			for i := 0; i < a.Waits && len(calls) > 0; i++ {
				from := max(len(calls)-a.Latest, 0)
				n := from + Any(ctx, calls[from:]...)
				calls = append(calls[:n:n], calls[n+1:]...)
			}
		}
		return 0, nil
	}
	x := &execution{id: "x", number: 1, base: 1, log: slog.New(slog.DiscardHandler), now: time.Now,
		orchestrator: NewOrchestrator("play", func(ctx *Context, _ int) (int, error) { return play(ctx) })}
	_ = x.apply(event{Kind: executionStarted, Name: "play", Payload: json.RawMessage("0"), At: 1}) // of a known kind
	return x
}

// endOrFail is an event by which one of the open calls ends, or an attempt of it fails.
func endOrFail(t *rapid.T, x *execution, open []*task) event {
	of := rapid.SampledFrom(open).Draw(t, "of")
	e := event{Kind: of.kind.completion(), At: x.tick(), Task: of.number, Payload: json.RawMessage("0")}
	switch {
	case of.kind == eventTask && rapid.Bool().Draw(t, "raised"):
		return event{Kind: eventRaised, At: e.At, Name: "event", Payload: e.Payload, Signal: broughtBy(fmt.Sprint(e.At))}
	case of.kind == activityTask && rapid.Bool().Draw(t, "attempt failed"):
		e.Kind, e.Attempt, e.Failure = attemptFailed, of.attempts+1, failureOf(errors.New("failed"))
		e.Due = e.At + int64(rapid.IntRange(-5, 5).Draw(t, "due"))*1e6
	}
	return e
}

// lookAtAll finds the wait of an execution, and its end, by checking all coroutines.
func lookAtAll(x *execution) (first *task, until int64) {
	for _, f := range x.coroutines {
		for _, t := range f.waiting {
			if f.ended || x.ended || !t.open() {
				continue
			}
			if first == nil {
				first = t
			}
			if t.due != 0 && (until == 0 || t.due < until) {
				until = t.due
			}
		}
	}
	return first, until
}
