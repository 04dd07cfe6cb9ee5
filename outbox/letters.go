package outbox

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/vibedata/roundhouse/tables"
)

// Letters keeps the dead letters of messages: of dead ones, and of those that wait too long for configuration. The
// letter follows its message: each change of a letter is written together with the change of the message. It is then
// passed to Letters until they accept it, in order, before any other change of the message. So each method may be
// called more than once for one change, also concurrently. Implementations are safe for concurrent use.
type Letters interface {
	// Open makes sure that the message has one pending letter, and returns its name.
	Open(ctx context.Context, e DeadEvent) (letter string, err error)
	// Close ends the pending letter of a message. Without a pending letter, it returns nil.
	Close(ctx context.Context, c Closing) error
}

// DeadEvent is a message that needs an operator.
type DeadEvent struct {
	Event
	Destination string
	Reason      DeadReason
	// Error is the text of the last failure, cut at MaxErrorTextLength.
	Error string
	// RetryCount counts the failures.
	RetryCount int
	// Began is the start of the message's life: its addition, or its restart by an operator. At is when it became dead or
	// reported.
	Began, At time.Time
	// FirstFailureAt is the time of the oldest logged attempt of this life.
	FirstFailureAt, LastFailureAt time.Time
	// Parent is the letter of the previous life, "" for none. Reopened is the letter to reopen, "" for a new one.
	Parent, Reopened string
}

// Closing is the outcome of a message with a letter.
type Closing struct {
	TenantID, ID string
	As           ClosedAs
	// By is the operator, "" for none; Notes are the reasons.
	By, Notes string
	At        time.Time
}

// ClosedAs is the way in which a letter ends.
type ClosedAs string

// These are the ends.
const (
	ClosedRetried ClosedAs = "Retried"
	ClosedSkipped ClosedAs = "Skipped"
	ClosedExpired ClosedAs = "Expired" // skipped, and the letter is abandoned
	// ClosedConfigured: the configuration is correct again, and the message continues
	ClosedConfigured ClosedAs = "Configured"
)

// noLetters keeps no letters.
type noLetters struct{}

func (noLetters) Open(context.Context, DeadEvent) (string, error) { return "", nil }
func (noLetters) Close(context.Context, Closing) error            { return nil }

// debt is the change that the letter of a message does not show yet. Its JSON names stay: rows have them.
type debt struct {
	// Close is how the open letter ends, "" to open one.
	Close ClosedAs `json:"close,omitempty"`
	// Reopen is the letter to reopen.
	Reopen string    `json:"reopen,omitempty"`
	By     string    `json:"by,omitempty"`
	Notes  string    `json:"notes,omitempty"`
	At     time.Time `json:"at"`
}

func (b *debt) text() string {
	if b == nil {
		return ""
	}
	// Marshalling strings and times cannot fail.
	text, _ := json.Marshal(b)
	return string(text)
}

// owe records a debt to the message's letter.
func (m *message) owe(b debt) { m.owed = &b }

// owedOp returns the operation that announces the debt to the sweep, in the transaction that writes the message.
func (m *message) owedOp() tables.Op {
	return tables.Upsert(tables.Entity{
		Key:        tables.Key{Partition: partition(m.TenantID), Row: owedRow(m.owed.At, m.ID)},
		Properties: map[string]any{"Id": m.ID, "SchemaVersion": int32(schemaVersion)},
	})
}

const (
	// payTries bounds how often a payment starts over after a concurrent change of the message.
	payTries = 4
	// payAtOnce is the number of debts that are paid concurrently.
	payAtOnce = 8
)

// payAll pays the debts of messages of one tenant. Debts that cannot be paid now stay for the next sweep.
func (o *Outbox) payAll(ctx context.Context, tenant string, ids []string) error {
	var group errgroup.Group
	group.SetLimit(payAtOnce)
	for _, id := range ids {
		group.Go(func() error {
			_, err := o.pay(ctx, tenant, id)
			return err
		})
	}
	return group.Wait()
}

// pay reports a message's debt to Letters, and returns the updated message. An error is logged.
func (o *Outbox) pay(ctx context.Context, tenant, id string) (*message, error) {
	m, err := o.tryPay(ctx, tenant, id)
	for try := 1; try < payTries && errors.Is(err, ErrBusy); try++ {
		m, err = o.tryPay(ctx, tenant, id)
	}
	if err != nil {
		o.logger.ErrorContext(ctx, "outbox dead letter not brought up to date: the next sweep tries again", "eventId", id, "tenantId", tenant, "error", err)
		return nil, fmt.Errorf("dead letter of message %s: %w", clip(id, 64), err)
	}
	return m, nil
}

// payRow pays the debt that an o- row announces, and removes the row, even if the debt no longer exists.
func (o *Outbox) payRow(ctx context.Context, tenant string, row tables.Entity) error {
	if _, err := o.pay(ctx, tenant, idOf(row)); err != nil && !errors.Is(err, ErrNotFound) {
		return err
	}
	err := o.tables.Apply(ctx, o.table, tables.Delete(row.Key, ""))
	if errors.Is(err, tables.ErrNotFound) {
		return nil
	}
	return err
}

func (o *Outbox) tryPay(ctx context.Context, tenant, id string) (*message, error) {
	m, etag, err := o.load(ctx, tenant, id)
	if err != nil || m.owed == nil {
		return m, err
	}
	paid := tables.Key{Partition: partition(tenant), Row: owedRow(m.owed.At, id)}
	if err := o.tell(ctx, m); err != nil {
		return nil, err
	}
	m.owed = nil
	row := m.entity()
	row.ETag = etag
	err = o.tables.Apply(ctx, o.table, tables.Replace(row), tables.Delete(paid, ""))
	if err != nil && needsReread(err) {
		err = ErrBusy // paid concurrently, or by this write, whose answer was lost
	}
	return m, err
}

// tell reports a debt to Letters.
func (o *Outbox) tell(ctx context.Context, m *message) (err error) {
	ctx, cancel := context.WithTimeout(ctx, o.options.DeliveryTimeout)
	defer cancel()
	if b := m.owed; b.Close != "" {
		return o.letters.Close(ctx, Closing{TenantID: m.TenantID, ID: m.ID, As: b.Close, By: b.By, Notes: b.Notes, At: b.At})
	}
	m.DeadLetter, err = o.letters.Open(ctx, o.deadEvent(ctx, m))
	return err
}

func (o *Outbox) deadEvent(ctx context.Context, m *message) DeadEvent {
	// The error is ignored, because an unreadable payload may be the reason of the death.
	payload, _ := o.payload(ctx, m)
	event := m.event(payload)
	event.Attempt = m.RetryCount
	e := DeadEvent{
		Event: event, Destination: m.Destination, Reason: DeadReason(m.givenUp), Error: m.Error, RetryCount: m.RetryCount, Began: m.began(),
		At: m.owed.At, FirstFailureAt: m.owed.At, LastFailureAt: m.owed.At, Parent: m.DeadLetter, Reopened: m.owed.Reopen,
	}
	if m.Status != StatusDead {
		e.Reason = ReasonMisconfigured
	}
	first := true
	for _, a := range m.Attempts {
		if a.At.Before(m.RevivedAt) {
			continue
		}
		if e.LastFailureAt = a.At; first {
			e.FirstFailureAt, first = a.At, false
		}
	}
	return e
}

// load reads the m- row of a message, and its ETag.
func (o *Outbox) load(ctx context.Context, tenant, id string) (*message, string, error) {
	if err := errors.Join(checkID("tenant id", tenant, true), checkID("message id", id, true)); err != nil {
		return nil, "", err
	}
	e, err := o.tables.Get(ctx, o.table, tables.Key{Partition: partition(tenant), Row: messageRow(id)})
	if errors.Is(err, tables.ErrNotFound) {
		return nil, "", ErrNotFound
	}
	if err != nil {
		return nil, "", err
	}
	m, err := decode(e)
	return &m, e.ETag, err
}
