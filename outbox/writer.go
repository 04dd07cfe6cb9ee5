package outbox

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"unicode/utf8"

	"github.com/google/uuid"

	"github.com/vibedata/roundhouse/internal/payload"
	"github.com/vibedata/roundhouse/tables"
)

// addTries bounds how often an Add starts over because the same rows changed concurrently, or because the outcome of
// its write is unknown.
const addTries = 20

// Message is an event that a producer adds.
type Message struct {
	// TenantID is the tenant, 1 to MaxIDLength bytes.
	TenantID string
	// EventType is the event type, which selects the route, 1 to MaxIDLength bytes.
	EventType string
	// Payload is JSON of at most MaxPayload bytes.
	Payload json.RawMessage
	// Key is the idempotency key. The zero UUID means a random key: set a key (Writer.Key) wherever the same event may be
	// added twice.
	Key uuid.UUID
	// OrderKey keeps messages with the same order key in order; "" does not.
	OrderKey string
	// CorrelationID and TraceParent are passed on; either may be "".
	CorrelationID string
	TraceParent   string
}

// Added is the result of adding a Message.
type Added struct {
	ID  string
	Key uuid.UUID
	// AlreadyExisted means that the tenant has a message with this key already; that message counts.
	AlreadyExisted bool
	// PayloadDiffers means that the existing message has another payload, so the producer uses one key for two events.
	PayloadDiffers bool
}

// Writer adds messages (outbox document, "Producer Integration Changes"). It is safe for concurrent use.
type Writer struct {
	o *Outbox
	// direct delivers added messages, where it can; nil for a Writer that wakes dispatchers.
	direct *direct
}

// NewWriter returns a Writer that wakes dispatchers for its messages. Dispatcher.Writer returns one for a process that
// also delivers.
func NewWriter(o *Outbox) *Writer { return &Writer{o: o} }

// Key derives a key in the form that Options.KeyForm selects.
func (w *Writer) Key(tenant, category, entity, kind, version string) uuid.UUID {
	return w.o.options.KeyForm.Key(tenant, category, entity, kind, version)
}

// Add adds a message, once for each tenant and key: adding it again, in any process, finds the first one and is not an
// error. When it returns without error, the message is stored and will be delivered. The errors are ErrInvalid,
// ErrPayloadTooLarge, ErrBusy, and those of the stores. After any error but the first two, the message may be stored:
// add it again with the same key.
func (w *Writer) Add(ctx context.Context, m Message) (Added, error) {
	msg, err := w.prepare(m)
	if err != nil {
		return Added{}, fmt.Errorf("add message: %w", err)
	}
	added, err := w.add(ctx, msg)
	if err != nil {
		return Added{}, fmt.Errorf("add message %s of tenant %s: %w", msg.ID, partition(m.TenantID), err)
	}
	return added, nil
}

// prepare validates a message and makes its row.
func (w *Writer) prepare(m Message) (*message, error) {
	err := errors.Join(
		checkID("tenant id", m.TenantID, true),
		checkID("event type", m.EventType, true),
		checkID("order key", m.OrderKey, false),
		checkID("correlation id", m.CorrelationID, false),
		checkID("trace parent", m.TraceParent, false),
		checkPayload(m.Payload),
	)
	if err != nil {
		return nil, err
	}
	if m.Key == uuid.Nil {
		m.Key = uuid.New()
	}
	now := w.o.now()
	return &message{
		Record: Record{
			ID:             m.Key.String(),
			TenantID:       m.TenantID,
			EventType:      m.EventType,
			IdempotencyKey: m.Key,
			Status:         StatusPending,
			CreatedAt:      now,
			NextAttemptAt:  now,
			OrderKey:       m.OrderKey,
			CorrelationID:  m.CorrelationID,
			TraceParent:    m.TraceParent,
			PayloadHash:    payloadHash(m.Payload),
			PayloadSize:    int64(len(m.Payload)),
			SchemaVersion:  schemaVersion,
			Payload:        m.Payload,
		},
		origin: nonce(),
	}, nil
}

func checkPayload(text json.RawMessage) error {
	switch {
	case len(text) > MaxPayload:
		return fmt.Errorf("%w: %d bytes of at most %d: store it elsewhere and send its place", ErrPayloadTooLarge, len(text), MaxPayload)
	case !utf8.Valid(text) || !json.Valid(text):
		return fmt.Errorf("%w: the payload is not JSON in UTF-8", ErrInvalid)
	}
	if err := payload.Check(text); err != nil {
		return fmt.Errorf("%w: the payload is %w", ErrInvalid, err)
	}
	return nil
}

// payloadHash returns the same hash for payloads that differ only in white space. A payload that is not JSON is hashed
// as it is.
func payloadHash(payload json.RawMessage) string {
	var compact bytes.Buffer
	text := []byte(payload)
	if json.Compact(&compact, payload) == nil {
		text = compact.Bytes()
	}
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:])
}

func (w *Writer) add(ctx context.Context, msg *message) (Added, error) {
	if err := w.o.spill(ctx, msg); err != nil {
		return Added{}, err
	}
	t := w.direct.reserve(msg)
	existing, err := w.insert(ctx, msg, t)
	if err != nil {
		t.drop()
		return Added{}, err
	}
	if existing != nil {
		t.drop()
		return w.duplicate(ctx, msg, existing), nil
	}
	w.handOver(ctx, msg, t)
	return Added{ID: msg.ID, Key: msg.IdempotencyKey}, nil
}

// insert writes the rows of a message, claimed for the ticket if any. existing is the message that existed already, nil
// when this one was inserted.
func (w *Writer) insert(ctx context.Context, msg *message, t *ticket) (existing *message, err error) {
	guess := true
	for range addTries {
		ops, err := w.o.enqueue(ctx, msg, t, guess)
		if err != nil {
			return nil, err
		}
		ops = append([]tables.Op{tables.Insert(msg.entity())}, ops...)
		err = w.o.applyOpen(ctx, msg.TenantID, ops...)
		switch {
		case err == nil:
			return nil, nil
		case !needsReread(err):
			return nil, err
		}
		taken := guess && refused(err, orderKey(msg))
		if guess = false; taken {
			continue // the order key has a head
		}
		// Another message with this key exists, or this one was inserted after all, or the order key's row changed.
		e, err := w.o.tables.Get(ctx, w.o.table, msg.key())
		if errors.Is(err, tables.ErrNotFound) {
			continue
		}
		if err != nil {
			return nil, err
		}
		there, err := decode(e)
		if err != nil {
			return nil, err
		}
		if there.origin == msg.origin {
			msg.indexRow = there.indexRow // of the attempt that was applied
			return nil, nil
		}
		return &there, nil
	}
	return nil, ErrBusy
}

// refused reports whether a write failed because this row exists.
func refused(err error, key tables.Key) bool {
	var op *tables.OpError
	return errors.Is(err, tables.ErrExists) && errors.As(err, &op) && op.Key == key
}

// needsReread reports whether an error of a write leaves the stored state open: a concurrent write was faster, this
// write was applied and its answer was lost, or neither.
func needsReread(err error) bool {
	return errors.Is(err, tables.ErrExists) || errors.Is(err, tables.ErrPrecondition) ||
		errors.Is(err, tables.ErrNotFound) || errors.Is(err, tables.ErrOutcomeUnknown)
}

// handOver counts a new message and arranges its delivery: by this process if it was inserted for the ticket, otherwise
// by the dispatchers that it wakes. A message that waits for others of its order key needs neither.
func (w *Writer) handOver(ctx context.Context, msg *message, t *ticket) {
	w.o.observe.Added()
	if t != nil && msg.indexRow == t.row {
		w.direct.run(ctx, msg, t)
		return
	}
	t.drop()
	w.o.wake.notify(ctx, msg.TenantID)
}

// duplicate returns the result for a message that existed already (outbox document, "Duplicate Handling Flow").
func (w *Writer) duplicate(ctx context.Context, msg, existing *message) Added {
	w.o.dropSpilled(ctx, msg)
	hash := existing.PayloadHash
	if hash == "" {
		hash = payloadHash(existing.Payload)
	}
	differs := hash != msg.PayloadHash || existing.EventType != msg.EventType
	w.o.logDuplicate(ctx, existing, differs)
	w.o.observe.Duplicate(differs)
	key := existing.IdempotencyKey
	if key == uuid.Nil {
		key = msg.IdempotencyKey
	}
	// The process that added it may have crashed before its wake-up.
	if existing.Status == StatusPending {
		w.o.wake.notify(ctx, msg.TenantID)
	}
	return Added{ID: existing.ID, Key: key, AlreadyExisted: true, PayloadDiffers: differs}
}
