package outbox

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/vibedata/roundhouse/tables"
)

// adminTries bounds how often a change starts over after a concurrent change of the message.
const adminTries = 8

// Action is an operator's action on a message. The dead letter of the message follows it.
type Action string

// These are the actions.
const (
	// ActionRetry restarts a dead message with no failures counted, and makes a pending one due now.
	ActionRetry Action = "retry"
	// ActionSkip ends a pending or dead message without delivering it.
	ActionSkip Action = "skip"
	// ActionReplay delivers an ended message again, under the same key: receivers that have seen it drop it. For a pending
	// message it is ActionRetry.
	ActionReplay Action = "replay"
	// ActionReopen makes a skipped message dead again if it had a dead letter.
	ActionReopen Action = "reopen"
)

// Decision describes an operator's decision. The zero Decision is valid.
type Decision struct {
	// By is the operator, Notes are the reasons. The dead letter has them.
	By, Notes string
	// At is the time of the decision; zero means now.
	At time.Time
	// Letter is the dead letter of the decision. If it is not the latest of the message, or the message has no open one,
	// the action fails with ErrState. "" accepts any letter.
	Letter string
	// Expire makes ActionSkip end the dead letter as abandoned.
	Expire bool
}

// Admin is for operators (outbox document, "API (Optional Admin)"). It is safe for concurrent use.
type Admin struct {
	o *Outbox
}

// NewAdmin returns an Admin.
func NewAdmin(o *Outbox) *Admin { return &Admin{o} }

// Get reads one message with its payload and its attempts. The errors are ErrInvalid, ErrNotFound, ErrSchemaVersion,
// ErrCorrupt and those of the stores.
func (a *Admin) Get(ctx context.Context, tenant, id string) (Record, error) {
	m, err := a.read(ctx, tenant, id)
	if err == nil {
		m.Payload, err = a.o.payload(ctx, m)
	}
	if err != nil {
		return Record{}, fmt.Errorf("get message %s: %w", clip(id, 64), err)
	}
	return m.Record, nil
}

// Look is Get without the payload, however large that is.
func (a *Admin) Look(ctx context.Context, tenant, id string) (Record, error) {
	m, err := a.read(ctx, tenant, id)
	if err != nil {
		return Record{}, fmt.Errorf("look at message %s: %w", clip(id, 64), err)
	}
	m.Payload = nil
	return m.Record, nil
}

// read loads a message. An open circuit postpones the index rows of a message and not its m- row. So if the m- row
// shows a message as due, the time of its next attempt is that of its f- row or, without one, of its p- row, which
// costs one query. For a tenant with thousands of postponed messages it may remain the time of the m- row.
func (a *Admin) read(ctx context.Context, tenant, id string) (*message, error) {
	m, _, err := a.o.load(ctx, tenant, id)
	if now := a.o.now(); err == nil && m.Status == StatusPending && !m.NextAttemptAt.After(now) {
		var at tables.Entity
		if m.hasFailed() {
			at, err = a.o.tables.Get(ctx, a.o.table, tables.Key{Partition: partition(m.TenantID), Row: failedRow(m.CreatedAt, m.ID)})
		} else {
			q := tables.Query{
				Partition: partition(m.TenantID), From: pendingPrefix + digits(now), To: endOf(pendingPrefix), Where: map[string]any{"Id": m.ID}, Limit: 1,
			}
			var page tables.Page
			if page, err = a.o.tables.Query(ctx, a.o.table, q); len(page.Entities) > 0 {
				at = page.Entities[0]
			}
		}
		if errors.Is(err, tables.ErrNotFound) {
			err = nil // it has just been settled
		}
		if next := at.Time("NextAttemptAt"); next.After(m.NextAttemptAt) {
			m.NextAttemptAt = next
		}
	}
	return m, err
}

// Retry applies ActionRetry to one message; by is who decided. The errors are those of Act.
func (a *Admin) Retry(ctx context.Context, tenant, id, by string) error {
	return a.Act(ctx, ActionRetry, tenant, id, Decision{By: by})
}

// Skip applies ActionSkip to one message; by is the operator. The errors are those of Act.
func (a *Admin) Skip(ctx context.Context, tenant, id, by string) error {
	return a.Act(ctx, ActionSkip, tenant, id, Decision{By: by})
}

// Replay applies ActionReplay to one message; by is the operator. The errors are those of Act.
func (a *Admin) Replay(ctx context.Context, tenant, id, by string) error {
	return a.Act(ctx, ActionReplay, tenant, id, Decision{By: by})
}

// Act applies an action to one message. After it has returned nil, its dead letter shows the action, at the latest
// after the next sweep. The errors are ErrInvalid, ErrNotFound, ErrClaimed, ErrState for a message whose status does
// not allow it (one that is processed or skipped is replayed, not retried), ErrSchemaVersion, ErrBusy and those of the
// stores and of Letters.
func (a *Admin) Act(ctx context.Context, action Action, tenant, id string, d Decision) error {
	err := errors.Join(checkID("name of who decides", d.By, false), checkNotes(d.Notes))
	if d.At.IsZero() {
		d.At = a.o.now()
	}
	d.At = truncated(d.At)
	token := nonce()
	for try := 0; err == nil; try++ {
		var done bool
		if done, err = a.tryAct(ctx, action, tenant, id, d, token); done {
			break
		}
		if err == nil && try == adminTries {
			err = ErrBusy
		}
	}
	if err != nil {
		return fmt.Errorf("%s message %s: %w", action, clip(id, 64), err)
	}
	if action == ActionRetry || action == ActionReplay {
		a.o.wake.notify(ctx, tenant)
	}
	return nil
}

// checkNotes bounds notes to the size of a row.
func checkNotes(notes string) error {
	if len(notes) > MaxNotes {
		return fmt.Errorf("%w: the notes have %d bytes of at most %d", ErrInvalid, len(notes), MaxNotes)
	}
	return nil
}

// tryAct applies an action once. The token in the row shows whether a write with a lost answer was applied.
func (a *Admin) tryAct(ctx context.Context, action Action, tenant, id string, d Decision, token string) (done bool, err error) {
	m, etag, err := a.o.load(ctx, tenant, id)
	if err != nil {
		return false, err
	}
	if m.owed != nil { // its letter has to show the previous change before the next one
		applied := m.settlement == token
		_, err = a.o.pay(ctx, tenant, id)
		return applied, ifNot(applied, err)
	}
	if m.settlement == token {
		return true, nil
	}
	ops, err := a.change(ctx, m, action, d)
	if err != nil || len(ops) == 0 {
		return err == nil, err
	}
	if m.owed != nil {
		ops = append(ops, m.owedOp())
	}
	m.settlement = token
	row := m.entity()
	row.ETag = etag
	err = a.o.applyOpen(ctx, tenant, append(ops, tables.Replace(row))...)
	if err != nil && needsReread(err) {
		return false, nil
	}
	if err == nil && m.owed != nil {
		_, _ = a.o.pay(ctx, tenant, id) // logged; the action is done, and the sweep pays the debt
	}
	return err == nil, err
}

// ifNot returns err unless done.
func ifNot(done bool, err error) error {
	if done {
		return nil
	}
	return err
}

// change changes a message, and returns the operations besides that on its m- row, none if no change is needed.
func (a *Admin) change(ctx context.Context, m *message, action Action, d Decision) ([]tables.Op, error) {
	if m.SchemaVersion == 0 {
		return nil, fmt.Errorf("%w: its row is older than idempotency keys: run `roundhouse outbox backfill`", ErrState)
	}
	if d.Letter != "" && (m.DeadLetter != "" && m.DeadLetter != d.Letter || m.hasLetter() == (action == ActionReopen)) {
		return nil, fmt.Errorf("%w: it is %s, and the dead letter is not about that", ErrState, m.Status)
	}
	switch action {
	case ActionRetry, ActionReplay:
		return a.makeDue(ctx, m, action, d)
	case ActionSkip:
		return a.skip(ctx, m, d)
	case ActionReopen:
		return a.reopen(m, d)
	}
	return nil, fmt.Errorf("%w: action %q: use retry, skip, replay or reopen", ErrInvalid, clip(string(action), 32))
}

// makeDue makes a message due now.
func (a *Admin) makeDue(ctx context.Context, m *message, action Action, d Decision) ([]tables.Op, error) {
	if m.Status == StatusPending {
		return a.makeDueNow(ctx, m, d)
	}
	if m.Status != StatusDead && action == ActionRetry {
		return nil, fmt.Errorf("%w: it is %s: replay it", ErrState, m.Status)
	}
	ops := []tables.Op{tables.Delete(tables.Key{Partition: partition(m.TenantID), Row: endRow(m)}, "")}
	if m.Status == StatusDead {
		m.owe(debt{Close: ClosedRetried, By: d.By, Notes: d.Notes, At: d.At})
	}
	m.revive(d.At)
	m.Status, m.IsProcessed, m.ProcessedAt, m.DeadAt = StatusPending, false, time.Time{}, time.Time{}
	m.RetryCount, m.givenUp, m.SkippedBy, m.Error = 0, "", "", ""
	m.NextAttemptAt = a.o.now()
	more, err := a.o.enqueue(ctx, m, nil, false)
	return append(ops, more...), err
}

// revive starts another life of the message.
func (m *message) revive(at time.Time) {
	if began := m.began(); !at.After(began) {
		at = began.Add(time.Microsecond) // each life has its own dead letter, named by its start
	}
	m.RevivedAt = at
}

// makeDueNow makes a pending message due now. A message that waits for its order key keeps waiting. A message that
// waits for configuration and has a dead letter starts a new wait.
func (a *Admin) makeDueNow(ctx context.Context, m *message, d Decision) ([]tables.Op, error) {
	e, waits, err := a.findPending(ctx, m)
	if err != nil || waits {
		return nil, err
	}
	failed := tables.Key{Partition: partition(m.TenantID), Row: failedRow(m.CreatedAt, m.ID)}
	hadFailed := m.hasFailed()
	if m.hasLetter() {
		m.owe(debt{Close: ClosedRetried, By: d.By, Notes: d.Notes, At: d.At})
		m.revive(d.At)
		m.ReportedAt, m.WaitsSince = time.Time{}, time.Time{}
	}
	if !m.hasFailed() {
		m.Error = ""
	}
	m.NextAttemptAt = a.o.now()
	m.indexRow = pendingRow(m.NextAttemptAt, m.ID)
	ops := []tables.Op{tables.Delete(e.Key, e.ETag), tables.Insert(m.pendingEntity(m.indexRow))}
	switch {
	case m.hasFailed():
		ops = append(ops, m.failedOp())
	case hadFailed:
		ops = append(ops, tables.Delete(failed, ""))
	}
	return ops, nil
}

// skip ends a message without delivering it.
func (a *Admin) skip(ctx context.Context, m *message, d Decision) (ops []tables.Op, err error) {
	key := func(row string) tables.Key { return tables.Key{Partition: partition(m.TenantID), Row: row} }
	switch m.Status {
	case StatusDead:
		ops = append(ops, tables.Delete(key(endRow(m)), ""))
	case StatusPending:
		if ops, err = a.takePending(ctx, m); err != nil {
			return nil, err
		}
	case StatusProcessed, StatusSkipped:
		return nil, fmt.Errorf("%w: it is %s already", ErrState, m.Status)
	}
	if m.hasLetter() {
		as := ClosedSkipped
		if d.Expire {
			as = ClosedExpired
		}
		m.owe(debt{Close: as, By: d.By, Notes: d.Notes, At: d.At})
	}
	m.Status, m.IsProcessed, m.ProcessedAt = StatusSkipped, true, a.o.now()
	m.SkippedBy, m.NextAttemptAt, m.DeadAt = d.By, time.Time{}, time.Time{}
	m.WaitsSince, m.ReportedAt = time.Time{}, time.Time{}
	m.indexRow = endRow(m)
	return append(ops, tables.Upsert(m.listEntity(m.indexRow))), nil
}

// takePending returns the operations that remove a pending message from the index.
func (a *Admin) takePending(ctx context.Context, m *message) ([]tables.Op, error) {
	e, waits, err := a.findPending(ctx, m)
	if err != nil {
		return nil, err
	}
	ops := []tables.Op{tables.Delete(e.Key, e.ETag)}
	if m.hasFailed() {
		ops = append(ops, tables.Delete(tables.Key{Partition: partition(m.TenantID), Row: failedRow(m.CreatedAt, m.ID)}, ""))
	}
	if waits {
		return ops, nil
	}
	more, _, err := a.o.dequeue(ctx, m)
	return append(ops, more...), err
}

// reopen makes a skipped message dead again, with its former dead letter.
func (a *Admin) reopen(m *message, d Decision) ([]tables.Op, error) {
	if m.Status != StatusSkipped || m.DeadLetter == "" {
		return nil, fmt.Errorf("%w: it is %s, and not skipped with a dead letter", ErrState, m.Status)
	}
	ops := []tables.Op{tables.Delete(tables.Key{Partition: partition(m.TenantID), Row: endRow(m)}, "")}
	m.owe(debt{Reopen: m.DeadLetter, By: d.By, At: d.At})
	m.givenUp = cmp.Or(m.givenUp, string(ReasonMisconfigured))
	m.Status, m.IsProcessed, m.ProcessedAt, m.SkippedBy, m.DeadAt = StatusDead, false, time.Time{}, "", a.o.now()
	m.indexRow = endRow(m)
	return append(ops, tables.Upsert(m.listEntity(m.indexRow))), nil
}

// findPending finds the p- or w- row of a pending message. A claim moves the row away from the place in the m- row;
// then all pending rows are searched. waits is true for a w- row.
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
	// A settlement or a claim is changing the message right now: its m- row will show the result soon.
	return tables.Entity{}, &ClaimedError{ID: m.ID, Until: a.o.now()}
}
