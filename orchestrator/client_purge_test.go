package orchestrator

// The client's Purge. The peers' checks of deletion, by their names. The others of that group do not apply: nothing is
// locked (force delete), children are found in the rounds (list children, parent, tree), and a running orchestration
// is rejected instead of removed (running rejected is TestPurge/running_rejected).

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/vibedata/roundhouse/internal/faults"
	"github.com/vibedata/roundhouse/tables"
)

// largeOffice runs an orchestration that leaves something of every kind behind: rounds, payloads in blobs, a claimed
// event, events that its next execution inherits, a child with a child of its own, and one that it only starts.
func largeOffice(t *testing.T) *office {
	t.Helper()
	o := newOffice(t)
	grow := NewActivity("grow", func(_ context.Context, s string) (string, error) { return s + strings.Repeat("y", spillFrom), nil })
	grandchild := NewOrchestrator("grandchild", func(ctx *Context, s string) (string, error) { return grow.Call(ctx, s).Await() })
	child := NewOrchestrator("child", func(ctx *Context, s string) (string, error) { return grandchild.Call(ctx, s).Await() })
	loose := NewOrchestrator("loose", func(_ *Context, s string) (string, error) { return s, nil })
	main := NewOrchestrator("test", func(ctx *Context, s string) (string, error) {
		v, err := Event[string](ctx, "text").Await()
		if err != nil || ctx.Execution() < 2 {
			return "", errors.Join(err, ContinueAsNew(s))
		}
		if _, err := loose.Start(ctx, "loose", v); err != nil {
			return "", err
		}
		return child.Call(ctx, v).Await()
	})
	o.orchestrators, o.activities = []AnyOrchestrator{main, child, grandchild, loose}, []AnyActivity{grow}
	rt := o.open(t, nil)
	// Both events arrive before the first turn, so that the second execution inherits one of them, which fits the
	// message and not the round.
	noError(t, errorOf(rt.Start(t.Context(), startOf("a", strings.Repeat("x", spillFrom)))))
	for i, size := range []int{2 * spillFrom, 40 << 10} {
		noError(t, rt.Raise(t.Context(), "a", "text", incompressible(size), fmt.Sprint(i)))
	}
	o.settle(t, rt)
	if out := mustGet(t, rt, "a"); out.Status != Completed || out.Execution != 2 || mustGet(t, rt, "loose").Status != Completed {
		t.Fatalf("%s %v", out.Status, out.Failure)
	}
	return o
}

func TestPurge(t *testing.T) {
	t.Parallel()
	inBubbles(t, map[string]func(*testing.T){
		"terminal_ok, cascade_hierarchy, cleans_queues": func(t *testing.T) {
			o := largeOffice(t)
			rt := o.open(t, nil)
			if len(o.shelf.all()) < 6 {
				t.Errorf("blobs %v", o.shelf.all())
			}
			isError(t, "purge", rt.Purge(t.Context(), "a"), nil)
			o.gone(t, "a")
			_, err := rt.Get(t.Context(), "a")
			isError(t, "get", err, ErrNotFound)
			_, err = rt.Status(t.Context(), "a")
			isError(t, "status", err, ErrNotFound)
			_, err = rt.Wait(t.Context(), "a")
			isError(t, "wait", err, ErrNotFound)
			isError(t, "again", rt.Purge(t.Context(), "a"), ErrNotFound)
			list, _, err := rt.List(t.Context(), Filter{}, 10, "")
			if err != nil || len(list) != 1 || list[0].ID != "loose" {
				t.Errorf("%+v %v", list, err)
			}
			wants(t, "messages", o.waitingMessages(t), 0)
		},
		// Events that fit their rounds may not fit the round that passes them all on: that is a blob.
		"what executions hand on": func(t *testing.T) {
			const events = 20
			o, release := newOffice(t), make(chan struct{})
			block := NewActivity("block", func(context.Context, int) (int, error) { <-release; return 0, nil })
			o.orchestrators = []AnyOrchestrator{NewOrchestrator("test", func(ctx *Context, n int) (int, error) {
				if _, err := block.Call(ctx, n).Await(); err != nil || n == 0 {
					return 0, errors.Join(err, ContinueAsNew(n+1))
				}
				return n, nil
			})}
			o.activities = []AnyActivity{block}
			rt := o.open(t, nil)
			done := runInBackground(t.Context(), rt, startOf("a", 0))
			for i := range events {
				synctest.Wait() // so that each has a round of its own
				go func() {
					if _, err := rt.Deliver(t.Context(), eventSignal("a", fmt.Sprint(i), "text", jsonOf(t, incompressible(60<<10)))); err != nil {
						t.Error(err)
					}
				}()
			}
			synctest.Wait()
			wants(t, "blobs of the first execution", len(o.shelf.all()), 0)
			close(release)
			if got := <-done; got.err != nil || got.out.Status != Completed || len(o.shelf.all()) == 0 {
				t.Fatalf("%s, %d blobs, %v", got.out.Status, len(o.shelf.all()), got.err)
			}
			synctest.Wait()
			isError(t, "purge", rt.Purge(t.Context(), "a"), nil)
			o.gone(t, "a")
		},
		"nonexistent": func(t *testing.T) {
			o := eventOffice(t)
			plan := &faults.Plan{}
			isError(t, "purge", o.open(t, plan).Purge(t.Context(), "nobody"), ErrNotFound)
			wants(t, "commits", applies(plan.Calls()), 0)
		},
		"running_rejected": func(t *testing.T) {
			o := eventOffice(t)
			rt := o.open(t, nil)
			noError(t, errorOf(rt.Start(t.Context(), startOf("a", 1))))
			for _, state := range []Status{Pending, Running, Suspended} {
				wants(t, "state", mustGet(t, rt, "a").Status, state)
				before := o.rows(t, "a")
				isError(t, string(state), rt.Purge(t.Context(), "a"), ErrActive)
				o.unchanged(t, "a", before)
				if o.rest(t, rt); state == Running {
					isError(t, "suspend", rt.Suspend(t.Context(), "a", ""), nil)
					o.rest(t, rt)
				}
			}
		},
		"running child rejected": func(t *testing.T) {
			o := parentOffice(t)
			rt := o.open(t, nil)
			child := o.start(t, rt, startOf("a", 1)).Calls[0].Child
			s := eventSignal("a", "t", "", "")
			s.Payload = Payload{Command: commandTerminate}
			if _, err := rt.Deliver(t.Context(), s); err != nil { // which notifies the child by a message
				t.Fatal(err)
			}
			before := o.rows(t, "a")
			isError(t, "purge", rt.Purge(t.Context(), "a"), ErrActive)
			o.unchanged(t, "a", before)
			o.settle(t, rt)
			isError(t, "when the child has ended", rt.Purge(t.Context(), "a"), nil)
			o.gone(t, "a")
			_, err := rt.Get(t.Context(), child)
			isError(t, "child", err, ErrNotFound)
		},
		"many rows": func(t *testing.T) {
			o := newOffice(t)
			step := o.ledger.step("step")
			o.orchestrators, o.activities = []AnyOrchestrator{sequence(step)}, []AnyActivity{step}
			plan := &faults.Plan{}
			rt := o.open(t, plan)
			mustRun(t, rt, startOf("a", 500))
			before := applies(plan.Calls())
			isError(t, "purge", rt.Purge(t.Context(), "a"), nil)
			o.gone(t, "a")
			wants(t, "transactions", applies(plan.Calls())-before, 8) // the mark, 6 slices of 99, and the last two
		},
		"stale_activity_after_delete_recreate": func(t *testing.T) {
			o := eventOffice(t)
			rt := o.open(t, nil)
			for n := 1; n <= 3; n++ {
				if out := o.start(t, rt, startRequest("a", n, "same", ReuseNever)); out.Execution != 1 || out.Status != Running {
					t.Fatalf("%+v", out)
				}
				isError(t, "raise", rt.Raise(t.Context(), "a", "number", n, "same"), nil)
				o.settle(t, rt)
				wants(t, "output", string(mustGet(t, rt, "a").Output), fmt.Sprint(n+1))
				wants(t, "executions", o.executions(t, "a"), 1)
				isError(t, "purge", rt.Purge(t.Context(), "a"), nil)
				o.gone(t, "a")
			}
		},
		"what is damaged": func(t *testing.T) {
			o := eventOffice(t)
			rt := o.open(t, nil)
			s := startOf("a", 1)
			s.Orchestrator = "bad"
			o.start(t, rt, s)
			o.apply(t, tables.Delete(tables.Key{Partition: "a", Row: roundKey(1, 1)}, ""))
			before := o.rows(t, "a")
			isError(t, "purge", rt.Purge(t.Context(), "a"), ErrCorrupt)
			o.unchanged(t, "a", before)
		},
	})
}

// A purge that died anywhere continues when it is repeated, when its id is started again, in any way, and when others
// are purged. Until then, no caller sees a half of it.
func TestPurgeInterrupted(t *testing.T) {
	t.Parallel()
	prepare := func(t *testing.T) *office {
		t.Helper()
		o := newOffice(t)
		grow := NewActivity("grow", func(_ context.Context, s string) (string, error) { return s + strings.Repeat("y", spillFrom), nil })
		child := NewOrchestrator("child", func(ctx *Context, s string) (int, error) {
			v, err := grow.Call(ctx, s).Await()
			return len(v), err
		})
		main := NewOrchestrator("test", func(ctx *Context, s string) (int, error) {
			v, err := child.Call(ctx, s).Await()
			if err != nil {
				return 0, err
			}
			large, err := SideEffect(ctx, "large", func() string { return strings.Repeat("z", spillFrom) })
			return len(large) + v, err
		})
		o.orchestrators, o.activities = []AnyOrchestrator{main, child}, []AnyActivity{grow}
		if out := o.start(t, o.open(t, nil), startRequest("a", "1", "first", ReuseNever)); out.Status != Completed {
			t.Fatalf("%+v", out)
		}
		return o
	}
	// visible reports whether the orchestration exists, by every way of reading it.
	visible := func(t *testing.T, rt *Runtime) bool {
		t.Helper()
		_, byGet := rt.Get(t.Context(), "a")
		_, byStatus := rt.Status(t.Context(), "a")
		_, byRewind := rt.Rewind(t.Context(), "a", "")
		list, _, err := rt.List(t.Context(), Filter{TopLevel: true}, 10, "")
		there := byGet == nil
		if err != nil || !there && !errors.Is(byGet, ErrNotFound) || errors.Is(byStatus, ErrNotFound) == there || (len(list) == 1) != there || !errors.Is(byRewind, map[bool]error{true: ErrEnded, false: ErrNotFound}[there]) {
			t.Errorf("get %v, status %v, rewind %v, list %v %v", byGet, byStatus, byRewind, list, err)
		}
		return there
	}
	for name, follow := range map[string]func(t *testing.T, o *office, rt *Runtime){
		"and repeated": func(t *testing.T, o *office, rt *Runtime) {
			t.Helper()
			if err := rt.Purge(t.Context(), "a"); err != nil && !errors.Is(err, ErrNotFound) {
				t.Error(err)
			}
			o.gone(t, "a")
		},
		"and all are purged": func(t *testing.T, o *office, rt *Runtime) {
			t.Helper()
			// The filter does not select it: its purge was requested before.
			unfinished := !visible(t, rt)
			p, err := rt.PurgeAll(t.Context(), Filter{Statuses: []Status{Failed}}, 10, "")
			if err != nil || p.Active != 0 || p.Continuation != "" {
				t.Errorf("%+v %v", p, err)
			}
			if unfinished {
				o.gone(t, "a")
			}
		},
		"and started again": func(t *testing.T, o *office, rt *Runtime) {
			t.Helper()
			there := visible(t, rt)
			out := o.start(t, rt, startRequest("a", "2", "second", ReuseEnded))
			if want := map[bool]int{true: 2, false: 1}[there]; out.Status != Completed || out.Execution != want || string(out.Input) != `"2"` {
				t.Errorf("%s %s in execution %d, not %d", out.Status, out.Input, out.Execution, want)
			}
			o.executions(t, "a")
		},
		"and run again": func(t *testing.T, o *office, rt *Runtime) {
			t.Helper()
			there := visible(t, rt)
			out := mustRun(t, rt, startOf("a", "2"))
			if want := map[bool]string{true: `"1"`, false: `"2"`}[there]; out.Status != Completed || out.Execution != 1 || string(out.Input) != want {
				t.Errorf("%s %s, not %s", out.Status, out.Input, want)
			}
			o.executions(t, "a")
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			everyFault(t, func(t *testing.T, plan *faults.Plan) {
				o := prepare(t)
				err := o.open(t, plan).Purge(t.Context(), "a") // it may die
				rt := o.open(t, nil)
				if there := visible(t, rt); err == nil && there {
					t.Error("it is there after its purge")
				}
				follow(t, o, rt)
			})
		})
	}
}

// Signals to a purged orchestration are dropped and counted if they only wake, and do not block a queue.
func TestPurgeAndLateSignals(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		o := newOffice(t)
		step := o.ledger.step("step")
		o.orchestrators, o.activities = []AnyOrchestrator{stepThenTimer(step, 100*time.Hour)}, []AnyActivity{step}
		rt := o.open(t, nil)
		o.start(t, rt, startOf("a", 1))
		isError(t, "terminate", rt.Terminate(t.Context(), "a", ""), nil)
		o.rest(t, rt)
		isError(t, "purge", rt.Purge(t.Context(), "a"), nil)
		time.Sleep(101 * time.Hour)
		before := rt.Counts()
		o.settle(t, rt) // the timer's message
		wants(t, "counts", rt.Counts(), Counts{Stale: before.Stale + 1, Duplicates: before.Duplicates})
		o.gone(t, "a")

		// The index still has the timer; the sweeper wakes no orchestration, and deletes the row.
		woken, err := rt.Sweep(t.Context(), 10)
		if err != nil || woken != 0 {
			t.Errorf("%d woken, %v", woken, err)
		}
		for e := range tables.All(t.Context(), o.tables, "orchestrationsParked", tables.Query{Partition: indexPartition}) {
			t.Errorf("the index has %s", e.Key)
		}

		// The message of results whose blob was purged with the orchestration.
		late := Signal{SignalID: "r", InstanceID: "a", RuntimeProvider: provider, Type: InternalContinue, Payload: Payload{Blob: hashOf([]byte("1"))}}
		before = rt.Counts()
		if _, err := rt.Deliver(t.Context(), late); err != nil {
			t.Errorf("results in a blob: %v", err)
		}
		wants(t, "counts", rt.Counts(), Counts{Stale: before.Stale + 1, Duplicates: before.Duplicates})
		_, err = rt.Deliver(t.Context(), eventSignal("a", "e", "number", "1"))
		isError(t, "an event, which may be early", err, ErrNotFound)
	})
}
