package localhost

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"github.com/vibedata/roundhouse/queues"
)

// storageTimeout bounds a storage call that continues when the host stops.
const storageTimeout = 30 * time.Second

// listener receives messages from one queue and runs one function for each, by the rules of the real host's queue
// extension.
type listener struct {
	function   string
	queue      string
	store      queues.Store
	options    queueOptions
	visibility time.Duration // how long a received message is hidden, renewed while it runs
	shortest   time.Duration // the shortest wait between polls
	// run invokes the function; after an error the message is redelivered.
	run     func(ctx context.Context, d queueDelivery) (invocationID string, err error)
	observe func(Invocation)
	now     func() time.Time
	log     *slog.Logger
}

// poisonQueue returns the queue for messages whose attempts are used up; empty for a queue without one.
func poisonQueue(queue string) string {
	const suffix, longestName = "-poison", 63
	if strings.HasSuffix(queue, suffix) || len(queue)+len(suffix) > longestName {
		return ""
	}
	return queue + suffix
}

// listen works until ctx ends and every received message is settled.
func (l *listener) listen(ctx context.Context) {
	running, finished := 0, make(chan struct{})
	wait := newBackoff(l.shortest, l.options.maxPolling)
	var lastProblem string
	for ctx.Err() == nil {
		if running > l.options.newThreshold {
			select {
			case <-finished:
				running--
			case <-ctx.Done():
			}
			continue
		}
		messages, err := l.receive(ctx)
		if err != nil && err.Error() != lastProblem {
			l.log.Warn("queue cannot be read, trying on", "queue", l.queue, "function", l.function, "error", err)
			lastProblem = err.Error()
		}
		if err == nil {
			lastProblem = ""
		}
		for _, m := range messages {
			running++
			go func() {
				l.handle(ctx, m)
				finished <- struct{}{}
			}()
		}
		if len(messages) > 0 {
			wait.reset()
			continue
		}
		running -= rest(ctx, wait.next(), finished)
	}
	for range running {
		<-finished
	}
}

// rest waits, and counts the messages that finish meanwhile.
func rest(ctx context.Context, d time.Duration, finished <-chan struct{}) (count int) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	for {
		select {
		case <-finished:
			count++
		case <-timer.C:
			return count
		case <-ctx.Done():
			return count
		}
	}
}

// receive continues when the host stops: messages may be hidden already, and would be lost to all consumers until their
// visibility ends.
func (l *listener) receive(ctx context.Context) ([]queues.Message, error) {
	call, cancel := detached(ctx)
	defer cancel()
	return l.store.Receive(call, l.queue, l.options.batchSize, l.visibility)
}

func detached(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.WithoutCancel(ctx), storageTimeout)
}

// handle handles one message: it runs or refuses it, and then deletes, requeues or moves it.
func (l *listener) handle(ctx context.Context, m queues.Message) {
	if ctx.Err() != nil {
		// Received while the host was stopping: requeue it immediately for another host.
		l.release(ctx, m, m.PopReceipt, 0)
		return
	}
	begin := l.now()
	invocation := Invocation{Function: l.function, Trigger: queueTrigger, MessageID: m.ID, DequeueCount: m.DequeueCount}
	var receipt string
	invocation.ID, receipt, invocation.Err = l.attempt(ctx, m)
	invocation.Duration = l.now().Sub(begin)
	invocation.Outcome = l.settle(ctx, m, receipt, invocation.Err)
	l.observe(invocation)
}

// Reasons to move a message without running it.
var (
	errAttemptsUsedUp = errors.New("the message was dequeued more often than maxDequeueCount allows, as when the host died with it")
	errNotBase64      = errors.New("the message is not base64, which host.json's messageEncoding requires")
)

// attempt runs the function if the message has attempts left, and returns the current pop receipt.
func (l *listener) attempt(ctx context.Context, m queues.Message) (id, receipt string, err error) {
	if m.DequeueCount > int64(l.options.maxDequeue) {
		return "", m.PopReceipt, errAttemptsUsedUp
	}
	body := []byte(m.Text)
	if l.options.base64 {
		if body, err = base64.StdEncoding.DecodeString(m.Text); err != nil {
			return "", m.PopReceipt, errNotBase64
		}
	}
	stop := l.keepHidden(ctx, m)
	id, err = l.run(ctx, queueDelivery{
		id: m.ID, popReceipt: m.PopReceipt, dequeueCount: m.DequeueCount,
		inserted: m.InsertedAt, expires: m.ExpiresAt, nextVisible: m.NextVisibleAt, body: body,
	})
	return id, stop(), err
}

// settle settles a message after its attempt.
func (l *listener) settle(ctx context.Context, m queues.Message, receipt string, failure error) Outcome {
	if failure == nil {
		l.delete(ctx, m, receipt)
		return Succeeded
	}
	poison := poisonQueue(l.queue)
	if poison == "" {
		// Leave it hidden: without a poison queue, this keeps a failing message from spinning.
		return Failed
	}
	if errors.Is(failure, ErrStopped) {
		l.release(ctx, m, receipt, 0) // no handler has seen it
		return Failed
	}
	final := m.DequeueCount >= int64(l.options.maxDequeue) || errors.Is(failure, errNotBase64)
	if !final {
		l.release(ctx, m, receipt, l.options.retryVisibility)
		return Failed
	}
	if err := l.move(ctx, m, poison); err != nil {
		l.log.Error("message cannot be moved, it comes again later", "queue", l.queue, "message", m.ID, "error", err)
		return Failed
	}
	l.log.Warn("message moved to the poison queue", "queue", poison, "message", m.ID, "dequeueCount", m.DequeueCount, "reason", failure)
	l.delete(ctx, m, receipt)
	return Poisoned
}

// move copies a message to the poison queue, which is created on demand.
func (l *listener) move(ctx context.Context, m queues.Message, poison string) error {
	call, cancel := detached(ctx)
	defer cancel()
	if err := l.store.CreateQueue(call, poison); err != nil {
		return fmt.Errorf("create queue %s: %w", poison, err)
	}
	if _, err := copyText(call, l.store, poison, m.Text); err != nil {
		return fmt.Errorf("copy message %s to %s: %w", m.ID, poison, err)
	}
	return nil
}

// textSender is a store that can also send a text without encoding it.
type textSender interface {
	SendText(ctx context.Context, queue, text string, delay time.Duration) (id string, err error)
}

// copyText sends the same text to another queue; a store that always encodes gets the decoded body.
func copyText(ctx context.Context, store queues.Store, queue, text string) (id string, err error) {
	if raw, ok := store.(textSender); ok {
		return raw.SendText(ctx, queue, text, 0)
	}
	return store.Send(ctx, queue, queues.Decode(text), 0)
}

func (l *listener) delete(ctx context.Context, m queues.Message, receipt string) {
	call, cancel := detached(ctx)
	defer cancel()
	if err := l.store.Delete(call, l.queue, m.ID, receipt); err != nil {
		l.log.Warn("message cannot be deleted, it may run again", "queue", l.queue, "message", m.ID, "error", err)
	}
}

func (l *listener) release(ctx context.Context, m queues.Message, receipt string, delay time.Duration) {
	call, cancel := detached(ctx)
	defer cancel()
	if _, err := l.store.Renew(call, l.queue, m.ID, receipt, delay); err != nil {
		l.log.Warn("message cannot be released, it comes again when it is visible", "queue", l.queue, "message", m.ID, "error", err)
	}
}
