package orchestrator

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/vibedata/roundhouse/blobs"
	"github.com/vibedata/roundhouse/tables"
)

// load reads every execution of an orchestration, oldest first; none when there is no such orchestration, or it is being
// purged.
func (j *journal) load(ctx context.Context, id string) ([]generation, error) {
	all, _, err := j.loadTagged(ctx, id)
	return all, err
}

// loadTagged is load, with the ETag of the status: as long as it is that, there are these rounds.
func (j *journal) loadTagged(ctx context.Context, id string) ([]generation, string, error) {
	all, status, err := j.loadWith(ctx, id)
	return all, status.ETag, err
}

// loadStored is load, with the status.
func (j *journal) loadStored(ctx context.Context, id string) ([]generation, tables.Entity, error) {
	var none tables.Entity
	rows, status, err := j.rows(ctx, id)
	if err != nil {
		return nil, none, err
	}
	if beingPurged(rows) {
		return nil, none, nil
	}
	all, err := generations(rows)
	if err != nil {
		return nil, none, fmt.Errorf("load orchestration %s: %w", id, err)
	}
	switch n, version := int64(countOf(all)), status.Int("StateVersion"); {
	case n == version:
	case version == 0:
		return nil, none, fmt.Errorf("load orchestration %s: there are %d rounds, and no status row: %w", id, n, ErrCorrupt)
	default:
		return nil, none, fmt.Errorf("load orchestration %s: the status counts %d rounds, there are %d; round %d is missing: %w", id, version, n, n+1, ErrCorrupt)
	}
	if err := j.fetch(ctx, id, all); err != nil {
		return nil, none, err
	}
	return all, status, resolve(id, all)
}

// rows are the rounds as they are stored, and the status. Where a purge has begun, its row comes first.
func (j *journal) rows(ctx context.Context, id string) (rows []tables.Entity, status tables.Entity, err error) {
	q := tables.Query{Partition: tables.EscapeKey(id), From: purgeRow, To: afterStatus}
	for e, err := range tables.All(ctx, j.tables, j.table, q) {
		switch {
		case err != nil:
			return nil, status, fmt.Errorf("load orchestration %s: %w", id, err)
		case e.Row == statusRow:
			status = e
		case e.Row == purgeRow, strings.HasPrefix(e.Row, roundPrefix):
			rows = append(rows, e)
		}
	}
	return rows, status, nil
}

// resolve gives results that an execution took over from an earlier one their payload. What an execution took over that only
// tells how it went may be gone: then that is old, too.
func resolve(id string, all []generation) error {
	if len(all) == 0 {
		return nil
	}
	chain := all[len(all)-1].chain()
	type call struct{ execution, task int }
	results := map[call]event{}
	for n := range all {
		g := &all[n]
		for _, r := range g.rounds {
			for i := range r.Learned {
				e := &r.Learned[i]
				if !e.reused() {
					results[call{g.number, e.Task}] = *e
					continue
				}
				from, ok := results[call{e.Origin.Execution, e.Origin.Task}]
				if !ok && g.number < chain {
					g.old = true
					continue
				}
				if !ok || from.Kind != e.Kind {
					return fmt.Errorf("load orchestration %s: execution %d takes over a result that execution %d does not have: %w",
						id, g.number, e.Origin.Execution, ErrCorrupt)
				}
				e.Payload = from.Payload
			}
		}
	}
	return nil
}

// fetch puts spilled results back in place. Inputs of calls stay out: replay makes them again, and compares by hash.
func (j *journal) fetch(ctx context.Context, id string, all []generation) error {
	for _, g := range all {
		for n, r := range g.rounds {
			if g.old && n > 0 {
				break // it goes on to tell how it began
			}
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
		return fmt.Errorf("load orchestration %s: payload of %s: %w", id, e.Kind, err)
	}
	e.Payload = payload
	return nil
}
