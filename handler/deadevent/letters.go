package deadevent

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/vibedata/roundhouse/engine"
	"github.com/vibedata/roundhouse/internal/payload"
	"github.com/vibedata/roundhouse/outbox"
)

// Engine is the engine of the dead letters of events.
const Engine = "outbox"

// noQueue is the OriginalQueue of a dead letter whose message had none.
const noQueue = "N/A"

// followedNote is the note on a pending dead letter, when its event has a newer one.
const followedNote = "Its event has a newer dead letter"

// Letters writes the dead letters of events.
type Letters struct{ letters *engine.DeadLetters }

var _ outbox.Letters = (*Letters)(nil)

// NewLetters returns Letters over all dead letters.
func NewLetters(all *engine.DeadLetters) *Letters { return &Letters{all} }

// Open makes sure that an event has one pending dead letter, and returns its row key.
func (l *Letters) Open(ctx context.Context, e outbox.DeadEvent) (string, error) {
	if e.Reopened != "" {
		return e.Reopened, l.letters.Follow(ctx, Engine, e.Reopened, engine.Followed{Decision: engine.Decision{Status: engine.StatusPending, At: e.At}})
	}
	there, err := l.of(ctx, e.TenantID, e.ID)
	if err != nil {
		return "", err
	}
	letter, err := newLetter(e)
	if err != nil {
		return "", err
	}
	// A dead letter is named after the life of its event, so a repeat finds that of this life. A row of an older
	// version may not have the start of the life; then the existing name belongs to another death.
	for _, began := range []time.Time{e.Began, e.At} {
		letter.InsertedAtUtc = began
		row := letter.Key()
		i := indexOf(there, row)
		switch {
		case i >= 0 && there[i].Status == engine.StatusPending:
			return row, nil
		case i >= 0:
			continue
		}
		if err := l.follows(ctx, &letter, there); err != nil {
			return "", err
		}
		created, err := l.letters.Add(ctx, letter)
		if err != nil || created {
			return row, err
		}
		// An event of another tenant with the same id has the name, or it was added meanwhile.
		if found, err := l.letters.Get(ctx, Engine, row); err != nil || found.InstanceID == e.TenantID {
			return row, err
		}
	}
	return "", fmt.Errorf("dead event %s: the names of its dead letter are taken", e.ID)
}

// follows makes the letter the successor of existing ones, and ends pending ones: only one is pending at a time.
func (l *Letters) follows(ctx context.Context, letter *engine.DeadLetter, there []engine.DeadLetter) error {
	notes := followedNote
	for _, before := range there {
		letter.ParentRowKey, letter.RetryCount = before.RowKey, before.RetryCount+1
		if before.Status != engine.StatusPending {
			continue
		}
		err := l.letters.Follow(ctx, Engine, before.RowKey, engine.Followed{Decision: engine.Decision{Status: engine.StatusResolved, Notes: &notes, At: letter.LastFailureAtUtc}})
		if err != nil {
			return err
		}
	}
	return nil
}

// Close ends the pending dead letters of an event.
func (l *Letters) Close(ctx context.Context, c outbox.Closing) error {
	there, err := l.of(ctx, c.TenantID, c.ID)
	if err != nil {
		return err
	}
	notes := cmp.Or(c.Notes, string(c.As))
	f := engine.Followed{Decision: engine.Decision{Status: engine.StatusResolved, Notes: &notes, By: c.By, At: c.At}}
	switch c.As {
	case outbox.ClosedRetried:
		f.RetryMessageID = c.ID
	case outbox.ClosedExpired:
		f.Status = engine.StatusExpired
		if c.Notes == "" {
			f.Notes = nil
		}
	case outbox.ClosedSkipped, outbox.ClosedConfigured:
	}
	var errs []error
	for _, letter := range there {
		if letter.Status == engine.StatusPending {
			errs = append(errs, l.letters.Follow(ctx, Engine, letter.RowKey, f))
		}
	}
	return errors.Join(errs...)
}

// of returns the dead letters of an event, oldest first. Events of several tenants may share an id.
func (l *Letters) of(ctx context.Context, tenantID, id string) ([]engine.DeadLetter, error) {
	all, err := l.letters.Of(ctx, Engine, id)
	if err != nil {
		return nil, err
	}
	var own []engine.DeadLetter
	for _, letter := range all {
		if letter.InstanceID == tenantID {
			own = append(own, letter)
		}
	}
	return own, nil
}

func indexOf(letters []engine.DeadLetter, row string) int {
	for i, l := range letters {
		if l.RowKey == row {
			return i
		}
	}
	return -1
}

// newLetter returns the dead letter of an event.
func newLetter(e outbox.DeadEvent) (engine.DeadLetter, error) {
	original, err := payload.Marshal(messageOf(e))
	if err != nil {
		return engine.DeadLetter{}, fmt.Errorf("dead event %s: %w", e.ID, err)
	}
	return engine.DeadLetter{
		Engine:            Engine,
		MessageID:         e.ID,
		InstanceID:        e.TenantID,
		TenantID:          e.TenantID,
		OriginalQueue:     noQueue,
		OriginalMessage:   original,
		ErrorMessage:      e.Error,
		DetectedReason:    engine.Reason(e.Reason),
		DequeueCount:      e.RetryCount,
		FirstFailureAtUtc: e.FirstFailureAt,
		LastFailureAtUtc:  e.LastFailureAt,
		CorrelationID:     cmp.Or(e.CorrelationID, e.ID),
	}, nil
}
