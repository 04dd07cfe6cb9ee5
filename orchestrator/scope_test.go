package orchestrator

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"
)

// composed runs an orchestrator in a process for each message, raises an event after an hour, and checks its result
// and that a replay gives the same.
func composed(t *testing.T, want string, fn func(ctx *Context, step *Activity[int, int]) (string, error)) {
	t.Helper()
	inBubble(t, func(t *testing.T) {
		w, l := newWorld(t), &ledger{}
		w.forgetful = true
		step := NewActivity("step", func(ctx context.Context, n int) (int, error) {
			switch {
			case n < 0:
				return 0, fmt.Errorf("step %d failed", n)
			case n >= 100:
				return n, pause(ctx, time.Duration(n)*time.Minute)
			}
			l.add("step")
			return n + 1, nil
		})
		o := NewOrchestrator("test", func(ctx *Context, _ int) (string, error) { return fn(ctx, step) })
		code := func() *Runtime { return w.signalling(t, nil, []AnyOrchestrator{o}, []AnyActivity{step}) }
		mustRun(t, code(), startOf("a", 1))
		time.Sleep(time.Hour)
		noError(t, code().Raise(t.Context(), "a", "number", 7, ""))
		w.attend(t, code(), 10*time.Hour)
		wants(t, "it ends", stands(t, code(), "a"), fmt.Sprintf("Completed %q", want))
		w.replays(t, code())
	})
}

// A Context of WithCancel interrupts the calls made with it and with those made from it, and no others.
func TestWithCancel(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		want string
		fn   func(ctx *Context, step *Activity[int, int]) (string, error)
	}{
		"calls": {"step: canceled; <nil>; number: canceled; step: canceled; canceled", func(ctx *Context, step *Activity[int, int]) (string, error) {
			inner, cancel := WithCancel(ctx)
			inside, outside, event := step.Call(inner, 100), step.Call(ctx, 101), Event[int](inner, "number")
			cancel()
			cancel()
			_, in := inside.Await()
			_, out := outside.Await()
			_, raised := event.Await()
			_, later := step.Call(inner, 1).Await()
			return fmt.Sprint(in, "; ", out, "; ", raised, "; ", later, "; ", inner.Err()), ctx.Err()
		}},
		"coroutines and conditions": {"a condition: canceled", func(ctx *Context, _ *Activity[int, int]) (string, error) {
			inner, cancel := WithCancel(ctx)
			deeper, _ := WithCancel(inner)
			f := Go(deeper, func(ctx *Context) (string, error) {
				return fmt.Sprint(WaitUntil(ctx, func() bool { return false })), nil
			})
			if err := ctx.Sleep(time.Minute); err != nil {
				return "", err
			}
			cancel()
			return f.Await()
		}},
		"clean-up": {"2 <nil>", func(ctx *Context, step *Activity[int, int]) (string, error) {
			inner, cancel := WithCancel(ctx)
			cancel()
			v, err := step.Call(WithoutCancel(inner), 1).Await()
			return fmt.Sprint(v, err), nil
		}},
		"a deadline passes": {"true true; <nil>", func(ctx *Context, step *Activity[int, int]) (string, error) {
			inner, cancel := WithDeadline(ctx, ctx.Now().Add(time.Minute))
			defer cancel()
			_, err := step.Call(inner, 100).Await()
			return fmt.Sprint(errors.Is(err, context.DeadlineExceeded), errors.Is(inner.Err(), ErrCanceled), "; ", ctx.Err()), nil
		}},
		"a deadline that is too far away": {"2 <nil>; canceled", func(ctx *Context, step *Activity[int, int]) (string, error) {
			inner, cancel := WithDeadline(ctx, ctx.Now().Add(time.Minute))
			v, err := step.Call(inner, 1).Await()
			cancel()
			return fmt.Sprint(v, err, "; ", inner.Err()), ctx.Sleep(time.Hour)
		}},
	} {
		t.Run(name, func(t *testing.T) { composed(t, test.want, test.fn) })
	}
}

// Select picks the first ready case, over futures, events, channels and timers.
func TestSelect(t *testing.T) {
	t.Parallel()
	note := func(to *[]string, what string) func(int, error) error {
		return func(v int, err error) error {
			*to = append(*to, fmt.Sprint(what, v, err))
			return err
		}
	}
	for name, test := range map[string]struct {
		want string
		fn   func(ctx *Context, step *Activity[int, int]) (string, error)
	}{
		"everything": {"step 2 <nil>, channel 5 true, event 7 <nil>, timer", func(ctx *Context, step *Activity[int, int]) (string, error) {
			var got []string
			c := NewChannel[int](ctx, 0)
			Go(ctx, func(ctx *Context) (int, error) {
				if err := ctx.Sleep(30 * time.Minute); err != nil {
					return 0, err
				}
				return 0, c.Send(ctx, 5)
			})
			call, event, late := step.Call(ctx, 1), Event[int](ctx, "number"), Timer(ctx, 3*time.Hour)
			cases := []Case{
				OnResult(call, note(&got, "step ")),
				OnReceive(c, func(v int, ok bool) error { got = append(got, fmt.Sprint("channel ", v, ok)); return nil }),
				OnResult(event, note(&got, "event ")),
				OnResult(late, func(time.Time, error) error { got = append(got, "timer"); return nil }),
			}
			for ; len(cases) > 0; cases = cases[1:] { // they come in the order of the list
				if err := Select(ctx, cases...); err != nil {
					return "", err
				}
			}
			return strings.Join(got, ", "), nil
		}},
		"nothing yet": {"otherwise, event 7 <nil>", func(ctx *Context, _ *Activity[int, int]) (string, error) {
			var got []string
			event := Event[int](ctx, "number")
			err := Select(ctx, OnResult(event, note(&got, "event ")), Otherwise(func() error { got = append(got, "otherwise"); return nil }))
			return strings.Join(append(got, "event 7 <nil>"), ", "), errors.Join(err, errorOf(event.Await()))
		}},
		"an event that came before": {"event 7 <nil>", func(ctx *Context, _ *Activity[int, int]) (string, error) {
			var got []string
			if err := ctx.Sleep(2 * time.Hour); err != nil {
				return "", err
			}
			err := Select(ctx, OnResult(Timer(ctx, time.Hour), func(time.Time, error) error { return errors.New("late") }),
				OnResult(Event[int](ctx, "number"), note(&got, "event ")))
			return strings.Join(got, ", "), err
		}},
		"a wait that is canceled": {"select: canceled", func(ctx *Context, _ *Activity[int, int]) (string, error) {
			inner, cancel := WithCancel(ctx)
			f := Go(inner, func(ctx *Context) (string, error) {
				return fmt.Sprint(Select(ctx, OnReceive(NewChannel[int](ctx, 1), func(int, bool) error { return nil }))), nil
			})
			if err := ctx.Sleep(time.Minute); err != nil {
				return "", err
			}
			cancel()
			return f.Await()
		}},
		"all or none": {"step -1 failed true", func(ctx *Context, step *Activity[int, int]) (string, error) {
			long := step.Call(ctx, 200)
			_, err := AllOrCancel(ctx, long, step.Call(ctx, -1), step.Call(ctx, 1))
			_, canceled := long.Await()
			failure, _ := errors.AsType[*ActivityError](err)
			return fmt.Sprint(failure.Failure.Message, " ", errors.Is(canceled, ErrCanceled)), nil
		}},
		"all": {"[2 3 4]", func(ctx *Context, step *Activity[int, int]) (string, error) {
			all, err := AllOrCancel(ctx, step.Call(ctx, 1), step.Call(ctx, 2), step.Call(ctx, 3))
			return fmt.Sprint(all), err
		}},
		"the length of the history": {"3 5", func(ctx *Context, step *Activity[int, int]) (string, error) {
			all := []*Future[int]{step.Call(ctx, 1), step.Call(ctx, 2)} // including the start
			before := ctx.HistoryLength()
			_, err := All(all...)
			return fmt.Sprint(before, ctx.HistoryLength()), err
		}},
	} {
		t.Run(name, func(t *testing.T) { composed(t, test.want, test.fn) })
	}
}

// KeepResults and StartOver decide the memory of the next attempt, against the rule.
func TestTheCodeChoosesWhatIsKept(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		choose func(error) error
		acts   bool // after the failure
		want   int  // how often pay runs
	}{
		"by the rule":                  {choose: func(err error) error { return err }, want: 1},
		"by the rule, with an action":  {choose: func(err error) error { return err }, acts: true, want: 2},
		"results, with an action":      {choose: KeepResults, acts: true, want: 1},
		"results, wrapped":             {choose: func(err error) error { return fmt.Errorf("wrapped: %w", KeepResults(err)) }, acts: true, want: 1},
		"nothing, though it may":       {choose: StartOver, want: 2},
		"nothing: an error of its own": {choose: func(error) error { return StartOver(errors.New("not good enough")) }, want: 2},
		"results: an error of its own": {choose: func(error) error { return KeepResults(errors.New("not good enough")) }, want: 1},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T) {
				w, l := newWorld(t), &ledger{}
				pay, ship, report := l.step("pay"), failingOnce(l, "ship"), l.step("report")
				o := NewOrchestrator("test", func(ctx *Context, n int) (int, error) {
					v, err := pay.Call(ctx, n).Await()
					if err != nil {
						return 0, err
					}
					if _, err = ship.Call(ctx, n).Await(); err != nil {
						if test.acts {
							if _, err := report.Call(ctx, n).Await(); err != nil {
								return 0, err
							}
						}
						return 0, test.choose(err)
					}
					return v, nil
				})
				rt := w.signalling(t, nil, []AnyOrchestrator{o}, []AnyActivity{pay, ship, report})
				mustRun(t, rt, startOf("a", 1))
				noError(t, errorOf(rt.Rewind(t.Context(), "a", "r")))
				w.attend(t, rt, time.Hour)
				wants(t, "it ends", stands(t, rt, "a"), "Completed 2")
				wants(t, "paid", l.count("pay(1)"), test.want)
				w.replays(t, rt)
			})
		})
	}
	if KeepResults(nil) != nil || StartOver(nil) != nil {
		t.Error("nil became an error")
	}
}
