package orchestrator

import (
	"context"
	"encoding/json"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"github.com/vibedata/roundhouse/internal/sample"
)

// Events of several senders arrive in any order, twice, at processes without memory, while the receiver continues as
// new, fails and is retried. The code sees the events of each sender in order, each once, and none is held when all
// have arrived.
func TestEventsThatOvertakeEachOther(t *testing.T) {
	t.Parallel()
	sample.Rapid(t)
	rapid.Check(t, func(r *rapid.T) {
		var signals []Signal
		total := 0
		for sender := range rapid.IntRange(1, 3).Draw(r, "senders") {
			n := rapid.IntRange(1, 6).Draw(r, "events")
			total += n
			for i := range n {
				s := eventSignal("a", fmt.Sprintf("%d/%d", sender, i), "number", fmt.Sprint(100*sender+i))
				s.Payload.Stream, s.Payload.Sequence = fmt.Sprintf("s%d/1", sender), i+1
				if i > 0 {
					at := time.Date(2000, 1, 1, 1, 0, i, 0, time.UTC) // since the start
					s.Payload.Previous = &at
				}
				signals = append(signals, s)
				if rapid.Bool().Draw(r, "twice") {
					signals = append(signals, s)
				}
			}
		}
		signals = rapid.Permutation(signals).Draw(r, "order")
		perRun := rapid.IntRange(1, 4).Draw(r, "perRun")
		failsAt := rapid.IntRange(-1, total).Draw(r, "failsAt")
		problem := ""
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(t)
			w.forgetful = true
			l := &ledger{}
			check := NewActivity("check", func(context.Context, int) (int, error) {
				if l.add("check") == 1 {
					return 0, fmt.Errorf("the first time")
				}
				return 0, nil
			})
			o := NewOrchestrator("test", func(ctx *Context, seen []int) ([]int, error) {
				for range perRun {
					if len(seen) == total {
						return seen, nil
					}
					v, err := Event[int](ctx, "number").Await()
					if err != nil {
						return nil, err
					}
					if len(seen) == failsAt {
						if _, err := check.Call(ctx, 1).Await(); err != nil {
							return nil, err
						}
					}
					seen = append(seen, v)
				}
				return nil, ContinueAsNew(seen)
			})
			code := func() *Runtime { return w.signalling(t, nil, []AnyOrchestrator{o}, []AnyActivity{check}) }
			time.Sleep(time.Hour)
			mustRun(t, code(), willRetry(startOf("a", []int{})))
			for _, s := range signals {
				noError(t, errorOf(code().Deliver(t.Context(), s)))
			}
			rt := code()
			w.settle(t, rt)
			if mustGet(t, rt, "a").Status == Retrying {
				mustRun(t, rt, willRetry(startOf("a", []int{})))
				w.settle(t, rt)
			}
			out := mustGet(t, rt, "a")
			if out.Status != Completed {
				problem = "it is " + stands(t, rt, "a")
				return
			}
			problem = inOrder(string(out.Output), total)
			w.replays(t, rt)
		})
		if problem != "" {
			r.Fatal(problem)
		}
	})
}

// An event is not held back for ever by one that never arrives, and not for long by one of an earlier run.
func TestAnEventWhoseEarlierOneIsMissing(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		before  time.Duration // of the missing event, before the start
		knows   bool          // the receiver has had an event of the sender
		follows bool          // another run was under the id before
		within  time.Duration
	}{
		"sent before the run began, behind another run": {before: time.Hour, follows: true, within: time.Minute},
		"sent before the first run":                     {before: time.Minute, within: time.Hour},
		"sent since":                                    {before: -time.Second, within: 2 * time.Hour},
		"of a sender that it knows":                     {before: -time.Second, knows: true, within: 25 * time.Hour},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T) {
				time.Sleep(2 * time.Hour)
				w := newWorld(t)
				rt := w.signalling(t, nil, []AnyOrchestrator{NewOrchestrator("test", func(ctx *Context, _ int) (int, error) {
					v, err := Event[int](ctx, "number").Await()
					if err == nil && v == 1 {
						v, err = Event[int](ctx, "number").Await()
					}
					return v, err
				})}, nil)
				mustRun(t, rt, startOf("a", 1))
				if test.follows {
					noError(t, rt.Terminate(t.Context(), "a", "for the next"))
					w.settle(t, rt)
					noError(t, errorOf(rt.Restart(t.Context(), "a", "r")))
					w.settle(t, rt)
				}
				missing, sequence := time.Now().Add(-test.before), 2
				if test.knows {
					s := eventSignal("a", "e1", "number", "1")
					s.Payload.Stream, s.Payload.Sequence = "s/1", 1
					noError(t, errorOf(rt.Deliver(t.Context(), s)))
					sequence = 3
				}
				s := eventSignal("a", "e3", "number", "3")
				s.Payload.Stream, s.Payload.Sequence, s.Payload.Previous = "s/1", sequence, &missing
				noError(t, errorOf(rt.Deliver(t.Context(), s)))
				begin := time.Now()
				w.attend(t, rt, test.within)
				wants(t, "it ends", stands(t, rt, "a"), "Completed 3")
				if took := mustGet(t, rt, "a").EndedAt.Sub(begin); !test.follows && took < test.within/3 {
					t.Errorf("the event waited for %v only", took)
				}
				w.replays(t, rt)
			})
		})
	}
}

// Events of one turn cost the receiver one delivery each, in any order of arrival.
func TestABurstOfEvents(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		const most = 200
		w := newWorld(t)
		sink := NewOrchestrator("test", func(ctx *Context, n int) (int, error) {
			for i := range n {
				if v, err := Event[int](ctx, "number").Await(); err != nil || v != i {
					return v, fmt.Errorf("event %d is %d: %w", i, v, err)
				}
			}
			return n, nil
		})
		rt := w.signalling(t, nil, []AnyOrchestrator{sink}, nil)
		mustRun(t, rt, startOf("a", most))
		for i := most - 1; i >= 0; i-- { // the worst order
			s := eventSignal("a", fmt.Sprint(i), "number", fmt.Sprint(i))
			s.Payload.Stream, s.Payload.Sequence = "s/1", i+1
			if i > 0 {
				at := time.Now()
				s.Payload.Previous = &at
			}
			noError(t, errorOf(rt.Deliver(t.Context(), s)))
		}
		wants(t, "it ends", stands(t, rt, "a"), fmt.Sprintf("Completed %d", most))
		w.replays(t, rt)
	})
}

// inOrder returns the mistake in a list of numbers that must be complete, with those of each hundred in order.
func inOrder(list string, total int) string {
	var numbers []int
	if err := json.Unmarshal([]byte(list), &numbers); err != nil {
		return err.Error()
	}
	next := map[int]int{}
	for _, n := range numbers {
		if n%100 != next[n/100] {
			return fmt.Sprintf("event %d of sender %d comes in the place of %d: %v", n%100, n/100, next[n/100], numbers)
		}
		next[n/100]++
	}
	if len(numbers) != total {
		return fmt.Sprintf("%d events, want %d: %v", len(numbers), total, numbers)
	}
	return ""
}
