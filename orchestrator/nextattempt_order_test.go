package orchestrator

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"
)

// An attempt that keeps results sees events at the same place as the previous attempt: a race that an event lost is
// lost again, one that it won is won again, and an event that arrived after the failure is seen after the kept
// results.
func TestEventsKeepTheirPlaceInTheNextAttempt(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		first, second time.Duration // when stop and go arrive; 0 for never
		between       bool          // another stop arrives after the failure
		want          string
	}{
		"stop loses, then wins":      {first: 30 * time.Hour, want: "shipped, stopped by 1"},
		"stop wins":                  {first: time.Hour, want: "stopped by 1"},
		"stop comes after a failure": {between: true, want: "shipped, stopped by 3"},
		"two stops":                  {first: 30 * time.Hour, second: 31 * time.Hour, want: "shipped, stopped by 1"},
	} {
		for how, again := range secondChances() {
			t.Run(name+", "+how, func(t *testing.T) {
				inBubble(t, func(t *testing.T) {
					w, l := newWorld(t), &ledger{}
					ship, refund := l.step("ship"), failingOnce(l, "refund")
					o := NewOrchestrator("test", func(ctx *Context, _ int) (string, error) {
						stop := Event[int](ctx, "stop")
						text := ""
						if Any(ctx, stop, Timer(ctx, 24*time.Hour)) == 1 {
							if _, err := ship.Call(ctx, 1).Await(); err != nil {
								return "", err
							}
							text = "shipped, "
							if Any(ctx, stop, Timer(ctx, 48*time.Hour)) == 1 {
								_, err := refund.Call(ctx, 1).Await() // of a discount
								if err == nil {
									var by int
									by, err = stop.Await()
									text += fmt.Sprint("stopped by ", by)
								}
								return text, err
							}
						}
						by, err := stop.Await()
						if _, failed := refund.Call(ctx, 1).Await(); err == nil {
							err = failed
						}
						return text + fmt.Sprint("stopped by ", by), err
					})
					code := func() *Runtime { return w.signalling(t, nil, []AnyOrchestrator{o}, []AnyActivity{ship, refund}) }
					mustRun(t, code(), startOf("a", 1))
					if test.first > 0 {
						noError(t, w.queues.CreateQueue(t.Context(), signalQueue))
						go func() { time.Sleep(test.first); _ = code().Raise(context.Background(), "a", "stop", 1, "") }()
					}
					if test.second > 0 {
						go func() { time.Sleep(test.second); _ = code().Raise(context.Background(), "a", "stop", 2, "") }()
					}
					w.attend(t, code(), 100*time.Hour)
					wants(t, "the first attempt", mustGet(t, code(), "a").Status, Failed)
					ships := l.count("ship(1)")
					noError(t, again(t.Context(), code()))
					if test.between {
						noError(t, code().Raise(t.Context(), "a", "stop", 3, ""))
					}
					w.attend(t, code(), 100*time.Hour)
					wants(t, "it ends", stands(t, code(), "a"), fmt.Sprintf("Completed %q", test.want))
					wants(t, "shipped again", l.count("ship(1)")-ships, 0)
					w.replays(t, code())
				})
			})
		}
	}
}

// failingOnce is an activity that fails the first time.
func failingOnce(l *ledger, name string) *Activity[int, int] {
	return NewActivity(name, func(_ context.Context, n int) (int, error) {
		if l.add(name) == 1 {
			return 0, errors.New(name + " is away")
		}
		return n, nil
	})
}

// An action or report of a person after a failure may have undone something, so the next attempt starts over.
func TestPeopleAndEventsCountAsActions(t *testing.T) {
	t.Parallel()
	for name, compensate := range map[string]func(ctx *Context) error{
		"a person": func(ctx *Context) error {
			_, err := AskPerson[any](ctx, HumanTask{Name: "roll back", Roles: ann.Roles}).Await()
			return err
		},
		"an event": func(ctx *Context) error { _, err := Event[string](ctx, "rolled back").Await(); return err },
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T) {
				w, l := newWorld(t), &ledger{}
				install, verify := l.step("install"), failingOnce(l, "verify")
				o := NewOrchestrator("test", func(ctx *Context, n int) (int, error) {
					v, err := install.Call(ctx, n).Await()
					if err == nil {
						if _, err = verify.Call(ctx, n).Await(); err != nil {
							err = errors.Join(err, compensate(ctx))
						}
					}
					return v, err
				})
				rt := w.signalling(t, nil, []AnyOrchestrator{o}, []AnyActivity{install, verify})
				mustRun(t, rt, startOf("a", 1))
				if name == "an event" {
					noError(t, rt.Raise(t.Context(), "a", "rolled back", "yes", ""))
				} else {
					noError(t, answersAny(ann)(t.Context(), rt))
				}
				w.attend(t, rt, time.Hour)
				noError(t, errorOf(rt.Rewind(t.Context(), "a", "r")))
				w.attend(t, rt, time.Hour)
				wants(t, "it ends", stands(t, rt, "a"), "Completed 2")
				wants(t, "installed", l.count("install(1)"), 2)
			})
		})
	}
}

// The memory covers all attempts: an attempt that fails early forgets nothing.
func TestMemoryOfAllAttempts(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		w, l := newWorld(t), &ledger{}
		pay, ship := l.step("pay"), failingOnce(l, "ship")
		whole := NewOrchestrator("test", func(ctx *Context, n int) (int, error) {
			first, err := pay.Call(ctx, 1).Await()
			if err == nil {
				_, err = ship.Call(ctx, first).Await()
			}
			return first, err
		})
		gone := NewActivity("gone", func(context.Context, int) (int, error) { return 0, errors.New("not yet") })
		short := NewOrchestrator("test", func(ctx *Context, n int) (int, error) { return gone.Call(ctx, n).Await() })
		all := []AnyActivity{pay, ship, gone}
		mustRun(t, w.signalling(t, nil, []AnyOrchestrator{whole}, all), startOf("a", 1))
		mustRun(t, w.signalling(t, nil, []AnyOrchestrator{short}, all), startOf("a", 1)) // an attempt that does not reach the kept results
		rt := w.signalling(t, nil, []AnyOrchestrator{whole}, all)
		mustRun(t, rt, startOf("a", 1))
		wants(t, "it ends", stands(t, rt, "a"), "Completed 2")
		wants(t, "paid", l.count("pay(1)"), 1)
	})
}

// Cases in which the place of an event in the next attempt is hard to determine: a call before it that is not kept, an
// event that arrives while the attempt is suspended, a drop, an overtaker whose hold had ended.
func TestEventsWhosePlaceIsHardToTell(t *testing.T) {
	t.Parallel()
	type fn = func(ctx *Context, step, refund *Activity[int, int]) (string, error)
	stopOrShip := func(wait time.Duration) fn {
		return func(ctx *Context, step, refund *Activity[int, int]) (string, error) {
			if _, err := step.Call(ctx, int(ctx.Now().UnixMilli()%1_000_000)).Await(); err != nil { // another input in each attempt
				return "", err
			}
			stop := Event[int](ctx, "number")
			if Any(ctx, stop, Timer(ctx, wait)) == 0 {
				return "stopped, nothing was shipped", nil
			}
			if err := errors.Join(errorOf(step.Call(ctx, 1).Await()), errorOf(stop.Await())); err != nil {
				return "", err
			}
			return "shipped", errorOf(refund.Call(ctx, 1).Await())
		}
	}
	late := func(sequence int, previous time.Duration) func(begin time.Time) Signal {
		return func(begin time.Time) Signal {
			s := eventSignal("a", fmt.Sprint("e", sequence), "number", fmt.Sprint(sequence))
			at := begin.Add(previous)
			s.Payload.Stream, s.Payload.Sequence, s.Payload.Previous = "s/1", sequence, &at
			return s
		}
	}
	for name, test := range map[string]struct {
		fn      fn
		options []OrchestratorOption
		at      time.Duration // when the event arrives
		event   func(begin time.Time) Signal
		second  bool // another one arrives while the next attempt is suspended
		want    string
	}{
		"behind a call that is not kept": {fn: stopOrShip(24 * time.Hour), at: 30 * time.Hour, want: "shipped"},
		"behind the end of its hold":     {fn: stopOrShip(30 * time.Minute), at: time.Minute, event: late(2, 0), want: "shipped"},
		"while it is suspended": {fn: func(ctx *Context, step, refund *Activity[int, int]) (string, error) {
			first, err := Event[int](ctx, "number").Await()
			if err == nil {
				_, err = refund.Call(ctx, first).Await()
			}
			if err != nil {
				return "", err
			}
			second, err := Event[int](ctx, "number").Await()
			return fmt.Sprint(first, second), err
		}, at: time.Minute, second: true, want: "1 2"},
		"dropped": {fn: func(ctx *Context, step, refund *Activity[int, int]) (string, error) {
			if err := ctx.Sleep(time.Hour); err != nil {
				return "", err
			}
			if _, err := refund.Call(ctx, 1).Await(); err != nil {
				return "", err
			}
			if Any(ctx, Event[int](ctx, "number"), Timer(ctx, time.Hour)) == 0 {
				return "got what was dropped", nil
			}
			return "nothing", nil
		}, options: []OrchestratorOption{DropEarlyEvents()}, at: time.Minute, want: "nothing"},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T) {
				w, l := newWorld(t), &ledger{}
				step, refund := l.step("step"), failingOnce(l, "refund")
				o := NewOrchestrator("test", func(ctx *Context, _ int) (string, error) { return test.fn(ctx, step, refund) }, test.options...)
				rt := w.signalling(t, nil, []AnyOrchestrator{o}, []AnyActivity{step, refund})
				mustRun(t, rt, startOf("a", 1))
				begin := time.Now()
				w.attend(t, rt, test.at)
				s := eventSignal("a", "e1", "number", "1")
				if test.event != nil {
					s = test.event(begin)
				}
				noError(t, errorOf(rt.Deliver(t.Context(), s)))
				w.attend(t, rt, 10*time.Hour)
				wants(t, "the first attempt", mustGet(t, rt, "a").Status, Failed)
				noError(t, errorOf(rt.Rewind(t.Context(), "a", "r")))
				if test.second {
					noError(t, rt.Suspend(t.Context(), "a", "a while"))
					noError(t, errorOf(rt.Deliver(t.Context(), eventSignal("a", "e2", "number", "2"))))
					noError(t, rt.Resume(t.Context(), "a", "on"))
				}
				w.attend(t, rt, 100*time.Hour)
				wants(t, "it ends", stands(t, rt, "a"), fmt.Sprintf("Completed %q", test.want))
				w.replays(t, rt)
			})
		})
	}
}
