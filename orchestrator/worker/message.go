package worker

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/vibedata/roundhouse/internal/durations"
	"github.com/vibedata/roundhouse/orchestrator"
	"github.com/vibedata/roundhouse/queues"
	"github.com/vibedata/roundhouse/tables"
)

// longestRetry bounds the delay of a message that fails repeatedly.
const longestRetry = 10 * time.Minute

// errDied is the reason why a message is poison.
var errDied = errors.New("the process died each time that it worked on the message")

// work handles the messages of a queue.
type work struct {
	// handle handles a message; nil means that it may be deleted.
	handle func(ctx context.Context, body []byte) error
	// giveUp abandons a message because of cause.
	giveUp func(ctx context.Context, body []byte, cause error) error
	// failsForGood means that a message that keeps failing is abandoned, too, even if the process survives.
	failsForGood bool
}

// take handles one message from receipt to settlement.
func (l *listener) take(ctx, working context.Context, m queues.Message) {
	switch {
	case ctx.Err() != nil: // received while the worker was stopping: release it immediately for another worker
		l.release(working, m, m.PopReceipt, 0)
	case m.DequeueCount > int64(l.config.MaxDequeueCount) && l.poison != "":
		l.move(working, m, l.poison, errDied)
	case m.DequeueCount > int64(l.config.MaxDequeueCount):
		l.giveUp(working, m, fmt.Errorf("message %s: %w, also with this one alone", m.ID, errDied))
	default:
		body := queues.Decode(m.Text)
		shown := l.hide(working, m)
		err := l.work.handle(working, body)
		m.PopReceipt = shown()
		l.settle(working, m, body, err)
	}
}

// settle deletes, delays or moves a message after its work.
func (l *listener) settle(ctx context.Context, m queues.Message, body []byte, failure error) {
	switch {
	case failure == nil:
		l.delete(ctx, m)
	case ctx.Err() != nil:
		l.release(ctx, m, m.PopReceipt, 0)
	case passes(failure):
		delay := l.config.RetryDelay
		if early, ok := errors.AsType[*orchestrator.EarlyError](failure); ok {
			delay = early.After
		}
		l.putBack(ctx, m, body, delay, failure)
	case errors.Is(failure, orchestrator.ErrSignal), errors.Is(failure, orchestrator.ErrBatch), errors.Is(failure, orchestrator.ErrNotFound):
		l.move(ctx, m, l.dead, failure)
	case m.DequeueCount < int64(l.config.MaxDequeueCount):
		l.log.WarnContext(ctx, "a message failed: it comes again", "messageId", m.ID, "dequeueCount", m.DequeueCount, "error", failure.Error())
		l.release(ctx, m, m.PopReceipt, l.retryDelay(m.DequeueCount))
	case l.work.failsForGood:
		l.giveUp(ctx, m, fmt.Errorf("message %s was received %d times, and failed each time: %w", m.ID, m.DequeueCount, failure))
	default:
		l.move(ctx, m, l.dead, failure)
	}
}

// passes reports whether an error is transient: another process drives the orchestration, it is not started yet, or
// storage is throttled or unavailable.
func passes(err error) bool {
	for _, passing := range []error{orchestrator.ErrElsewhere, orchestrator.ErrEarly, tables.ErrThrottled, tables.ErrOutcomeUnknown, tables.ErrDenied,
		context.Canceled, context.DeadlineExceeded} {
		if errors.Is(err, passing) {
			return true
		}
	}
	return false
}

// retryDelay returns the delay after the nth failure of a message.
func (l *listener) retryDelay(n int64) time.Duration {
	return durations.Doubled(l.config.RetryDelay, int(min(n-1, 16)), longestRetry)
}

// putBack requeues the message with a delay, so that this attempt does not count.
func (l *listener) putBack(ctx context.Context, m queues.Message, body []byte, delay time.Duration, reason error) {
	call, cancel := detached(ctx)
	defer cancel()
	if _, err := l.store.Send(call, l.queue, body, delay); err != nil {
		l.release(ctx, m, m.PopReceipt, delay)
		return
	}
	l.log.DebugContext(ctx, "a message is put back", "messageId", m.ID, "error", reason.Error())
	l.delete(ctx, m)
}

func (l *listener) delete(ctx context.Context, m queues.Message) {
	call, cancel := detached(ctx)
	defer cancel()
	if err := l.store.Delete(call, l.queue, m.ID, m.PopReceipt); err != nil {
		l.log.WarnContext(ctx, "a message cannot be deleted: it comes again, and is known", "messageId", m.ID, "error", err.Error())
	}
}

// release makes a message visible again after a delay.
func (l *listener) release(ctx context.Context, m queues.Message, receipt string, delay time.Duration) {
	call, cancel := detached(ctx)
	defer cancel()
	if _, err := l.store.Renew(call, l.queue, m.ID, receipt, delay); err != nil {
		l.log.WarnContext(ctx, "a message cannot be released: it comes again when it is visible", "messageId", m.ID, "error", err.Error())
	}
}

// hide keeps a message hidden until shown is called, which returns the current pop receipt. A failed renewal is
// retried soon.
func (l *listener) hide(ctx context.Context, m queues.Message) (shown func() (receipt string)) {
	done, receipts := make(chan struct{}), make(chan string)
	go func() {
		receipt, wait := m.PopReceipt, l.config.Visibility/2
		timer := time.NewTimer(wait)
		defer timer.Stop()
		for {
			select {
			case <-done:
				receipts <- receipt
				return
			case <-timer.C:
			}
			call, cancel := detached(ctx)
			renewed, err := l.store.Renew(call, l.queue, m.ID, receipt, l.config.Visibility)
			cancel()
			if wait = l.config.Visibility / 2; err == nil {
				receipt = renewed
			} else {
				l.log.WarnContext(ctx, "a message cannot be kept hidden: another worker may take it, too", "messageId", m.ID, "error", err.Error())
				wait = l.config.Visibility / 10
			}
			timer.Reset(wait)
		}
	}()
	return func() string {
		close(done)
		return <-receipts
	}
}
