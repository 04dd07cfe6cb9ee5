package tables

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// Memory is a Store in memory with the service's promises and limits, for tests, simulations and benchmarks. Rows are
// ordered by their bytes. A page examines at most 1,000 rows, including those that a scan skips. So a query or scan
// with few matches has short and empty pages, as it may have in the service. Make one with NewMemory. Memory never
// frees deleted tables and partitions.
type Memory struct {
	version atomic.Uint64
	mu      sync.RWMutex
	tables  map[string]*memoryTable
}

var _ Store = (*Memory)(nil)

type memoryTable struct {
	mu         sync.RWMutex
	partitions map[string]*memoryPartition
	// ordered holds the partitions by key; it is nil after a partition was added, until the next scan.
	ordered []*memoryPartition
}

// usualOps is the size of most transactions.
const usualOps = 4

type memoryPartition struct {
	key  string
	mu   sync.RWMutex
	rows rows
}

// NewMemory returns an empty store.
func NewMemory() *Memory {
	return &Memory{tables: map[string]*memoryTable{}}
}

// CreateTable creates a table if it is missing. As in the service, names that differ in case only are one table.
func (m *Memory) CreateTable(ctx context.Context, table string) error {
	if err := cmp.Or(ctx.Err(), CheckTable(table)); err != nil {
		return fmt.Errorf("create table %s: %w", clip(table), err)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if name := strings.ToLower(table); m.tables[name] == nil {
		m.tables[name] = &memoryTable{partitions: map[string]*memoryPartition{}}
	}
	return nil
}

// Get reads one entity.
func (m *Memory) Get(ctx context.Context, table string, key Key) (Entity, error) {
	e, err := m.get(ctx, table, key)
	if err != nil {
		return Entity{}, fmt.Errorf("get %s %s: %w", table, key, err)
	}
	return e, nil
}

func (m *Memory) get(ctx context.Context, table string, key Key) (Entity, error) {
	if err := cmp.Or(ctx.Err(), CheckTable(table), CheckKey(key)); err != nil {
		return Entity{}, err
	}
	t, err := m.table(table)
	if err != nil {
		return Entity{}, err
	}
	p := t.partition(key.Partition)
	if p == nil {
		RecordResponse(ctx, time.Now(), "")
		return Entity{}, ErrNotFound
	}
	p.mu.RLock()
	row := p.rows.get(key.Row)
	p.mu.RUnlock()
	if row == nil {
		RecordResponse(ctx, time.Now(), "")
		return Entity{}, ErrNotFound
	}
	found := row.entity(key.Partition, nil)
	RecordResponse(ctx, time.Now(), found.ETag)
	return found, nil
}

// Apply applies all operations or none.
func (m *Memory) Apply(ctx context.Context, table string, ops ...Op) error {
	if err := m.apply(ctx, table, ops); err != nil {
		return fmt.Errorf("apply to %s: %w", table, err)
	}
	return nil
}

func (m *Memory) apply(ctx context.Context, table string, ops []Op) error {
	if err := cmp.Or(ctx.Err(), CheckTable(table), CheckOps(ops)); err != nil {
		return err
	}
	t, err := m.table(table)
	if err != nil {
		return err
	}
	// Make the new rows before taking the lock, to hold it for a shorter time.
	var room [usualOps]*row // most transactions need no more
	news := append(room[:0], make([]*row, len(ops))...)
	for i := range ops {
		if e := &ops[i].Entity; ops[i].Kind != OpDelete {
			news[i] = newRow(e.Row, m.version.Add(1), e.Properties)
		}
	}
	p := t.makePartition(ops[0].Entity.Partition)
	p.mu.Lock()
	defer p.mu.Unlock()
	for i := range ops {
		if err := p.allows(&ops[i]); err != nil {
			RecordResponse(ctx, time.Now(), "")
			return &OpError{Index: i, Key: ops[i].Entity.Key, Err: err}
		}
	}
	for i := range ops {
		if news[i] == nil {
			p.rows.remove(ops[i].Entity.Row)
		} else {
			p.rows.put(news[i])
		}
	}
	etag := ""
	if len(ops) == 1 && news[0] != nil {
		etag = news[0].etag()
	}
	RecordResponse(ctx, time.Now(), etag)
	return nil
}

// allows returns an error unless the operation's condition holds. The rows of a transaction differ, so each operation
// can be checked alone.
func (p *memoryPartition) allows(op *Op) error {
	if op.Kind == OpUpsert {
		return nil
	}
	old := p.rows.get(op.Entity.Row)
	switch {
	case op.Kind == OpInsert && old != nil:
		return ErrExists
	case op.Kind == OpInsert:
		return nil
	case old == nil:
		return ErrNotFound
	case op.Entity.ETag != "" && op.Entity.ETag != old.etag():
		return ErrPrecondition
	}
	return nil
}

func (m *Memory) table(name string) (*memoryTable, error) {
	m.mu.RLock()
	defer m.mu.RUnlock()
	if t := m.tables[strings.ToLower(name)]; t != nil {
		return t, nil
	}
	return nil, fmt.Errorf("%w: there is no such table", ErrNotFound)
}

func (t *memoryTable) partition(key string) *memoryPartition {
	t.mu.RLock()
	defer t.mu.RUnlock()
	return t.partitions[key]
}

func (t *memoryTable) makePartition(key string) *memoryPartition {
	if p := t.partition(key); p != nil {
		return p
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	p := t.partitions[key]
	if p == nil {
		p = &memoryPartition{key: key}
		t.partitions[key], t.ordered = p, nil
	}
	return p
}

// entity copies a row without a lock: a stored row never changes, because a write replaces it.
func (r *row) entity(partition string, selected []string) Entity {
	return Entity{
		Key:        Key{Partition: partition, Row: r.key},
		ETag:       r.etag(),
		Properties: copied(r.props, selected),
	}
}

// etag returns the row's version as an ETag. It is made on demand, because few writers need it.
func (r *row) etag() string { return `W/"` + strconv.FormatUint(r.version, 10) + `"` }

func (r *row) matches(where map[string]any) bool {
	for name, want := range where {
		if !equalValue(r.value(name), want) {
			return false
		}
	}
	return true
}

// notBefore reports whether the row has these times or later ones.
func (r *row) notBefore(times map[string]time.Time) bool {
	for name, since := range times {
		if at, ok := r.value(name).(time.Time); !ok || at.Before(since) {
			return false
		}
	}
	return true
}

// value returns the value of a property, nil for a missing one.
func (r *row) value(name string) any {
	for _, p := range r.props {
		if p.name == name {
			return p.value
		}
	}
	return nil
}

func equalValue(have, want any) bool {
	switch want := want.(type) {
	case []byte:
		have, ok := have.([]byte)
		return ok && bytes.Equal(have, want)
	case time.Time:
		have, ok := have.(time.Time)
		return ok && have.Equal(storedTime(want))
	}
	return have == want
}
