package orchestrator

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/vibedata/roundhouse/blobs"
	"github.com/vibedata/roundhouse/orchestrator/tasks"
	"github.com/vibedata/roundhouse/tables"
)

// purgeSlice is how many rows one transaction deletes.
const purgeSlice = 99

// Purge deletes everything of an orchestration that has ended: its rows, its payloads, and the sub-orchestrations that it
// waited for, but not those that it only started. ErrActive says that one of them has not ended, ErrNotFound that there
// is none. A purge that was interrupted is invisible, and goes on when it is repeated, or when the id is started again.
func (r *Runtime) Purge(ctx context.Context, id string) error {
	return r.purge(ctx, id, map[string]bool{})
}

func (r *Runtime) purge(ctx context.Context, id string, seen map[string]bool) error {
	seen[id] = true
	all, etag, err := r.journal.loadTagged(ctx, id)
	if err != nil && !errors.Is(err, ErrCorrupt) {
		return err
	}
	if err != nil {
		return fmt.Errorf("purge: %w: delete the partition by hand", err)
	}
	if len(all) == 0 {
		return r.purgeLeft(ctx, id)
	}
	latest := all[len(all)-1]
	if latest.active() {
		return fmt.Errorf("purge of orchestration %s: %w", id, ErrActive)
	}
	alone := len(seen) == 1 // else its caller goes, too
	owed := func(d *driver, ctx context.Context, last round) error {
		d.tells = alone
		return d.emitOutward(ctx, last) // what it has called has ended, and goes with it
	}
	if err := r.payLast(ctx, id, all, owed); err != nil {
		return fmt.Errorf("purge of orchestration %s: %w", id, err)
	}
	for _, g := range all {
		for _, c := range summarize(id, g).Calls {
			if c.Kind == TaskCall {
				if err := r.Tasks().Forget(ctx, tasks.Ref{Orchestration: id, ID: c.TaskID()}); err != nil {
					return fmt.Errorf("purge of orchestration %s: %w", id, err)
				}
			}
			if c.Child == "" || seen[c.Child] {
				continue
			}
			if err := r.purge(ctx, c.Child, seen); err != nil && !errors.Is(err, ErrNotFound) {
				return fmt.Errorf("purge of orchestration %s: %w", id, err)
			}
		}
	}
	if len(all) < latest.number {
		if err := r.purgeForgotten(ctx, id, seen); err != nil {
			return fmt.Errorf("purge of orchestration %s: %w", id, err)
		}
	}
	// The first round of the next execution is what a restart, a rewind and a purge compete for.
	if err := r.journal.markPurge(ctx, id, latest, etag, r.config.Now()); err != nil {
		return lost(err)
	}
	return r.purgeRest(ctx, id)
}

// purgeForgotten purges the sub-orchestrations of executions whose rounds are deleted: their ids begin with that of their
// caller, unless they were given others.
func (r *Runtime) purgeForgotten(ctx context.Context, id string, seen map[string]bool) error {
	from := tables.EscapeKey(id + ":")
	scan := tables.Scan{Row: statusRow, FromPartition: from, ToPartition: tables.PrefixEnd(from)}
	var children []string
	for e, err := range tables.ScanAll(ctx, r.config.Tables, r.config.Table, scan) {
		if err != nil {
			return err
		}
		s, err := summaryOf(e)
		if err != nil {
			return err
		}
		if s.Parent == id && !seen[s.ID] {
			children = append(children, s.ID)
		}
	}
	for _, child := range children {
		if err := r.purge(ctx, child, seen); err != nil && !errors.Is(err, ErrNotFound) {
			return err
		}
	}
	return nil
}

// markPurge inserts the round that says that the rows are being deleted, in place of the next execution and of the status,
// as long as that is the one of etag.
func (j *journal) markPurge(ctx context.Context, id string, latest generation, etag string, at time.Time) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), storeTimeout)
	defer cancel()
	columns, _, err := j.codec.encode(round{Learned: []event{{Kind: orchestrationPurged, At: at.UnixMicro()}}})
	if err == nil {
		partition := tables.EscapeKey(id)
		ops := append(lineage{number: latest.number + 1, kept: true}.began(partition, latest.lineage()),
			tables.Delete(tables.Key{Partition: partition, Row: statusRow}, etag),
			tables.Upsert(tables.Entity{Key: tables.Key{Partition: partition, Row: purgeRow}}))
		err = j.insert(ctx, tables.Entity{Key: tables.Key{Partition: partition, Row: roundKey(latest.number+1, 1)}, Properties: columns}, ops...)
	}
	if err != nil {
		return fmt.Errorf("purge of orchestration %s: %w", id, err)
	}
	return nil
}

// purgeLeft is purgeRest for an orchestration that nobody can see: ErrNotFound if there really is none.
func (r *Runtime) purgeLeft(ctx context.Context, id string) error {
	rows, _, err := r.journal.rows(ctx, id)
	if err == nil && len(rows) == 0 {
		err = fmt.Errorf("orchestration %s: %w", id, ErrNotFound)
	}
	if err != nil {
		return err
	}
	return r.purgeRest(ctx, id)
}

// purges says that the round stands for a purge.
func (r round) purges() bool { return len(r.Learned) == 1 && r.Learned[0].Kind == orchestrationPurged }

// purgeRest carries a purge out, or does nothing where none has begun. The first round keeps others from starting under
// the id, and the last says that the rows are being purged: the two go last, together. There is no status meanwhile, so
// that whoever has known the orchestration cannot add a round to it.
func (r *Runtime) purgeRest(ctx context.Context, id string) error {
	rows, _, err := r.journal.rows(ctx, id)
	if err != nil || len(rows) == 0 {
		return err
	}
	last, err := decodeRound(rows[len(rows)-1])
	if err != nil || !last.purges() {
		return err
	}
	if err := r.deleteBlobs(ctx, id, ""); err != nil {
		return fmt.Errorf("purge of orchestration %s: %w", id, err)
	}
	first, mark := rows[0], rows[len(rows)-1]
	var before []tables.Entity
	q := tables.Query{Partition: tables.EscapeKey(id), Select: []string{columnEncoding}}
	for e, err := range tables.All(ctx, r.config.Tables, r.config.Table, q) {
		switch {
		case err != nil:
			return fmt.Errorf("purge of orchestration %s: %w", id, err)
		case e.Row != first.Row && e.Row != mark.Row && e.Row != purgeRow:
			before = append(before, e)
		}
	}
	for len(before) > 0 {
		n := min(len(before), purgeSlice)
		if err := r.deleteRows(ctx, before[:n]); err != nil {
			return fmt.Errorf("purge of orchestration %s: %w", id, err)
		}
		before = before[n:]
	}
	ops := []tables.Op{tables.Delete(mark.Key, mark.ETag), tables.Delete(tables.Key{Partition: mark.Partition, Row: purgeRow}, "")}
	if len(rows) > 1 {
		ops = append(ops, tables.Delete(first.Key, first.ETag))
	}
	err = r.config.Tables.Apply(ctx, r.config.Table, ops...)
	if err != nil && purgedByAnother(err) && r.gone(ctx, mark) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("purge of orchestration %s: %w", id, err)
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

// deleteBlobs deletes the orchestration's blobs whose names begin so, whatever names them.
func (r *Runtime) deleteBlobs(ctx context.Context, id, prefix string) error {
	for name, err := range blobs.All(ctx, r.config.Blobs, r.config.Container, blobName(id, prefix)) {
		if err == nil {
			err = r.config.Blobs.Delete(ctx, r.config.Container, name)
		}
		if err != nil && !errors.Is(err, blobs.ErrNotFound) {
			return err
		}
	}
	return nil
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
