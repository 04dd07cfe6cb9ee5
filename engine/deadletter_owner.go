package engine

import (
	"context"
	"fmt"

	"github.com/google/uuid"

	"github.com/vibedata/roundhouse/tables"
)

// OwnerFunc carries out a decision about a dead letter whose message is stored elsewhere, such as an event in its
// outbox, and updates the dead letter with Follow. It is called when the decision changes the status. When it returns
// nil without Follow, the decision changes the dead letter alone. Its errors are those of Decide.
type OwnerFunc func(ctx context.Context, letter DeadLetter, decision Decision) error

// OnDecide registers the OwnerFunc of an engine's dead letters. Call it before the first Decide.
func (d *DeadLetters) OnDecide(engine string, fn OwnerFunc) {
	if d.owners == nil {
		d.owners = map[string]OwnerFunc{}
	}
	d.owners[engine] = fn
}

// askOwner lets the owner of a dead letter, if it has one, carry out the decision. It returns the dead letter, and
// true if the owner has updated it.
func (d *DeadLetters) askOwner(ctx context.Context, engine, rowKey string, decision Decision) (DeadLetter, bool, error) {
	owner := d.owners[engine]
	if owner == nil {
		return DeadLetter{}, false, nil
	}
	l, err := d.Get(ctx, engine, rowKey)
	if err != nil || l.Status == decision.Status {
		return DeadLetter{}, false, err
	}
	if err := decision.allowed(l); err != nil {
		return DeadLetter{}, false, err
	}
	if err := owner(ctx, l, decision); err != nil {
		return DeadLetter{}, false, err
	}
	l, err = d.Get(ctx, engine, rowKey)
	return l, err == nil && l.Status == decision.Status, err
}

// Of returns the dead letters of a message, by the id from its queue or outbox, oldest first, without their messages
// and errors.
func (d *DeadLetters) Of(ctx context.Context, engine, messageID string) ([]DeadLetter, error) {
	prefix := tables.EscapeKey(messageID) + "-"
	q := tables.Query{
		Partition: tables.EscapeKey(engine), From: prefix, To: prefix + ":", // timestamps begin with a digit
		Where:  map[string]any{"MessageId": cleanText(messageID)},
		Select: append(append(deadLetterListColumns(), "MessageId", "InsertedAtUtc"), decidedColumns()...),
	}
	var letters []DeadLetter
	for e, err := range tables.All(ctx, d.store, d.table, q) {
		if err != nil {
			return nil, fmt.Errorf("read dead letters of message %s/%s: %w", engine, clip(messageID, MaxIDLength), err)
		}
		letter, err := deadLetterOf(e)
		if err != nil {
			return nil, fmt.Errorf("read dead letters of message %s/%s: %w", engine, clip(messageID, MaxIDLength), err)
		}
		letters = append(letters, letter)
	}
	return letters, nil
}

// Followed is the outcome of the message of a dead letter that is stored elsewhere.
type Followed struct {
	Decision
	// RetryMessageID is the id of the message of the retry, "" for none.
	RetryMessageID string
}

// Follow updates a dead letter to the outcome of its message. It does not call the owner. Repeating it changes
// nothing. The errors are ErrNotFound and those of the store.
func (d *DeadLetters) Follow(ctx context.Context, engine, rowKey string, f Followed) error {
	if err := f.check(); err != nil {
		return fmt.Errorf("follow with dead letter: %w", err)
	}
	_, err := d.change(ctx, engine, rowKey, func(l *DeadLetter) (bool, error) {
		if l.Status == f.Status {
			return false, nil
		}
		retryID := l.RetryID
		f.apply(l)
		if f.RetryMessageID != "" {
			if l.RetryID = retryID; retryID == "" {
				l.RetryID = uuid.NewString()
			}
			l.RetryMessageID, l.RetriedAtUtc, l.RetriedBy = f.RetryMessageID, truncateMicros(f.At), clip(f.By, MaxIdentity)
		}
		return true, nil
	})
	if err != nil {
		return fmt.Errorf("follow with dead letter: %w", err)
	}
	return nil
}
