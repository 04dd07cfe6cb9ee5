package orchestrator

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/vibedata/roundhouse/blobs"
	"github.com/vibedata/roundhouse/tables"
)

// purgeSlice is how many rows one transaction deletes.
const purgeSlice = 99

// markPurge inserts the round that says that the rows are being deleted, in place of the next execution and of the status,
// as long as that is the one of etag.
func (j *journal) markPurge(ctx context.Context, id string, latest storedExecution, etag string, at time.Time) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), storeTimeout)
	defer cancel()
	columns, _, err := j.codec.encode(round{Learned: []event{{Kind: orchestrationPurged, At: at.UnixMicro()}}})
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

// finishPurge is purgeRest for an orchestration that nobody can see: ErrNotFound if there really is none.
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

// isPurge says that the round stands for a purge.
func (r round) isPurge() bool { return len(r.Learned) == 1 && r.Learned[0].Kind == orchestrationPurged }

// beingPurged says that a purge of these rows, as journal.rows gives them, has begun.
func beingPurged(rows []tables.Entity) bool {
	if len(rows) == 0 {
		return false
	}
	return rows[0].Row == purgeRow || isPurgeRow(rows[len(rows)-1])
}

// purgeRest carries a purge out, or does nothing where none has begun. The first round keeps others from starting under
// the id, and the row of the purge says that it has begun: they go last, together. There is no status meanwhile, so that
// whoever has known the orchestration cannot add a round to it.
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

// purgeMarks are the rows that a purge deletes last: that of the purge, or its round where it has no row, then the others.
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

// isPurgeRow says that the row holds the round that stands for a purge.
func isPurgeRow(row tables.Entity) bool {
	r, err := decodeRound(row)
	return err == nil && r.isPurge()
}

// purgeRows deletes all rows but the marks. Where the purge was forced, nobody has read which human tasks there are: it is
// their rows that tell.
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
		return nil // another purge has finished: what was found may be what has the id since
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

// gone says that a row is not there any more as it was.
func (r *Runtime) gone(ctx context.Context, row tables.Entity) bool {
	e, err := r.config.Tables.Get(ctx, r.config.Table, row.Key)
	return errors.Is(err, tables.ErrNotFound) || err == nil && e.ETag != row.ETag
}

// purgedByAnother says that a row is not there any more, or is that of an orchestration which has begun under the id since.
func purgedByAnother(err error) bool {
	return errors.Is(err, tables.ErrNotFound) || errors.Is(err, tables.ErrPrecondition)
}

// purgeBlobs deletes all that is stored for the orchestration, whatever names it. What it has listed is the orchestration's
// own if the mark of the purge is there after that; what is written under such a name since is not.
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
				err = nil // it is gone, or another orchestration's
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

// dropBlob deletes a blob of an orchestration, if it is there; "" is none.
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
