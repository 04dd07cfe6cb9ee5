package orchestrator

import (
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// The error of code that blocks natively names the blocking line.
func TestABlockedOrchestratorNamesTheLine(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		w, release := newWorld(t), make(chan struct{})
		o := NewOrchestrator("test", func(*Context, int) (int, error) { <-release; return 1, nil })
		rt := w.signalling(t, nil, []AnyOrchestrator{o}, nil)
		_, err := rt.Run(t.Context(), startOf("a", 1))
		if _, ok := errors.AsType[*BlockedError](err); !ok || !strings.Contains(err.Error(), "nextattempt_blocked_test.go") {
			t.Errorf("%v", err)
		}
		if out := mustGet(t, rt, "a"); out.Status != Stalled || out.Failure == nil || !strings.Contains(out.Failure.Message, "nextattempt_blocked_test.go") {
			t.Errorf("it is %s", stands(t, rt, "a"))
		}
		close(release)
		synctest.Wait()
	})
}

// The error of a run that is stalled by changed code explains how to change code under running orchestrations; events
// are kept.
func TestAStalledOrchestrationSaysWhatToDo(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		w, l := newWorld(t), &ledger{}
		step := l.step("step")
		rt := w.signalling(t, nil, []AnyOrchestrator{stepThenEvent(step)}, []AnyActivity{step})
		mustRun(t, rt, startOf("a", 1))
		changed := NewOrchestrator("test", func(ctx *Context, n int) (int, error) { return Event[int](ctx, "number").Await() })
		broken := w.signalling(t, nil, []AnyOrchestrator{changed}, []AnyActivity{step})
		raise(t, w, "a", 7, 0)
		w.attend(t, broken, 24*time.Hour)
		out := mustGet(t, broken, "a")
		if out.Status != Stalled || out.Failure == nil || !strings.Contains(out.Failure.Message, "Patched") || !strings.Contains(out.Failure.Message, "version") {
			t.Errorf("it is %s", stands(t, broken, "a"))
		}
		listed, _, err := broken.List(t.Context(), Filter{Statuses: []Status{Stalled}}, 10, "")
		if err != nil || len(listed) != 1 || listed[0].Ended() {
			t.Errorf("listed as stalled: %+v %v", listed, err)
		}
		w.attend(t, rt, 2*sweepEvery)
		wants(t, "with the old code", stands(t, rt, "a"), "Completed 8")
	})
}
