package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/vibedata/roundhouse/internal/faults"
	"github.com/vibedata/roundhouse/orchestrator"
	"github.com/vibedata/roundhouse/queues"
)

// child counts the cost of a sub-orchestration with a waiting caller, beyond an orchestration without calls.
func child(ctx context.Context, _ *house) (int, error) { return family(ctx, nothing) }

// childTimer counts the same for a sub-orchestration that waits for an hour.
func childTimer(ctx context.Context, _ *house) (int, error) { return family(ctx, anHour) }

func family(ctx context.Context, what string) (int, error) {
	without := newWaitingRoom()
	if _, err := without.start(ctx, "wait", nothing); err != nil {
		return 0, err
	}
	w := newWaitingRoom()
	rt, err := w.start(ctx, "call", what)
	if err != nil {
		return 0, err
	}
	w.ahead = 2 * time.Hour
	for delivered := true; err == nil && delivered; {
		delivered, err = w.deliverAny(ctx, rt)
	}
	n := len(w.count.Calls()) - len(without.count.Calls())
	out, getErr := rt.Get(ctx, "a")
	if getErr == nil && out.Status != orchestrator.Completed {
		getErr = fmt.Errorf("the orchestration did not complete: %+v", out)
	}
	return n, errors.Join(err, getErr)
}

// deliverAny delivers one due signal to a new process, if there is one. Finding none is no error here.
func (w *waitingRoom) deliverAny(ctx context.Context, rt *orchestrator.Runtime) (bool, error) {
	for _, name := range []string{rt.ScheduleQueue(), rt.SignalQueue()} {
		received, err := w.queues.Receive(ctx, name, 1, time.Minute)
		if err != nil {
			return false, err
		}
		if len(received) == 0 {
			continue
		}
		counted := faults.Call{Service: "queues", Operation: "Receive"}
		if err := w.count.Intercept(ctx, counted, func(context.Context) error { return nil }); err != nil {
			return false, err
		}
		s, err := orchestrator.DecodeSignal(queues.Decode(received[0].Text))
		if err != nil {
			return false, err
		}
		if rt, err = w.process(); err != nil {
			return false, err
		}
		_, err = rt.Deliver(ctx, s)
		return true, errors.Join(err, faults.Queues(w.queues, w.count.Intercept).Delete(ctx, name, received[0].ID, received[0].PopReceipt))
	}
	return false, nil
}
