package orchestrator

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// A Start for other work than that of the run under its ids changes nothing: whether the run waits, has ended, is
// being driven, or is the one before the latest of a series.
func TestOtherWork(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		w := newWorld(t)
		running, release := make(chan struct{}, 1), make(chan struct{})
		hold := NewActivity("hold", func(context.Context, string) (string, error) { running <- struct{}{}; <-release; return "held", nil })
		wait := NewOrchestrator("test", func(ctx *Context, in string) (string, error) {
			if in == "hold" {
				return hold.Call(ctx, in).Await()
			}
			if in == "wait" {
				return Event[string](ctx, "go").Await()
			}
			return in, nil
		})
		rt := w.signalling(t, nil, []AnyOrchestrator{wait}, []AnyActivity{hold})
		work := func(id, correlation, in, carry string) Start {
			s := startOf(id, in)
			s.CorrelationID, s.Carry = correlation, []byte(carry)
			s.Same = func(other []byte) bool { return string(other) == carry }
			return s
		}
		refused := func(what string, s Start) {
			t.Helper()
			if _, err := rt.Run(t.Context(), s); !errors.Is(err, ErrOtherWork) || !errors.Is(err, ErrConflict) {
				t.Errorf("%s: %v", what, err)
			}
			if s.Reuse != ReuseNever {
				return
			}
			if _, err := rt.Start(t.Context(), s); !errors.Is(err, ErrOtherWork) || !errors.Is(err, ErrExists) {
				t.Errorf("%s, started: %v", what, err)
			}
		}
		mustRun(t, rt, work("waits", "c", "wait", "one"))
		mustRun(t, rt, work("ended", "c", "end", "one"))
		for _, id := range []string{"waits", "ended"} {
			before := w.stored(t, id)
			refused(id, work(id, "c", "wait", "two"))
			if diff := cmp.Diff(before, w.stored(t, id), cmp.AllowUnexported(storedExecution{})); diff != "" {
				t.Errorf("%s has changed (-before +after):\n%s", id, diff)
			}
			mustRun(t, rt, work(id, "c", "wait", "one"))
		}

		done := make(chan error)
		go func() { _, err := rt.Run(t.Context(), work("held", "c", "hold", "one")); done <- err }()
		<-running
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		go func() { time.Sleep(time.Second); close(release) }()
		if _, err := rt.Run(ctx, work("held", "c", "hold", "two")); !errors.Is(err, ErrOtherWork) {
			t.Errorf("joined: %v", err)
		}
		if err := <-done; err != nil {
			t.Error(err)
		}

		series := func(correlation, carry string) Start {
			s := work("series", correlation, "end", carry)
			s.Reuse = ReuseEnded
			return s
		}
		mustRun(t, rt, series("c1", "one"))
		mustRun(t, rt, series("c2", "one"))
		refused("a past run", series("c1", "two"))
		mustRun(t, rt, series("c1", "one"))
	})
}
