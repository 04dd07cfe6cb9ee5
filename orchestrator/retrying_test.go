package orchestrator

import (
	"context"
	"errors"
	"testing"
	"time"
)

// The caller of the next attempt may be lost with its message. Then the sweeper makes the attempt, once the message is
// overdue, and the receiver of ends gets its outcome.
func TestAnAttemptWhoseMessageIsLostIsMadeByTheSweeper(t *testing.T) {
	for name, tt := range map[string]struct {
		fails int
		want  string
		told  int
	}{
		"succeeds":    {1, "Completed 1", 1},
		"fails again": {2, "Retrying: attempt 2", 1},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T) {
				w, attempts, told := newWorld(t), 0, 0
				try := NewActivity("try", func(_ context.Context, n int) (int, error) {
					if attempts++; attempts <= tt.fails {
						return 0, errors.New("attempt " + string(rune('0'+attempts)))
					}
					return n, nil
				})
				o := NewOrchestrator("test", func(ctx *Context, n int) (int, error) {
					v, err := try.Call(ctx, n).Await()
					if failed, ok := errors.AsType[*ActivityError](err); ok {
						return 0, &failed.Failure
					}
					return v, err
				})
				rt := w.configured(t, nil, Config{Orchestrators: []AnyOrchestrator{o}, Activities: []AnyActivity{try}, Queues: w.queues,
					Ended: func(context.Context, Outcome) error { told++; return nil }})
				wants(t, "the first attempt", mustRun(t, rt, willRetry(startOf("a", 1))).Status, Retrying)
				w.attend(t, rt, 30*time.Minute)
				wants(t, "attempts as long as the message may come", attempts, 1)
				w.attend(t, rt, 90*time.Minute)
				wants(t, "it is", stands(t, rt, "a"), tt.want)
				wants(t, "ends that were told", told, tt.told)
			})
		})
	}
}

// Kept results arrive in the order in which they arrived first: the loser of a race does not win it the second time,
// although its result exists now.
func TestARaceHasTheSameWinnerInTheNextAttempt(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		w, tried := newWorld(t), 0
		slow := NewActivity("slow", func(ctx context.Context, n int) (int, error) { return n, pause(ctx, 20*time.Second) })
		try := NewActivity("try", func(_ context.Context, n int) (int, error) {
			if tried++; tried == 1 {
				return 0, errors.New("not yet")
			}
			return n, nil
		})
		o := NewOrchestrator("test", func(ctx *Context, n int) (int, error) {
			first := Any(ctx, slow.Call(ctx, n), Timer(ctx, 10*time.Second))
			if err := ctx.Sleep(15 * time.Second); err != nil {
				return 0, err
			}
			_, err := try.Call(ctx, n).Await()
			return first, err
		})
		rt := w.signalling(t, nil, []AnyOrchestrator{o}, []AnyActivity{slow, try})
		wants(t, "the first attempt", mustRun(t, rt, willRetry(startOf("a", 1))).Status, Retrying)
		mustRun(t, rt, willRetry(startOf("a", 1)))
		wants(t, "the second", stands(t, rt, "a"), "Completed 1")
		w.replays(t, rt)
	})
}
