package orchestrator

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/vibedata/roundhouse/internal/faults"
)

// adding sums up the numbers that it gets until one is 0.
func adding() *Orchestrator[int, int] {
	return NewOrchestrator("test", func(ctx *Context, sum int) (int, error) {
		for {
			n, err := Event[int](ctx, "number").Await()
			if err != nil || n == 0 {
				return sum, err
			}
			sum += n
		}
	})
}

// A start with an event starts the orchestration with it, or raises it for the active one; repeated, it changes
// nothing.
func TestStartWithAnEvent(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		w := newWorld(t)
		rt := w.signalling(t, nil, []AnyOrchestrator{adding()}, nil)
		start := func(id string, n int, reuse Reuse) error {
			s := startRequest("a", 100, "", reuse)
			s.Event = &StartEvent{Name: "number", Data: fmt.Append(nil, n), ID: id}
			_, err := rt.Start(t.Context(), s)
			w.settle(t, rt)
			return err
		}
		for range 2 {
			noError(t, start("1", 1, ReuseNever))
			noError(t, start("2", 20, ReuseNever))
		}
		noError(t, start("3", 0, ReuseNever))
		wants(t, "the first run", stands(t, rt, "a"), "Completed 121")
		noError(t, start("3", 0, ReuseEnded))
		wants(t, "the same again", stands(t, rt, "a"), "Completed 121")
		isError(t, "an event for one that has ended", start("4", 7, ReuseNever), ErrExists)
		noError(t, start("4", 7, ReuseEnded))
		noError(t, start("5", 0, ReuseEnded))
		wants(t, "the next run", stands(t, rt, "a"), "Completed 107")
		w.replays(t, rt)
		other := startRequest("a", 1, "", ReuseEnded)
		other.TenantID, other.Event = "fabrikam", &StartEvent{Name: "number"}
		isError(t, "another tenant", errorOf(rt.Start(t.Context(), other)), ErrOtherTenant)
		for _, bad := range []StartEvent{{}, {Name: "number", Data: []byte("{")}, {Name: string(make([]byte, 2000))}} {
			other.Event = &bad
			if _, err := rt.Start(t.Context(), other); err == nil {
				t.Errorf("%+v is taken", bad)
			}
		}
	})
}

// If any storage call fails, a repeated start with an event delivers it once.
func TestStartWithAnEventUnderFaults(t *testing.T) {
	everyFault(t, func(t *testing.T, plan *faults.Plan) {
		w := newWorld(t)
		rt := w.signalling(t, plan, []AnyOrchestrator{adding()}, nil)
		for _, e := range []StartEvent{{Name: "number", Data: []byte("1"), ID: "1"}, {Name: "number", Data: []byte("20"), ID: "2"}, {Name: "number", Data: []byte("0"), ID: "3"}} {
			s := startRequest("a", 100, "", ReuseNever)
			s.Event = &e
			for {
				_, err := rt.Start(t.Context(), s)
				if errors.Is(err, faults.ErrCrashed) {
					rt = w.signalling(t, nil, []AnyOrchestrator{adding()}, nil)
				} else if err == nil {
					break
				}
				time.Sleep(time.Second)
			}
		}
		rt = w.signalling(t, nil, []AnyOrchestrator{adding()}, nil)
		w.attend(t, rt, 3*time.Hour)
		wants(t, "it ends", stands(t, rt, "a"), "Completed 121")
	})
}
