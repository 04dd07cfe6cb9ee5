package engine_test

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"github.com/vibedata/roundhouse/blobs"
	"github.com/vibedata/roundhouse/engine"
	"github.com/vibedata/roundhouse/engine/registry"
	"github.com/vibedata/roundhouse/orchestrator"
	"github.com/vibedata/roundhouse/tables"
)

// counted counts the acquisitions of the lock.
type counted struct {
	*registry.Registry
	acquired int
}

func (c *counted) Acquire(ctx context.Context, instanceID, jobID string, d time.Duration) (registry.Instance, error) {
	c.acquired++
	return c.Registry.Acquire(ctx, instanceID, jobID, d)
}

// attempts makes two attempts at an orchestration that works under the lock, and reports how often it acquired the
// lock.
func attempts(t *testing.T, timeout time.Duration, fn func(*orchestrator.Context) error, activities ...orchestrator.AnyActivity) (acquired int, first, second orchestrator.Outcome) {
	t.Helper()
	store := tables.NewMemory()
	r := &counted{Registry: registry.New(store, "")}
	err := r.CreateTable(t.Context())
	if err == nil {
		_, err = r.Create(t.Context(), registry.Instance{InstanceID: "i1"})
	}
	locks := engine.NewLockSteps("door", r)
	o := orchestrator.NewOrchestrator("door", func(ctx *orchestrator.Context, _ int) (int, error) {
		return 0, engine.Locked(ctx, locks, "i1", time.Hour, fn)
	})
	rt, newErr := orchestrator.New(orchestrator.Config{Tables: store, Blobs: blobs.NewMemory(), Log: slog.New(slog.NewTextHandler(io.Discard, nil)),
		Orchestrators: []orchestrator.AnyOrchestrator{o}, Activities: append(locks.Activities(), activities...)})
	if err := errors.Join(err, newErr); err != nil {
		t.Fatal(err)
	}
	if err := rt.Prepare(t.Context()); err != nil {
		t.Fatal(err)
	}
	outs := make([]orchestrator.Outcome, 2)
	for i := range outs {
		outs[i], err = rt.Run(t.Context(), orchestrator.Start{ID: "door-i1", Orchestrator: "door", Input: json.RawMessage("1"), CorrelationID: "c", WillRetry: true, Timeout: timeout})
		if err != nil {
			t.Fatal(err)
		}
		if err := r.Release(t.Context(), "i1", "door-i1/c"); err != nil { // as the pipeline does after a failure
			t.Fatal(err)
		}
	}
	return r.acquired, outs[0], outs[1]
}

// Work under the lock before an attempt failed is not repeated, and the lock is acquired again for the rest.
func TestTheNextAttemptUnderTheLock(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		done, tried := 0, 0
		first := orchestrator.NewActivity("first", func(context.Context, int) (int, error) { done++; return 0, nil })
		second := orchestrator.NewActivity("second", func(context.Context, int) (int, error) {
			if tried++; tried == 1 {
				return 0, errors.New("jammed")
			}
			return 0, nil
		})
		acquired, before, after := attempts(t, 0, func(ctx *orchestrator.Context) error {
			if _, err := first.Call(ctx, 1).Await(); err != nil {
				return err
			}
			_, err := second.Call(ctx, 1).Await()
			return err
		}, first, second)
		if before.Status != orchestrator.Retrying || after.Status != orchestrator.Completed || acquired != 2 || done != 1 || tried != 2 {
			t.Errorf("%s, then %s; the lock was taken %d times, the first was done %d times, the second %d", before.Status, after.Status, acquired, done, tried)
		}
	})
}

// An attempt that timed out has not released its lock: the next one acquires it, and does not assume that it holds
// it.
func TestTheLockAfterATimeOut(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		acquired, before, after := attempts(t, 30*time.Minute, func(ctx *orchestrator.Context) error { return ctx.Sleep(time.Hour) })
		if before.Status != orchestrator.Retrying || after.Status != orchestrator.Retrying || acquired != 2 {
			t.Errorf("%s, then %s; the lock was taken %d times", before.Status, after.Status, acquired)
		}
	})
}

// A run that waits for a signal is not abandoned because its message could not be acknowledged.
func TestAMessageThatIsNotAcknowledged(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.waits = true
		p := w.Restart(nil)
		w.Send(testQueue, good)
		d := w.Take(testQueue)
		for d.DequeueCount = 1; d.DequeueCount <= engine.DefaultMaxAttempts+1; d.DequeueCount++ {
			if err := p.Handle(t.Context(), d); err != nil {
				t.Fatal(err)
			}
		}
		w.event(t, "c1", 0)
		p.Run()
		w.checkSucceeded(t, "c1")
	})
}

// A dead letter exists before its message could be acknowledged, and an operator retries it: the redelivered message
// does not end the run of the retry.
func TestAMessageThatComesAfterItsRetry(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.turn = func(context.Context) error { return errors.New("jammed") }
		p := w.Restart(nil)
		w.Send(testQueue, good)
		d := w.Take(testQueue)
		for d.DequeueCount = 1; d.DequeueCount < engine.DefaultMaxAttempts; d.DequeueCount++ {
			if err := p.Handle(t.Context(), d); err == nil {
				t.Fatal("it did not fail")
			}
		}
		if err := p.Handle(t.Context(), d); err != nil { // and this acknowledgement is lost
			t.Fatal(err)
		}
		checkDead("jammed")(t, w)
		w.turn = func(ctx context.Context) error {
			d.DequeueCount++
			return w.Restart(nil).Handle(ctx, d)
		}
		w.retry(t, onePending(t, w, "turntable"))
		p.Run()
		if out, err := w.Runtime().Get(t.Context(), "turntable-c1"); err != nil || out.Status != orchestrator.Completed {
			t.Errorf("it is %s, %v", out.Status, err)
		}
	})
}

// An event that arrives before an earlier one of its sender is kept by its receiver until that one arrives.
func TestAnEventThatComesEarly(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.waits = true
		p := w.Restart(nil)
		w.Send(testQueue, good)
		if err := p.Handle(t.Context(), w.Take(testQueue)); err != nil {
			t.Fatal(err)
		}
		say := func(sequence, previous string) {
			t.Helper()
			body := `{"signalId":"s` + sequence + `","workflowInstanceId":"turntable-c1","runtimeProvider":"roundhouse","signalType":"ExternalSignal",
				"payload":{"event":"go","data":1,"stream":"other/1","sequence":` + sequence + previous + `}}`
			w.Send(signalQueue, body)
		}
		say("2", `,"previous":"`+time.Now().UTC().Format(time.RFC3339)+`"`)
		if err := p.HandleSignal(t.Context(), w.Take(signalQueue)); err != nil {
			t.Fatal(err)
		}
		if out, err := w.Runtime().Get(t.Context(), "turntable-c1"); err != nil || out.Status != orchestrator.Running {
			t.Errorf("it is %s, %v", out.Status, err)
		}
		say("1", "")
		p.Run()
		w.checkSucceeded(t, "c1")
	})
}
