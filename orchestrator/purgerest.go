package orchestrator

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/vibedata/roundhouse/blobs"
	"github.com/vibedata/roundhouse/internal/outage"
	"github.com/vibedata/roundhouse/tables"
)

// purgeSlice is the number of rows that one transaction deletes.
const purgeSlice = 99

// markPurge inserts a round that marks the rows as being deleted. It replaces the next execution and the status row,
// provided that the status row has this ETag.
func (j *journal) markPurge(ctx context.Context, id string, latest storedExecution, etag string, at time.Time) error {
	ctx, cancel := outage.Finish(ctx, storeTimeout)
	defer cancel()
	columns, _, err := j.codec.encode(new(roundBuffers), round{Learned: []event{{Kind: orchestrationPurged, At: at.UnixMicro()}}})
	if err == nil {
		partition := tables.EscapeKey(id)
		ops := append(executionMarker{number: latest.number + 1, kept: true}.startOps(partition, latest.marker()),
			tables.Delete(tables.Key{Partition: partition, Row: statusRow}, etag),
			tables.Upsert(tables.Entity{Key: tables.Key{Partition: partition, Row: purgeRow}}))
		err = j.insert(ctx, tables.Entity{Key: tables.Key{Partition: partition, Row: roundKey(latest.number+1, 1)}, Properties: columns}, ops...)
	}
	if err != nil {
		return fmt.Errorf("purge of orchestration %s: %w", id, err)
	}
	return nil
}

// finishPurge is purgeRest for an orchestration that is invisible; ErrNotFound means that it has no stored rows.
func (r *Runtime) finishPurge(ctx context.Context, id string) error {
	rows, _, err := r.journal.rows(ctx, id)
	if err == nil && len(rows) == 0 {
		err = fmt.Errorf("orchestration %s: %w", id, ErrNotFound)
	}
	if err != nil {
		return err
	}
	return r.purgeRest(ctx, id)
}

// isPurge reports whether the round marks a purge.
func (r round) isPurge() bool { return len(r.Learned) == 1 && r.Learned[0].Kind == orchestrationPurged }

// beingPurged reports whether a purge of these rows, as journal.rows returns them, has begun.
func beingPurged(rows []tables.Entity) bool {
	if len(rows) == 0 {
		return false
	}
	return rows[0].Row == purgeRow || isPurgeRow(rows[len(rows)-1])
}

// purgeRest finishes a purge, or does nothing if none has begun. The first round prevents a start under the id, and
// the purge row records that the purge has begun. Both are deleted last, together. Without a status row, no process
// can add a round meanwhile.
func (r *Runtime) purgeRest(ctx context.Context, id string) error {
	rows, _, err := r.journal.rows(ctx, id)
	if err != nil || !beingPurged(rows) {
		return err
	}
	marks := purgeMarks(rows)
	if err := r.purgeBlobs(ctx, id, marks[0]); err != nil {
		return err
	}
	if err := r.purgeRows(ctx, id, marks); err != nil {
		return fmt.Errorf("purge of orchestration %s: %w", id, err)
	}
	ops := make([]tables.Op, len(marks))
	for i, mark := range marks {
		ops[i] = tables.Delete(mark.Key, mark.ETag)
	}
	err = r.config.Tables.Apply(ctx, r.config.Table, ops...)
	if err != nil && purgedByAnother(err) && r.gone(ctx, marks[0]) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("purge of orchestration %s: %w", id, err)
	}
	return nil
}

// purgeMarks returns the rows that a purge deletes last: first the purge row, or the purge round if no such row
// exists, then the others.
func purgeMarks(rows []tables.Entity) []tables.Entity {
	first, last := 0, len(rows)-1
	if rows[0].Row == purgeRow {
		first = min(1, last)
	}
	marks := []tables.Entity{rows[0]}
	if rows[0].Row != purgeRow {
		marks[0] = rows[last]
	}
	for _, i := range slices.Compact([]int{first, last}) {
		if rows[i].Row != marks[0].Row && (i == first || isPurgeRow(rows[i])) {
			marks = append(marks, rows[i])
		}
	}
	return marks
}

// isPurgeRow reports whether the row holds a round that marks a purge.
func isPurgeRow(row tables.Entity) bool {
	r, err := decodeRound(row)
	return err == nil && r.isPurge()
}

// purgeRows deletes all rows but the marks. After a forced purge, only their rows identify the human tasks.
func (r *Runtime) purgeRows(ctx context.Context, id string, marks []tables.Entity) error {
	var before []tables.Entity
	q := tables.Query{Partition: tables.EscapeKey(id), Select: []string{columnEncoding}}
	for e, err := range tables.All(ctx, r.config.Tables, r.config.Table, q) {
		if err != nil {
			return err
		}
		if !slices.ContainsFunc(marks, func(mark tables.Entity) bool { return mark.Row == e.Row }) {
			before = append(before, e)
		}
	}
	if r.gone(ctx, marks[0]) {
		return nil // another purge has finished, and the rows may belong to a new orchestration with this id
	}
	if marks[0].Bool(columnForced) {
		if err := r.forgetTasks(ctx, id, before); err != nil {
			return err
		}
	}
	for slice := range slices.Chunk(before, purgeSlice) {
		if err := r.deleteRows(ctx, slice); err != nil {
			return err
		}
	}
	return nil
}

// gone reports whether a row was deleted or replaced.
func (r *Runtime) gone(ctx context.Context, row tables.Entity) bool {
	e, err := r.config.Tables.Get(ctx, r.config.Table, row.Key)
	return errors.Is(err, tables.ErrNotFound) || err == nil && e.ETag != row.ETag
}

// purgedByAnother reports whether a deletion failed because the row is gone, or belongs to an orchestration that has
// begun under the id since.
func purgedByAnother(err error) bool {
	return errors.Is(err, tables.ErrNotFound) || errors.Is(err, tables.ErrPrecondition)
}

// purgeBlobs deletes all blobs of the orchestration, named or not. The blobs that it has listed belong to the
// orchestration if the purge mark still exists afterwards. Blobs that were written since have other versions, and
// remain.
func (r *Runtime) purgeBlobs(ctx context.Context, id string, mark tables.Entity) error {
	ever := time.Date(9999, 1, 1, 0, 0, 0, 0, time.UTC)
	for next := ""; ; {
		found, then, err := r.config.Blobs.ListOld(ctx, r.config.Container, blobName(id, ""), ever, next)
		if errors.Is(err, blobs.ErrNotFound) || err == nil && len(found) > 0 && r.gone(ctx, mark) {
			return nil
		}
		for _, blob := range found {
			if err == nil {
				err = r.config.Blobs.DeleteVersion(ctx, r.config.Container, blob)
			}
			if errors.Is(err, blobs.ErrPrecondition) {
				err = nil // the blob is gone, or belongs to a new orchestration
			}
		}
		if err != nil {
			return fmt.Errorf("purge of orchestration %s: %w", id, err)
		}
		if next = then; next == "" {
			return nil
		}
	}
}

// dropBlob deletes a blob of an orchestration, if it exists; "" means no blob.
func (r *Runtime) dropBlob(ctx context.Context, id, hash string) error {
	if hash == "" {
		return nil
	}
	if err := r.config.Blobs.Delete(ctx, r.config.Container, blobName(id, hash)); err != nil && !errors.Is(err, blobs.ErrNotFound) {
		return fmt.Errorf("payload of orchestration %s: %w", id, err)
	}
	return nil
}

// deleteRows deletes rows of one partition; another purge may have deleted some of them.
func (r *Runtime) deleteRows(ctx context.Context, rows []tables.Entity) error {
	ops := make([]tables.Op, len(rows))
	for i, row := range rows {
		ops[i] = tables.Delete(row.Key, row.ETag)
	}
	err := r.config.Tables.Apply(ctx, r.config.Table, ops...)
	if err == nil || !purgedByAnother(err) {
		return err
	}
	for _, op := range ops {
		if err := r.config.Tables.Apply(ctx, r.config.Table, op); err != nil && !purgedByAnother(err) {
			return err
		}
	}
	return nil
}
