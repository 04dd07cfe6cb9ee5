package localhost

import (
	"context"
	"time"

	"github.com/vibedata/roundhouse/queues"
)

// keepHidden renews a message at half of its visibility, and sooner after a failed renewal, until stop is called, which
// returns the current pop receipt.
func (l *listener) keepHidden(ctx context.Context, m queues.Message) (stop func() (receipt string)) {
	done, receipts := make(chan struct{}), make(chan string)
	go func() { receipts <- l.renew(ctx, m, done) }()
	return func() string {
		close(done)
		return <-receipts
	}
}

func (l *listener) renew(ctx context.Context, m queues.Message, done <-chan struct{}) (receipt string) {
	normal, soonest := l.visibility/2, l.visibility/10
	wait, receipt := normal, m.PopReceipt
	timer := time.NewTimer(wait)
	defer timer.Stop()
	for {
		select {
		case <-done:
			return receipt
		case <-timer.C:
		}
		// Completed even when the host stops: without the receipt the message could not be settled.
		call, cancel := detached(ctx)
		renewed, err := l.store.Renew(call, l.queue, m.ID, receipt, l.visibility)
		cancel()
		if err != nil {
			l.log.Warn("message cannot be kept hidden, another host may run it too", "queue", l.queue, "message", m.ID, "error", err)
			wait = max(wait/2, soonest)
		} else {
			receipt, wait = renewed, normal
		}
		timer.Reset(wait)
	}
}
