package worker

import (
	"context"
	"time"

	"github.com/vibedata/roundhouse/queues"
)

// announcing is a queue store that tells of the messages that this process sends and that are visible at once, so that it
// does not wait for its own next poll.
type announcing struct {
	queues.Store
	tell func(queue string)
}

// Send sends a message and tells of it.
func (a announcing) Send(ctx context.Context, queue string, body []byte, delay time.Duration) (string, error) {
	id, err := a.Store.Send(ctx, queue, body, delay)
	if err == nil && delay <= 0 {
		a.tell(queue)
	}
	return id, err
}

// wake lets the listener of a queue look at once.
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
