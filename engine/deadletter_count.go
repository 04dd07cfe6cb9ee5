package engine

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/vibedata/roundhouse/tables"
)

const (
	// countTries bounds the tries of a transaction whose count row changes at the same time. countPause bounds the
	// pause before the second try; later pauses are longer. With sixteen count rows per engine, conflicts are rare.
	countTries = 20
	countPause = 10 * time.Millisecond
)

// DeadLetterCounts holds the numbers of dead letters of an engine by status.
type DeadLetterCounts struct {
	Engine                     string
	Pending, Resolved, Expired int64
}

// Counts returns the counts of the engines, in their order. They are exact, because every change of a row changes its
// count in the same transaction. The cost is one query an engine, for any number of dead letters.
func (d *DeadLetters) Counts(ctx context.Context, engines []string) ([]DeadLetterCounts, error) {
	counts := make([]DeadLetterCounts, 0, len(engines))
	for _, engine := range engines {
		c := DeadLetterCounts{Engine: engine}
		rows, err := d.countRows(ctx, engine)
		if err != nil {
			return nil, err
		}
		for _, e := range rows {
			c.Pending += e.Int(string(StatusPending))
			c.Resolved += e.Int(string(StatusResolved))
			c.Expired += e.Int(string(StatusExpired))
		}
		counts = append(counts, c)
	}
	return counts, nil
}

// TenantCounts is Counts for the dead letters of one tenant, compared without case; "" is the platform, which sees
// all. A tenant's dead letters are counted by its index rows, with a query for each engine, status and thousand of
// them.
func (d *DeadLetters) TenantCounts(ctx context.Context, engines []string, tenantID string) ([]DeadLetterCounts, error) {
	if tenantID == "" {
		return d.Counts(ctx, engines)
	}
	counts := make([]DeadLetterCounts, len(engines))
	for i, engine := range engines {
		counts[i].Engine = engine
		for status, n := range map[DeadLetterStatus]*int64{StatusPending: &counts[i].Pending, StatusResolved: &counts[i].Resolved, StatusExpired: &counts[i].Expired} {
			prefix := tenantPrefix(tenantID, string(status))
			q := tables.Query{Partition: tables.EscapeKey(engine), From: prefix, To: tables.PrefixEnd(prefix), Select: []string{tenantColumn}}
			for _, err := range tables.All(ctx, d.store, d.table, q) {
				if err != nil {
					return nil, fmt.Errorf("count dead letters of %s: %w", engine, err)
				}
				*n++
			}
		}
	}
	return counts, nil
}

// applyCounted applies changes of the rows of one dead letter, and moves the dead letter from one status to another
// in its count row, in one transaction; "" means no dead letter. It retries when the count row changes at the same
// time, and when an index row to be deleted is missing: then a program without the index by tenant has changed the
// dead letter. The caller handles all other errors.
func (d *DeadLetters) applyCounted(ctx context.Context, main tables.Key, letter DeadLetter, from, to DeadLetterStatus, ops ...tables.Op) error {
	for try := 1; ; try++ {
		count, err := d.countOp(ctx, main, letter, from, to)
		if err != nil {
			return err
		}
		err = d.store.Apply(ctx, d.table, append(ops[:len(ops):len(ops)], count)...)
		if rest, missing := withoutMissing(ops, err); missing {
			ops = rest
			continue
		}
		var blamed *tables.OpError
		lost := errors.As(err, &blamed) && blamed.Key == count.Entity.Key
		if !lost || try == countTries {
			return err
		}
		if err := pause(ctx, time.Duration(try)*countPause); err != nil {
			return err
		}
	}
}

// withoutMissing returns the operations without the one that failed because its index row is already deleted; missing
// reports whether err is of this kind.
func withoutMissing(ops []tables.Op, err error) (rest []tables.Op, missing bool) {
	var blamed *tables.OpError
	if !errors.As(err, &blamed) || !errors.Is(err, tables.ErrNotFound) || !strings.HasPrefix(blamed.Key.Row, indexMark) || blamed.Index >= len(ops) {
		return ops, false
	}
	return slices.Delete(slices.Clone(ops), blamed.Index, blamed.Index+1), true
}

// countOp returns the change of the count row of a dead letter, its causes included. A row with incomplete causes
// gets none: recount adds them.
func (d *DeadLetters) countOp(ctx context.Context, main tables.Key, letter DeadLetter, from, to DeadLetterStatus) (tables.Op, error) {
	key := tables.Key{Partition: main.Partition, Row: countRow(main.Row)}
	e, err := d.store.Get(ctx, d.table, key)
	change := tables.Replace
	if errors.Is(err, tables.ErrNotFound) {
		change, e, err = tables.Insert, tables.Entity{Key: key, Properties: map[string]any{}}, nil
	}
	if err != nil {
		return tables.Op{}, fmt.Errorf("count dead letters in %s: %w", key, err)
	}
	causes, ok := causesOf(e)
	if ok {
		causes, _ = moveCause(causes, letter, from, to)
	} else {
		causes = nil
	}
	putCauses(e, causes)
	if from != "" {
		e.Properties[string(from)] = max(0, e.Int(string(from))-1)
	}
	if to != "" {
		e.Properties[string(to)] = e.Int(string(to)) + 1
	}
	return change(e), nil
}

// pause waits for up to d, or for the end of ctx.
func pause(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(rand.N(d) + time.Millisecond)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
