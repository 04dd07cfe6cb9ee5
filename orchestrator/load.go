package orchestrator

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/vibedata/roundhouse/blobs"
	"github.com/vibedata/roundhouse/tables"
)

// loadTries bounds how often rows are read again because they change meanwhile.
const loadTries = 5

// load reads all executions of an orchestration, oldest first; none if the orchestration does not exist, or is being
// purged.
func (j *journal) load(ctx context.Context, id string) ([]storedExecution, error) {
	all, _, err := j.loadTagged(ctx, id)
	return all, err
}

// loadTagged is load, with the ETag of the status row, which changes with every round.
func (j *journal) loadTagged(ctx context.Context, id string) ([]storedExecution, string, error) {
	all, status, err := j.loadWith(ctx, id)
	return all, status.ETag, err
}

// loadStored is load, with the status row. Reading the rows may take several requests, and other processes may add
// rows and delete old ones between them. So an inconsistency is damage only if it is the same after reading again.
func (j *journal) loadStored(ctx context.Context, id string) ([]storedExecution, tables.Entity, error) {
	all, status, err := j.loadOnce(ctx, id)
	for try := 1; errors.Is(err, ErrCorrupt) && try < loadTries; try++ {
		before := status.ETag
		if all, status, err = j.loadOnce(ctx, id); status.ETag == before {
			break
		}
	}
	if err != nil {
		return nil, tables.Entity{}, fmt.Errorf("load orchestration %s: %w", id, err)
	}
	return all, status, nil
}

// loadOnce is loadStored without reading again. It returns the status row with an error, too. For an orchestration
// that is being purged, it returns a row without properties with the key purgeRow instead.
func (j *journal) loadOnce(ctx context.Context, id string) ([]storedExecution, tables.Entity, error) {
	rows, status, err := j.rows(ctx, id)
	if err == nil && beingPurged(rows) {
		return nil, tables.Entity{Key: tables.Key{Partition: rows[0].Partition, Row: purgeRow}}, nil
	}
	if err == nil {
		err = j.fillBlobs(ctx, id, rows)
	}
	if err != nil {
		return nil, status, err
	}
	all, err := decodeExecutions(rows)
	if err != nil {
		return nil, status, err
	}
	switch n, version := int64(roundCount(all)), status.Int("StateVersion"); {
	case n == version:
	case version == 0:
		return nil, status, fmt.Errorf("there are %d rounds, and no status row: %w", n, ErrCorrupt)
	default:
		return nil, status, fmt.Errorf("the status counts %d rounds, there are %d; round %d is missing: %w", version, n, n+1, ErrCorrupt)
	}
	if err := j.fetch(ctx, id, all); err != nil {
		return nil, status, err
	}
	return all, status, resolveReused(all)
}

// rows reads the stored rounds and the status row. When a purge has begun, its row comes first.
func (j *journal) rows(ctx context.Context, id string) (rows []tables.Entity, status tables.Entity, err error) {
	q := tables.Query{Partition: tables.EscapeKey(id), From: purgeRow, To: afterStatus}
	for e, err := range tables.All(ctx, j.tables, j.table, q) {
		switch {
		case err != nil:
			return nil, status, err
		case e.Row == statusRow:
			status = e
		case e.Row == purgeRow, strings.HasPrefix(e.Row, roundPrefix):
			rows = append(rows, e)
		}
	}
	return rows, status, nil
}

// fillBlobs puts the data of rounds that are in blobs into their rows.
func (j *journal) fillBlobs(ctx context.Context, id string, rows []tables.Entity) error {
	for _, e := range rows {
		name := e.String(columnBlob)
		if name == "" {
			continue
		}
		data, err := j.blobs.Get(ctx, j.container, blobName(id, name))
		if errors.Is(err, blobs.ErrNotFound) {
			err = fmt.Errorf("%w: %w", ErrCorrupt, err)
		}
		if err != nil {
			return fmt.Errorf("row %s: %w", e.Row, err)
		}
		e.Properties[columnData] = data
	}
	return nil
}

// resolveReused sets the payloads of results that an execution took over from an earlier one. If the earlier result is
// deleted, an execution that is kept for information only is marked as old.
func resolveReused(all []storedExecution) error {
	if !slices.ContainsFunc(all, storedExecution.reuses) {
		return nil
	}
	chain := all[len(all)-1].firstAttempt()
	type call struct{ execution, task int }
	results := map[call]*event{}
	for n := range all {
		g := &all[n]
		for _, r := range g.rounds {
			for i := range r.Learned {
				e := &r.Learned[i]
				if !e.reused() {
					results[call{g.number, e.Task}] = e
					continue
				}
				from, ok := results[call{e.Origin.Execution, e.Origin.Task}]
				if !ok && g.number < chain {
					g.old, g.incomplete = true, true
					continue
				}
				if !ok || from.Kind != e.Kind {
					return fmt.Errorf("execution %d takes over a result that execution %d does not have: %w",
						g.number, e.Origin.Execution, ErrCorrupt)
				}
				e.Payload = from.Payload
			}
		}
	}
	return nil
}

// reuses reports whether the execution has taken over results.
func (g storedExecution) reuses() bool {
	for _, r := range g.rounds {
		for i := range r.Learned {
			if r.Learned[i].reused() {
				return true
			}
		}
	}
	return false
}

// fetch loads spilled payloads from blobs. The inputs of calls are left out, because a replay makes them again and
// compares them by hash.
func (j *journal) fetch(ctx context.Context, id string, all []storedExecution) error {
	for _, g := range all {
		rounds := g.rounds
		if g.old {
			rounds = rounds[:min(len(rounds), 1)] // only the start of an old execution is still needed
		}
		if err := j.fetchRounds(ctx, id, rounds); err != nil {
			return err
		}
	}
	return nil
}

func (j *journal) fetchRounds(ctx context.Context, id string, rounds []round) error {
	for _, r := range rounds {
		for i := range r.Learned {
			if err := j.fetchOne(ctx, id, &r.Learned[i]); err != nil {
				return err
			}
		}
		for i := range r.Decided {
			e := &r.Decided[i]
			switch e.Kind {
			case executionCompleted, executionContinued, sideEffectRecorded, childDetached, eventPublished, eventSent:
				if err := j.fetchOne(ctx, id, e); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

func (j *journal) fetchOne(ctx context.Context, id string, e *event) error {
	for i := range e.Inherited.unread() {
		if err := j.fetchOne(ctx, id, &e.Inherited.Unread[i]); err != nil {
			return err
		}
	}
	if e.Blob == "" {
		return nil
	}
	payload, err := j.blobs.Get(ctx, j.container, blobName(id, e.Blob))
	if errors.Is(err, blobs.ErrNotFound) {
		err = fmt.Errorf("%w: %w", ErrCorrupt, err)
	}
	if err != nil {
		return fmt.Errorf("payload of %s: %w", e.Kind, err)
	}
	e.Payload = payload
	return nil
}
