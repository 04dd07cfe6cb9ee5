package worker

import (
	"context"
	"time"

	"github.com/vibedata/roundhouse/queues"
)

// announcing is a queue store that wakes the listener for each message that this process sends for immediate
// delivery. The listener does not wait for its next poll then.
type announcing struct {
	queues.Store
	tell func(queue string)
}

// Send sends a message and wakes its listener.
func (a announcing) Send(ctx context.Context, queue string, body []byte, delay time.Duration) (string, error) {
	id, err := a.Store.Send(ctx, queue, body, delay)
	if err == nil && delay <= 0 {
		a.tell(queue)
	}
	return id, err
}

// wake makes the listener of a queue poll immediately.
func (w *Worker) wake(queue string) {
	for _, l := range w.listeners {
		if l.queue != queue {
			continue
		}
		select {
		case l.woken <- struct{}{}:
		default: // it knows already
		}
	}
}
