package orchestrator

// The peers' checks of queues and of the creation of orchestrations, by their names. By other tests, or not at all:
//
//	queue_semantics    worker_ack_atomicity           activities have no messages while they run in the process that drives
//	                                                  them; that a result and what it leads to are one round is
//	                                                  TestAtomicity/multi_operation_atomic_ack
//	queue_semantics    a wake that is stale or comes twice   TestStaleSignals, TestCommandsAreIdempotent
//	instance_creation  a start by the client          TestStart and its siblings
//	instance_creation  null_version                   an orchestration has no version of its own; the schema of its
//	                                                  snapshot is always there, and checked in via_metadata

import (
	"errors"
	"testing"
	"time"

	"github.com/vibedata/roundhouse/internal/faults"
	"github.com/vibedata/roundhouse/queues"
)

func TestQueueSemantics(t *testing.T) {
	t.Parallel()
	waiting := func(t *testing.T, events int) (*world, *Runtime) {
		t.Helper()
		w := newWorld(t)
		rt := w.signalling(t, nil, []AnyOrchestrator{numberLoop(events)}, nil)
		mustRun(t, rt, startOf("a", []int{}))
		return w, rt
	}
	t.Run("fifo", func(t *testing.T) {
		inBubble(t, func(t *testing.T) {
			w, rt := waiting(t, 5)
			for _, n := range []int{3, 1, 4, 1_000, 5} {
				raise(t, w, "a", n, 0)
			}
			w.settle(t, rt)
			if out := mustGet(t, rt, "a"); string(out.Output) != "[3,1,4,1000,5]" {
				t.Errorf("%s", out.Output)
			}
		})
	})
	// A signal with a lost acknowledgement is redelivered, and brings nothing.
	t.Run("peek_lock", func(t *testing.T) {
		inBubble(t, func(t *testing.T) {
			w, rt := waiting(t, 2)
			raise(t, w, "a", 1, 0)
			for range 3 {
				s, _, ok := w.receive(t, time.Minute)
				if !ok {
					t.Fatal("the message does not come again")
				}
				noError(t, errorOf(rt.Deliver(t.Context(), s)))
				if _, _, visible := w.receive(t, time.Minute); visible {
					t.Error("the message is visible while it is held")
				}
				time.Sleep(time.Minute)
			}
			if n := w.learnedEvents(t, "a", eventRaised); n != 1 || w.waitingMessages(t) != 1 {
				t.Errorf("%d events, %d messages", n, w.waitingMessages(t))
			}
		})
	})
	t.Run("lost_lock_token", func(t *testing.T) {
		inBubble(t, func(t *testing.T) {
			w, rt := waiting(t, 1)
			raise(t, w, "a", 1, 0)
			late, m, _ := w.receive(t, time.Minute)
			time.Sleep(2 * time.Minute)
			w.deliver(t.Context(), t, rt) // by another process, meanwhile
			out, err := rt.Deliver(t.Context(), late)
			if err != nil || string(out.Output) != "[1]" {
				t.Errorf("%+v %v", out, err)
			}
			if err := w.queues.Delete(t.Context(), signalQueue, m.ID, m.PopReceipt); !errors.Is(err, queues.ErrNotFound) && !errors.Is(err, queues.ErrPopReceipt) {
				t.Errorf("%v", err)
			}
		})
	})
	t.Run("timer_delayed_visibility", func(t *testing.T) {
		inBubble(t, func(t *testing.T) {
			w, l := newWorld(t), &ledger{}
			step := l.step("step")
			rt := w.signalling(t, nil, []AnyOrchestrator{stepThenTimer(step, time.Hour)}, []AnyActivity{step})
			mustRun(t, rt, startOf("a", 1))
			time.Sleep(time.Hour - time.Second)
			if w.deliver(t.Context(), t, rt) {
				t.Error("the timer's signal comes early")
			}
			time.Sleep(2 * time.Second)
			if !w.deliver(t.Context(), t, rt) || l.count("step(2)") != 1 {
				t.Errorf("the timer's signal does not come in time: %v", l.all())
			}
		})
	})
	t.Run("immediate_visibility", func(t *testing.T) {
		inBubble(t, func(t *testing.T) {
			w, rt := waiting(t, 1)
			noError(t, rt.Raise(t.Context(), "a", "number", 1, ""))
			if !w.deliver(t.Context(), t, rt) {
				t.Error("the event is not visible")
			}
		})
	})
	// A timer in the far future does not block earlier messages.
	t.Run("delayed_visibility_skips_future", func(t *testing.T) {
		inBubble(t, func(t *testing.T) {
			w := newWorld(t)
			o := NewOrchestrator("test", func(ctx *Context, _ int) (int, error) {
				return Any(ctx, Timer(ctx, 100*time.Hour), Event[int](ctx, "number")), nil
			})
			rt := w.signalling(t, nil, []AnyOrchestrator{o}, nil)
			mustRun(t, rt, startOf("a", 1))
			begin := time.Now()
			raise(t, w, "a", 1, 0)
			w.deliver(t.Context(), t, rt)
			if out := mustGet(t, rt, "a"); string(out.Output) != "1" || time.Since(begin) != 0 {
				t.Errorf("%s %s after %v", out.Status, out.Output, time.Since(begin))
			}
			w.settle(t, rt) // the timer that lost arrives late, and finds the end
			if out := mustGet(t, rt, "a"); out.Rounds != 0 || string(out.Output) != "1" {
				t.Errorf("%+v", out)
			}
		})
	})
	// A signal that only wakes is dropped when no orchestration exists, and counted. A signal with contents is not,
	// unlike in the peers: its orchestration may be about to start. It changes nothing, and the host's dequeue count
	// bounds its redeliveries.
	t.Run("orphan_queue_messages_dropped", func(t *testing.T) {
		inBubble(t, func(t *testing.T) {
			w, l, plan := newWorld(t), &ledger{}, &faults.Plan{}
			step := l.step("step")
			rt := w.signalling(t, plan, []AnyOrchestrator{stepThenEvent(step)}, []AnyActivity{step})
			for i, kind := range []SignalType{TaskCompleted, TimerDue, RetryDue, SubWorkflowCompleted, InternalContinue} {
				if _, err := rt.Deliver(t.Context(), Signal{SignalID: "1", InstanceID: "nobody", RuntimeProvider: provider, Type: kind}); err != nil {
					t.Errorf("%s: %v", kind, err)
				}
				if want := (Counts{Stale: i + 1}); rt.Counts() != want {
					t.Errorf("%s: counted %+v", kind, rt.Counts())
				}
			}
			before := rt.Counts()
			suspend := eventSignal("nobody", "3", "", "")
			suspend.Payload = Payload{Command: commandSuspend}
			for _, s := range []Signal{eventSignal("nobody", "2", "number", "1"), suspend} {
				if _, err := rt.Deliver(t.Context(), s); !errors.Is(err, ErrNotFound) {
					t.Errorf("%+v: %v", s.Payload, err)
				}
			}
			if rt.Counts() != before {
				t.Errorf("what is not dropped is counted: %+v", rt.Counts())
			}
			if n := applies(plan.Calls()); n != 0 || w.waitingMessages(t) != 0 {
				t.Errorf("%d commits and %d messages for nobody", n, w.waitingMessages(t))
			}
		})
	})
}

func TestInstanceCreation(t *testing.T) {
	t.Parallel()
	t.Run("via_metadata", func(t *testing.T) {
		t.Parallel()
		w, l, plan := newWorld(t), &ledger{}, &faults.Plan{At: 2, Fault: faults.CrashBefore}
		step := l.step("step")
		_, _ = w.process(t, plan, sequence(step), step).Run(t.Context(), startOf("a", 1)) // it dies after its start
		rows := w.rows(t, "a")
		if len(rows) != 2 || rows[0].Row != roundKey(1, 1) || rows[1].Row != statusRow {
			t.Fatalf("rows %v", rows)
		}
		status := rows[1]
		for column, want := range map[string]any{"Name": "test", "CorrelationId": "corr", "RuntimeStatus": "Running", "Execution": int64(1), "Round": int64(1),
			"SnapshotSchemaVersion": int64(snapshotSchema), "RuntimeProvider": provider, "RuntimeInstanceId": "a/1"} {
			if status.Properties[column] != want {
				t.Errorf("%s is %v, want %v", column, status.Properties[column], want)
			}
		}
		started, ok := w.stored(t, "a")[0].start()
		if !ok || !status.Time("CreatedAtUtc").Equal(fromMicros(started.At)) {
			t.Errorf("created at %v, started %+v", status.Time("CreatedAtUtc"), started)
		}
	})
	t.Run("no_instance_creation_on_enqueue", func(t *testing.T) {
		t.Parallel()
		w, plan := newWorld(t), &faults.Plan{}
		rt := w.signalling(t, plan, []AnyOrchestrator{numberLoop(1)}, nil)
		noError(t, errors.Join(rt.Raise(t.Context(), "a", "number", 1, "1"), rt.Suspend(t.Context(), "a", ""), rt.Resume(t.Context(), "a", "")))
		for _, c := range plan.Calls() {
			if c.Operation != "Send" {
				t.Errorf("to send a signal makes the call %v", c)
			}
		}
		if _, err := rt.Get(t.Context(), "a"); !errors.Is(err, ErrNotFound) || len(w.rows(t, "a")) != 0 {
			t.Errorf("%v", err)
		}
	})
	t.Run("sub_orchestration", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t)
		child := NewOrchestrator("child", func(_ *Context, n int) (int, error) { return n + 1, nil })
		o := NewOrchestrator("test", func(ctx *Context, n int) (int, error) { return child.Call(ctx, n).Await() })
		rt := w.runtime(t, nil, []AnyOrchestrator{o, child}, nil)
		parent := mustRun(t, rt, startOf("a", 1))
		out := mustGet(t, rt, parent.Calls[0].Child)
		if out.Parent != "a" || out.Orchestrator != "child" || out.CorrelationID != "corr" || out.Execution != 1 || string(out.Output) != "2" {
			t.Errorf("%+v", out)
		}
		if parent.Parent != "" || !out.StartedAt.After(parent.Calls[0].ScheduledAt) {
			t.Errorf("started %v, called %v", out.StartedAt, parent.Calls[0].ScheduledAt)
		}
		w.stored(t, out.ID)
	})
}
