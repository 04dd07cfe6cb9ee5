package engine

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/vibedata/roundhouse/internal/faults"
	"github.com/vibedata/roundhouse/tables"
)

// watchedStore counts the calls to a real store, and can refuse some of them.
type watchedStore struct {
	tables.Store
	mu       sync.Mutex
	queries  int
	entities int
	applied  [][]tables.Op
	// refuse, when set, answers an Apply in place of the store.
	refuse func(ops []tables.Op) error
}

func (s *watchedStore) Query(ctx context.Context, table string, q tables.Query) (tables.Page, error) {
	page, err := s.Store.Query(ctx, table, q)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.queries++
	s.entities += len(page.Entities)
	return page, err
}

func (s *watchedStore) Apply(ctx context.Context, table string, ops ...tables.Op) error {
	s.mu.Lock()
	refuse := s.refuse
	s.mu.Unlock()
	if refuse != nil {
		if err := refuse(ops); err != nil {
			return err
		}
	}
	s.mu.Lock()
	s.applied = append(s.applied, faults.Copied(ops))
	s.mu.Unlock()
	return s.Store.Apply(ctx, table, ops...)
}

// reset sets the counts to zero.
func (s *watchedStore) reset() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.queries, s.entities, s.applied = 0, 0, nil
}

// fataler is the common part of tests and rapid's checks.
type fataler interface {
	Helper()
	Fatalf(format string, args ...any)
}

// newTables makes both tables on a store in memory.
func newTables(t fataler) (*watchedStore, *History, *DeadLetters) {
	t.Helper()
	store := &watchedStore{Store: tables.NewMemory()}
	history, letters := NewHistory(store, ""), NewDeadLetters(store, "")
	if err := history.CreateTable(context.Background()); err != nil {
		t.Fatalf("create: %v", err)
	}
	if err := letters.CreateTable(context.Background()); err != nil {
		t.Fatalf("create: %v", err)
	}
	return store, history, letters
}

// addLetter adds a dead letter.
func addLetter(t fataler, letters *DeadLetters, d DeadLetter) {
	t.Helper()
	if _, err := letters.Add(context.Background(), d); err != nil {
		t.Fatalf("add: %v", err)
	}
}

// recordEntries records entries of the history.
func recordEntries(t fataler, history *History, entries ...Entry) {
	t.Helper()
	if err := history.Record(context.Background(), entries...); err != nil {
		t.Fatalf("record: %v", err)
	}
}

// allRows reads the stored rows of a partition.
func allRows(t *testing.T, store tables.Store, table, partition string) []tables.Entity {
	t.Helper()
	var rows []tables.Entity
	for e, err := range tables.All(t.Context(), store, table, tables.Query{Partition: partition}) {
		if err != nil {
			t.Fatalf("read %s: %v", table, err)
		}
		e.ETag = ""
		rows = append(rows, e)
	}
	return rows
}

// noon returns the time around which tests put their rows.
func noon() time.Time { return time.Date(2026, 11, 21, 12, 0, 0, 123_456_000, time.UTC) }
