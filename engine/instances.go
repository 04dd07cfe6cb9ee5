package engine

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/vibedata/roundhouse/tables"
)

const (
	// instancesPartition has a row for each engine whose rows are all in the index by instance, in either table. No escaped
	// name begins with ~.
	instancesPartition = "~instances"
	// throughColumn of such a row is the start time of the last update of the engine's index.
	throughColumn = "Through"
	// byInstanceColumn of an index row by status means that the row also has an index row by instance.
	byInstanceColumn = "ByInstance"
	// againBefore is the overlap of an update with the last one: rows have the time of the run, and are written
	// later.
	againBefore = time.Hour
	// rowsToIndex is the number of rows that an update reads in one query, and indexAtOnce the number that it indexes
	// in a transaction.
	rowsToIndex = 1000
	indexAtOnce = maxOps / 2
)

// instances knows the engines whose rows are all in the index by instance of one table, so that a list may rely on
// it. update adds the rows of programs without the index. It is safe for concurrent use.
type instances struct {
	store tables.Store
	table string

	mu    sync.Mutex
	ready map[string]bool
}

func newInstances(store tables.Store, table string) *instances {
	return &instances{store: store, table: table, ready: map[string]bool{}}
}

// instancePrefix returns the prefix of the index rows of one instance.
func instancePrefix(instanceID string) string {
	return indexMark + "i-" + digest(cleanText(instanceID)) + "-"
}

// instanceList returns the prefix of the index rows of one instance in one list.
func instanceList(instanceID, list string) string {
	return instancePrefix(instanceID) + list[:1] + "-"
}

// withInstance adds the index row by instance to the index rows of a main row, and marks the first one, which is by
// status. A row without an instance gets none.
func withInstance(rows []tables.Entity) []tables.Entity {
	id := rows[0].String("InstanceId")
	if id == "" {
		return rows
	}
	rows = append(rows, byInstance(rows[0]))
	rows[0].Properties[byInstanceColumn] = true
	return rows
}

// byInstance returns the index row by instance, given that by status.
func byInstance(index tables.Entity) tables.Entity {
	props := make(map[string]any, len(index.Properties)+1)
	for name, v := range index.Properties {
		if name != byInstanceColumn {
			props[name] = v
		}
	}
	row := instancePrefix(index.String("InstanceId")) + index.Row[len(indexMark):]
	return tables.Entity{Key: tables.Key{Partition: index.Partition, Row: row}, Properties: props}
}

// complete returns the engines whose rows are all in the index. It reads storage only for unknown engines, once for
// all.
func (i *instances) complete(ctx context.Context, engines []string) (map[string]bool, error) {
	i.mu.Lock()
	known := map[string]bool{}
	for _, engine := range engines {
		if i.ready[engine] {
			known[engine] = true
		}
	}
	i.mu.Unlock()
	if len(known) == len(engines) {
		return known, nil
	}
	for e, err := range tables.All(ctx, i.store, i.table, tables.Query{Partition: instancesPartition}) {
		if err != nil {
			return nil, fmt.Errorf("read which engines are indexed by instance: %w", err)
		}
		name, err := tables.UnescapeKey(e.Row)
		if err != nil {
			return nil, fmt.Errorf("read which engines are indexed by instance: %s: %w", e.Key, err)
		}
		i.learn(name)
		known[name] = true
	}
	return known, nil
}

func (i *instances) learn(engine string) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.ready[engine] = true
}

// begin declares the index complete for engines without rows.
func (i *instances) begin(ctx context.Context, engines []string, now time.Time) error {
	known, err := i.complete(ctx, engines)
	if err != nil {
		return err
	}
	for _, engine := range engines {
		if known[engine] {
			continue
		}
		page, err := i.store.Query(ctx, i.table, tables.Query{Partition: tables.EscapeKey(engine), Limit: 1})
		if err != nil {
			return fmt.Errorf("look for rows of %s in %s: %w", engine, i.table, err)
		}
		if len(page.Entities) > 0 || page.Next != "" {
			continue // update has to index them
		}
		if err := i.declare(ctx, engine, now); err != nil {
			return err
		}
	}
	return nil
}

func (i *instances) declare(ctx context.Context, engine string, through time.Time) error {
	row := tables.Entity{Key: tables.Key{Partition: instancesPartition, Row: tables.EscapeKey(engine)}, Properties: map[string]any{throughColumn: through.UTC()}}
	if err := i.store.Apply(ctx, i.table, tables.Upsert(row)); err != nil {
		return fmt.Errorf("note that %s is indexed by instance: %w", engine, err)
	}
	i.learn(engine)
	return nil
}

// update adds missing index rows by instance of an engine, in the given lists: the first time for all rows, later for
// those since the last update. A program without the index that runs next to this one may have written such rows. It
// may end at any point; the next call starts over and skips indexed rows.
func (i *instances) update(ctx context.Context, engine string, lists []string, now time.Time) error {
	marker, err := i.store.Get(ctx, i.table, tables.Key{Partition: instancesPartition, Row: tables.EscapeKey(engine)})
	if err != nil && !errors.Is(err, tables.ErrNotFound) {
		return fmt.Errorf("index %s by instance: %w", engine, err)
	}
	var since time.Time
	if err == nil {
		since = marker.Time(throughColumn).Add(-againBefore)
	}
	for _, list := range lists {
		from, to := indexRange(statusPrefix(list), since, time.Time{})
		q := tables.Query{Partition: tables.EscapeKey(engine), From: from, To: to, Limit: rowsToIndex}
		for first := true; first || q.Continuation != ""; first = false {
			page, err := i.store.Query(ctx, i.table, q)
			if err == nil {
				err = i.add(ctx, page.Entities)
			}
			if err != nil {
				return fmt.Errorf("index %s by instance: %w", engine, err)
			}
			q.Continuation = page.Next
		}
	}
	return i.declare(ctx, engine, now)
}

// add writes the index rows by instance for index rows by status, each in one transaction with its mark.
func (i *instances) add(ctx context.Context, rows []tables.Entity) error {
	rows = slices.DeleteFunc(rows, func(e tables.Entity) bool {
		marked, _ := e.Properties[byInstanceColumn].(bool)
		return marked || e.String("InstanceId") == ""
	})
	for some := range slices.Chunk(rows, indexAtOnce) {
		err := i.store.Apply(ctx, i.table, indexOps(some)...)
		if changed(err) {
			err = i.addEach(ctx, some)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// addEach is add one by one: a row that was changed or deleted meanwhile is skipped.
func (i *instances) addEach(ctx context.Context, rows []tables.Entity) error {
	for _, row := range rows {
		if err := i.store.Apply(ctx, i.table, indexOps([]tables.Entity{row})...); err != nil && !changed(err) {
			return err
		}
	}
	return nil
}

func changed(err error) bool {
	return errors.Is(err, tables.ErrPrecondition) || errors.Is(err, tables.ErrNotFound)
}

func indexOps(rows []tables.Entity) []tables.Op {
	ops := make([]tables.Op, 0, 2*len(rows))
	for _, row := range rows {
		other := byInstance(row)
		row.Properties[byInstanceColumn] = true // the ETag of the row keeps it as it was read
		ops = append(ops, tables.Replace(row), tables.Upsert(other))
	}
	return ops
}
