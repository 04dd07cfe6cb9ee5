package orchestrator

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

func TestRetryFollowsItsPolicy(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		options   []CallOption
		failures  int
		permanent bool
		attempts  int
		elapsed   time.Duration
		status    Status
	}{
		"no policy, no retry":   {failures: 1, attempts: 1, status: Failed},
		"succeeds at the third": {options: []CallOption{WithRetry(Retry{MaxAttempts: 3})}, failures: 2, attempts: 3, elapsed: 3 * time.Second, status: Completed},
		"gives up":              {options: []CallOption{WithRetry(Retry{MaxAttempts: 3})}, failures: 9, attempts: 3, elapsed: 3 * time.Second, status: Failed},
		"permanent at once":     {options: []CallOption{WithRetry(Retry{MaxAttempts: 3})}, failures: 9, permanent: true, attempts: 1, status: Failed},
		"capped": {options: []CallOption{WithRetry(Retry{MaxAttempts: 4, FirstInterval: time.Minute, Coefficient: 10, MaxInterval: 2 * time.Minute})},
			failures: 3, attempts: 4, elapsed: 5 * time.Minute, status: Completed},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w, l := newWorld(t), &ledger{}
				boom := errors.New("boom")
				step := NewActivity("step", func(ctx context.Context, n int) (int, error) {
					if got := l.add("step"); got > tt.failures {
						return n, nil
					} else if info := Info(ctx); info.Attempt != got || info.IdempotencyKey() != "a/1/1" {
						t.Errorf("call %d has info %+v", got, info)
					}
					if tt.permanent {
						return 0, Permanent(boom)
					}
					return 0, boom
				}, tt.options...)
				begin := time.Now()
				out := mustRun(t, w.process(t, nil, sequence(step), step), startOf("a", 1))
				if got := l.count("step"); out.Status != tt.status || got != tt.attempts || time.Since(begin) != tt.elapsed {
					t.Errorf("%s after %d attempts in %v (%v)", out.Status, got, time.Since(begin), out.Failure)
				}
				if out.Calls[0].Attempts != tt.attempts {
					t.Errorf("the rounds count %d attempts", out.Calls[0].Attempts)
				}
				if out.Failure != nil && out.Failure.Permanent != tt.permanent {
					t.Errorf("failure: %+v", out.Failure)
				}
				w.stored(t, "a")
			})
		})
	}
}

func TestParkAtTheDeadlineAndResume(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		w, l := newWorld(t), &ledger{}
		first := l.step("first")
		slow := NewActivity("slow", func(ctx context.Context, n int) (int, error) {
			if l.add("slow") == 1 {
				<-ctx.Done()
				return 0, fmt.Errorf("interrupted: %w", ctx.Err())
			}
			return n, nil
		})
		o := NewOrchestrator("test", func(ctx *Context, n int) (int, error) {
			v, err := first.Call(ctx, n).Await()
			if err != nil {
				return 0, err
			}
			return slow.Call(ctx, v).Await()
		})
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		out, err := w.process(t, nil, o, first, slow).Run(ctx, startOf("a", 1))
		if err != nil || out.Status != Running || out.ResumeAt.After(time.Now()) {
			t.Fatalf("%+v %v", out, err)
		}
		out = mustRun(t, w.process(t, nil, o, first, slow), startOf("a", 1))
		if out.Status != Completed || out.Execution != 1 || string(out.Output) != "2" || out.Calls[1].Attempts != 1 {
			t.Errorf("resumed: %+v", out)
		}
		if l.count("first(1)") != 1 || l.count("slow") != 2 {
			t.Errorf("calls: %v", l.calls)
		}
		w.stored(t, "a")
	})
}

func TestParkWhenTheNextAttemptIsFarAway(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		w, l := newWorld(t), &ledger{}
		step := NewActivity("step", func(_ context.Context, n int) (int, error) {
			if l.add("step") == 1 {
				return 0, errors.New("boom")
			}
			return n, nil
		}, WithRetry(Retry{MaxAttempts: 2, FirstInterval: time.Hour, MaxInterval: time.Hour}))
		begin := time.Now()
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
		defer cancel()
		out, err := w.process(t, nil, sequence(step), step).Run(ctx, startOf("a", 1))
		if err != nil || out.Status != Running || time.Since(begin) > time.Second {
			t.Fatalf("%+v %v after %v", out, err, time.Since(begin))
		}
		if got := out.ResumeAt.Sub(begin).Round(time.Second); got != time.Hour {
			t.Errorf("to be resumed after %v", got)
		}
		out = mustRun(t, w.process(t, nil, sequence(step), step), startOf("a", 1))
		if out.Status != Completed || time.Since(begin).Round(time.Second) != time.Hour || l.count("step") != 2 {
			t.Errorf("%s after %v and %d attempts", out.Status, time.Since(begin), l.count("step"))
		}
		w.stored(t, "a")
	})
}

func TestActivityTimeout(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		w := newWorld(t)
		step := NewActivity("step", func(ctx context.Context, n int) (int, error) {
			<-ctx.Done()
			return 0, ctx.Err()
		}, WithTimeout(time.Minute))
		out := mustRun(t, w.process(t, nil, sequence(step), step), startOf("a", 1))
		if out.Status != Failed || !strings.Contains(out.Failure.Message, "no result within 1m0s") {
			t.Errorf("%s: %v", out.Status, out.Failure)
		}
	})
}

// A signal wakes more work than fits its invocation: another one continues it, or else the sweeper.
func TestTheTimeOfASignalRunsOut(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		w := newWorld(t)
		slow := NewActivity("slow", func(ctx context.Context, n int) (int, error) { return n + 1, pause(ctx, time.Minute) })
		o := NewOrchestrator("test", func(ctx *Context, _ int) (int, error) {
			n, err := Event[int](ctx, "number").Await()
			for range 3 {
				if err == nil {
					n, err = slow.Call(ctx, n).Await()
				}
			}
			return n, err
		})
		rt := w.signalling(t, nil, []AnyOrchestrator{o}, []AnyActivity{slow})
		mustRun(t, rt, startOf("a", 1))
		ctx, cancel := context.WithTimeout(t.Context(), 90*time.Second)
		defer cancel()
		out, err := rt.Deliver(ctx, eventSignal("a", "s", "number", "1"))
		if err != nil || out.Ended() || len(w.parked(t)) != 1 {
			t.Errorf("%s, %v, index %v", out.Status, err, w.parked(t))
		}
		w.settle(t, rt)
		if out := mustGet(t, rt, "a"); string(out.Output) != "4" {
			t.Errorf("%s %s %v", out.Status, out.Output, out.Failure)
		}
	})
}
