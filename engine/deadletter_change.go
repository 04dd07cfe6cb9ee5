package engine

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/vibedata/roundhouse/tables"
)

// changeTries bounds the repeats of a change after concurrent writes.
const changeTries = 8

// MaxResolutionNotes bounds the notes of a dead letter, and MaxIdentity the name of the decider, in bytes.
const (
	MaxResolutionNotes = 4 << 10
	MaxIdentity        = 256
)

// Decision is an operator's decision about a dead letter (standard, section 3).
type Decision struct {
	// Status is the new status. Pending can become Resolved or Expired, Expired can become Pending or Resolved, and
	// Resolved can become Pending. Each may keep its status and get other notes. A dead letter that becomes Pending
	// again loses the record of its resolution.
	Status DeadLetterStatus
	// Notes replace the existing ones; nil keeps those.
	Notes *string
	// By is the decider.
	By string
	// At is the time of the decision; required.
	At time.Time
	// IfMatch is the ETag that the row must have, "" for any.
	IfMatch string
}

// transitions lists the statuses that a Decision can set, by the current status.
func transitions() map[DeadLetterStatus][]DeadLetterStatus {
	return map[DeadLetterStatus][]DeadLetterStatus{
		StatusPending:  {StatusPending, StatusResolved, StatusExpired},
		StatusExpired:  {StatusExpired, StatusPending, StatusResolved},
		StatusResolved: {StatusResolved, StatusPending},
	}
}

// Decide changes the status of a dead letter, and returns the changed dead letter. The row, its index rows and the
// counts change together. The errors are ErrNotFound, ErrChanged, ErrState, ErrFilter for a decision out of bounds, and
// those of the store.
func (d *DeadLetters) Decide(ctx context.Context, engine, rowKey string, decision Decision) (DeadLetter, error) {
	if err := decision.check(); err != nil {
		return DeadLetter{}, fmt.Errorf("decide on dead letter: %w", err)
	}
	letter, done, err := d.askOwner(ctx, engine, rowKey, decision)
	if err != nil {
		return DeadLetter{}, fmt.Errorf("decide on dead letter: %w", err)
	}
	if done {
		return letter, nil
	}
	written := false
	_, err = d.change(ctx, engine, rowKey, func(l *DeadLetter) (bool, error) {
		want := *l
		decision.apply(&want)
		if written && maps.EqualFunc(want.decided(), l.decided(), same) {
			return false, nil // an earlier write was applied, and its answer was lost
		}
		if err := decision.allowed(*l); err != nil {
			return false, err
		}
		written, *l = true, want
		return true, nil
	})
	if err != nil {
		return DeadLetter{}, fmt.Errorf("decide on dead letter: %w", err)
	}
	return d.Get(ctx, engine, rowKey)
}

// allowed returns the reason why the current dead letter does not allow the decision, nil if it does.
func (c Decision) allowed(l DeadLetter) error {
	if c.IfMatch != "" && c.IfMatch != l.ETag {
		return ErrChanged
	}
	if !slices.Contains(transitions()[l.Status], c.Status) {
		return fmt.Errorf("%w: it is %s, which does not become %s", ErrState, l.Status, c.Status)
	}
	return nil
}

func (c Decision) check() error {
	switch {
	case transitions()[c.Status] == nil:
		return fmt.Errorf("%w: status %q: use Pending, Resolved or Expired", ErrFilter, clip(string(c.Status), 32))
	case c.Notes != nil && len(*c.Notes) > MaxResolutionNotes:
		return fmt.Errorf("%w: resolutionNotes: use at most %d bytes", ErrFilter, MaxResolutionNotes)
	case c.At.IsZero():
		return fmt.Errorf("%w: the decision has no time", ErrFilter)
	}
	return nil
}

// apply applies the decision to a dead letter.
func (c Decision) apply(l *DeadLetter) {
	if c.Status != l.Status {
		l.RetryID, l.RetriedAtUtc, l.RetriedBy, l.RetryMessageID, l.SentMessage = "", time.Time{}, "", "", nil
		l.ResolutionNotes, l.ResolvedAtUtc, l.ResolvedBy, l.ExpiredAtUtc = "", time.Time{}, "", time.Time{}
		switch c.Status {
		case StatusResolved:
			l.ResolvedAtUtc, l.ResolvedBy = truncateMicros(c.At), clip(c.By, MaxIdentity)
		case StatusExpired:
			l.ExpiredAtUtc, l.ResolvedBy = truncateMicros(c.At), clip(c.By, MaxIdentity)
		case StatusPending:
		}
	}
	l.Status = c.Status
	if c.Notes != nil {
		l.ResolutionNotes = cleanText(Redact(*c.Notes))
	}
}

// same compares column values; times are equal when they are the same instant.
func same(a, b any) bool {
	if t, ok := a.(time.Time); ok {
		u, ok := b.(time.Time)
		return ok && t.Equal(u)
	}
	return a == b
}

// change reads a dead letter and lets edit change its fields in decidedColumns. It writes the row, its index rows and
// its count in one transaction. change calls edit again after a concurrent write, or when the outcome of a write is
// unknown; edit reports whether anything changed.
func (d *DeadLetters) change(ctx context.Context, engine, rowKey string, edit func(l *DeadLetter) (bool, error)) (DeadLetter, error) {
	key, ok := mainKey(engine, rowKey)
	if !ok {
		return DeadLetter{}, ErrNotFound
	}
	for try := 1; ; try++ {
		e, err := d.store.Get(ctx, d.table, key)
		if errors.Is(err, tables.ErrNotFound) {
			err = ErrNotFound
		}
		if err != nil {
			return DeadLetter{}, fmt.Errorf("read %s: %w", key, err)
		}
		before, err := deadLetterOf(e)
		if err != nil {
			return DeadLetter{}, err
		}
		before.ETag = e.ETag
		after := before
		write, err := edit(&after)
		if err != nil || !write {
			return after, err
		}
		err = d.replace(ctx, e, before, after)
		if err == nil {
			return after, nil
		}
		again := errors.Is(err, tables.ErrPrecondition) || errors.Is(err, tables.ErrExists) || errors.Is(err, tables.ErrNotFound) ||
			errors.Is(err, tables.ErrOutcomeUnknown)
		if !again || try == changeTries {
			return DeadLetter{}, fmt.Errorf("change %s: %w", key, err)
		}
		if err := pause(ctx, time.Duration(try)*countPause); err != nil {
			return DeadLetter{}, err
		}
	}
}

// replace writes a changed dead letter. Unknown columns are kept.
func (d *DeadLetters) replace(ctx context.Context, e tables.Entity, before, after DeadLetter) error {
	old := map[string]bool{}
	for _, row := range before.indexRows(e) {
		old[row.Row] = true
	}
	main := tables.Entity{Key: e.Key, ETag: e.ETag, Properties: maps.Clone(e.Properties)}
	for _, name := range slices.Concat(decidedColumns(), sentColumns()) {
		delete(main.Properties, name)
	}
	maps.Copy(main.Properties, after.decided())
	after.putHeld(main.Properties)
	moved := before.Assignee != after.Assignee // a column of the index rows, too
	if before.Status == after.Status && !moved && before.endedAt().Equal(after.endedAt()) {
		return d.store.Apply(ctx, d.table, tables.Replace(main)) // the index rows do not contain the changed columns
	}
	ops := []tables.Op{tables.Replace(main)}
	for _, row := range after.indexRows(main) {
		ops = append(ops, tables.Upsert(row))
		delete(old, row.Row)
	}
	for _, row := range slices.Sorted(maps.Keys(old)) {
		ops = append(ops, tables.Delete(tables.Key{Partition: e.Partition, Row: row}, ""))
	}
	if before.Status == after.Status && len(old) == 0 {
		return d.store.Apply(ctx, d.table, ops...)
	}
	return d.applyCounted(ctx, e.Key, before, before.Status, after.Status, ops...)
}
