package poller

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"time"

	"github.com/vibedata/roundhouse/internal/payload"
)

const (
	// documentVersion is the version that this program writes, and the newest that it reads.
	documentVersion = 1
	// maxDocument bounds a state document in bytes, as a table row bounds its text.
	maxDocument = 256 << 10
	// maxCursor bounds a document with only a checkpoint, in bytes. It leaves room for everything else.
	maxCursor = 64 << 10
	// maxErrorText bounds the error in a failure record, in bytes.
	maxErrorText = 2 << 10
)

// Document is the state of a poller (checkpoint document, section 4). Unknown fields are kept when it changes, on every
// level.
type Document struct {
	Version    int    `json:"version"`
	PollerName string `json:"poller_name"`
	// Fingerprint is the fingerprint of Definition, which is the JSON of a Definition; "" and nil until the poller first
	// runs.
	Fingerprint string          `json:"source_fingerprint"`
	Definition  json.RawMessage `json:"definition,omitempty"`
	// Checkpoint is nil before the first batch.
	Checkpoint *Checkpoint `json:"checkpoint,omitempty"`
	Lease      Lease       `json:"lease"`
	// Failure is nil unless the batch after the checkpoint has failed.
	Failure *Failure `json:"failure,omitempty"`
	// TickFailure is nil unless the latest tick ended with an error that is not that of Failure.
	TickFailure *TickFailure `json:"tick_failure,omitempty"`
	// Quarantine is the state of the circuit breaker.
	Quarantine *Quarantine `json:"quarantine,omitempty"`
	// Backfill is nil for a poller without an end.
	Backfill *BackfillState `json:"backfill,omitempty"`
	// PolledAt is when the poller last recorded an idle tick.
	PolledAt time.Time `json:"polled_at,omitzero"`
	// Retired makes the document a tombstone, which keeps the fencing token.
	Retired bool `json:"retired,omitempty"`
	// Requests are the latest changes by operators with a request id, oldest first: each is made once.
	Requests []Request `json:"requests,omitempty"`

	extra fields
}

// Checkpoint is the progress of a poller: everything up to Cursor has been delivered.
type Checkpoint struct {
	Cursor Cursor `json:"cursor"`
	// LastBatchID names the last batch.
	LastBatchID string    `json:"last_successful_batch_id"`
	UpdatedAt   time.Time `json:"updated_at"`
	Metadata    Metadata  `json:"metadata"`

	extra, cursorExtra fields
}

// Metadata is informational.
type Metadata struct {
	// RowCount is the length of the last batch.
	RowCount int `json:"row_count"`
	// RowsTotal is the number of committed rows; 0 when unknown, because an operator has set the position, or an earlier
	// program did not count.
	RowsTotal int64 `json:"rows_total,omitempty"`

	extra fields
}

// Lease is the permission to commit. Its times are by the state store's clock and informational: the token and the
// version of the document decide.
type Lease struct {
	// Owner is "" for a free lease. Nonce distinguishes acquisitions by the same owner.
	Owner string `json:"owner_id"`
	Nonce string `json:"nonce,omitempty"`
	// Token grows with every acquisition, reset and break of the lease, and never decreases.
	Token     int64     `json:"fencing_token"`
	Acquired  time.Time `json:"acquired_at,omitzero"`
	Heartbeat time.Time `json:"heartbeat_at,omitzero"`
	Expires   time.Time `json:"expires_at,omitzero"`

	extra fields
}

// Failure describes the batch after the checkpoint, which was not delivered.
type Failure struct {
	// First is the event id of its first row, Rows the number of rows.
	First string `json:"batch_first"`
	Rows  int    `json:"rows"`
	// Attempts counts the failed deliveries without any progress.
	Attempts int    `json:"attempts"`
	Error    string `json:"error"`
	// FirstAt and LastAt are the times of the first and last failure, NextAt is that of the next try.
	FirstAt time.Time `json:"first_failure_at"`
	LastAt  time.Time `json:"last_failure_at"`
	NextAt  time.Time `json:"next_attempt_at"`
	// Bisecting means that the bad row is searched among Suspects rows, of which Rows are tried next. Breaker means that
	// the circuit breaker stopped the quarantine.
	Bisecting bool `json:"bisecting,omitempty"`
	Suspects  int  `json:"suspects,omitempty"`
	Breaker   bool `json:"breaker,omitempty"`

	extra fields
}

// Quarantine counts rows for the circuit breaker; both numbers are halved when Rows reaches the window.
type Quarantine struct {
	Rows        int `json:"rows"`
	Quarantined int `json:"quarantined"`

	extra fields
}

// BackfillState is the end of a backfill, which was fixed at its start.
type BackfillState struct {
	End      Cursor    `json:"end"`
	FrozenAt time.Time `json:"frozen_at"`
	// Done means that everything up to End has been delivered.
	Done bool `json:"done,omitempty"`

	extra fields
}

var pollerName = regexp.MustCompile(`^[a-z0-9](?:[a-z0-9]|-[a-z0-9]){0,62}$`)

// CheckName returns an error unless name is a valid poller name: up to 63 of a-z, 0-9 and single hyphens between them.
func CheckName(name string) error {
	if len(name) > 63 || !pollerName.MatchString(name) {
		return fmt.Errorf("%w: %.64q is no name of a poller: use up to 63 of a-z, 0-9 and single hyphens between them", ErrInvalid, name)
	}
	return nil
}

// Decode decodes a state document. The errors are ErrCorrupt and ErrVersion.
func Decode(data []byte) (*Document, error) {
	if len(data) > maxDocument {
		return nil, fmt.Errorf("%w: it has %d bytes of at most %d", ErrCorrupt, len(data), maxDocument)
	}
	if err := payload.Check(data); err != nil {
		return nil, fmt.Errorf("%w: it is %w", ErrCorrupt, err)
	}
	// The version comes first: a document of a newer program need not have the form of this one.
	var head struct {
		Version json.Number `json:"version"`
	}
	if err := json.Unmarshal(data, &head); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrCorrupt, err)
	}
	if v, err := head.Version.Int64(); err != nil || v < 1 {
		return nil, fmt.Errorf("%w: version %.32q", ErrCorrupt, head.Version)
	} else if v > documentVersion {
		return nil, fmt.Errorf("%w: %d, this program knows up to %d: update it", ErrVersion, v, documentVersion)
	}
	var d Document
	if err := json.Unmarshal(data, &d); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrCorrupt, err)
	}
	if err := d.check(); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrCorrupt, err)
	}
	return &d, nil
}

func (d *Document) check() error {
	errs := []error{CheckName(d.PollerName)}
	if d.Version != documentVersion {
		errs = append(errs, fmt.Errorf("version %d", d.Version))
	}
	if d.Lease.Token < 0 {
		errs = append(errs, fmt.Errorf("fencing_token %d is negative", d.Lease.Token))
	}
	if f := d.Failure; f != nil && (f.Attempts < 0 || f.Rows < 0 || f.Suspects < 0) {
		errs = append(errs, errors.New("failure has negative numbers"))
	}
	if f := d.TickFailure; f != nil && f.Ticks < 0 {
		errs = append(errs, errors.New("tick_failure has a negative number"))
	}
	if q := d.Quarantine; q != nil && (q.Rows < 0 || q.Quarantined < 0) {
		errs = append(errs, errors.New("quarantine has negative numbers"))
	}
	return errors.Join(errs...)
}

// Encode encodes the document. The result is always the same for the same document: indented, unless that makes it too
// long. The errors are ErrCorrupt, and ErrInvalid for a document that breaks a limit.
func (d *Document) Encode() ([]byte, error) {
	text, err := d.compact(maxDocument)
	if err != nil {
		return nil, err
	}
	var out bytes.Buffer
	if err := json.Indent(&out, text, "", "  "); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrCorrupt, err) // unreachable: the text was just encoded
	}
	if out.Len() > maxDocument {
		return text, nil
	}
	return out.Bytes(), nil
}

// compact encodes the document without white space, in at most this many bytes.
func (d *Document) compact(most int) ([]byte, error) {
	text, err := json.Marshal(d)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrCorrupt, err)
	}
	if len(text) > most {
		return nil, fmt.Errorf("%w: the state document would have %d bytes, of which %d are allowed", ErrInvalid, len(text), most)
	}
	if err := payload.Check(text); err != nil {
		return nil, fmt.Errorf("%w: the state document would be %w", ErrInvalid, err)
	}
	return text, nil
}

// Cursor returns the cursor of the checkpoint, zero without one.
func (d *Document) Cursor() Cursor {
	if d.Checkpoint == nil {
		return Cursor{}
	}
	return d.Checkpoint.Cursor
}

// clone returns a copy that may be changed. The targets of pointers are shared; they are replaced and never changed.
func (d *Document) clone() *Document {
	c := *d
	return &c
}

// setBackfillDone sets whether a backfill has reached its end, if the poller is one.
func (d *Document) setBackfillDone(done bool) {
	if d.Backfill == nil {
		return
	}
	b := *d.Backfill
	b.Done = done
	d.Backfill = &b
}

// UnmarshalJSON keeps unknown fields.
func (d *Document) UnmarshalJSON(data []byte) (err error) {
	type plain Document
	d.extra, err = decodeObject(data, (*plain)(d))
	d.Definition = object(d.Definition)
	return err
}

// MarshalJSON writes unknown fields unchanged.
func (d *Document) MarshalJSON() ([]byte, error) {
	type plain Document
	return encodeObject((*plain)(d), d.extra)
}

// UnmarshalJSON keeps unknown fields. A value that is a number keeps its digits.
func (c *Checkpoint) UnmarshalJSON(data []byte) (err error) {
	type plain Checkpoint
	if c.extra, err = decodeObject(data, (*plain)(c)); err != nil {
		return err
	}
	var all fields
	if err = json.Unmarshal(data, &all); err != nil || object(all["cursor"]) == nil {
		return err
	}
	c.cursorExtra, err = decodeObject(all["cursor"], &c.Cursor)
	return err
}

// MarshalJSON writes unknown fields unchanged.
func (c *Checkpoint) MarshalJSON() ([]byte, error) {
	cursor, err := encodeObject(c.Cursor, c.cursorExtra)
	if err != nil {
		return nil, err
	}
	return encodeObject(struct {
		Cursor      json.RawMessage `json:"cursor"`
		LastBatchID string          `json:"last_successful_batch_id"`
		UpdatedAt   time.Time       `json:"updated_at"`
		Metadata    *Metadata       `json:"metadata"`
	}{cursor, c.LastBatchID, c.UpdatedAt, &c.Metadata}, c.extra)
}

// UnmarshalJSON keeps unknown fields.
func (m *Metadata) UnmarshalJSON(data []byte) (err error) {
	type plain Metadata
	m.extra, err = decodeObject(data, (*plain)(m))
	return err
}

// MarshalJSON writes unknown fields unchanged.
func (m *Metadata) MarshalJSON() ([]byte, error) {
	type plain Metadata
	return encodeObject((*plain)(m), m.extra)
}

// UnmarshalJSON keeps unknown fields.
func (l *Lease) UnmarshalJSON(data []byte) (err error) {
	type plain Lease
	l.extra, err = decodeObject(data, (*plain)(l))
	return err
}

// MarshalJSON writes unknown fields unchanged.
func (l *Lease) MarshalJSON() ([]byte, error) {
	type plain Lease
	return encodeObject((*plain)(l), l.extra)
}

// UnmarshalJSON keeps unknown fields.
func (f *Failure) UnmarshalJSON(data []byte) (err error) {
	type plain Failure
	f.extra, err = decodeObject(data, (*plain)(f))
	return err
}

// MarshalJSON writes unknown fields unchanged.
func (f *Failure) MarshalJSON() ([]byte, error) {
	type plain Failure
	return encodeObject((*plain)(f), f.extra)
}

// UnmarshalJSON keeps unknown fields.
func (q *Quarantine) UnmarshalJSON(data []byte) (err error) {
	type plain Quarantine
	q.extra, err = decodeObject(data, (*plain)(q))
	return err
}

// MarshalJSON writes unknown fields unchanged.
func (q *Quarantine) MarshalJSON() ([]byte, error) {
	type plain Quarantine
	return encodeObject((*plain)(q), q.extra)
}

// UnmarshalJSON keeps unknown fields.
func (b *BackfillState) UnmarshalJSON(data []byte) (err error) {
	type plain BackfillState
	b.extra, err = decodeObject(data, (*plain)(b))
	return err
}

// MarshalJSON writes unknown fields unchanged.
func (b *BackfillState) MarshalJSON() ([]byte, error) {
	type plain BackfillState
	return encodeObject((*plain)(b), b.extra)
}

// object returns a JSON value, nil for null.
func object(data json.RawMessage) json.RawMessage {
	if string(data) == "null" {
		return nil
	}
	return data
}
