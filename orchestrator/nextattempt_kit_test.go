package orchestrator

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"testing"
	"time"

	"github.com/vibedata/roundhouse/internal/faults"
	"github.com/vibedata/roundhouse/queues"
)

const (
	// mostDeliveries is how often the host delivers a message before it abandons it.
	mostDeliveries = 8
	// sweepEvery is how often the host sweeps.
	sweepEvery = 5 * time.Minute
)

// attend is a host with its sweeper for some time: it delivers the due messages, abandons those that fail repeatedly,
// and sweeps.
func (w *world) attend(t *testing.T, rt *Runtime, d time.Duration) {
	t.Helper()
	end, swept := time.Now().Add(d), time.Time{}
	for ; time.Now().Before(end); time.Sleep(time.Minute) {
		if time.Since(swept) >= sweepEvery {
			swept = time.Now()
			noError(t, errorOf(rt.Sweep(t.Context(), 100)))
		}
		for w.deliverOrGiveUp(t, rt) {
		}
	}
}

// deliverOrGiveUp delivers one signal, if one is visible.
func (w *world) deliverOrGiveUp(t *testing.T, rt *Runtime) bool {
	t.Helper()
	s, m, ok := w.receive(t, budget)
	if !ok {
		return false
	}
	ctx, cancel := context.WithTimeout(t.Context(), budget)
	defer cancel()
	_, err := rt.Deliver(ctx, s)
	if err == nil || m.DequeueCount >= mostDeliveries {
		err = w.queues.Delete(t.Context(), signalQueue, m.ID, m.PopReceipt)
	} else {
		_, err = w.queues.Renew(t.Context(), signalQueue, m.ID, m.PopReceipt, patience)
	}
	if err != nil && !errors.Is(err, queues.ErrNotFound) {
		t.Fatal(err)
	}
	return true
}

// deliverDue delivers the visible messages.
func (w *world) deliverDue(t *testing.T, rt *Runtime) {
	t.Helper()
	for w.deliver(t.Context(), t, rt) {
	}
}

// counting returns a runtime that counts the messages that it sends.
func (w *world) counting(t *testing.T, sent *int, orchestrators ...AnyOrchestrator) *Runtime {
	t.Helper()
	count := func(ctx context.Context, c faults.Call, next func(context.Context) error) error {
		if c.Operation == "Send" {
			*sent++
		}
		return next(ctx)
	}
	return w.intercepted(t, count, Config{Orchestrators: orchestrators, ScheduleQueue: signalQueue})
}

// publishing returns a runtime with queues that publishes; without p it does not. A process that has crashed publishes
// nothing.
func (w *world) publishing(t *testing.T, plan *faults.Plan, p *post, orchestrators []AnyOrchestrator, activities []AnyActivity) *Runtime {
	t.Helper()
	if plan == nil {
		plan = &faults.Plan{}
	}
	c := Config{Orchestrators: orchestrators, Activities: activities, Queues: faults.Queues(w.queues, plan.Intercept)}
	if p != nil {
		c.Publish = func(ctx context.Context, events []Publication) error {
			if plan.Crashed() {
				return faults.ErrCrashed
			}
			return p.publish(ctx, events)
		}
	}
	c.Log = slog.New(slog.NewTextHandler(io.Discard, nil))
	return w.configured(t, plan, c)
}

// stands describes the state of an orchestration.
func stands(t *testing.T, rt *Runtime, id string) string {
	t.Helper()
	out, err := rt.Get(t.Context(), id)
	if err != nil {
		return err.Error()
	}
	if out.Failure != nil {
		return fmt.Sprintf("%s: %s", out.Status, out.Failure.Message)
	}
	return fmt.Sprintf("%s %s", out.Status, out.Output)
}

// shownStatus returns the status in the status row.
func shownStatus(t *testing.T, rt *Runtime, id string) Status {
	t.Helper()
	s := must(rt.Status(t.Context(), id))(t)
	return s.Status
}

// secondChances are the ways to run a failed orchestration again.
func secondChances() map[string]func(context.Context, *Runtime) error {
	return map[string]func(context.Context, *Runtime) error{
		"its message comes again": func(ctx context.Context, rt *Runtime) error {
			_, err := rt.Run(ctx, startOf("a", 1))
			return err
		},
		"it is rewound": func(ctx context.Context, rt *Runtime) error {
			_, err := rt.Rewind(ctx, "a", "rewind")
			return err
		},
	}
}

// willRetry returns the start of a caller that repeats it after a failure.
func willRetry(s Start) Start {
	s.WillRetry = true
	return s
}
