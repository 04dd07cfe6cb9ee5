package main

import (
	"context"
	"time"

	enginehealth "github.com/vibedata/roundhouse/engine/health"
	"github.com/vibedata/roundhouse/engine/updatepublisher"
	"github.com/vibedata/roundhouse/handler/trigger"
)

// slots are the timer functions of the deployment context that ask engines for runs.
func slots(d deployment, st stores) map[string]trigger.Timer {
	if d == managedApp {
		return map[string]trigger.Timer{"health-timer": onSlot(enginehealth.Ticker{Instances: st.registry, Queues: st.queues}.Tick)}
	}
	return map[string]trigger.Timer{"update-publisher-timer": onSlot(func(ctx context.Context, slot time.Time) error {
		return updatepublisher.Tick(ctx, st.queues, slot)
	})}
}

// onSlot hands a timer's slot on: when it was due, or, in a run by hand, when it fired.
func onSlot(tick func(context.Context, time.Time) error) trigger.Timer {
	return trigger.Timer{Parameter: timerParameter, Handle: func(ctx context.Context, d trigger.TimerDelivery) error {
		for _, slot := range []time.Time{d.ScheduledAt, d.FiredAt} {
			if !slot.IsZero() {
				return tick(ctx, slot)
			}
		}
		return tick(ctx, time.Now())
	}}
}
