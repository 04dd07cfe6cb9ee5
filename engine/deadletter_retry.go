package engine

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"

	"github.com/vibedata/roundhouse/queues"
	"github.com/vibedata/roundhouse/tables"
)

// noQueue is the OriginalQueue of an engine without a queue (standard, section 2).
const noQueue = "N/A"

// retriedNote is the note on a dead letter that was sent again (standard, section 3).
const retriedNote = "Retried"

// editedNote is the note on a dead letter whose message was edited before.
const editedNote = "Retried with an edited message"

// RetryFunc restarts the work of a dead letter that did not come from a queue: through an engine's start, or in an
// outbox. It may be called more than once with one DeadLetter.RetryID, and must then do the work once. It returns the
// id of the message that it made. An error that wraps ErrNotRetryable is final.
type RetryFunc func(ctx context.Context, letter DeadLetter) (messageID string, err error)

// RetrierConfig configures a Retrier. The first two fields are required.
type RetrierConfig struct {
	DeadLetters *DeadLetters
	Queues      queues.Store
	// Starts are the RetryFuncs of the engines, or other owners of dead letters, whose messages have no queue.
	Starts map[string]RetryFunc
	// CheckEdit returns the reason why a message cannot be sent in place of the original one, as Pipeline.CheckEdit
	// does; without it, edited messages are refused.
	CheckEdit func(ctx context.Context, letter DeadLetter, message []byte) error
	// Now is the clock; default time.Now.
	Now func() time.Time
}

// Retrier sends dead letters again (standard, section 3). It claims a dead letter with a retry id, sends its message
// with that id, and resolves it with the note "Retried" and the id of the queue message. Repeating a retry, also
// after a crash, continues with the same retry id. The message keeps its message id and gets the time of the claim as
// its insertion time. So a receiver recognises two copies, and a run of it that fails again leaves one dead letter,
// which refers to this one as its parent. A Retrier is safe for concurrent use.
type Retrier struct{ config RetrierConfig }

// NewRetrier checks the configuration.
func NewRetrier(c RetrierConfig) (*Retrier, error) {
	if c.DeadLetters == nil || c.Queues == nil {
		return nil, errors.New("retrier: dead letters and queues are required")
	}
	if c.Now == nil {
		c.Now = time.Now
	}
	return &Retrier{c}, nil
}

// Retry sends a dead letter again and returns it with its RetryID and its RetryMessageID. Repeating the call changes
// nothing and returns the same. The errors are ErrNotFound, ErrState when the dead letter was resolved or expired
// otherwise, ErrNotRetryable, and those of storage.
func (r *Retrier) Retry(ctx context.Context, engine, rowKey, by string) (DeadLetter, error) {
	letter, err := r.retry(ctx, engine, rowKey, by, nil)
	if err != nil {
		return DeadLetter{}, fmt.Errorf("retry dead letter: %w", err)
	}
	return letter, nil
}

// retry sends the edited message, or the original one for nil.
func (r *Retrier) retry(ctx context.Context, engine, rowKey, by string, edit *Edit) (DeadLetter, error) {
	claimed, err := r.config.DeadLetters.change(ctx, engine, rowKey, func(l *DeadLetter) (bool, error) {
		switch {
		case (l.retried() || l.Status == StatusPending && l.RetryID != "") && !edit.isOf(*l):
			return false, fmt.Errorf("%w, at %s", ErrOtherMessage, l.RetriedAtUtc.Format(time.RFC3339))
		case l.retried():
			return false, nil
		case l.Status != StatusPending:
			return false, fmt.Errorf("%w: it is %s", ErrState, l.Status)
		case l.RetryID != "":
			return false, nil // a retry was claimed and not finished, so this one continues it
		}
		if edit != nil {
			if edit.IfMatch != "" && edit.IfMatch != l.ETag {
				return false, ErrChanged
			}
			l.SentMessage = edit.Message
		}
		if err := r.whyNotRetryable(*l); err != nil {
			return false, err
		}
		l.RetryID, l.RetriedBy = uuid.NewString(), clip(by, MaxIdentity)
		l.RetriedAtUtc = truncateMicros(r.config.Now())
		if !l.RetriedAtUtc.After(l.InsertedAtUtc) {
			l.RetriedAtUtc = truncateMicros(l.InsertedAtUtc).Add(time.Microsecond) // the two messages must have different times
		}
		return true, nil
	})
	if err != nil || claimed.retried() {
		return claimed, err
	}
	messageID, err := r.send(ctx, claimed)
	if err != nil {
		return DeadLetter{}, fmt.Errorf("send %s/%s again: %w", engine, rowKey, err)
	}
	return r.config.DeadLetters.change(ctx, engine, rowKey, func(l *DeadLetter) (bool, error) {
		switch {
		case l.retried():
			return false, nil // another process has finished the retry
		case l.Status != StatusPending || l.RetryID != claimed.RetryID:
			return false, fmt.Errorf("%w: somebody has decided otherwise while its message was sent again", ErrState)
		}
		l.Status, l.ResolutionNotes, l.RetryMessageID = StatusResolved, retriedNote, messageID
		if l.SentMessage != nil {
			l.ResolutionNotes = editedNote
		}
		l.ResolvedAtUtc, l.ResolvedBy = truncateMicros(r.config.Now()), l.RetriedBy
		return true, nil
	})
}

// retried reports whether the message was sent again.
func (d DeadLetter) retried() bool { return d.Status == StatusResolved && d.RetryMessageID != "" }

// whyNotRetryable returns why a dead letter cannot be sent again, nil when it can.
func (r *Retrier) whyNotRetryable(l DeadLetter) error {
	if r.config.Starts[l.Engine] != nil {
		return nil
	}
	if l.OriginalQueue == "" || l.OriginalQueue == noQueue {
		return fmt.Errorf("%w: it came from no queue, and no start of the engine %s is registered", ErrNotRetryable, l.Engine)
	}
	body, err := l.retryBody()
	if err == nil && len(body) > queues.MaxBody {
		err = fmt.Errorf("%w: with what a retry adds it has %d bytes, of which a queue takes %d", ErrNotRetryable, len(body), queues.MaxBody)
	}
	return err
}

func (r *Retrier) send(ctx context.Context, l DeadLetter) (string, error) {
	if start := r.config.Starts[l.Engine]; start != nil {
		return start(ctx, l)
	}
	body, err := l.retryBody()
	if err != nil {
		return "", err
	}
	id, err := r.config.Queues.Send(ctx, l.OriginalQueue, body, 0)
	if errors.Is(err, tables.ErrNotFound) {
		return "", fmt.Errorf("%w: there is no queue %s", ErrNotRetryable, l.OriginalQueue)
	}
	return id, err
}

// retryBody returns the message with a header that identifies the retry.
func (d DeadLetter) retryBody() ([]byte, error) {
	mark, body := &retryInfo{ID: d.RetryID, Parent: d.RowKey, Count: d.RetryCount + 1}, d.OriginalMessage
	if d.SentMessage != nil {
		mark.Edited, body = editOf(d.OriginalMessage), d.SentMessage
	}
	return header{MessageID: d.MessageID, InsertedAt: d.RetriedAtUtc, Retry: mark}.prepend(body)
}

// FailedAgain reports whether the retry of a dead letter has failed and left another dead letter. Retries that did not
// go through a queue are not followed.
func (d *DeadLetters) FailedAgain(ctx context.Context, engine, row string) (bool, error) {
	letter, err := d.Get(ctx, engine, row)
	if err != nil || !letter.retried() {
		return false, err
	}
	for _, at := range []time.Time{letter.RetriedAtUtc, letter.RetriedAtUtc.Add(stallOffset)} {
		if _, err := d.Get(ctx, engine, rowKey(letter.MessageID, at)); !errors.Is(err, ErrNotFound) {
			return err == nil, err
		}
	}
	return false, nil
}
