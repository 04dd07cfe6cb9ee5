package outbox

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/vibedata/roundhouse/tables"
)

// adminTries bounds how often a change starts again because others changed the message.
const adminTries = 8

// Action is an operator's action on a message.
type Action string

// These are the actions.
const (
	// ActionRetry lets a dead message start again with no failures counted, and makes a pending one due now.
	ActionRetry Action = "retry"
	// ActionSkip ends a pending or dead message without delivering it.
	ActionSkip Action = "skip"
	// ActionReplay delivers a message that has ended again, under the same key: receivers that have seen it drop it.
	// For a pending message it is ActionRetry.
	ActionReplay Action = "replay"
)

// Admin is for operators (outbox document, "API (Optional Admin)"). It is safe for concurrent use.
type Admin struct {
	o *Outbox
}

// NewAdmin makes an Admin.
func NewAdmin(o *Outbox) *Admin { return &Admin{o} }

// Get reads one message with its payload and its attempts. The errors are ErrInvalid, ErrNotFound, ErrSchemaVersion,
// ErrCorrupt and those of the stores.
func (a *Admin) Get(ctx context.Context, tenant, id string) (Record, error) {
	m, _, err := a.load(ctx, tenant, id)
	if err == nil {
		m.Payload, err = a.o.payload(ctx, m)
	}
	if err != nil {
		return Record{}, fmt.Errorf("get message %s: %w", clip(id, 64), err)
	}
	return m.Record, nil
}

// Retry applies ActionRetry to one message. The errors are ErrInvalid, ErrNotFound, ErrClaimed, ErrState for a message
// that is processed or skipped (replay it), ErrSchemaVersion, ErrBusy and those of the stores.
func (a *Admin) Retry(ctx context.Context, tenant, id string) error {
	return a.act(ctx, ActionRetry, tenant, id, "")
}

// Skip applies ActionSkip to one message; by is who decided. The errors are those of Retry.
func (a *Admin) Skip(ctx context.Context, tenant, id, by string) error {
	return a.act(ctx, ActionSkip, tenant, id, by)
}

// Replay applies ActionReplay to one message. The errors are those of Retry, except ErrState.
func (a *Admin) Replay(ctx context.Context, tenant, id string) error {
	return a.act(ctx, ActionReplay, tenant, id, "")
}

// load reads the m- row of a message, and its ETag.
func (a *Admin) load(ctx context.Context, tenant, id string) (*message, string, error) {
	if err := errors.Join(checkID("tenant id", tenant, true), checkID("message id", id, true)); err != nil {
		return nil, "", err
	}
	e, err := a.o.tables.Get(ctx, a.o.table, tables.Key{Partition: partition(tenant), Row: messageRow(id)})
	if errors.Is(err, tables.ErrNotFound) {
		return nil, "", ErrNotFound
	}
	if err != nil {
		return nil, "", err
	}
	m, err := decode(e)
	return &m, e.ETag, err
}

// act applies an action once: the token in the row shows whether a write whose answer was lost was applied.
func (a *Admin) act(ctx context.Context, action Action, tenant, id, by string) error {
	err := checkID("name of who decides", by, false)
	token := nonce()
	for try := 0; err == nil; try++ {
		var done bool
		if done, err = a.tryAct(ctx, action, tenant, id, by, token); done {
			break
		}
		if err == nil && try == adminTries {
			err = ErrBusy
		}
	}
	if err != nil {
		return fmt.Errorf("%s message %s: %w", action, clip(id, 64), err)
	}
	if action != ActionSkip {
		a.o.wake.notify(ctx, tenant)
	}
	return nil
}

func (a *Admin) tryAct(ctx context.Context, action Action, tenant, id, by, token string) (done bool, err error) {
	m, etag, err := a.load(ctx, tenant, id)
	if err != nil || m.settlement == token {
		return err == nil, err
	}
	if m.SchemaVersion == 0 {
		return false, fmt.Errorf("%w: its row is older than idempotency keys: run the backfill of its tenant", ErrState)
	}
	var ops []tables.Op
	switch action {
	case ActionRetry, ActionReplay:
		ops, err = a.makeDue(ctx, m, action)
	case ActionSkip:
		ops, err = a.skip(ctx, m, by)
	default:
		err = fmt.Errorf("%w: action %q: use retry, skip or replay", ErrInvalid, clip(string(action), 32))
	}
	if err != nil || len(ops) == 0 {
		return err == nil, err
	}
	m.settlement = token
	row := m.entity()
	row.ETag = etag
	err = a.o.tables.Apply(ctx, a.o.table, append(ops, tables.Replace(row))...)
	if err != nil && needsReread(err) {
		return false, nil
	}
	return err == nil, err
}

// makeDue makes a message due now. It returns the operations besides that on the m- row, none if there is nothing to
// do.
func (a *Admin) makeDue(ctx context.Context, m *message, action Action) ([]tables.Op, error) {
	if m.Status == StatusPending {
		return a.makeDueNow(ctx, m)
	}
	if m.Status != StatusDead && action == ActionRetry {
		return nil, fmt.Errorf("%w: it is %s: replay it", ErrState, m.Status)
	}
	ops := []tables.Op{tables.Delete(tables.Key{Partition: partition(m.TenantID), Row: endRow(m)}, "")}
	m.Status, m.IsProcessed, m.ProcessedAt, m.DeadAt = StatusPending, false, time.Time{}, time.Time{}
	m.RetryCount, m.givenUp, m.SkippedBy = 0, "", ""
	m.NextAttemptAt = a.o.now()
	more, err := a.o.enqueue(ctx, m)
	return append(ops, more...), err
}

// makeDueNow makes a pending message due now. A message that waits for its order key goes on waiting.
func (a *Admin) makeDueNow(ctx context.Context, m *message) ([]tables.Op, error) {
	e, waits, err := a.findPending(ctx, m)
	if err != nil || waits {
		return nil, err
	}
	m.NextAttemptAt = a.o.now()
	m.indexRow = pendingRow(m.NextAttemptAt, m.ID)
	ops := []tables.Op{tables.Delete(e.Key, e.ETag), tables.Insert(m.pendingEntity(m.indexRow))}
	if m.RetryCount > 0 {
		ops = append(ops, tables.Upsert(m.listEntity(failedRow(m.CreatedAt, m.ID))))
	}
	return ops, nil
}

// skip ends a message without delivering it.
func (a *Admin) skip(ctx context.Context, m *message, by string) (ops []tables.Op, err error) {
	key := func(row string) tables.Key { return tables.Key{Partition: partition(m.TenantID), Row: row} }
	switch m.Status {
	case StatusDead:
		ops = append(ops, tables.Delete(key(endRow(m)), ""))
	case StatusPending:
		e, waits, err := a.findPending(ctx, m)
		if err != nil {
			return nil, err
		}
		ops = append(ops, tables.Delete(e.Key, e.ETag))
		if m.RetryCount > 0 {
			ops = append(ops, tables.Delete(key(failedRow(m.CreatedAt, m.ID)), ""))
		}
		if !waits {
			more, _, err := a.o.dequeue(ctx, m)
			if err != nil {
				return nil, err
			}
			ops = append(ops, more...)
		}
	case StatusProcessed, StatusSkipped:
		return nil, fmt.Errorf("%w: it is %s already", ErrState, m.Status)
	}
	m.Status, m.IsProcessed, m.ProcessedAt = StatusSkipped, true, a.o.now()
	m.SkippedBy, m.NextAttemptAt, m.DeadAt = by, time.Time{}, time.Time{}
	m.indexRow = endRow(m)
	return append(ops, tables.Upsert(m.listEntity(m.indexRow))), nil
}

// findPending finds the p- or w- row of a pending message. A claim moves the row away from where the m- row says that
// it is; then all pending rows are searched. waits says that it is a w- row.
func (a *Admin) findPending(ctx context.Context, m *message) (e tables.Entity, waits bool, err error) {
	key := tables.Key{Partition: partition(m.TenantID), Row: m.indexRow}
	err = ErrNotFound
	if m.indexRow != "" {
		e, err = a.o.tables.Get(ctx, a.o.table, key)
	}
	if errors.Is(err, tables.ErrNotFound) || errors.Is(err, ErrNotFound) {
		e, err = a.searchPending(ctx, m)
	}
	if err != nil {
		return tables.Entity{}, false, err
	}
	if until := e.Time("ClaimedUntil"); until.Add(claimGrace).After(a.o.now()) {
		return tables.Entity{}, false, &ClaimedError{ID: m.ID, Until: until}
	}
	return e, e.Row[:len(waitingPrefix)] == waitingPrefix, nil
}

func (a *Admin) searchPending(ctx context.Context, m *message) (tables.Entity, error) {
	q := tables.Query{
		Partition: partition(m.TenantID), From: pendingPrefix, To: endOf(pendingPrefix), Where: map[string]any{"Id": m.ID},
	}
	for e, err := range tables.All(ctx, a.o.tables, a.o.table, q) {
		return e, err
	}
	// A settlement or a claim is changing the message at this moment: its m- row says more soon.
	return tables.Entity{}, &ClaimedError{ID: m.ID, Until: a.o.now()}
}
