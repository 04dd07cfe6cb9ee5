package orchestrator

// The pains of waiting, of load and of endless runs; pains_test.go has the list.

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/vibedata/roundhouse/internal/faults"
	"github.com/vibedata/roundhouse/tables"
)

// A parked orchestration costs nothing: no call while it waits for an event, and a few messages for a timer of any
// length.
func TestPainIdlePolling(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		w, l, plan := newWorld(t), &ledger{}, &faults.Plan{}
		step := l.step("step")
		rt := w.signalling(t, plan, []AnyOrchestrator{stepThenEvent(step)}, []AnyActivity{step})
		mustRun(t, rt, startOf("a", 1))
		before := len(plan.Calls())
		time.Sleep(90 * 24 * time.Hour)
		if calls := plan.Calls()[before:]; len(calls) != 0 || w.waitingMessages(t) != 0 {
			t.Errorf("%d calls and %d messages for an orchestration that waits", len(calls), w.waitingMessages(t))
		}
	})
	synctest.Test(t, func(t *testing.T) {
		w, l, plan := newWorld(t), &ledger{}, &faults.Plan{}
		step := l.step("step")
		const month = 30 * 24 * time.Hour
		rt := w.signalling(t, plan, []AnyOrchestrator{stepThenTimer(step, month)}, []AnyActivity{step})
		begin := time.Now()
		mustRun(t, rt, startOf("a", 1))
		for range 31 {
			time.Sleep(24 * time.Hour)
			w.deliver(t.Context(), t, rt)
		}
		sent := 0
		for _, c := range plan.Calls() {
			if c.Operation == "Send" {
				sent++
			}
		}
		if out := mustGet(t, rt, "a"); out.Status != Completed || sent != 5 || out.EndedAt.Sub(begin) < month {
			t.Errorf("%s after %v and %d messages", out.Status, out.EndedAt.Sub(begin), sent)
		}
		parked := 0
		for _, c := range plan.Calls() {
			if c.Operation == "Apply" && c.Target == "orchestrationsParked" {
				parked++
			}
		}
		if rounds := applies(plan.Calls()) - parked; rounds != 4 || parked != sent { // by which duplicates of a message that is sent in steps are recognised
			t.Errorf("%d rounds, %d writes to the index for %d messages", rounds, parked, sent)
		}
	})
}

// A process that takes over a long history reads it once, page by page, and nothing else.
func TestPainLargeHistories(t *testing.T) {
	t.Parallel()
	w, l := newWorld(t), &ledger{}
	step := l.step("step")
	const steps = 1100
	o := NewOrchestrator("test", func(ctx *Context, n int) (int, error) {
		for i := range n {
			if _, err := step.Call(ctx, i).Await(); err != nil {
				return 0, err
			}
		}
		return Event[int](ctx, "number").Await()
	})
	activities := []AnyActivity{step}
	mustRun(t, w.signalling(t, nil, []AnyOrchestrator{o}, activities), startOf("a", steps))
	plan := &faults.Plan{}
	out, err := w.signalling(t, plan, []AnyOrchestrator{o}, activities).Deliver(t.Context(), eventSignal("a", "1", "number", "7"))
	if err != nil || string(out.Output) != "7" {
		t.Fatalf("%+v %v", out, err)
	}
	query := faults.Call{Service: "tables", Operation: "Query", Target: "orchestrations"}
	apply := faults.Call{Service: "tables", Operation: "Apply", Target: "orchestrations"}
	if diff := cmp.Diff([]faults.Call{query, query, apply}, plan.Calls()); diff != "" {
		t.Errorf("storage calls (-want +got):\n%s", diff)
	}
	for name, n := range l.all() {
		if n != 1 {
			t.Errorf("%s ran %d times", name, n)
		}
	}
}

// Nothing waits for a poll: neither between the steps, nor between an event and its effects.
func TestPainLatency(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		w, l := newWorld(t), &ledger{}
		step := l.step("step")
		begin := time.Now()
		mustRun(t, w.process(t, nil, sequence(step), step), startOf("s", 20))
		rt := w.signalling(t, nil, []AnyOrchestrator{stepThenEvent(step)}, []AnyActivity{step})
		mustRun(t, rt, startOf("a", 100))
		noError(t, rt.Raise(t.Context(), "a", "number", 200, ""))
		w.deliver(t.Context(), t, rt)
		if out := mustGet(t, rt, "a"); out.Status != Completed || time.Since(begin) != 0 {
			t.Errorf("%s after %v", out.Status, time.Since(begin))
		}
	})
}

// Of many processes that start the same singleton at the same moment one succeeds, and the others get an error.
func TestPainSingletonStartRace(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		w, l := newWorld(t), &ledger{}
		step := l.step("step")
		const processes = 16
		var line sync.WaitGroup
		line.Add(processes)
		var results []<-chan ran
		for i := range processes {
			rt := w.intercepted(t, atApply(1, func() { line.Done(); line.Wait() }), Config{Orchestrators: []AnyOrchestrator{sequence(step)}, Activities: []AnyActivity{step}})
			s := startOf("singleton", 1)
			s.CorrelationID = fmt.Sprint("corr", i)
			results = append(results, runInBackground(t.Context(), rt, s))
		}
		completed, refused := 0, 0
		for _, r := range results {
			switch got := <-r; {
			case errors.Is(got.err, ErrConflict):
				refused++
			case got.err == nil && got.out.Status == Completed:
				completed++
			default:
				t.Errorf("%s %v", got.out.Status, got.err)
			}
		}
		if completed != 1 || refused != processes-1 || l.count("step(0)") != 1 {
			t.Errorf("%d completed, %d were refused, calls %v", completed, refused, l.all())
		}
		w.stored(t, "singleton")
	})
}

// A termination ends running work: the activity is notified immediately, and the run does not wait for it.
func TestPainTerminateDoesNotReachActivities(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		w := newWorld(t)
		var told time.Duration
		begin := time.Now()
		long := NewActivity("long", func(ctx context.Context, n int) (int, error) {
			select {
			case <-ctx.Done():
				told = time.Since(begin)
			case <-time.After(10 * time.Hour):
			}
			return n, ctx.Err()
		})
		rt := w.signalling(t, nil, []AnyOrchestrator{sequence(long)}, []AnyActivity{long})
		done := runInBackground(t.Context(), rt, startOf("a", 1))
		time.Sleep(time.Hour)
		noError(t, rt.Terminate(t.Context(), "a", "enough"))
		w.deliver(t.Context(), t, rt)
		if got := <-done; got.err != nil || got.out.Status != Terminated || told != time.Hour {
			t.Errorf("%+v, the activity was told after %v", got, told)
		}
		w.stored(t, "a")
	})
}

// An activity that ignores its timeout fails nevertheless, and does not block its orchestration for ever.
func TestPainActivityThatNeverEnds(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		w, release := newWorld(t), make(chan struct{})
		defer close(release)
		deaf := NewActivity("deaf", func(context.Context, int) (int, error) { <-release; return 0, nil }, WithTimeout(time.Minute))
		ctx, cancel := context.WithTimeout(t.Context(), budget)
		defer cancel()
		out, err := w.process(t, nil, sequence(deaf), deaf).Run(ctx, startOf("a", 1))
		if err != nil || out.Status != Failed || !strings.Contains(out.Failure.Message, "no result within 1m0s") {
			t.Errorf("%s %v %v: an activity that has not returned within its time-out has not failed", out.Status, out.Failure, err)
		}
	})
}

// A timer's signal that is redelivered repeatedly, before and after the end, writes nothing and sends nothing.
func TestPainTimerFiredLoop(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		w, l := newWorld(t), &ledger{}
		step := l.step("step")
		rt := w.signalling(t, nil, []AnyOrchestrator{stepThenTimer(step, time.Hour)}, []AnyActivity{step})
		mustRun(t, rt, startOf("a", 1))
		time.Sleep(time.Hour + time.Second) // queues round up
		fired, message, ok := w.receive(t, time.Hour)
		if !ok || fired.Type != TimerDue {
			t.Fatalf("%+v", fired)
		}
		noError(t, errorOf(rt.Deliver(t.Context(), fired)))
		noError(t, w.queues.Delete(t.Context(), signalQueue, message.ID, message.PopReceipt))
		before := w.rows(t, "a")
		for range 50 {
			if out, err := rt.Deliver(t.Context(), fired); err != nil || out.Status != Completed {
				t.Fatalf("%+v %v", out, err)
			}
		}
		w.unchanged(t, "a", before)
		if w.waitingMessages(t) != 0 || l.count("step(2)") != 1 {
			t.Errorf("%d messages, calls %v", w.waitingMessages(t), l.all())
		}
	})
}

// A process that dies leaves nothing that has to expire: the next one continues immediately.
func TestPainOrphanedLock(t *testing.T) {
	t.Parallel()
	everyFault(t, func(t *testing.T, plan *faults.Plan) {
		w, l := newWorld(t), &ledger{}
		step := l.step("step")
		_, _ = w.process(t, plan, sequence(step), step).Run(t.Context(), startOf("a", 3)) // it may die
		begin := time.Now()
		out := mustRun(t, w.process(t, nil, sequence(step), step), startOf("a", 3))
		if out.Status != Completed || time.Since(begin) != 0 {
			t.Errorf("%s after %v", out.Status, time.Since(begin))
		}
	})
}

// A lost race for a round is normal: it is no error and no warning, and it is counted.
func TestPainConflictNoise(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		var log bytes.Buffer
		logger := slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelWarn}))
		slow, got := overtaken(t, newWorld(t), &ledger{}, 2, 0, logger)
		if want := (Counts{Conflicts: 1}); got.err != nil || slow.Counts() != want {
			t.Errorf("%v, counted %+v", got.err, slow.Counts())
		}
		if log.Len() != 0 {
			t.Errorf("a lost race is logged:\n%s", &log)
		}
	})
}

// Blobs that a committed round names exist, wherever a process died, and regardless of late messages.
func TestPainLateDuplicateWithoutBlob(t *testing.T) {
	t.Parallel()
	large := strings.Repeat("x", spillFrom)
	everyFault(t, func(t *testing.T, plan *faults.Plan) {
		w, l := newWorld(t), &ledger{}
		grow := NewActivity("grow", func(_ context.Context, s string) (string, error) {
			l.add("grow")
			return s + large, nil
		})
		o := NewOrchestrator("test", func(ctx *Context, s string) (int, error) {
			out, err := grow.Call(ctx, s).Await()
			return len(out), err
		})
		_, _ = w.process(t, plan, o, grow).Run(t.Context(), startOf("a", large)) // it may die
		w.stored(t, "a")
		for range 2 {
			next := w.process(t, nil, o, grow)
			if out := mustRun(t, next, startOf("a", large)); string(out.Output) != fmt.Sprint(2*spillFrom) {
				t.Errorf("%s %s", out.Status, out.Output)
			}
			if out := mustGet(t, next, "a"); len(out.Calls) != 1 || len(out.Calls[0].Output) < 2*spillFrom {
				t.Errorf("read back: %d calls", len(out.Calls))
			}
		}
	})
}

// A termination that arrives before its start waits for the start.
func TestPainTerminateOfPending(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		w, l := newWorld(t), &ledger{}
		step := l.step("step")
		rt := w.signalling(t, nil, []AnyOrchestrator{stepThenEvent(step)}, []AnyActivity{step})
		noError(t, rt.Terminate(t.Context(), "a", "changed my mind"))
		s, _, _ := w.receive(t, time.Second)
		if _, err := rt.Deliver(t.Context(), s); !errors.Is(err, ErrNotFound) || len(w.rows(t, "a")) != 0 {
			t.Errorf("a termination without an orchestration: %v", err)
		}
		mustRun(t, rt, startOf("a", 1))
		time.Sleep(time.Second)
		w.settle(t, rt)
		out := mustGet(t, rt, "a")
		if out.Status != Terminated || !strings.Contains(out.Failure.Message, "changed my mind") {
			t.Errorf("%+v", out)
		}
		if _, err := w.tables.Get(t.Context(), "orchestrations", tables.Key{Partition: "a", Row: statusRow}); err != nil {
			t.Error(err)
		}
	})
}
