package orchestrator

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
)

// localSequence calls n local activities one after the other, and then then.
func localSequence(step *Activity[int, int], then func(ctx *Context, n int) (int, error)) *Orchestrator[int, int] {
	return NewOrchestrator("test", func(ctx *Context, n int) (int, error) {
		v := 0
		for range n {
			var err error
			if v, err = step.Call(ctx, v, WithLocal()).Await(); err != nil {
				return 0, err
			}
		}
		return then(ctx, v)
	})
}

// Results of local activities are committed with the next round, that of the end or of other activities, and the
// rounds show every one of them.
func TestLocalActivitiesRideWithTheNextRound(t *testing.T) {
	t.Parallel()
	l := &ledger{}
	step := l.step("step")
	for name, c := range map[string]struct {
		then   func(ctx *Context, n int) (int, error)
		local  int
		rounds []string // the kinds of events that each round learned
		output string
	}{
		"to the end": {func(_ *Context, n int) (int, error) { return n, nil }, 3,
			[]string{"start", "local local local"}, "3"},
		"before an activity": {func(ctx *Context, n int) (int, error) { return step.Call(ctx, n).Await() }, 3,
			[]string{"start", "local local local", "result"}, "4"},
		"behind an activity": {func(ctx *Context, n int) (int, error) {
			n, err := step.Call(ctx, n).Await()
			if err == nil {
				n, err = step.Call(ctx, n, WithLocal()).Await()
			}
			return n, err
		}, 1, []string{"start", "local", "result local"}, "3"},
		"before a side effect": {func(ctx *Context, n int) (int, error) {
			v, err := SideEffect(ctx, "draw", func() int { return 7 })
			if err == nil {
				v, err = step.Call(ctx, v+n, WithLocal()).Await()
			}
			return v, err
		}, 2, []string{"start", "local local", "local"}, "10"},
		"a failure": {func(ctx *Context, n int) (int, error) { return 0, Permanent(errors.New("never")) }, 2,
			[]string{"start", "local local"}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			rt := w.process(t, nil, localSequence(step, c.then), step)
			out, err := rt.Run(t.Context(), startOf("a", c.local))
			if err != nil || string(out.Output) != c.output {
				t.Fatalf("%s %s %v: %v", out.Status, out.Output, out.Failure, err)
			}
			rounds, _, err := rt.Rounds(t.Context(), "a", 100, "")
			if err != nil {
				t.Fatal(err)
			}
			local := map[int]bool{}
			for i, call := range out.Calls {
				local[i+1] = call.Local
			}
			var learned []string
			for _, r := range rounds {
				var kinds []string
				for _, e := range r.Learned {
					switch {
					case e.Kind == string(executionStarted):
						kinds = append(kinds, "start")
					case local[e.Call]:
						kinds = append(kinds, "local")
					default:
						kinds = append(kinds, "result")
					}
				}
				learned = append(learned, strings.Join(kinds, " "))
			}
			if diff := cmp.Diff(c.rounds, learned); diff != "" {
				t.Errorf("what rounds learned:\n%s", diff)
			}
			w.replays(t, rt)
		})
	}
}

// Results that lead only to local activities are committed after a while nevertheless, so that little is repeated.
func TestLocalActivitiesAreCommittedInTime(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		w, l := newWorld(t), &ledger{}
		step := NewActivity("step", func(ctx context.Context, n int) (int, error) {
			l.add("step")
			return n + 1, pause(ctx, 200*time.Millisecond)
		})
		rt := w.process(t, nil, localSequence(step, func(_ *Context, n int) (int, error) { return n, nil }), step)
		ctx, die := context.WithTimeout(t.Context(), 10*time.Second+time.Millisecond)
		defer die()
		if out, err := rt.Run(ctx, startOf("a", 100)); err != nil || out.Ended() {
			t.Fatalf("%s %v", out.Status, err)
		}
		results := w.learnedEvents(t, "a", activityCompleted)
		if rounds := len(w.stored(t, "a")[0].rounds); results != 50 || rounds < 20 || rounds > 30 {
			t.Errorf("%d results in %d rounds", results, rounds)
		}
		if out, err := rt.Run(t.Context(), startOf("a", 100)); err != nil || string(out.Output) != "100" {
			t.Errorf("%s %v", out.Output, err)
		}
		if n := l.count("step"); n != 101 {
			t.Errorf("%d runs: the one that was canceled has to run again, and no other", n)
		}
	})
}

// A process that loses the race for a round has called local activities that no round knows. Their numbers may be
// those of the winner's calls: none of their results, pending or future, becomes another call's.
func TestARaceLostWithLocalActivitiesInHand(t *testing.T) {
	t.Parallel()
	for _, long := range []time.Duration{50 * time.Millisecond, time.Hour} {
		t.Run(fmt.Sprint(long), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w, l := newWorld(t), &ledger{}
				step := NewActivity("step", func(ctx context.Context, n int) (int, error) { return n + 1, pause(ctx, 3*time.Hour) })
				first := NewActivity("first", func(_ context.Context, n int) (int, error) { return n, nil }, WithLocal())
				second := NewActivity("second", func(ctx context.Context, n int) (int, error) {
					if l.add("second") == 1 {
						return 1000, pause(ctx, long)
					}
					return 2000, nil
				}, WithLocal())
				o := NewOrchestrator("test", func(ctx *Context, n int) ([]int, error) {
					beside := Go(ctx, func(ctx *Context) (int, error) {
						v, err := first.Call(ctx, n).Await()
						if err == nil {
							v, err = second.Call(ctx, v).Await()
						}
						return v, err
					})
					v, err := Event[int](ctx, "number").Await()
					if err == nil {
						v, err = step.Call(ctx, v).Await()
					}
					if err != nil {
						return nil, err
					}
					w, err := beside.Await()
					return []int{v, w}, err
				})
				activities := []AnyActivity{step, first, second}
				here := w.signalling(t, nil, []AnyOrchestrator{o}, activities)
				there := w.signalling(t, nil, []AnyOrchestrator{o}, activities)
				done := runInBackground(t.Context(), here, startOf("a", 1))
				synctest.Wait()
				if _, err := there.Deliver(t.Context(), eventSignal("a", "e", "number", "7")); err != nil { // which drives the step
					t.Fatal(err)
				}
				if r := <-done; r.err != nil && !errors.Is(r.err, ErrElsewhere) || here.Counts().Conflicts == 0 {
					t.Errorf("here: %v, after %d conflicts", r.err, here.Counts().Conflicts)
				}
				out, err := here.Run(t.Context(), startOf("a", 1))
				if err != nil || string(out.Output) != "[8,2000]" {
					t.Errorf("%s %v, calls %v", out.Output, err, l.all())
				}
				w.replays(t, here)
			})
		})
	}
}

func TestLocalActivitiesThatCannotBe(t *testing.T) {
	t.Parallel()
	w, l := newWorld(t), &ledger{}
	step := l.step("step")
	child := NewOrchestrator("child", func(*Context, int) (int, error) { return 0, nil })
	for name, call := range map[string]func(ctx *Context) error{
		"heartbeats": func(ctx *Context) error {
			_, err := step.Call(ctx, 1, WithLocal(), WithHeartbeat(1)).Await()
			return err
		},
		"sub-orchestration": func(ctx *Context) error { _, err := child.Call(ctx, 1, WithLocal()).Await(); return err },
	} {
		o := NewOrchestrator(name, func(ctx *Context, _ int) (string, error) { return fmt.Sprint(call(ctx)), nil })
		rt := w.runtime(t, nil, []AnyOrchestrator{o, child}, []AnyActivity{step})
		s := startOf(name, 1)
		s.Orchestrator = name
		out, err := rt.Run(t.Context(), s)
		if err != nil || !strings.Contains(string(out.Output), "WithLocal") || len(out.Calls) > 0 {
			t.Errorf("%s: %s %v", name, out.Output, err)
		}
	}
}
