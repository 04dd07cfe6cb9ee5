package handler

import (
	"context"
	"errors"
	"time"

	"github.com/vibedata/roundhouse/codec"
	"github.com/vibedata/roundhouse/engine"
	"github.com/vibedata/roundhouse/handler/settings"
	"github.com/vibedata/roundhouse/handler/trigger"
)

// serveDirect makes the process handle immediately the messages that it sends to the queues of engines, of signals
// and of delayed messages. Activities that any process may run are left to the hosts, which share them out, and so
// are the messages of schedules and pollers: they come in bursts, and no caller waits for them.
//
// Only deliveries by a host count as a sign that a host listens to the queue of signals.
func (p *parts) serveDirect(out *program) {
	if p.settings.Direct == 0 {
		return
	}
	handlers := map[string]trigger.QueueHandler{"orchestration-signal-trigger": p.pipeline.HandleSignal, "orchestration-schedule-trigger": p.pipeline.HandleSignal}
	for _, d := range p.definitions {
		handlers[d.QueueFunction()] = p.pipeline.Handle
	}
	run := trigger.NewDirect(trigger.Config{Budget: p.settings.Budget, Ready: p.preparation.Await, Gate: out.Gate, Observe: out.Observe, Log: p.log})
	for name, handle := range handlers {
		if settings.Disabled(p.reader, name) {
			continue // an operator has disabled the work, and not only the host's trigger
		}
		queue := out.Queues[name].Queue
		p.direct.Serve(queue, func(ctx context.Context, d engine.Delivery, putBack func(context.Context, time.Duration) error) error {
			q := trigger.Queue{Queue: queue, Handle: handle,
				PutBack: func(ctx context.Context, _ engine.Delivery, away time.Duration) error { return putBack(ctx, away) }}
			err := run.Run(ctx, name, q, d)
			if errors.Is(err, codec.ErrKey) && p.sealed.runtime[queue] {
				return putBack(ctx, unreadDelay) // as for a host's delivery: an unavailable key uses up no attempt
			}
			return err
		})
	}
}
