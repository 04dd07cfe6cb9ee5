package orchestrator

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/vibedata/roundhouse/blobs"
	"github.com/vibedata/roundhouse/orchestrator/tasks"
	"github.com/vibedata/roundhouse/tables"
)

// purgeSlice is how many rows one transaction deletes.
const purgeSlice = 99

// Purge deletes everything of an orchestration that has ended: its rows, its payloads, and the sub-orchestrations that it
// waited for, but not those that it only started. ErrActive says that one of them has not ended, ErrNotFound that there
// is none, ErrCorrupt that one cannot be read: that is for ForcePurge. A purge that was interrupted is invisible, and goes on
// when it is repeated, or when the id is started again.
func (r *Runtime) Purge(ctx context.Context, id string) error {
	if !validID(id) {
		return fmt.Errorf("orchestration %.400q: %w", id, ErrNotFound)
	}
	return r.purge(ctx, id, purging{top: id, seen: map[string]bool{}})
}

// purging is a purge on its way from an orchestration to those that it waited for.
type purging struct {
	top  string
	seen map[string]bool
	// force takes what is damaged, too, and terminates what its caller leaves behind.
	force bool
}

func (r *Runtime) purge(ctx context.Context, id string, p purging) error {
	p.seen[id] = true
	if p.force {
		return r.forcePurge(ctx, id, p)
	}
	all, etag, err := r.journal.loadTagged(ctx, id)
	if err != nil {
		return fmt.Errorf("purge: %w", err)
	}
	return r.purgeLoaded(ctx, id, all, etag, p)
}

// purgeLoaded is purge for an orchestration that can be read.
func (r *Runtime) purgeLoaded(ctx context.Context, id string, all []generation, etag string, p purging) error {
	if len(all) == 0 {
		return r.purgeLeft(ctx, id)
	}
	latest := all[len(all)-1]
	if latest.active() {
		return fmt.Errorf("purge of orchestration %s: %w", id, ErrActive)
	}
	owed := func(d *driver, ctx context.Context, last round) error {
		d.tells = id == p.top           // else its caller goes, too
		return d.emitOutward(ctx, last) // what it has called has ended, and goes with it
	}
	if err := r.payLast(ctx, id, all, owed); err != nil {
		return fmt.Errorf("purge of orchestration %s: %w", id, err)
	}
	if err := r.purgeCalls(ctx, id, all, p); err != nil {
		return fmt.Errorf("purge of orchestration %s: %w", id, err)
	}
	// The first round of the next execution is what a restart, a rewind and a purge compete for.
	if err := r.journal.markPurge(ctx, id, latest, etag, r.config.Now()); err != nil {
		return lost(err)
	}
	return r.purgeRest(ctx, id)
}

// purgeCalls purges the human tasks and the sub-orchestrations of one that can be read.
func (r *Runtime) purgeCalls(ctx context.Context, id string, all []generation, p purging) error {
	for _, g := range all {
		for _, c := range summarize(id, g).Calls {
			if c.Kind == TaskCall {
				if err := r.Tasks().Forget(ctx, tasks.Ref{Orchestration: id, ID: c.TaskID()}); err != nil {
					return err
				}
			}
			if c.Child == "" || p.seen[c.Child] {
				continue
			}
			if err := r.purgeChild(ctx, c.Child, c.Close, p); err != nil {
				return err
			}
		}
	}
	if len(all) == all[len(all)-1].number {
		return nil
	}
	return r.purgeForgotten(ctx, id, p)
}

// purgeChild purges a sub-orchestration whose caller goes. A forced purge leaves one alone that was to be abandoned and goes
// on.
func (r *Runtime) purgeChild(ctx context.Context, id string, policy ParentClose, p purging) error {
	if p.force && policy == AbandonChild {
		if s, err := r.Status(ctx, id); err == nil && !s.Ended() {
			p.seen[id] = true
			return nil
		}
	}
	if err := r.purge(ctx, id, p); !errors.Is(err, ErrNotFound) {
		return err
	}
	return nil
}

// purgeForgotten purges the sub-orchestrations of rounds that are deleted, or damaged: their ids begin with that of their
// caller, unless they were given others.
func (r *Runtime) purgeForgotten(ctx context.Context, id string, p purging) error {
	children, err := r.scanChildren(ctx, id, statusRow, func(e tables.Entity) string { return e.String("ParentId") })
	if err == nil && p.force { // one of them may have no status any more
		var more []string
		more, err = r.scanChildren(ctx, id, roundKey(1, 1), parentIn)
		children = append(children, more...)
	}
	for _, child := range children {
		if err == nil && !p.seen[child] {
			err = r.purgeChild(ctx, child, "", p)
		}
	}
	return err
}

// parentIn is the caller of the orchestration that the round began, "" where it does not tell.
func parentIn(first tables.Entity) string {
	r, err := decodeRound(first)
	if err != nil || len(r.Learned) == 0 {
		return ""
	}
	return r.Learned[0].Parent
}

// scanChildren finds sub-orchestrations by their ids, and by a row that tells their caller.
func (r *Runtime) scanChildren(ctx context.Context, id, row string, parent func(tables.Entity) string) ([]string, error) {
	from := tables.EscapeKey(id + ":")
	scan := tables.Scan{Row: row, FromPartition: from, ToPartition: tables.PrefixEnd(from)}
	var children []string
	for e, err := range tables.ScanAll(ctx, r.config.Tables, r.config.Table, scan) {
		if err != nil {
			return nil, err
		}
		child, err := tables.UnescapeKey(e.Partition)
		if err != nil {
			r.metNameless(ctx, e.Partition, err)
			continue
		}
		if parent(e) == id {
			children = append(children, child)
		}
	}
	return children, nil
}

// markPurge inserts the round that says that the rows are being deleted, in place of the next execution and of the status,
// as long as that is the one of etag.
func (j *journal) markPurge(ctx context.Context, id string, latest generation, etag string, at time.Time) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), storeTimeout)
	defer cancel()
	columns, err := j.codec.encode(round{Learned: []event{{Kind: orchestrationPurged, At: at.UnixMicro()}}})
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

// beingPurged says that a purge of these rows, as journal.rows gives them, has begun.
func beingPurged(rows []tables.Entity) bool {
	if len(rows) == 0 {
		return false
	}
	return rows[0].Row == purgeRow || isPurge(rows[len(rows)-1])
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
		if rows[i].Row != marks[0].Row && (i == first || isPurge(rows[i])) {
			marks = append(marks, rows[i])
		}
	}
	return marks
}

// isPurge says that the row holds the round that stands for a purge.
func isPurge(row tables.Entity) bool {
	r, err := decodeRound(row)
	return err == nil && r.purges()
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
