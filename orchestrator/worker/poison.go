package worker

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/vibedata/roundhouse/orchestrator"
	"github.com/vibedata/roundhouse/queues"
)

const (
	// poisonSuffix names a poison queue, as the Functions host does, and deadSuffix a dead-letter queue.
	poisonSuffix = "-poison"
	deadSuffix   = "-dead-letters"
	// poisonDequeueCount is the number of deliveries of a message of a poison queue.
	poisonDequeueCount = 2
	// poisonPollFactor multiplies the poll interval of a poison queue.
	poisonPollFactor = 10
)

// signal handles a message of the signal queue or of the schedule queue.
func (w *Worker) signal(ctx context.Context, body []byte) error {
	s, err := orchestrator.DecodeSignal(body)
	if err != nil {
		return err
	}
	_, err = w.runtime.Deliver(ctx, s)
	return err
}

// giveUpSignal fails an orchestration that crashes the process, and notifies its waiters. The signal itself is
// dead-lettered anyway: errors such as ErrNotFound mean that no orchestration is left to fail.
func (w *Worker) giveUpSignal(ctx context.Context, body []byte, cause error) error {
	s, err := orchestrator.DecodeSignal(body)
	if err != nil {
		return err
	}
	out, err := w.runtime.Get(ctx, s.InstanceID)
	if err != nil {
		return err
	}
	if err := w.runtime.GiveUp(ctx, out.ID, out.CorrelationID, cause); err != nil {
		return err
	}
	return w.runtime.Send(ctx, orchestrator.Signal{InstanceID: out.ID, Type: orchestrator.InternalContinue})
}

// giveUpActivities fails activities, so that their orchestration handles the failure.
func (w *Worker) giveUpActivities(ctx context.Context, body []byte, cause error) error {
	return w.runtime.GiveUpActivities(ctx, body, cause.Error())
}

// giveUp abandons a message and removes it. After a transient error the message is redelivered.
func (l *listener) giveUp(ctx context.Context, m queues.Message, cause error) {
	call, cancel := detached(ctx)
	defer cancel()
	err := l.work.giveUp(call, queues.Decode(m.Text), cause)
	switch {
	case err != nil && passes(err):
		l.release(ctx, m, m.PopReceipt, l.config.RetryDelay)
	case err != nil || !l.work.failsForGood:
		l.move(ctx, m, l.dead, errors.Join(cause, err))
	default:
		l.log.ErrorContext(ctx, "a message is given up", "messageId", m.ID, "error", cause.Error())
		l.delete(ctx, m)
	}
}

// move puts a message into another queue.
func (l *listener) move(ctx context.Context, m queues.Message, queue string, reason error) {
	call, cancel := detached(ctx)
	defer cancel()
	if err := l.copyTo(call, queue, m); err != nil {
		l.log.ErrorContext(ctx, "a message cannot be moved: it comes again", "messageId", m.ID, "to", queue, "error", err.Error())
		l.release(ctx, m, m.PopReceipt, longestRetry)
		return
	}
	l.log.ErrorContext(ctx, "a message is moved", "messageId", m.ID, "to", queue, "dequeueCount", m.DequeueCount, "error", reason.Error())
	l.delete(ctx, m)
}

// textSender is a store that can also send a text unchanged: a dead letter has to equal the received message.
type textSender interface {
	SendText(ctx context.Context, queue, text string, delay time.Duration) (id string, err error)
}

func (l *listener) copyTo(ctx context.Context, queue string, m queues.Message) error {
	if raw, ok := l.store.(textSender); ok {
		_, err := raw.SendText(ctx, queue, m.Text, 0)
		return err
	}
	if _, err := l.store.Send(ctx, queue, queues.Decode(m.Text), 0); err != nil {
		return fmt.Errorf("copy message %s: %w", m.ID, err)
	}
	return nil
}
