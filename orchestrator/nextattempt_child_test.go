package orchestrator

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"
)

// A child that is open when its parent's execution ends is canceled, for every kind of end; then the parent can be
// purged.
func TestAChildDoesNotOutliveItsParent(t *testing.T) {
	t.Parallel()
	refuse := NewActivity("refuse", func(context.Context, int) (int, error) { return 0, errors.New("refused") })
	child := NewOrchestrator("child", func(ctx *Context, _ int) (int, error) { return Event[int](ctx, "never").Await() })
	endings := map[string]struct {
		run     func(*Context, int) (int, error)
		timeout time.Duration
		status  Status
	}{
		"the child loses a race": {status: Completed, run: func(ctx *Context, n int) (int, error) {
			return Any(ctx, child.Call(ctx, n), Timer(ctx, time.Hour)), nil
		}},
		"the parent fails": {status: Failed, run: func(ctx *Context, n int) (int, error) {
			child.Call(ctx, n)
			if _, err := Timer(ctx, time.Hour).Await(); err != nil {
				return 0, err
			}
			return refuse.Call(ctx, n).Await()
		}},
		"the parent's time is over": {status: Failed, timeout: time.Hour, run: func(ctx *Context, n int) (int, error) {
			return child.Call(ctx, n).Await()
		}},
	}
	tests := map[string]func(*testing.T){}
	for name, ending := range endings {
		tests[name] = func(t *testing.T) {
			w := newWorld(t)
			rt := w.signalling(t, nil, []AnyOrchestrator{NewOrchestrator("test", ending.run), child}, []AnyActivity{refuse})
			s := startOf("a", 1)
			s.Timeout = ending.timeout
			mustRun(t, rt, s)
			w.attend(t, rt, 3*time.Hour)
			out := mustGet(t, rt, "a")
			wants(t, "the parent", out.Status, ending.status)
			wants(t, "the child", mustGet(t, rt, out.Calls[0].Child).Status, Canceled)
			isError(t, "purge", rt.Purge(t.Context(), "a"), nil)
			wants(t, "left", len(w.all(t, rt)), 0)
			wants(t, "messages", w.waitingMessages(t), 0)
		}
	}
	inBubbles(t, tests)
}

// A child that fails after a signal has woken it has failed, once: no retry was requested, and the parent learns of
// the failure. Duplicate messages change nothing.
func TestAChildThatFailsByASignalRunsOnce(t *testing.T) {
	t.Parallel()
	tests := map[string]func(*testing.T){}
	for name, fails := range map[string]int{"always": 100, "the first time": 1} {
		for _, twice := range []bool{false, true} {
			tests[fmt.Sprintf("it fails %s, messages twice %v", name, twice)] = func(t *testing.T) {
				w, l := newWorld(t), &ledger{}
				charge := NewActivity("charge", func(context.Context, int) (int, error) {
					if l.add("charge") <= fails {
						return 0, errors.New("declined")
					}
					return 1, nil
				})
				child := NewOrchestrator("child", func(ctx *Context, _ int) (int, error) {
					n, err := Event[int](ctx, "number").Await()
					if err != nil {
						return 0, err
					}
					return charge.Call(ctx, n).Await()
				})
				o := NewOrchestrator("test", func(ctx *Context, n int) (string, error) {
					_, err := child.Call(ctx, n).Await()
					_, failed := errors.AsType[*OrchestrationError](err)
					return fmt.Sprint("the child failed: ", failed), nil
				})
				rt := w.signalling(t, nil, []AnyOrchestrator{o, child}, []AnyActivity{charge})
				mustRun(t, rt, startOf("a", 1))
				id := mustGet(t, rt, "a").Calls[0].Child
				raise(t, w, id, 1, 0)
				if twice {
					raise(t, w, id, 1, 0)
					raise(t, w, id, 1, time.Minute)
				}
				w.attend(t, rt, 3*time.Hour)
				wants(t, "the parent", stands(t, rt, "a"), `Completed "the child failed: true"`)
				wants(t, "the child", stands(t, rt, id), "Failed: activity charge (attempt 1): declined")
				wants(t, "executions of the child", mustGet(t, rt, id).Execution, 1)
				wants(t, "charged", l.count("charge"), 1)
				w.replays(t, rt)
			}
		}
	}
	inBubbles(t, tests)
}

// The timeout of a call of a child is real time, whether a signal to the child or the parent detects it.
func TestTheTimeoutOfAChildIsRealTime(t *testing.T) {
	t.Parallel()
	const down = 70 * time.Minute
	tests := map[string]func(*testing.T){}
	for name, signal := range map[string]bool{"the parent finds out": false, "a signal to the child finds out": true} {
		tests[name] = func(t *testing.T) {
			w := newWorld(t)
			child := NewOrchestrator("child", func(ctx *Context, _ int) (int, error) {
				if _, err := Event[int](ctx, "number").Await(); err != nil {
					return 0, err
				}
				return Event[int](ctx, "never").Await()
			})
			o := NewOrchestrator("test", func(ctx *Context, n int) (string, error) {
				_, err := child.Call(ctx, n, WithTimeout(time.Hour)).Await()
				failed, _ := errors.AsType[*OrchestrationError](err)
				return failed.Failure.Code, nil
			})
			rt := w.signalling(t, nil, []AnyOrchestrator{o, child}, nil)
			mustRun(t, rt, startOf("a", 1))
			if signal {
				raise(t, w, mustGet(t, rt, "a").Calls[0].Child, 1, 30*time.Minute)
			}
			time.Sleep(down) // the host is down
			w.attend(t, rt, 12*time.Hour)
			out := mustGet(t, rt, "a")
			wants(t, "the parent", stands(t, rt, "a"), `Completed "TimedOut"`)
			wants(t, "executions of the child", mustGet(t, rt, out.Calls[0].Child).Execution, 1)
			if took := out.EndedAt.Sub(out.StartedAt); took > down+5*time.Minute {
				t.Errorf("a time-out of 1h takes %v, of which the host is down for %v", took, down)
			}
		}
	}
	inBubbles(t, tests)
}

// A tree that waits for a month costs a handful of messages: those of the leaf's timer, and one for each end. Nothing
// is woken without news, and the sweeper logs no warning.
func TestATreeThatWaitsForAMonthCostsAHandfulOfMessages(t *testing.T) {
	t.Parallel()
	const month = 30 * 24 * time.Hour
	tests := map[string]func(*testing.T){}
	for depth := 1; depth <= 3; depth++ {
		tests[fmt.Sprint("depth ", depth)] = func(t *testing.T) {
			w, sent := newWorld(t), 0
			var o *Orchestrator[int, int]
			o = NewOrchestrator("test", func(ctx *Context, n int) (int, error) {
				if n <= depth {
					return o.Call(ctx, n+1).Await()
				}
				_, err := Timer(ctx, month).Await()
				return n, err
			})
			rt := w.counting(t, &sent, o)
			mustRun(t, rt, startOf("a", 1))
			w.attend(t, rt, month+3*time.Hour)
			out := mustGet(t, rt, "a")
			wants(t, "the parent", stands(t, rt, "a"), fmt.Sprint("Completed ", depth+1))
			if most := 8 + 2*depth; sent > most {
				t.Errorf("%d messages in a month, %d are allowed", sent, most)
			}
			if n := rt.Counts().Woken; n > 0 {
				t.Errorf("%d false warnings", n)
			}
			if n := len(w.stored(t, "a")[0].rounds); n > 3 {
				t.Errorf("the parent has %d rounds", n)
			}
			if late := out.EndedAt.Sub(out.StartedAt) - month; late > 5*time.Minute {
				t.Errorf("it ends %v late", late)
			}
			wants(t, "messages left", w.waitingMessages(t), 0)
			wants(t, "rows of the index left", len(w.parked(t)), 0)
		}
	}
	inBubbles(t, tests)
}

// A child that the previous attempt canceled runs for the next one.
func TestACanceledChildRunsAgainAfterARewind(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		w := newWorld(t)
		child := NewOrchestrator("child", func(ctx *Context, n int) (int, error) {
			_, err := Timer(ctx, 2*time.Hour).Await()
			return n + 1, err
		})
		hasty := NewOrchestrator("test", func(ctx *Context, n int) (int, error) {
			called := child.Call(ctx, n)
			if Any(ctx, called, Timer(ctx, time.Hour)) == 1 {
				Cancel(ctx, called)
				return 0, errors.New("the child takes too long")
			}
			return called.Await()
		})
		patient := NewOrchestrator("test", func(ctx *Context, n int) (int, error) { return child.Call(ctx, n).Await() })
		rt := w.signalling(t, nil, []AnyOrchestrator{hasty, child}, nil)
		mustRun(t, rt, startOf("a", 1))
		w.attend(t, rt, 2*time.Hour)
		wants(t, "the first attempt", stands(t, rt, "a"), "Failed: the child takes too long")
		rt = w.signalling(t, nil, []AnyOrchestrator{patient, child}, nil)
		noError(t, errorOf(rt.Rewind(t.Context(), "a", "rewind")))
		w.attend(t, rt, 3*time.Hour)
		wants(t, "the second attempt", stands(t, rt, "a"), "Completed 2")
	})
}

// The error of a child keeps its type on the way to its parent, wherever the child ends.
func TestErrorsOfChildrenKeepTheirType(t *testing.T) {
	t.Parallel()
	tests := map[string]func(*testing.T){}
	for name, waits := range map[string]bool{"the child ends at once": false, "the child ends by a signal": true} {
		tests[name] = func(t *testing.T) {
			w := newWorld(t)
			child := NewOrchestrator("child", func(ctx *Context, n int) (int, error) {
				if waits {
					if _, err := Event[int](ctx, "number").Await(); err != nil {
						return 0, err
					}
				}
				return 0, fmt.Errorf("wrapped: %w", &vaultError{"v", 403})
			})
			o := NewOrchestrator("test", func(ctx *Context, n int) (string, error) {
				_, err := child.Call(ctx, n, WithError[*vaultError]()).Await()
				v, ok := errors.AsType[*vaultError](err)
				if !ok {
					return "", fmt.Errorf("the type is lost: %w", err)
				}
				return v.Error(), nil
			})
			rt := w.signalling(t, nil, []AnyOrchestrator{o, child}, nil)
			mustRun(t, rt, startOf("a", 1))
			if waits {
				raise(t, w, mustGet(t, rt, "a").Calls[0].Child, 1, 0)
			}
			w.attend(t, rt, time.Hour)
			wants(t, "the parent", stands(t, rt, "a"), `Completed "vault v says 403"`)
			w.replays(t, rt)
		}
	}
	inBubbles(t, tests)
}

// A tree can be purged whole, sub-orchestrations of executions included whose rounds are deleted.
func TestAPurgeReachesTheChildrenOfAllExecutions(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		w := newWorld(t)
		child := NewOrchestrator("child", func(_ *Context, n int) (int, error) { return n, nil })
		o := NewOrchestrator("test", func(ctx *Context, n int) (int, error) {
			if _, err := child.Call(ctx, n).Await(); err != nil || n == 10 {
				return n, err
			}
			return 0, ContinueAsNew(n + 1)
		})
		rt := w.signalling(t, nil, []AnyOrchestrator{o, child}, nil)
		mustRun(t, rt, startOf("a", 1))
		mustRun(t, rt, startOf("ab", 10)) // with an id that begins like the other's
		wants(t, "there are", len(w.all(t, rt)), 1+10+2)
		isError(t, "purge", rt.Purge(t.Context(), "a"), nil)
		wants(t, "left", len(w.all(t, rt)), 2)
	})
}
