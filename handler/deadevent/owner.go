package deadevent

import (
	"context"
	"errors"
	"fmt"

	"github.com/vibedata/roundhouse/engine"
	"github.com/vibedata/roundhouse/outbox"
	"github.com/vibedata/roundhouse/tables"
)

// Owner carries out decisions about the dead letters of events in the outbox.
type Owner struct{ admin *outbox.Admin }

// NewOwner makes the outbox decide on its dead letters. The Letters of the outbox must be over the same dead letters.
func NewOwner(letters *engine.DeadLetters, admin *outbox.Admin) *Owner {
	o := &Owner{admin}
	letters.OnDecide(Engine, o.decide)
	return o
}

// decide is an engine.OwnerFunc. An event whose dead letter is resolved or expired is skipped, and one whose dead
// letter is pending again is dead again.
func (o *Owner) decide(ctx context.Context, letter engine.DeadLetter, c engine.Decision) error {
	d := outbox.Decision{By: c.By, At: c.At, Letter: letter.RowKey}
	if c.Notes != nil {
		d.Notes = *c.Notes
	}
	switch {
	case c.Status == engine.StatusPending:
		err := o.admin.Act(ctx, outbox.ActionReopen, letter.InstanceID, letter.MessageID, d)
		if left(err) {
			return fmt.Errorf("%w: its event is not skipped any more, or has another dead letter: replay the event", engine.ErrState)
		}
		return err
	case letter.Status == engine.StatusPending:
		d.Expire = c.Status == engine.StatusExpired
		err := o.admin.Act(ctx, outbox.ActionSkip, letter.InstanceID, letter.MessageID, d)
		if left(err) {
			return nil // the decision is about the dead letter alone
		}
		return err
	}
	return nil
}

// left reports whether an error of the outbox means that the event is no longer in the state of its dead letter, or
// missing.
func left(err error) bool {
	return errors.Is(err, outbox.ErrState) || errors.Is(err, outbox.ErrNotFound) || errors.Is(err, tables.ErrNotFound)
}

// Retry restarts the event of a dead letter. It is an engine.RetryFunc. An event that is no longer dead was restarted
// before, or has been delivered: the retry has its result already.
func (o *Owner) Retry(ctx context.Context, letter engine.DeadLetter) (messageID string, err error) {
	err = o.admin.Act(ctx, outbox.ActionRetry, letter.InstanceID, letter.MessageID,
		outbox.Decision{By: letter.RetriedBy, At: letter.RetriedAtUtc, Letter: letter.RowKey})
	switch {
	case errors.Is(err, outbox.ErrState):
		err = nil
	case left(err):
		err = fmt.Errorf("%w: its event is gone", engine.ErrNotRetryable)
	}
	return letter.MessageID, err
}
