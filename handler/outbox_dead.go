package handler

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/vibedata/roundhouse/engine"
	"github.com/vibedata/roundhouse/internal/payload"
	"github.com/vibedata/roundhouse/outbox"
)

const (
	// maxDeadPayload is the largest payload that a dead letter repeats, in bytes. The event keeps it in any case.
	maxDeadPayload = 128 << 10
	// attemptLog is how many attempts an event remembers.
	attemptLog = 10
)

// errNotDeadEvent: a dead letter is not one of the outbox.
var errNotDeadEvent = errors.New("the dead letter is of another engine")

// deadEvents brings events that nobody took to the dead letters, and back from there.
type deadEvents struct {
	letters *engine.DeadLetters
	admin   *outbox.Admin
}

// deadMessage is the original message of a dead event: a CloudEvent in JSON.
type deadMessage struct {
	SpecVersion     string          `json:"specversion"`
	ID              string          `json:"id"`
	Source          string          `json:"source"`
	Type            string          `json:"type"`
	Time            time.Time       `json:"time"`
	TenantID        string          `json:"tenantid"`
	CorrelationID   string          `json:"correlationid,omitempty"`
	TraceParent     string          `json:"traceparent,omitempty"`
	DataContentType string          `json:"datacontenttype,omitempty"`
	Data            json.RawMessage `json:"data,omitempty"`
	// DataSize is the length of data that is left out because it is long, or nested too deep to be read in here.
	DataSize int `json:"datasize,omitempty"`
}

// add writes the dead letter of an event, once for each time that it dies.
func (d deadEvents) add(ctx context.Context, e outbox.DeadEvent) error {
	began, err := d.began(ctx, e)
	if err != nil {
		return err
	}
	original, err := payload.Marshal(deadMessageOf(e))
	if err != nil {
		return fmt.Errorf("dead event %s: %w", e.ID, err)
	}
	_, err = d.letters.Add(ctx, engine.DeadLetter{
		Engine:            outboxEngine,
		MessageID:         e.ID,
		InsertedAtUtc:     began,
		InstanceID:        e.TenantID,
		TenantID:          e.TenantID,
		OriginalQueue:     "N/A",
		OriginalMessage:   original,
		ErrorMessage:      e.Error,
		DetectedReason:    engine.Reason(e.Reason),
		DequeueCount:      e.RetryCount,
		FirstFailureAtUtc: e.FirstFailureAt,
		LastFailureAtUtc:  e.LastFailureAt,
		CorrelationID:     cmp.Or(e.CorrelationID, e.ID),
	})
	return err
}

func deadMessageOf(e outbox.DeadEvent) deadMessage {
	m := deadMessage{SpecVersion: "1.0", ID: e.Key.String(), Source: "/roundhouse", Type: e.Type, Time: e.CreatedAt, TenantID: e.TenantID,
		CorrelationID: e.CorrelationID, TraceParent: e.TraceParent}
	if len(e.Payload) > maxDeadPayload || payload.Check(e.Payload) != nil {
		m.DataSize = len(e.Payload)
		return m
	}
	if json.Valid(e.Payload) {
		m.DataContentType, m.Data = "application/json", e.Payload
	}
	return m
}

// began is when an event came into the life that has ended: when it was added or, if a person let it start over, just after
// the last attempt of before. It goes by what is stored, and not by the attempt that was the last, because a dispatcher
// that dies before it has flagged the event is followed by one that tries again: the letter of both is one. A second
// death has another, so it cannot be taken for the first.
func (d deadEvents) began(ctx context.Context, e outbox.DeadEvent) (time.Time, error) {
	stored, err := d.admin.Get(ctx, e.TenantID, e.ID)
	if errors.Is(err, outbox.ErrCorrupt) || errors.Is(err, outbox.ErrNotFound) {
		return e.CreatedAt, nil // what cannot be read must not keep it from dying
	}
	if err != nil {
		return time.Time{}, fmt.Errorf("dead event %s: %w", e.ID, err)
	}
	before := len(stored.Attempts) - stored.RetryCount // attempts of earlier lives
	switch {
	case before > 0:
		return stored.Attempts[before-1].At.Add(time.Microsecond), nil
	case len(stored.Attempts) == attemptLog:
		return stored.Attempts[0].At, nil // more failures than the log holds
	default:
		return stored.CreatedAt, nil
	}
}

// RetryDead lets the event of a dead letter start over. It does not resolve the dead letter. An event that was delivered
// meanwhile, because a person retried it before, is an outbox.ErrState; the other errors are those of outbox.Admin.Retry.
func (d deadEvents) RetryDead(ctx context.Context, letter engine.DeadLetter) error {
	if letter.Engine != outboxEngine {
		return fmt.Errorf("retry dead event %s of engine %s: %w", letter.MessageID, letter.Engine, errNotDeadEvent)
	}
	return d.admin.Retry(ctx, letter.InstanceID, letter.MessageID)
}

// retry starts a dead event over for the dead letters' API. One that is not dead any more was started over before, or has
// left: that is what was asked for.
func (d deadEvents) retry(ctx context.Context, letter engine.DeadLetter) (string, error) {
	err := d.RetryDead(ctx, letter)
	if errors.Is(err, outbox.ErrState) {
		err = nil
	}
	if errors.Is(err, outbox.ErrNotFound) {
		err = fmt.Errorf("%w: %w", engine.ErrNotRetryable, err)
	}
	return letter.MessageID, err
}
