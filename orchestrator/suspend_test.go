package orchestrator

import (
	"errors"
	"testing"
	"time"
)

// cleaner waits for an event, and cleans up with an activity and a wait of an hour when it is canceled.
func cleaner(l *ledger) ([]AnyOrchestrator, []AnyActivity) {
	step := l.step("clean up")
	child := NewOrchestrator("child", func(ctx *Context, n int) (int, error) {
		_, err := Event[int](ctx, "number").Await()
		clean := WithoutCancel(ctx)
		_, failed := step.Call(clean, n).Await()
		return 0, errors.Join(err, failed, clean.Sleep(time.Hour))
	})
	parent := NewOrchestrator("test", func(ctx *Context, n int) (int, error) { return child.Call(ctx, n, WithID("child")).Await() })
	return []AnyOrchestrator{child, parent}, []AnyActivity{step}
}

// A cancellation resumes a suspended run, also one that is canceled with its caller, and its clean-up runs.
func TestCancelResumesASuspendedRun(t *testing.T) {
	t.Parallel()
	for name, canceled := range map[string]string{"itself": "child", "its caller": "a"} {
		for _, forgetful := range []bool{false, true} {
			t.Run(name, func(t *testing.T) {
				inBubble(t, func(t *testing.T) {
					w, l := newWorld(t), &ledger{}
					w.forgetful = forgetful
					orchestrators, activities := cleaner(l)
					rt := w.signalling(t, nil, orchestrators, activities)
					mustRun(t, rt, startOf("a", 1))
					noError(t, rt.Suspend(t.Context(), "child", "maintenance"))
					w.deliverDue(t, rt)
					wants(t, "suspended", shownStatus(t, rt, "child"), Suspended)
					time.Sleep(time.Minute)
					noError(t, rt.Cancel(t.Context(), canceled, "enough"))
					w.deliverDue(t, rt)
					wants(t, "canceled, it shows", shownStatus(t, rt, "child"), Running)
					wants(t, "canceled, it is", mustGet(t, rt, "child").Status, Running)
					wants(t, "clean-ups", l.count("clean up(1)"), 1)
					w.settle(t, rt)
					wants(t, "at the end", mustGet(t, rt, "child").Status, Canceled)
					w.replays(t, rt)
				})
			})
		}
	}
}

// A Suspend that was given before a Cancel does nothing when it arrives after it; one that was given later suspends
// the clean-up.
func TestSuspendBesidesCancel(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		suspended time.Duration
		want      Status
	}{
		"given before": {0, Running},
		"given later":  {time.Hour, Suspended},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T) {
				w, l := newWorld(t), &ledger{}
				orchestrators, activities := cleaner(l)
				rt := w.signalling(t, nil, orchestrators, activities)
				s := startOf("a", 1)
				s.Orchestrator = "child"
				mustRun(t, rt, s)
				suspend, cancel := commandSignal("a", commandSuspend), commandSignal("a", commandCancel)
				suspend.OccurredAtUtc, cancel.OccurredAtUtc = time.Now().Add(tt.suspended), time.Now().Add(time.Minute)
				for _, s := range []Signal{cancel, suspend} {
					must(rt.Deliver(t.Context(), s))(t)
				}
				wants(t, "it is", mustGet(t, rt, "a").Status, tt.want)
				wants(t, "it shows", shownStatus(t, rt, "a"), tt.want)
				w.replays(t, rt)
			})
		})
	}
}

// An execution that began by earlier rules waits for Resume when it is canceled while it is suspended, as its history
// says.
func TestCancelOfASuspendedRunByEarlierRules(t *testing.T) {
	t.Parallel()
	for began, want := range map[int]bool{rules3 - 1: true, rules3: false} {
		x, e := execution{rules: began, suspended: true}, event{Kind: executionCanceled, At: 1}
		if x.applyCommand(e); x.suspended != want || e.suspends(true, began) != want {
			t.Errorf("rules %d: suspended %v, shown as %v, want %v", began, x.suspended, e.suspends(true, began), want)
		}
	}
}
